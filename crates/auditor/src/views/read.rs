//! Views as they are written in a certificate.

use super::world::{ANY, Frame, NONE, Pending, Pos, ROOM, Sort, Store, World};
use wattle_evidence::certificate::Corrupt;
use wattle_memory::MemoryModel;

impl Frame<'_> {
    /// A view as it is written in a certificate.
    pub fn read(&self, bytes: &[u8]) -> Result<World, Corrupt> {
        let mut rest = bytes.iter().copied();
        let mut next = || rest.next().ok_or(Corrupt("a view is too short"));
        let value = |b: u8, sort: Sort| match (b, sort) {
            (255, _) => Ok(ANY),
            (254, Sort::Thread) => Ok(NONE),
            (b, Sort::Finite(n)) if u16::from(b) < n => Ok(Pos::from(b)),
            (b, Sort::Thread | Sort::Number(_)) if b < 254 => Ok((Pos::from(b) + 1) * ROOM),
            _ => Err(Corrupt("a value that the cell cannot have")),
        };
        let known = |p: Pos| match p {
            ANY | NONE => Err(Corrupt("a thread or constant without a position")),
            p => Ok(p),
        };
        let mut w = self.blank(2);
        for p in &mut w.me {
            *p = known(value(next()?, Sort::Thread)?)?;
        }
        for p in &mut w.anchors {
            *p = known(value(next()?, Sort::Number(true))?)?;
        }
        let apart = match self.ordered {
            true => w.me[0] < w.me[1],
            false => w.me[0] != w.me[1],
        };
        if !apart || w.anchors.windows(2).any(|a| a[0] >= a[1]) {
            return Err(Corrupt("positions that are not in order"));
        }
        for (arity, element) in [(0, 0), (1, 0), (1, 1)] {
            for (c, cell) in self.system.cells.iter().enumerate() {
                if cell.arity == arity {
                    w.memory[c][element] = value(next()?, self.sorts[c])?;
                }
            }
        }
        for (c, cell) in self.system.cells.iter().enumerate() {
            if cell.arity == 2 {
                for element in 0..4 {
                    w.memory[c][element] = value(next()?, self.sorts[c])?;
                }
            }
        }
        if self.model != MemoryModel::Sc {
            for t in 0..2 {
                for _ in 0..next()? {
                    let head = next()?;
                    let mut stores = Vec::new();
                    for _ in 0..head / 2 {
                        let cell = u16::from(next()?);
                        let decl = self.system.cells.get(usize::from(cell));
                        let decl = decl
                            .filter(|d| d.weak)
                            .ok_or(Corrupt("no such weak cell"))?;
                        let args = [next()?, next()?];
                        let of = args[..usize::from(decl.arity)].iter();
                        let of = of.map(|b| known(value(*b, Sort::Thread)?));
                        stores.push(Store {
                            cell,
                            of: of.collect::<Result<_, _>>()?,
                            value: value(next()?, self.sort(cell))?,
                        });
                    }
                    w.pending[t].push(Pending {
                        stores,
                        repeated: head % 2 == 1,
                    });
                }
            }
        }
        if !self.kept.is_empty() {
            for _ in 0..next()? {
                let cell = u16::from(next()?);
                let of = known(value(next()?, Sort::Thread)?)?;
                let value = match self.kept.contains(&cell) {
                    true => value(next()?, self.sort(cell))?,
                    false => return Err(Corrupt("it does not keep such cells")),
                };
                w.looked.push((cell, vec![of], value));
            }
        }
        match next() {
            Ok(_) => Err(Corrupt("a view is too long")),
            Err(_) => Ok(w),
        }
    }
}
