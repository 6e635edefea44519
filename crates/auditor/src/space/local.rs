//! Which events a search may take at once, and which registers it may forget: statements about the
//! program's text. See the parent module for what follows from them.

use crate::AuditError;
use rustc_hash::FxHashSet;
use wattle_evidence::certificate::Shortened;
use wattle_evidence::task::Task;
use wattle_memory::MemoryModel;
use wattle_model::graph::Action;
use wattle_model::instance::{Address, Fact, Question, Step, Thread};
use wattle_model::{CellId, Expr, Fence, Instance, LocationId, RegisterId, StepId};

/// Whether steps at a location are taken at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Local {
    No,
    /// At most one is enabled at a time.
    Step,
    /// Where one alone is enabled.
    Choice,
    /// Where its computed address is that of a cell in [`Reduction::free`].
    Perhaps,
}

/// What is not stored of the states.
#[derive(Debug)]
pub struct Reduction {
    /// Per thread and location: its step is taken at once.
    pub local: Vec<Vec<Local>>,
    /// Per thread: the cells whose pending stores reach memory at once.
    pub private: Vec<FxHashSet<CellId>>,
    /// Per thread: the cells that only it writes, so that a load of them can be taken at once.
    pub free: Vec<Vec<bool>>,
    /// Per thread, location and register: what it holds may be read.
    pub live: Vec<Vec<Vec<bool>>>,
}

impl Reduction {
    /// Nothing is taken at once.
    pub fn none(task: &Task<'_>) -> Self {
        let threads = &task.instance.threads;
        Reduction {
            local: threads
                .iter()
                .map(|t| vec![Local::No; t.locations.len()])
                .collect(),
            private: vec![FxHashSet::default(); threads.len()],
            free: vec![Vec::new(); threads.len()],
            live: live(task),
        }
    }

    /// As much as may be, if buffers have the content `exact`. Deadlocks are looked for event by event.
    pub fn most(task: &Task<'_>, exact: bool) -> Self {
        let mut reduction = Reduction::none(task);
        if task.deadlock {
            return reduction;
        }
        let terms = Terms::of(task);
        for t in 0..task.instance.threads.len() {
            let thread = &task.instance.threads[t];
            let mut local: Vec<Local> = (0..thread.locations.len())
                .map(|l| terms.locality(t, l))
                .collect();
            cut_cycles(thread, &mut local);
            reduction.local[t] = local;
            reduction.free[t] = terms.free(t);
            if exact {
                let all = stored(thread).into_iter().flat_map(extent).map(CellId::new);
                reduction.private[t] = all.filter(|c| terms.may_be_private(t, *c)).collect();
            }
        }
        reduction
    }

    /// What a search for attacks takes at once: steps that touch no memory and wait for nothing, and
    /// those inside atomic blocks.
    pub fn of_registers(task: &Task<'_>) -> Self {
        let mut reduction = Reduction::none(task);
        for (thread, local) in task.instance.threads.iter().zip(&mut reduction.local) {
            for (l, out) in thread.outgoing.iter().enumerate() {
                let mut actions = out.iter().map(|s| &thread.step(*s).action);
                if is_determined(thread, out) && (thread.atomic[l] || actions.all(on_registers)) {
                    local[l] = Local::Step;
                }
            }
            cut_cycles(thread, local);
        }
        reduction
    }

    /// What a certificate claims, if it is true.
    pub fn claimed(task: &Task<'_>, claims: &Shortened) -> Result<Self, AuditError> {
        let mut reduction = Reduction::none(task);
        if claims.local.iter().all(Vec::is_empty) && claims.private.iter().all(Vec::is_empty) {
            return Ok(reduction);
        }
        let wrong = |what: &str| Err(AuditError::NotLocal(what.to_string()));
        let threads = &task.instance.threads;
        if claims.local.len() != threads.len() || claims.private.len() != threads.len() {
            return wrong("it is about another number of threads");
        }
        if task.deadlock {
            return wrong("deadlocks are looked for event by event");
        }
        let terms = Terms::of(task);
        for (t, thread) in threads.iter().enumerate() {
            for l in &claims.local[t] {
                let l = l.index();
                let locality = match l < thread.locations.len() {
                    true => terms.locality(t, l),
                    false => Local::No,
                };
                if locality == Local::No {
                    let line = thread.locations.get(l).map_or(0, |l| l.span.line);
                    return wrong(&format!("location {l} of {} (line {line})", thread.name));
                }
                reduction.local[t][l] = locality;
            }
            reduction.free[t] = terms.free(t);
            let mut cut = reduction.local[t].clone();
            cut_cycles(thread, &mut cut);
            if cut != reduction.local[t] {
                return wrong(&format!("a cycle of {}", thread.name));
            }
            for c in &claims.private[t] {
                if c.index() >= task.instance.cells.len() || !terms.may_be_private(t, *c) {
                    return wrong(&format!("stores of {} to {c}", thread.name));
                }
                reduction.private[t].insert(*c);
            }
        }
        Ok(reduction)
    }

    /// The same as a claim.
    pub fn claims(&self) -> Shortened {
        let local = |l: &Vec<Local>| {
            let all = (0..l.len()).filter(|i| l[*i] != Local::No);
            all.map(LocationId::new).collect()
        };
        let private = |p: &FxHashSet<CellId>| {
            let mut all: Vec<CellId> = p.iter().copied().collect();
            all.sort_unstable();
            all
        };
        Shortened {
            local: self.local.iter().map(local).collect(),
            private: self.private.iter().map(private).collect(),
        }
    }
}

/// Which threads do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Nobody,
    One(usize),
    Many,
}

impl Who {
    fn and(self, t: usize) -> Who {
        match self {
            Who::Nobody => Who::One(t),
            Who::One(u) if u == t => self,
            Who::One(_) | Who::Many => Who::Many,
        }
    }

    fn is_at_most(self, t: usize) -> bool {
        self == Who::Nobody || self == Who::One(t)
    }
}

/// What the text says about who touches what, and what the question looks at.
struct Terms<'i> {
    instance: &'i Instance,
    model: MemoryModel,
    question: Option<&'i Question>,
    readers: Vec<Who>,
    writers: Vec<Who>,
    lockers: Who,
    seen_cells: Vec<bool>,
}

impl<'i> Terms<'i> {
    fn of(task: &Task<'i>) -> Self {
        let instance = task.instance;
        let cells = instance.cells.len();
        let mut terms = Terms {
            instance,
            model: task.model,
            question: task.question(),
            readers: vec![Who::Nobody; cells],
            writers: vec![Who::Nobody; cells],
            lockers: Who::Nobody,
            seen_cells: vec![false; cells],
        };
        for (t, thread) in instance.threads.iter().enumerate() {
            let mut known = FxHashSet::default();
            for step in &thread.steps {
                let (table, place) = match &step.action {
                    Action::Load { place, .. } => (&mut terms.readers, place),
                    Action::Store { place, .. } => (&mut terms.writers, place),
                    Action::Lock => {
                        terms.lockers = terms.lockers.and(t);
                        continue;
                    }
                    Action::Skip
                    | Action::Assign { .. }
                    | Action::Havoc { .. }
                    | Action::Assume(_)
                    | Action::Assert { .. }
                    | Action::Fence(_)
                    | Action::AtomicBegin(_)
                    | Action::AtomicEnd
                    | Action::Unlock => continue,
                };
                let load = matches!(step.action, Action::Load { .. });
                if known.insert((load, extent(place))) {
                    for who in &mut table[extent(place)] {
                        *who = who.and(t);
                    }
                }
            }
        }
        if let Some(q) = task.question() {
            see_cells(&q.target, &mut terms.seen_cells);
        }
        terms
    }

    fn only_final(&self) -> bool {
        self.question.is_none_or(|q| q.only_final)
    }

    /// Nobody else touches the cell or locks, and nobody looks at it on the way.
    fn may_be_private(&self, t: usize, cell: CellId) -> bool {
        let c = cell.index();
        self.readers[c].is_at_most(t)
            && self.writers[c].is_at_most(t)
            && self.lockers.is_at_most(t)
            && (self.only_final() || !self.seen_cells[c])
    }

    fn locality(&self, t: usize, l: usize) -> Local {
        let thread = &self.instance.threads[t];
        let out = &thread.outgoing[l];
        let unseen = |step: &Step| self.only_final() || self.is_unseen(t, step);
        let mut steps = out.iter().map(|s| thread.step(*s));
        let fences = (steps.clone()).any(|s| s.action == Action::Fence(Fence::Full));
        let own = |s: &Step| self.is_nobodys_business(t, &s.action) && unseen(s);
        match (is_determined(thread, out), thread.atomic[l]) {
            // In a buffered block entries must drain before a fence.
            (true, true) if thread.direct[l] || !fences => Local::Step,
            (true, false) if steps.all(own) => Local::Step,
            // A fence that waits would be another choice later.
            (false, false) if !out.is_empty() && !fences && steps.all(own) => Local::Choice,
            (true, false) if self.is_computed_load(t, out) => Local::Perhaps,
            (_, _) => Local::No,
        }
    }

    /// One load by a computed address, which nobody sees and no lock keeps waiting.
    fn is_computed_load(&self, t: usize, out: &[StepId]) -> bool {
        let thread = &self.instance.threads[t];
        let [s] = out else {
            return false;
        };
        let step = thread.step(*s);
        let unseen = self.only_final() || self.is_unseen(t, step);
        let computed = |place: &Address| matches!(place, Address::Computed { .. });
        let load = matches!(&step.action, Action::Load { place, .. } if computed(place));
        load && unseen && self.lockers.is_at_most(t)
    }

    /// The cells that nobody but the thread writes.
    fn free(&self, t: usize) -> Vec<bool> {
        self.writers.iter().map(|w| w.is_at_most(t)).collect()
    }

    /// Nothing another thread or the own buffer does enables, disables or changes it, but that a
    /// fence becomes enabled; and it does nothing of the kind to others.
    fn is_nobodys_business(&self, t: usize, action: &Action<RegisterId, Address>) -> bool {
        match action {
            Action::Skip
            | Action::Assign { .. }
            | Action::Havoc { .. }
            | Action::Assume(_)
            | Action::Assert { .. }
            | Action::Fence(_) => true,
            // Whoever holds the lock may keep others from memory.
            Action::Load { place, .. } => {
                let mut writers = self.writers[extent(place)].iter();
                self.lockers.is_at_most(t) && writers.all(|w| w.is_at_most(t))
            }
            Action::Store { place, .. } => match self.model {
                MemoryModel::Sc => extent(place).all(|c| self.may_be_private(t, CellId::new(c))),
                MemoryModel::Tso | MemoryModel::Pso => true,
            },
            Action::AtomicBegin(_) | Action::AtomicEnd | Action::Lock | Action::Unlock => false,
        }
    }

    /// The question has the same value before and after.
    fn is_unseen(&self, t: usize, step: &Step) -> bool {
        let written = match &step.action {
            Action::Assign { register, .. }
            | Action::Havoc { register, .. }
            | Action::Load { register, .. } => Some(*register),
            Action::Skip
            | Action::Assume(_)
            | Action::Assert { .. }
            | Action::Store { .. }
            | Action::Fence(_)
            | Action::AtomicBegin(_)
            | Action::AtomicEnd
            | Action::Lock
            | Action::Unlock => None,
        };
        let mut unseen = true;
        if let Some(q) = self.question {
            for_each_fact(&q.target, &mut |fact| {
                unseen &= match fact {
                    Fact::Cell(_) | Fact::CellAt { .. } => true,
                    Fact::Register(u, r) => u.index() != t || Some(*r) != written,
                    Fact::At(u, at) => {
                        u.index() != t || at.contains(&step.source) == at.contains(&step.target)
                    }
                };
            });
        }
        unseen
    }
}

fn on_registers(action: &Action<RegisterId, Address>) -> bool {
    match action {
        Action::Skip
        | Action::Assign { .. }
        | Action::Havoc { .. }
        | Action::Assume(_)
        | Action::Assert { .. }
        | Action::Fence(Fence::Store) => true,
        Action::Load { .. }
        | Action::Store { .. }
        | Action::Fence(Fence::Full)
        | Action::AtomicBegin(_)
        | Action::AtomicEnd
        | Action::Lock
        | Action::Unlock => false,
    }
}

/// Every fact of a condition, those in indices too.
pub fn for_each_fact<'e>(e: &'e Expr<Fact>, visit: &mut dyn FnMut(&'e Fact)) {
    let mut inner = Vec::new();
    e.for_each_atom(&mut |fact| {
        visit(fact);
        if let Fact::CellAt { index, .. } = fact {
            inner.push(&**index);
        }
    });
    for index in inner {
        for_each_fact(index, visit);
    }
}

fn see_cells(e: &Expr<Fact>, seen: &mut [bool]) {
    for_each_fact(e, &mut |fact| match fact {
        Fact::Cell(c) => seen[c.index()] = true,
        Fact::CellAt { base, length, .. } => {
            seen[base.index()..base.index() + *length as usize].fill(true);
        }
        Fact::Register(..) | Fact::At(..) => {}
    });
}

/// The cells an operand may mean.
pub fn extent(place: &Address) -> std::ops::Range<usize> {
    match place {
        Address::Cell(c) => c.index()..c.index() + 1,
        Address::Computed { base, length, .. } => base.index()..base.index() + *length as usize,
    }
}

fn stored(thread: &Thread) -> Vec<&Address> {
    let mut places: Vec<&Address> = Vec::new();
    let mut known = FxHashSet::default();
    for step in &thread.steps {
        if let Action::Store { place, .. } = &step.action
            && known.insert(extent(place))
        {
            places.push(place);
        }
    }
    places
}

/// At most one of the steps is enabled at a time, and it has one outcome.
fn is_determined(thread: &Thread, out: &[StepId]) -> bool {
    match out {
        [s] => match &thread.step(*s).action {
            Action::Havoc { range, .. } => range.is_some_and(|(lo, hi)| lo == hi),
            Action::Skip
            | Action::Assign { .. }
            | Action::Assume(_)
            | Action::Assert { .. }
            | Action::Load { .. }
            | Action::Store { .. }
            | Action::Fence(_)
            | Action::AtomicBegin(_)
            | Action::AtomicEnd
            | Action::Lock
            | Action::Unlock => true,
        },
        [a, b] => match (&thread.step(*a).action, &thread.step(*b).action) {
            (Action::Assume(a), Action::Assume(b)) => {
                a.clone().negate() == *b || b.clone().negate() == *a
            }
            (_, _) => false,
        },
        _ => false,
    }
}

/// On every cycle of local locations makes one that is not.
fn cut_cycles(thread: &Thread, local: &mut [Local]) {
    // Locations in the order in which they are left by a depth-first walk: an edge to one that is
    // left no earlier closes a cycle.
    let n = local.len();
    let mut left = vec![usize::MAX; n];
    let mut entered = vec![false; n];
    let mut clock = 0;
    for root in 0..n {
        if entered[root] || local[root] == Local::No {
            continue;
        }
        entered[root] = true;
        let mut path = vec![(root, 0)];
        while let Some((l, next)) = path.last_mut() {
            let Some(s) = thread.outgoing[*l].get(*next) else {
                left[*l] = clock;
                clock += 1;
                path.pop();
                continue;
            };
            *next += 1;
            let target = thread.step(*s).target.index();
            if local[target] != Local::No && !entered[target] {
                entered[target] = true;
                path.push((target, 0));
            }
        }
    }
    let mut cut = Vec::new();
    for step in &thread.steps {
        let (from, to) = (step.source.index(), step.target.index());
        let both = local[from] != Local::No && local[to] != Local::No;
        if both && left[to] >= left[from] {
            cut.push(to);
        }
    }
    cut.into_iter().for_each(|l| local[l] = Local::No);
}

/// A register that no path reads before it is written, and the question does not look at, is dead.
fn live(task: &Task<'_>) -> Vec<Vec<Vec<bool>>> {
    let only_final = task.question().is_none_or(|q| q.only_final);
    let target = task.question().map(|q| &q.target);
    alive(task.instance, target.as_slice(), only_final)
}

/// Per thread, location and register: what it holds may be read, by a step or by one of the conditions,
/// which may be looked at any time.
pub fn registers_alive(instance: &Instance, conditions: &[&Expr<Fact>]) -> Vec<Vec<Vec<bool>>> {
    alive(instance, conditions, false)
}

fn alive(instance: &Instance, conditions: &[&Expr<Fact>], only_final: bool) -> Vec<Vec<Vec<bool>>> {
    let mut seen: Vec<Vec<bool>> = instance
        .threads
        .iter()
        .map(|t| vec![false; t.registers.len()])
        .collect();
    for condition in conditions {
        for_each_fact(condition, &mut |fact| match fact {
            Fact::Register(t, r) => seen[t.index()][r.index()] = true,
            Fact::Cell(_) | Fact::CellAt { .. } | Fact::At(..) => {}
        });
    }
    let threads = instance.threads.iter().zip(&seen);
    let one = |(thread, seen): (&Thread, &Vec<bool>)| {
        let observed = (0..thread.locations.len()).map(|l| {
            match only_final && !thread.outgoing[l].is_empty() {
                true => vec![false; seen.len()],
                false => seen.clone(),
            }
        });
        thread.live(observed.collect())
    };
    threads.map(one).collect()
}
