//! What the question sees of states: it is asked once of all that it cannot tell apart.

use super::moves::Moves;
use crate::AuditError;
use crate::facts::{cells_seen, for_each_fact};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};
use wattle_evidence::task::Task;
use wattle_memory::content::Content;
use wattle_memory::reference::{State, evaluate};
use wattle_memory::{Layout, Newest};
use wattle_model::instance::{Fact, Question};
use wattle_model::{CellId, LocationId, RegisterId};

/// What the question looks at of a thread: registers, places to be at, and cells of which it may have stores pending.
type Own = (
    BTreeSet<RegisterId>,
    BTreeSet<Vec<LocationId>>,
    BTreeSet<CellId>,
);

/// What it sees there.
type Seen = (Vec<i64>, Vec<bool>, Vec<Option<i64>>);

/// What the question has been asked of.
#[derive(Default)]
pub struct Looked<'i> {
    question: Option<&'i Question>,
    /// How many threads there are.
    all: usize,
    threads: Vec<(usize, Own)>,
    cells: Vec<usize>,
    /// Per thread, for each part: a number for all that look the same.
    classes: Vec<Vec<Option<u32>>>,
    views: Vec<FxHashMap<Seen, u32>>,
    good: FxHashSet<Box<[u32]>>,
    key: Vec<u32>,
    /// The one asked last, which was good.
    last: Vec<u32>,
}

impl<'i> Looked<'i> {
    pub fn new(task: &Task<'i>) -> Self {
        let mut threads: BTreeMap<usize, Own> = BTreeMap::new();
        if let Some(q) = task.question() {
            for_each_fact(&q.target, &mut |fact| match fact {
                Fact::Cell(_) | Fact::CellAt { .. } => {}
                Fact::Seen(t, c) => {
                    threads.entry(t.index()).or_default().2.insert(*c);
                }
                Fact::Register(t, r) => {
                    threads.entry(t.index()).or_default().0.insert(*r);
                }
                Fact::At(t, at) => {
                    threads.entry(t.index()).or_default().1.insert(at.clone());
                }
            });
        }
        Looked {
            question: task.question(),
            all: task.instance.threads.len(),
            classes: vec![Vec::new(); threads.len()],
            views: vec![FxHashMap::default(); threads.len()],
            threads: threads.into_iter().collect(),
            cells: (task.question().iter())
                .flat_map(|q| cells_seen(&q.target))
                .collect(),
            ..Looked::default()
        }
    }

    /// Asks the question of a state, given by the parts of threads and the values of cells, if it looks there.
    #[inline]
    pub fn look<L: Layout, C: Content<Value = i64>>(
        &mut self,
        moves: &Moves<'_, L, C>,
        part: impl Fn(usize) -> u32,
        value: impl Fn(usize) -> u32,
        state: u64,
    ) -> Result<(), AuditError> {
        let Some(question) = self.question else {
            return Ok(());
        };
        let skips = |t: usize| {
            let marks = moves.marks(t, part(t));
            marks.inside_atomic || question.only_final && !marks.is_final
        };
        if (moves.any_atomic || question.only_final) && (0..self.all).any(skips) {
            return Ok(());
        }
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        for o in 0..self.threads.len() {
            key.push(self.class(moves, o, part(self.threads[o].0)));
        }
        key.extend(self.cells.iter().map(|c| value(*c)));
        let again = key == self.last && !self.good.is_empty();
        if !again && !self.good.contains(key.as_slice()) {
            let parts = (0..self.all).map(|t| moves.part(t, part(t)));
            let values = moves.values.iter().enumerate();
            let whole = State::<L::Buffer<C>> {
                locations: parts.clone().map(|p| p.at).collect(),
                registers: parts.clone().map(|p| p.registers.clone()).collect(),
                memory: values.map(|(c, v)| v.all[value(c) as usize]).collect(),
                buffers: parts.map(|p| p.buffer.clone()).collect(),
                holder: None,
            };
            match evaluate(&whole, &question.target) {
                Ok(0) => {}
                Ok(_) => return Err(AuditError::Bad { state }),
                Err(why) => {
                    let why = why.to_string();
                    return Err(AuditError::NoValue { state, why });
                }
            }
            self.good.insert(key.clone().into());
        }
        self.key = std::mem::replace(&mut self.last, key);
        Ok(())
    }

    /// Whether the question can tell two states, in which some cells and the parts of one thread differ.
    pub fn sees<L: Layout, C: Content<Value = i64>>(
        &mut self,
        moves: &Moves<'_, L, C>,
        differs: impl Fn(usize) -> bool,
        t: usize,
        parts: [u32; 2],
    ) -> bool {
        if self.cells.iter().any(|c| differs(*c)) {
            return true;
        }
        let mine = self.threads.iter().position(|(u, ..)| *u == t);
        mine.is_some_and(|o| self.class(moves, o, parts[0]) != self.class(moves, o, parts[1]))
    }

    /// A number for all parts of a thread that the question cannot tell apart.
    #[inline]
    fn class<L: Layout, C: Content<Value = i64>>(
        &mut self,
        moves: &Moves<'_, L, C>,
        o: usize,
        part: u32,
    ) -> u32 {
        let classes = &mut self.classes[o];
        if let Some(Some(class)) = classes.get(part as usize) {
            return *class;
        }
        let (t, (registers, places, pending)) = &self.threads[o];
        let own = moves.part(*t, part);
        let values = registers.iter().map(|r| own.registers[r.index()]).collect();
        let at = places.iter().map(|p| p.contains(&own.at)).collect();
        let newest = pending.iter().map(|c| own.buffer.newest_of(*c)).collect();
        let views = &mut self.views[o];
        let fresh = views.len() as u32;
        let class = *views.entry((values, at, newest)).or_insert(fresh);
        if classes.len() <= part as usize {
            classes.resize(part as usize + 1, None);
        }
        classes[part as usize] = Some(class);
        class
    }
}
