//! A thread's graph while it is being built.
//!
//! Jumps make no steps: the place that jumps becomes one with its target. Two places must stay
//! apart and get a `skip` between them: a place with a label of its own (the label would hold at
//! the target too), and a jump to itself (an empty endless loop must not look like a thread that
//! has ended). A branch of `choose` starts where the `choose` stands, unless something else leads to
//! that start or a label names it.

//!
//! The text has more places than the graph: where a block ends, before a loop and its condition, before a
//! label and behind it. Each is a place here, so that it is known in the end which steps come by it.

use crate::gaps::{Gap, Side};
use std::collections::{BTreeMap, BTreeSet};
use wattle_model::program::{Action, Step};
use wattle_model::{Location, LocationId, Span, StepId};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place(u32);

enum Out {
    Step(Place, Action, Span),
    /// A branch of a `choose`.
    Branch(Place),
}

#[derive(Default)]
pub(super) struct Graph {
    /// Where a place that jumps goes.
    forward: Vec<Option<Place>>,
    /// The same, as it was told.
    jumps: Vec<Option<Place>>,
    /// Places that only precede another one in the text.
    early: BTreeSet<Place>,
    gaps: Vec<(Side, Place, Vec<String>)>,
    labels: Vec<Vec<String>>,
    spans: Vec<Span>,
    outs: Vec<(Place, Out)>,
}

impl Graph {
    pub fn fresh(&mut self) -> Place {
        let place = Place(u32::try_from(self.forward.len()).unwrap_or(u32::MAX));
        self.forward.push(None);
        self.jumps.push(None);
        self.labels.push(Vec::new());
        self.spans.push(Span::NONE);
        place
    }

    pub fn step(&mut self, from: Place, to: Place, action: Action, span: Span) {
        self.outs.push((from, Out::Step(to, action, span)));
    }

    pub fn branch(&mut self, from: Place, start: Place) {
        self.outs.push((from, Out::Branch(start)));
    }

    pub fn add_label(&mut self, at: Place, label: &str) {
        self.labels[at.0 as usize].push(label.to_string());
    }

    pub fn set_span(&mut self, at: Place, span: Span) {
        self.spans[at.0 as usize] = span;
    }

    /// Makes a placeholder (no label, no steps) one with a place.
    pub fn identify(&mut self, placeholder: Place, at: Place) {
        if self.find(placeholder) != self.find(at) {
            self.goes(placeholder, at);
        }
    }

    fn goes(&mut self, from: Place, to: Place) {
        self.forward[from.0 as usize] = Some(to);
        self.jumps[from.0 as usize] = Some(to);
    }

    /// A gap of the text at a place.
    pub fn gap(&mut self, at: Place, side: Side) {
        let labels = self.labels[at.0 as usize].clone();
        self.gaps.push((side, at, labels));
    }

    /// A place right behind one that has no steps yet, in the text; in the graph they are one. Who comes
    /// to the new one does not come by the old one.
    pub fn behind(&mut self, at: Place) -> Place {
        let new = self.fresh();
        let (old, of_new) = (at.0 as usize, new.0 as usize);
        self.labels[of_new] = std::mem::take(&mut self.labels[old]);
        self.spans[of_new] = self.spans[old];
        self.goes(at, new);
        self.early.insert(at);
        new
    }

    /// Leaves `from`, which has no steps, for `to`.
    pub fn jump(&mut self, from: Place, to: Place, span: Span) {
        if self.labels[from.0 as usize].is_empty() && self.find(from) != self.find(to) {
            self.goes(from, to);
        } else {
            self.step(from, to, Action::Skip, span);
        }
    }

    fn find(&mut self, place: Place) -> Place {
        let mut end = place;
        while let Some(next) = self.forward[end.0 as usize] {
            end = next;
        }
        let mut at = place;
        while let Some(next) = self.forward[at.0 as usize] {
            self.forward[at.0 as usize] = Some(end);
            at = next;
        }
        end
    }

    /// Locations, steps, gaps and the entry; unreachable places included.
    pub fn finish(mut self, entry: Place) -> (Vec<Location>, Vec<Step>, Vec<Gap>, LocationId) {
        let n = self.forward.len();
        let resolved: Vec<Place> = (0..n).map(|i| self.find(Place(i as u32))).collect();
        let entry = resolved[entry.0 as usize];
        // A start of a branch that nothing else leads to and nobody names.
        let mut private: Vec<bool> = (0..n).map(|i| self.labels[i].is_empty()).collect();
        private[entry.0 as usize] = false;
        for (i, to) in resolved.iter().enumerate() {
            if to.0 as usize != i && !self.early.contains(&Place(i as u32)) {
                private[to.0 as usize] = false;
                private[i] = false;
            }
        }
        let mut outgoing: Vec<Vec<usize>> = vec![Vec::new(); n];
        for (i, (from, out)) in self.outs.iter().enumerate() {
            outgoing[resolved[from.0 as usize].0 as usize].push(i);
            if let Out::Step(to, ..) = out {
                private[resolved[to.0 as usize].0 as usize] = false;
            }
        }
        let mut steps = Vec::with_capacity(self.outs.len());
        let mut targets = Vec::with_capacity(self.outs.len());
        for source in 0..n {
            // Branches in branches are followed in place, which keeps the order of the text.
            let mut work: Vec<usize> = outgoing[source].iter().rev().copied().collect();
            while let Some(i) = work.pop() {
                let (target, action, span) = match &self.outs[i].1 {
                    Out::Step(to, action, span) => (*to, action.clone(), *span),
                    Out::Branch(start) => {
                        let start = &self.begins(*start);
                        let first = &outgoing[start.0 as usize];
                        if private[start.0 as usize] && !first.is_empty() {
                            work.extend(first.iter().rev());
                            continue;
                        }
                        (*start, Action::Skip, Span::NONE)
                    }
                };
                targets.push(target);
                let target = resolved[target.0 as usize];
                steps.push(Step {
                    source: LocationId::new(source),
                    target: LocationId(target.0),
                    action,
                    span,
                });
            }
        }
        let gaps = self.finished_gaps(&targets);
        let locations = self.labels.into_iter().zip(self.spans);
        let locations = locations.map(|(labels, span)| Location { labels, span });
        (locations.collect(), steps, gaps, LocationId(entry.0))
    }

    /// The place that is one with this in the graph and only follows it in the text.
    fn begins(&self, mut place: Place) -> Place {
        while let (true, Some(next)) = (self.early.contains(&place), self.jumps[place.0 as usize]) {
            place = next;
        }
        place
    }

    /// Who comes to a place comes by those that it goes on to. The same text in several rounds of an
    /// unrolled loop is one gap.
    fn finished_gaps(&self, targets: &[Place]) -> Vec<Gap> {
        let mut at: BTreeMap<Place, Vec<usize>> = BTreeMap::new();
        for (g, (_, place, _)) in self.gaps.iter().enumerate() {
            at.entry(*place).or_default().push(g);
        }
        let mut gaps: BTreeMap<(Side, &[String]), BTreeSet<StepId>> = BTreeMap::new();
        for (s, target) in targets.iter().enumerate() {
            let mut next = Some(*target);
            while let Some(place) = next {
                for g in at.get(&place).into_iter().flatten() {
                    let (side, _, labels) = &self.gaps[*g];
                    let ways = gaps.entry((*side, labels)).or_default();
                    ways.insert(StepId::new(s));
                }
                next = self.jumps[place.0 as usize];
            }
        }
        let mut copies: BTreeMap<Side, usize> = BTreeMap::new();
        for (side, ..) in &self.gaps {
            *copies.entry(*side).or_default() += 1;
        }
        let gap = |((side, labels), ways): ((Side, &[String]), BTreeSet<StepId>)| Gap {
            side,
            ways: ways.into_iter().collect(),
            labels: labels.to_vec(),
            copies: copies[&side],
        };
        gaps.into_iter().map(gap).collect()
    }
}
