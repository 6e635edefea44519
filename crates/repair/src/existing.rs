//! The fences, atomic sections and locks that a program has already: taking them out, and putting
//! weaker ones in their place.
//!
//! A weaker one is a store fence for a fence; for a section the same accesses without it and a fence
//! before or behind them, or a section that leaves its stores in the buffer.
//!
//! What belongs to one place of the source text is one: copies of an unrolled loop are taken out
//! together, as whoever deletes the line does. A section ends where its ways lead; a section whose end
//! another one shares stays as it is.

use std::collections::{BTreeMap, BTreeSet};
use wattle_model::graph::Action;
use wattle_model::program::Family;
use wattle_model::{FamilyId, Fence, LocationId, Program, Section, Span, StepId};

/// Something that orders memory accesses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Existing {
    pub family: FamilyId,
    pub kind: Kind,
    pub span: Span,
    /// The steps that go when it is taken out.
    steps: BTreeSet<StepId>,
}

impl Existing {
    /// Whether the step is (a part of) it.
    pub fn has(&self, step: StepId) -> bool {
        self.steps.contains(&step)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Fence,
    StoreFence,
    /// An atomic statement or exchange, a `lock` prefix.
    Atomic,
    /// An atomic section that leaves stores in the buffer.
    Buffered,
    /// A lock of memory, up to where it is unlocked.
    Lock,
}

/// All of a program, in the order of the text.
pub fn existing(program: &Program) -> Vec<Existing> {
    let mut all = Vec::new();
    for (f, family) in program.families.iter().enumerate() {
        let mut mine = of_family(FamilyId::new(f), family);
        mine.sort_by_key(|e| (e.span, e.kind));
        all.append(&mut mine);
    }
    all
}

fn of_family(id: FamilyId, family: &Family) -> Vec<Existing> {
    let mut groups: BTreeMap<(Span, Kind), BTreeSet<StepId>> = BTreeMap::new();
    let mut begins: BTreeMap<StepId, (Span, Kind)> = BTreeMap::new();
    // Who an end belongs to.
    let mut ends: BTreeMap<StepId, BTreeSet<(Span, Kind)>> = BTreeMap::new();
    for (s, step) in family.steps.iter().enumerate() {
        let s = StepId::new(s);
        let kind = match &step.action {
            Action::Fence(Fence::Full) => Kind::Fence,
            Action::Fence(Fence::Store) => Kind::StoreFence,
            Action::AtomicBegin(Section::Drained) => Kind::Atomic,
            Action::AtomicBegin(Section::Buffered) => Kind::Buffered,
            Action::Lock => Kind::Lock,
            Action::Skip
            | Action::Assign { .. }
            | Action::Havoc { .. }
            | Action::Assume(_)
            | Action::Assert { .. }
            | Action::Load { .. }
            | Action::Store { .. }
            | Action::AtomicEnd
            | Action::Unlock => continue,
        };
        let key = (step.span, kind);
        groups.entry(key).or_default().insert(s);
        begins.insert(s, key);
        if matches!(kind, Kind::Atomic | Kind::Buffered | Kind::Lock) {
            for end in ends_of(family, step.target, kind) {
                ends.entry(end).or_default().insert(key);
            }
        }
    }
    let mut shared: BTreeSet<(Span, Kind)> = BTreeSet::new();
    for (end, owners) in &ends {
        match owners.len() {
            1 => owners.iter().for_each(|key| {
                groups.entry(*key).or_default().insert(*end);
            }),
            _ => shared.extend(owners),
        }
    }
    let groups = groups.into_iter().filter(|(key, _)| !shared.contains(key));
    let existing = |((span, kind), steps)| Existing {
        family: id,
        kind,
        span,
        steps,
    };
    groups.map(existing).collect()
}

/// The ends of a section that begins before the location.
fn ends_of(family: &Family, from: LocationId, kind: Kind) -> Vec<StepId> {
    let mut ends = Vec::new();
    let mut seen = BTreeSet::from([from]);
    let mut work = vec![from];
    while let Some(l) = work.pop() {
        for (s, step) in family
            .steps
            .iter()
            .enumerate()
            .filter(|(_, s)| s.source == l)
        {
            let is_end = match kind {
                Kind::Lock => step.action == Action::Unlock,
                Kind::Fence | Kind::StoreFence | Kind::Atomic | Kind::Buffered => {
                    step.action == Action::AtomicEnd
                }
            };
            if is_end {
                ends.push(StepId::new(s));
            } else if seen.insert(step.target) {
                work.push(step.target);
            }
        }
    }
    ends
}

/// The program without these.
pub fn without(program: &Program, gone: &[&Existing]) -> Program {
    let mut program = program.clone();
    for e in gone {
        let family = &mut program.families[e.family.index()];
        for s in &e.steps {
            family.steps[s.index()].action = Action::Skip;
        }
    }
    program
}

/// What may stand in the place of a stronger one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weaker {
    /// A store fence for a fence.
    StoreFence,
    /// The accesses one by one, and a fence behind them: nobody minds what comes between.
    Behind(Fence),
    /// The accesses one by one, and a fence before them.
    Before(Fence),
    /// Atomic, but neither waiting for the buffer nor writing memory at once: nobody minds the order.
    Buffered,
}

/// The programs with something weaker in its place, weakest first. Where stores stay in order by
/// themselves (`in_order`: all but PSO), store fences do nothing and are not tried.
pub fn weakened(program: &Program, strong: &Existing, in_order: bool) -> Vec<(Weaker, Program)> {
    let section = [
        Weaker::Behind(Fence::Store),
        Weaker::Before(Fence::Store),
        Weaker::Behind(Fence::Full),
        Weaker::Before(Fence::Full),
    ];
    let mut forms: Vec<Weaker> = match strong.kind {
        Kind::Fence => vec![Weaker::StoreFence],
        Kind::StoreFence | Kind::Buffered => Vec::new(),
        Kind::Lock => section.to_vec(),
        Kind::Atomic => section.into_iter().chain([Weaker::Buffered]).collect(),
    };
    let useless = |w: &Weaker| match w {
        Weaker::StoreFence | Weaker::Behind(Fence::Store) | Weaker::Before(Fence::Store) => true,
        Weaker::Behind(Fence::Full) | Weaker::Before(Fence::Full) | Weaker::Buffered => false,
    };
    forms.retain(|w| !(in_order && useless(w)));
    let with = |w: Weaker| (w, replaced(program, strong, w));
    forms.into_iter().map(with).collect()
}

fn replaced(program: &Program, strong: &Existing, weaker: Weaker) -> Program {
    let mut program = program.clone();
    let family = &mut program.families[strong.family.index()];
    for s in &strong.steps {
        let action = &mut family.steps[s.index()].action;
        let ends = match action {
            Action::AtomicEnd | Action::Unlock => true,
            Action::Fence(_)
            | Action::AtomicBegin(_)
            | Action::Lock
            | Action::Skip
            | Action::Assign { .. }
            | Action::Havoc { .. }
            | Action::Assume(_)
            | Action::Assert { .. }
            | Action::Load { .. }
            | Action::Store { .. } => false,
        };
        *action = match (weaker, ends) {
            (Weaker::StoreFence, _) => Action::Fence(Fence::Store),
            (Weaker::Behind(fence), true) | (Weaker::Before(fence), false) => Action::Fence(fence),
            (Weaker::Behind(_), false) | (Weaker::Before(_), true) => Action::Skip,
            (Weaker::Buffered, false) => Action::AtomicBegin(Section::Buffered),
            (Weaker::Buffered, true) => Action::AtomicEnd,
        };
    }
    program
}
