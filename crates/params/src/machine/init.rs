//! Initial states: everything `init` determines, and the choices it leaves.

use super::ground::{Condition, Names, thread};
use super::{Machine, State, advance};
use wattle_model::array::{Comparison, Formula, Term, Value};

/// Numbers to try where any number is allowed, and how many initial states to make at most.
#[derive(Clone, Debug)]
pub struct Candidates {
    pub numbers: Vec<i64>,
    pub limit: usize,
}

impl Candidates {
    /// 0, 1 and the numbers of the system with their neighbours, smallest first.
    pub fn of(system: &wattle_model::array::ArraySystem) -> Self {
        let mut numbers = vec![0, 1];
        let mut add = |t: &Term| {
            if let Term::Sum { constant, .. } = t {
                numbers.extend([
                    *constant,
                    constant.saturating_add(1),
                    constant.saturating_sub(1),
                ]);
            }
        };
        let formulas = std::iter::once(&system.init)
            .chain(&system.bad)
            .map(|q| &q.body)
            .chain(system.transitions.iter().map(|t| &t.guard));
        for f in formulas {
            f.for_each_literal(&mut |l| {
                add(&l.left);
                add(&l.right);
            });
        }
        for b in system
            .transitions
            .iter()
            .flat_map(|t| &t.updates)
            .flat_map(|u| &u.branches)
        {
            if let Value::Term(t) = &b.value {
                add(t);
            }
        }
        numbers.sort_by_key(|n| (n.unsigned_abs(), *n));
        numbers.dedup();
        numbers.truncate(6);
        Candidates {
            numbers,
            limit: 2000,
        }
    }
}

impl Machine<'_> {
    /// Initial states, and whether these are all of them.
    pub fn initial(&self, candidates: &Candidates) -> (Vec<State>, bool) {
        self.initial_among(candidates, &|_| None)
    }

    /// Initial states whose cells have one of the values wished for, where there is a wish.
    pub fn initial_among(
        &self,
        candidates: &Candidates,
        wish: &dyn Fn(usize) -> Option<Vec<i64>>,
    ) -> (Vec<State>, bool) {
        let mut fixed: Vec<Option<i64>> = vec![None; self.size()];
        self.determined(&mut fixed);
        let mut complete = true;
        let mut domains: Vec<Vec<i64>> = Vec::new();
        let mut total = 1usize;
        for (position, value) in fixed.iter().enumerate() {
            let (cell, _) = self.cell_at(position);
            let ty = self.system.cell(cell).ty;
            let mut domain = match value {
                Some(v) => vec![*v],
                None => self.domain(ty, candidates),
            };
            let numbers = matches!(
                ty,
                wattle_model::array::CellType::Int | wattle_model::array::CellType::Real
            );
            complete &= value.is_some()
                || self.system.values(ty).is_some()
                || ty == wattle_model::array::CellType::Thread;
            if value.is_none() {
                domain = match wish(position) {
                    Some(values) => values,
                    None => self.possible(position, domain),
                };
            }
            if total.saturating_mul(domain.len()) > candidates.limit && domain.len() > 1 {
                domain.truncate(if numbers {
                    1
                } else {
                    (candidates.limit / total).max(1)
                });
                complete = false;
            }
            total = total.saturating_mul(domain.len().max(1));
            domains.push(domain);
        }
        let init = self.init();
        let mut states = Vec::new();
        let mut index = vec![0usize; domains.len()];
        if domains.iter().any(Vec::is_empty) {
            return (states, complete);
        }
        loop {
            let values = index.iter().zip(&domains).map(|(i, d)| d[*i]).collect();
            let state = State {
                values,
                buffers: vec![Vec::new(); usize::from(self.threads)],
            };
            if self.starts(&init, &state) {
                states.push(state);
            }
            let next = index.iter_mut().zip(&domains).rev().find_map(|(i, d)| {
                *i += 1;
                if *i < d.len() {
                    return Some(());
                }
                *i = 0;
                None
            });
            if next.is_none() {
                return (states, complete);
            }
        }
    }

    /// Values that do not contradict a literal about this cell and constants alone; nobody (0) if
    /// every thread is excluded.
    fn possible(&self, position: usize, domain: Vec<i64>) -> Vec<i64> {
        let blank = State {
            values: vec![0; self.size()].into(),
            buffers: vec![Vec::new(); usize::from(self.threads)],
        };
        let allowed = |v: &i64| {
            let mut state = blank.clone();
            state.values[position] = *v;
            let mut good = true;
            self.each_choice(&mut |env| {
                for f in self.system.init.body.conjuncts() {
                    let mut mine = 0;
                    let mut others = 0;
                    f.for_each_access(&mut |a| {
                        let args: Vec<u8> = a.args.iter().map(|t| thread(*t, env)).collect();
                        if self.position(a.cell, &args) == position {
                            mine += 1
                        } else {
                            others += 1
                        }
                    });
                    if mine > 0 && others == 0 {
                        let names = Names { env, actor: None };
                        good &= self.condition(f, names, env.len()).holds(&state);
                    }
                }
            });
            good
        };
        let kept: Vec<i64> = domain.into_iter().filter(allowed).collect();
        let (cell, _) = self.cell_at(position);
        let thread = self.system.cell(cell).ty == wattle_model::array::CellType::Thread;
        match kept.is_empty() && thread {
            true => vec![0],
            false => kept,
        }
    }

    fn each_choice(&self, visit: &mut dyn FnMut(&[u8])) {
        let mut env = vec![1u8; self.system.init.params.len()];
        loop {
            visit(&env);
            if !advance(&mut env, self.threads) {
                return;
            }
        }
    }

    /// Cells that a conjunct `cell = value` of `init` fixes.
    fn determined(&self, fixed: &mut [Option<i64>]) {
        let blank = State {
            values: vec![0; self.size()].into(),
            buffers: vec![Vec::new(); usize::from(self.threads)],
        };
        self.each_choice(&mut |env| {
            for f in self.system.init.body.conjuncts() {
                let Formula::Atom(l) = f else { continue };
                if l.op != Comparison::Eq {
                    continue;
                }
                for (cell, value) in [(&l.left, &l.right), (&l.right, &l.left)] {
                    let access = match cell {
                        Term::Read(a) => a,
                        Term::Sum { parts, constant: 0 } if parts.len() == 1 && parts[0].0 == 1 => {
                            &parts[0].1
                        }
                        Term::Bool(_)
                        | Term::Constructor(..)
                        | Term::Thread(_)
                        | Term::Sum { .. } => continue,
                    };
                    let mut closed = true;
                    value.for_each_access(&mut |_| closed = false);
                    if closed {
                        let args: Vec<u8> = access.args.iter().map(|t| thread(*t, env)).collect();
                        fixed[self.position(access.cell, &args)] = (self
                            .sum(value, Names { env, actor: None }))
                        .and_then(|sum| sum.value(&blank));
                    }
                }
            }
        });
    }

    /// Whether the state satisfies `init` for every choice of threads, and no axiom is broken.
    pub fn is_initial(&self, state: &State) -> bool {
        self.starts(&self.init(), state)
    }

    fn starts(&self, init: &Condition, state: &State) -> bool {
        state.buffers.iter().all(Vec::is_empty) && init.holds(state) && !self.excluded(state)
    }

    /// `init` for every choice of threads.
    fn init(&self) -> Condition {
        let mut all = Vec::new();
        self.each_choice(&mut |env| {
            let names = Names { env, actor: None };
            all.push(self.condition(&self.system.init.body, names, env.len()));
        });
        Condition::all(all)
    }
}
