//! An existential fact about all threads: the first and the last, in the order of threads, whose cell has
//! one of a few values; nobody if there is none.
//!
//! Views of two threads cannot say that somebody else is in the way: dropping that thread leaves a view
//! in which nobody is. The two witnesses are part of every view, as if scalars named them; so it is known
//! that there is such a thread, and whether somebody who looks at one thread after the other has passed
//! all of them.

use super::assume::Rules;
use super::state::{NOBODY, State, UNKNOWN, Val, Write};
use crate::compile::{Compiled, Lit};
use wattle_model::array::ThreadTerm;

/// Facts that are tried.
const MOST: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Witness {
    /// In memory, not as somebody sees it.
    pub cell: u16,
    pub values: u128,
}

impl Witness {
    fn shows(&self, value: Val) -> bool {
        value < NOBODY && self.values >> value & 1 != 0
    }
}

/// What somebody looks for in the cells of others and nobody has at first, the most special first.
pub fn candidates(compiled: &Compiled<'_>) -> Vec<Witness> {
    let mut out: Vec<Witness> = Vec::new();
    for t in &compiled.transitions {
        let me = [ThreadTerm::Param(t.actor.unwrap_or(0))];
        for l in t.guard.iter().flatten() {
            let Lit::In(a, values) = l else { continue };
            let w = Witness {
                cell: a.cell,
                values: *values,
            };
            if a.args.len() == 1 && a.args != me && !out.contains(&w) {
                out.push(w);
            }
        }
    }
    out.retain(|w| {
        let mut at_first = compiled.init.iter().map(|conj| {
            let values = |l: &Lit| match l {
                Lit::In(a, values) if a.cell == w.cell => Some(*values),
                Lit::In(..)
                | Lit::IsThread(..)
                | Lit::Same(..)
                | Lit::Threads(..)
                | Lit::Number(..) => None,
            };
            conj.iter().filter_map(values).fold(u128::MAX, |a, b| a & b)
        });
        at_first.all(|values| values & w.values == 0)
    });
    out.sort_by_key(|w| (w.values.count_ones(), std::cmp::Reverse(w.values), w.cell));
    out.truncate(MOST);
    out
}

impl Rules<'_> {
    /// Whether what is known of threads agrees with who are the witnesses.
    pub fn consistent(&self, state: &State) -> bool {
        let Some((w, at)) = self.shape.witness_at(state.solids()) else {
            return true;
        };
        let (first, last) = (state.vals[at], state.vals[at + 1]);
        let fits = |thread: Val, value: Val| match (value, w.shows(value)) {
            (UNKNOWN, _) => true,
            (_, false) => thread != first && thread != last,
            (_, true) => first != NOBODY && first <= thread && thread <= last,
        };
        let solids = (0..state.solids()).all(|t| {
            let place = self.shape.position(state.solids(), w.cell, &[t]);
            fits(state.vals[t], state.vals[place])
        });
        let mut others = state.extra.iter().filter(|x| x.0 == w.cell);
        let ordered = (first == NOBODY) == (last == NOBODY) && first <= last;
        ordered && solids && others.all(|(_, of, value)| fits(of[0], *value))
    }

    /// The states after the writes with each two threads that may be the witnesses now.
    pub fn witnessed(&self, state: State, writes: &[Write], emit: &mut dyn FnMut(State)) {
        let Some((w, at)) = self.shape.witness_at(state.solids()) else {
            return emit(state);
        };
        let writes = || writes.iter().filter(|x| x.cell == w.cell);
        if writes().any(|x| x.value == UNKNOWN) {
            return self.gave_up.set(true);
        }
        let mut shows: Vec<Val> = Vec::new();
        let mut hides: Vec<Val> = Vec::new();
        for x in writes() {
            let thread = x.args[0];
            let last = writes().rfind(|y| y.args[0] == thread);
            match last.is_some_and(|y| w.shows(y.value)) {
                true => shows.push(thread),
                false => hides.push(thread),
            }
        }
        let (first, last) = (state.vals[at], state.vals[at + 1]);
        let mut with = |first: Val, last: Val| {
            let mut next = state.clone();
            (next.vals[at], next.vals[at + 1]) = (first, last);
            if self.consistent(&next) {
                emit(next);
            }
        };
        if first == NOBODY {
            let new = |t: Option<&Val>| t.copied().unwrap_or(NOBODY);
            return with(new(shows.iter().min()), new(shows.iter().max()));
        }
        let gone = [first, last].map(|t| hides.contains(&t));
        if gone == [true; 2] && first != last {
            // Two others at once, perhaps between the same two threads.
            return self.gave_up.set(true);
        }
        // Others, between the two as they were, may be witnesses now.
        let all = state.clone().threads(self.shape, &[]);
        let mut others = all.clone();
        others.extend(self.new_ghosts(&all));
        others.retain(|t| first <= *t && *t <= last && !hides.contains(t));
        let choices = |gone: bool, old: Val| match gone {
            true => others.clone(),
            false => vec![old],
        };
        for low in choices(gone[0], first) {
            for high in choices(gone[1], last) {
                let low = shows.iter().copied().fold(low, Val::min);
                let high = shows.iter().copied().fold(high, Val::max);
                if low <= high {
                    with(low, high);
                }
            }
        }
        if gone == [true; 2] {
            let new = |t: Option<&Val>| t.copied().unwrap_or(NOBODY);
            with(new(shows.iter().min()), new(shows.iter().max()));
        }
    }
}
