//! What can be asked of a check, and what it may spend.

use crate::checkpoint::Directory;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use wattle_auditor::AuditPolicy;
use wattle_evidence::{Assumption, Fairness, Progress};
use wattle_memory::{ContentKind, MemoryModel};
use wattle_model::Counts;
pub use wattle_search::Reduce;
pub use wattle_search::hosts::{Hosts, Lost, Mesh};

/// What is asked of a check.
#[derive(Clone, Debug)]
pub struct Options {
    /// The memory models, each asked about.
    pub models: Vec<MemoryModel>,
    /// One engine by name; without it the plan chooses.
    pub engine: Option<String>,
    /// Thread counts that override the program's own.
    pub threads: BTreeMap<String, ThreadCount>,
    /// For the whole program; its questions share it.
    pub timeout: Option<Duration>,
    /// Bytes the whole process may have.
    pub memory: Option<u64>,
    /// Work for each engine and question, in virtual microseconds: the same on every machine.
    pub budget: Option<u64>,
    /// Threads that a search may run on at the same time. Answers do not depend on it.
    pub workers: usize,
    /// Where the search of the engine `explicit` is written down from time to time.
    pub checkpoint: Option<Arc<Directory>>,
    /// The engine `explicit` compresses its states: a few bytes for each, and slower.
    pub compress: bool,
    /// The processes that run the search of the engine `explicit` together.
    pub mesh: Option<Arc<Mesh>>,
    /// Look for deadlock too.
    pub deadlock: bool,
    /// Ask for progress as well.
    pub progress: bool,
    /// What demands on runs take for granted.
    pub fairness: Fairness,
    /// The order of explicit search.
    pub order: Order,
    /// What the engine `explicit` leaves out.
    pub reduce: Reduce,
    /// Of states that differ in who is who the engine `explicit` keeps one.
    pub symmetry: bool,
    /// What buffers remember in the engine `explicit`, and at first in `cegar`.
    pub content: ContentKind,
    /// Cells whose buffers have another length than `content` says, under PSO.
    pub buffers: Vec<(String, usize)>,
    /// What the engine `extrapolate` takes from the SC proof; all it has if not given.
    pub extrapolate: Option<wattle_extrapolate::Method>,
    /// Whether proofs are re-checked.
    pub audit: AuditPolicy,
    /// Whether small instances are run before a proof for any number of threads is told.
    pub confirm: bool,
    /// Take for granted that no number wraps around, where that was not proved.
    pub assume_no_wrap: bool,
    /// Ask SC about every violation of a relaxed model.
    pub explain: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            models: vec![MemoryModel::Tso],
            engine: None,
            threads: BTreeMap::new(),
            timeout: None,
            memory: None,
            budget: None,
            workers: 1,
            checkpoint: None,
            compress: false,
            mesh: None,
            deadlock: false,
            progress: false,
            fairness: Fairness::default(),
            order: Order::default(),
            reduce: Reduce::default(),
            symmetry: true,
            content: ContentKind::default(),
            buffers: Vec::new(),
            extrapolate: None,
            audit: AuditPolicy::Always,
            confirm: true,
            assume_no_wrap: false,
            explain: true,
        }
    }
}

impl Options {
    /// Whether the user takes it for granted.
    pub fn accepts(&self, assumption: &Assumption) -> bool {
        match assumption {
            Assumption::NoWrap { .. } => self.assume_no_wrap,
            Assumption::AtMost { .. } => false,
            // Whoever wrote the file does.
            Assumption::Invariants => true,
        }
    }

    /// The counts that are numbers, as the model wants them.
    pub fn counts(&self) -> Counts {
        let fixed = self.threads.iter().filter_map(|(name, count)| match count {
            ThreadCount::Fixed(n) => Some((name.clone(), *n)),
            ThreadCount::Any => None,
        });
        Counts(fixed.collect())
    }
}

/// In which order states are searched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Shortest traces.
    #[default]
    BreadthFirst,
    /// Finds deep violations sooner, and longer traces.
    DepthFirst,
}

/// How many threads a family has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadCount {
    /// So many.
    Fixed(u32),
    /// Any number.
    Any,
}

/// How a run can be watched and stopped from outside.
#[derive(Clone, Copy, Default)]
pub struct Run<'r> {
    /// Stops everything as soon as it is raised.
    pub cancel: Option<&'r AtomicBool>,
    /// Called every few milliseconds, from the threads of engines.
    pub sink: Option<&'r (dyn Fn(&'static str, Progress) + Sync)>,
}
