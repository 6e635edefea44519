//! Threads without constants and without order are alike: one view stands for all that differ from
//! it by a renaming of threads.

use crate::machine::{Entry, Machine};
use crate::view::View;
use crate::work;
use wattle_model::array::{CellType, Comparison, Term};

/// The renamings of an instance; only the identity if threads are not alike.
pub struct Symmetry {
    /// For each renaming the new number of each thread (0 is nobody) and of each position.
    renamings: Vec<(Vec<u8>, Vec<usize>)>,
    /// For each renaming the old number of each position.
    back: Vec<Vec<usize>>,
    /// Positions that hold threads.
    threads: Vec<bool>,
}

impl Machine<'_> {
    pub fn symmetry(&self) -> Symmetry {
        let n = self.threads;
        let mut orders: Vec<Vec<u8>> = vec![vec![0]];
        if n <= 4 && alike(self.system) {
            for t in 1..=n {
                let longer = |o: &Vec<u8>| -> Vec<Vec<u8>> {
                    let all = 1..=usize::from(t);
                    all.map(|i| {
                        let mut o = o.clone();
                        o.insert(i, t);
                        o
                    })
                    .collect()
                };
                orders = orders.iter().flat_map(longer).collect();
            }
        } else {
            orders = vec![(0..=n).collect()];
        }
        let renamings: Vec<(Vec<u8>, Vec<usize>)> = orders
            .into_iter()
            .map(|o| {
                let place = |p: usize| {
                    let (cell, args) = self.cell_at(p);
                    let args: Vec<u8> = args.iter().map(|a| o[usize::from(*a)]).collect();
                    self.position(cell, &args)
                };
                let positions = (0..self.size()).map(place).collect();
                (o, positions)
            })
            .collect();
        let back = renamings.iter().map(|(_, places)| {
            let mut back = vec![0; places.len()];
            places.iter().enumerate().for_each(|(p, q)| back[*q] = p);
            back
        });
        Symmetry {
            back: back.collect(),
            threads: (0..self.size())
                .map(|p| self.type_at(p) == CellType::Thread)
                .collect(),
            renamings,
        }
    }
}

fn alike(system: &wattle_model::array::ArraySystem) -> bool {
    let mut alike = system.greatest_constant() == 0;
    let formulas = system.transitions.iter().map(|t| &t.guard);
    let conditions = system.transitions.iter().flat_map(|t| &t.updates);
    let conditions = conditions.flat_map(|u| u.branches.iter().map(|b| &b.condition));
    let bad = system.bad.iter().chain(&system.assumed).map(|q| &q.body);
    for f in formulas.chain(conditions).chain(bad) {
        f.for_each_literal(&mut |l| {
            let ordered = matches!(l.op, Comparison::Lt | Comparison::Le);
            alike &= !ordered || matches!(l.left, Term::Sum { .. });
        });
    }
    alike
}

impl Symmetry {
    /// Of all renamings of cells alone the least.
    pub fn least_values(&self, values: &[i64], out: &mut Vec<i64>) {
        let renamed = |r: usize, q: usize| {
            let p = self.back[r][q];
            self.value(&self.renamings[r].0, p, values[p])
        };
        work::many(work::RENAMED, self.renamings.len());
        let mut best = 0;
        for r in 1..self.renamings.len() {
            let mut pairs = (0..values.len()).map(|q| (renamed(r, q), renamed(best, q)));
            if pairs.find(|(a, b)| a != b).is_some_and(|(a, b)| a < b) {
                best = r;
            }
        }
        out.clear();
        out.extend((0..values.len()).map(|q| renamed(best, q)));
    }

    /// What a position holds, with threads renamed.
    fn value(&self, threads: &[u8], position: usize, v: i64) -> i64 {
        let renamed = usize::try_from(v).ok().and_then(|v| threads.get(v));
        match (self.threads[position], renamed) {
            (true, Some(t)) => i64::from(*t),
            (true | false, _) => v,
        }
    }

    /// The least of all renamed views.
    pub fn least(&self, view: View) -> View {
        if self.renamings.len() < 2 {
            return view;
        }
        work::many(work::RENAMED, self.renamings.len());
        let all = self.renamings.iter().map(|(threads, places)| {
            let value = |p: usize, v: i64| self.value(threads, p, v);
            let write = |w: &Vec<(usize, i64)>| -> Vec<(usize, i64)> {
                w.iter().map(|(p, v)| (places[*p], value(*p, *v))).collect()
            };
            let mut values = view.values.clone();
            for (p, v) in view.values.iter().enumerate() {
                values[places[p]] = value(p, *v);
            }
            let mut moments = view.moments.clone();
            let mut buffers = view.buffers.clone();
            for (t, (m, b)) in view.moments.iter().zip(&view.buffers).enumerate() {
                let new = usize::from(threads[t + 1]) - 1;
                moments[new] = *m;
                buffers[new] = b
                    .iter()
                    .map(|e| match e {
                        Entry::Writes(w) => Entry::Writes(write(w)),
                        Entry::Mark => Entry::Mark,
                    })
                    .collect();
            }
            let group = |g: &Vec<(u8, usize, i64)>| {
                let renamed = g
                    .iter()
                    .map(|(t, p, v)| (threads[usize::from(*t)], places[*p], value(*p, *v)));
                renamed.collect()
            };
            let writes = view.writes.iter().map(group).collect();
            View {
                values,
                writes,
                moments,
                buffers,
            }
        });
        all.min().unwrap_or(view)
    }
}
