//! Values of terms and formulas in a state.

use super::{Entry, Machine, State};
use wattle_model::array::{Access, Comparison, Formula, Literal, Term, ThreadTerm};

impl Machine<'_> {
    pub(super) fn thread(&self, t: ThreadTerm, env: &[u8]) -> u8 {
        match t {
            ThreadTerm::Param(i) => env[usize::from(i)],
            ThreadTerm::Constant(k) => k as u8,
        }
    }

    /// The value of a cell: a weak one is seen by its reader (newest own buffered value, else
    /// memory); without a reader it is the value in memory.
    fn read(&self, state: &State, a: &Access, env: &[u8], actor: Option<u8>) -> Option<i64> {
        let mut args = [0u8; 3];
        for (slot, t) in args.iter_mut().zip(&a.args) {
            *slot = self.thread(*t, env);
            if *slot == 0 || *slot > self.threads {
                return None;
            }
        }
        let position = self.position(a.cell, &args[..a.args.len()]);
        let reader = a.reader.map(|r| self.thread(r, env)).or(actor);
        if self.buffered(a.cell)
            && let Some(r) = reader
        {
            let buffer = state.buffers.get(usize::from(r).checked_sub(1)?)?;
            for entry in buffer.iter().rev() {
                if let Entry::Writes(writes) = entry
                    && let Some((_, v)) = writes.iter().rev().find(|(p, _)| *p == position)
                {
                    return Some(*v);
                }
            }
        }
        Some(state.values[position])
    }

    pub(super) fn term(
        &self,
        state: &State,
        t: &Term,
        env: &[u8],
        actor: Option<u8>,
    ) -> Option<i64> {
        match t {
            Term::Bool(b) => Some(i64::from(*b)),
            Term::Constructor(_, c) => Some(i64::from(*c)),
            Term::Thread(t) => Some(i64::from(self.thread(*t, env))),
            Term::Read(a) => self.read(state, a, env, actor),
            Term::Sum { parts, constant } => {
                let mut sum = *constant;
                for (c, a) in parts {
                    let v = self.read(state, a, env, actor)?;
                    sum = sum.checked_add(c.checked_mul(v)?)?;
                }
                Some(sum)
            }
        }
    }

    fn literal(&self, state: &State, l: &Literal, env: &[u8], actor: Option<u8>) -> bool {
        let (Some(a), Some(b)) = (
            self.term(state, &l.left, env, actor),
            self.term(state, &l.right, env, actor),
        ) else {
            return false;
        };
        match l.op {
            Comparison::Eq => a == b,
            Comparison::Ne => a != b,
            Comparison::Lt => a < b,
            Comparison::Le => a <= b,
        }
    }

    /// Whether the formula holds; the first `params` threads of `env` are not "other".
    pub(super) fn holds(
        &self,
        state: &State,
        f: &Formula,
        env: &mut Vec<u8>,
        params: usize,
        actor: Option<u8>,
    ) -> bool {
        match f {
            Formula::And(list) => list
                .iter()
                .all(|g| self.holds(state, g, env, params, actor)),
            Formula::Or(list) => list
                .iter()
                .any(|g| self.holds(state, g, env, params, actor)),
            Formula::Atom(l) => self.literal(state, l, env, actor),
            Formula::ForallOther { body, .. } => (1..=self.threads).all(|t| {
                if env[..params].contains(&t) {
                    return true;
                }
                env.push(t);
                let holds = self.holds(state, body, env, params, actor);
                env.pop();
                holds
            }),
        }
    }
}
