//! Building a thread's graph from structured statements: what the languages with `if`, `while` and
//! `goto` have in common.
//!
//! Code is laid between two given locations. A jump costs no step: the location it stands at *is*
//! its target (the two are merged at the end), unless it carries a label of its own, which would
//! then hold at the target too.

use crate::Parsed;
use crate::diagnostics::{Diagnostic, Severity};
use std::collections::BTreeMap;
use wattle_model::program::{Action, Step};
use wattle_model::{Expr, Location, LocationId, Op2, Program, Span, validate};

/// The last stage of a front-end: a program only if nothing is wrong, in canonical form. What a
/// front-end builds is valid by construction except for sizes, which the validator knows best.
pub(crate) fn conclude(program: Option<Program>, mut diagnostics: Vec<Diagnostic>) -> Parsed {
    let broken = |all: &[Diagnostic]| all.iter().any(|d| d.severity == Severity::Error);
    let program = program
        .filter(|_| !broken(&diagnostics))
        .map(|p| p.canonical());
    if let Some(p) = &program {
        let invalid = validate(p).into_iter().take(20);
        diagnostics.extend(invalid.map(|i| Diagnostic::error(i.span, i.message)));
    }
    Parsed {
        program: program.filter(|_| !broken(&diagnostics)),
        diagnostics,
    }
}

/// A balanced tree of the operands, so that long conditions are not deep ones.
pub(crate) fn junction<A>(op: Op2, mut parts: Vec<Expr<A>>) -> Option<Expr<A>> {
    while parts.len() > 1 {
        let mut next = Vec::with_capacity(parts.len().div_ceil(2));
        let mut rest = parts.into_iter();
        while let Some(a) = rest.next() {
            next.push(match rest.next() {
                Some(b) => Expr::binary(op, a, b),
                None => a,
            });
        }
        parts = next;
    }
    parts.pop()
}

/// A graph in the making.
#[derive(Default)]
pub(crate) struct Flow {
    locations: Vec<Location>,
    steps: Vec<Step>,
    /// `merged[l]` is the location `l` was merged into, or `l`.
    merged: Vec<LocationId>,
    labels: BTreeMap<String, (LocationId, Span)>,
    jumps: Vec<Jump>,
}

struct Jump {
    from: LocationId,
    label: String,
    span: Span,
}

/// A finished graph.
pub(crate) struct Graph {
    pub locations: Vec<Location>,
    pub steps: Vec<Step>,
    pub entry: LocationId,
}

impl Flow {
    pub fn location(&mut self) -> LocationId {
        let id = LocationId::new(self.locations.len());
        self.locations.push(Location::default());
        self.merged.push(id);
        id
    }

    /// Says which statement starts at a location; the first one told counts.
    pub fn starts(&mut self, at: LocationId, span: Span) {
        let at = self.find(at);
        let location = &mut self.locations[at.index()];
        if !location.span.is_some() {
            location.span = span;
        }
    }

    pub fn step(&mut self, source: LocationId, target: LocationId, action: Action, span: Span) {
        self.steps.push(Step {
            source,
            target,
            action,
            span,
        });
    }

    /// A step to a fresh location.
    pub fn then(&mut self, source: LocationId, action: Action, span: Span) -> LocationId {
        let target = self.location();
        self.step(source, target, action, span);
        target
    }

    /// Gives a location a label; an earlier one of the same name is returned with its place.
    pub fn label(&mut self, at: LocationId, name: &str, span: Span) -> Option<Span> {
        if let Some((_, before)) = self.labels.get(name) {
            return Some(*before);
        }
        let at = self.find(at);
        self.labels.insert(name.to_string(), (at, span));
        self.locations[at.index()].labels.push(name.to_string());
        None
    }

    pub fn label_names(&self) -> impl Iterator<Item = &str> {
        self.labels.keys().map(String::as_str)
    }

    pub fn jump(&mut self, from: LocationId, label: &str, span: Span) {
        self.jumps.push(Jump {
            from,
            label: label.to_string(),
            span,
        });
    }

    /// Makes two locations one, with the labels of both. Between a location and itself this is a
    /// step that does nothing, so that the thread goes on for ever there instead of ending.
    pub fn merge(&mut self, from: LocationId, to: LocationId) {
        let (from, to) = (self.find(from), self.find(to));
        if from == to {
            self.step(from, to, Action::Skip, Span::NONE);
            return;
        }
        self.merged[from.index()] = to;
        let gone = std::mem::take(&mut self.locations[from.index()]);
        self.locations[to.index()].labels.extend(gone.labels);
        self.starts(to, gone.span);
    }

    /// Resolves the jumps, drops what nothing reaches (labelled locations stay: a property may name
    /// them) and numbers the rest in order. Unknown targets are given to `unknown`.
    pub fn finish(
        mut self,
        entry: LocationId,
        mut unknown: impl FnMut(&Flow, &str, Span),
    ) -> Graph {
        for jump in std::mem::take(&mut self.jumps) {
            let Some((target, _)) = self.labels.get(&jump.label) else {
                unknown(&self, &jump.label, jump.span);
                continue;
            };
            let target = *target;
            let target = self.find(target);
            let plain = self.locations[jump.from.index()].labels.is_empty();
            if plain && self.find(jump.from) == jump.from && jump.from != target {
                self.merged[jump.from.index()] = target;
            } else {
                self.step(jump.from, target, Action::Skip, jump.span);
            }
        }
        for i in 0..self.steps.len() {
            self.steps[i].source = self.find(self.steps[i].source);
            self.steps[i].target = self.find(self.steps[i].target);
        }
        let entry = self.find(entry);
        let kept = self.reached(entry);
        let mut number = vec![None; self.locations.len()];
        let mut locations = Vec::new();
        for (l, location) in self.locations.iter().enumerate() {
            if kept[l] {
                number[l] = Some(LocationId::new(locations.len()));
                locations.push(location.clone());
            }
        }
        let of = |l: LocationId| number[l.index()];
        let steps = self.steps.into_iter().filter_map(|s| {
            Some(Step {
                source: of(s.source)?,
                target: of(s.target)?,
                ..s
            })
        });
        Graph {
            locations,
            steps: steps.collect(),
            entry: of(entry).unwrap_or(LocationId(0)),
        }
    }

    fn find(&mut self, mut l: LocationId) -> LocationId {
        while self.merged[l.index()] != l {
            let up = self.merged[self.merged[l.index()].index()];
            self.merged[l.index()] = up;
            l = up;
        }
        l
    }

    fn reached(&self, entry: LocationId) -> Vec<bool> {
        let mut outgoing = vec![Vec::new(); self.locations.len()];
        for s in &self.steps {
            outgoing[s.source.index()].push(s.target);
        }
        let mut reached = vec![false; self.locations.len()];
        let labelled = self.locations.iter().enumerate();
        let labelled = labelled.filter(|(_, l)| !l.labels.is_empty());
        let mut work: Vec<LocationId> = labelled.map(|(i, _)| LocationId::new(i)).collect();
        work.push(entry);
        while let Some(l) = work.pop() {
            if !std::mem::replace(&mut reached[l.index()], true) {
                work.extend(&outgoing[l.index()]);
            }
        }
        reached
    }
}
