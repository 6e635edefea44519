//! Which of the states that differ in who is who is stored: see [`super::alike`].

use super::alike::{Alike, Shape};
use super::{AuditError, Buffer, Space, Stuck};
use wattle_memory::Layout;
use wattle_memory::content::Content;
use wattle_model::{CellId, Numbers};

impl<L: Layout, C: Content<Value = i64>> Space<'_, L, C> {
    /// Makes of a state the one of those that differ in who is who that is stored.
    pub(super) fn sort(&mut self, row: &mut [u64]) -> Result<(), Stuck> {
        let Some(mut alike) = self.alike.take() else {
            return Ok(());
        };
        let sorted = (0..alike.classes.len()).try_for_each(|c| self.sort_class(row, &mut alike, c));
        self.alike = Some(alike);
        sorted
    }

    fn sort_class(&mut self, row: &mut [u64], alike: &mut Alike, c: usize) -> Result<(), Stuck> {
        let n = self.threads();
        let class = &alike.classes[c];
        let count = class.threads.len();
        // Of each thread: its shape, and what its own cells hold.
        let mut all: Vec<(u32, Vec<i64>, usize)> = Vec::with_capacity(count);
        for i in 0..count {
            let t = alike.classes[c].threads[i];
            let part = self.rows.get(row, t);
            let own = self.moves.part(t, part);
            let shape = alike.number(c, i, part, |cell| -> Shape {
                let entries = L::entries::<C>(&own.buffer).into_iter();
                let entries = entries.map(|(c, v)| (cell(c), v)).collect();
                (own.at, own.registers.clone(), entries)
            });
            let cells = alike.classes[c].own[i].iter();
            let value =
                |c: &usize| self.moves.values[*c].all[self.rows.get(row, n + 1 + c) as usize];
            all.push((shape, cells.map(value).collect(), i));
        }
        if all.is_sorted_by(|a, b| (a.0, &a.1) <= (b.0, &b.1)) {
            return Ok(());
        }
        all.sort();
        let holder = self.rows.get(row, n);
        for (i, (shape, values, was)) in all.into_iter().enumerate() {
            let t = alike.classes[c].threads[i];
            let part = match alike.part(c, i, shape) {
                Some(part) => part,
                None => {
                    let (at, registers, entries) = alike.shape(c, shape).clone();
                    let entries = entries.into_iter();
                    let entries = entries
                        .map(|(cell, v)| (alike.cell(c, i, cell), v))
                        .collect();
                    let buffer = self.buffer(t, entries)?;
                    let part = self.moves.number(t, at, registers, buffer);
                    alike.is_part(c, i, shape, part);
                    part
                }
            };
            self.rows.set(row, t, part)?;
            for (k, value) in values.into_iter().enumerate() {
                let cell = alike.classes[c].own[i][k];
                let value = self.moves.values[cell].number(value);
                self.rows.set(row, n + 1 + cell, value)?;
            }
            if holder as usize == alike.classes[c].threads[was] + 1 {
                self.rows.set(row, n, t as u32 + 1)?;
            }
        }
        Ok(())
    }

    /// The buffer with these entries, which were put in this order.
    fn buffer(&self, t: usize, entries: Vec<(CellId, i64)>) -> Result<Buffer<L, C>, Stuck> {
        let mut buffer = L::empty::<C>(&self.bounds[t]);
        for entry in entries {
            let put = L::put::<C, _>(&mut Numbers, &mut buffer, &self.bounds[t], entry);
            if !matches!(put, Ok(None)) {
                return Err(AuditError::Other("a buffer cannot be filled".into()).into());
            }
        }
        Ok(buffer)
    }
}
