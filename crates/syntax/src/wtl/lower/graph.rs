//! A thread's graph while it is being built.
//!
//! Jumps make no steps: the place that jumps becomes one with its target. Two places must stay
//! apart and get a `skip` between them: a place with a label of its own (the label would hold at
//! the target too), and a jump to itself (an empty endless loop must not look like a thread that
//! has ended). A branch of `choose` starts where the `choose` stands, unless something else leads to
//! that start or a label names it.

use wattle_model::program::{Action, Step};
use wattle_model::{Location, LocationId, Span};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    labels: Vec<Vec<String>>,
    spans: Vec<Span>,
    outs: Vec<(Place, Out)>,
}

impl Graph {
    pub fn fresh(&mut self) -> Place {
        let place = Place(u32::try_from(self.forward.len()).unwrap_or(u32::MAX));
        self.forward.push(None);
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
            self.forward[placeholder.0 as usize] = Some(at);
        }
    }

    /// Leaves `from`, which has no steps, for `to`.
    pub fn jump(&mut self, from: Place, to: Place, span: Span) {
        if self.labels[from.0 as usize].is_empty() && self.find(from) != self.find(to) {
            self.forward[from.0 as usize] = Some(to);
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

    /// Locations, steps and the entry; unreachable places included.
    pub fn finish(mut self, entry: Place) -> (Vec<Location>, Vec<Step>, LocationId) {
        let n = self.forward.len();
        let resolved: Vec<Place> = (0..n).map(|i| self.find(Place(i as u32))).collect();
        let entry = resolved[entry.0 as usize];
        // A start of a branch that nothing else leads to and nobody names.
        let mut private: Vec<bool> = (0..n).map(|i| self.labels[i].is_empty()).collect();
        private[entry.0 as usize] = false;
        for (i, to) in resolved.iter().enumerate() {
            if to.0 as usize != i {
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
        for source in 0..n {
            // Branches in branches are followed in place, which keeps the order of the text.
            let mut work: Vec<usize> = outgoing[source].iter().rev().copied().collect();
            while let Some(i) = work.pop() {
                let (target, action, span) = match &self.outs[i].1 {
                    Out::Step(to, action, span) => (*to, action.clone(), *span),
                    Out::Branch(start) => {
                        let first = &outgoing[start.0 as usize];
                        if private[start.0 as usize] && !first.is_empty() {
                            work.extend(first.iter().rev());
                            continue;
                        }
                        (*start, Action::Skip, Span::NONE)
                    }
                };
                let target = resolved[target.0 as usize];
                steps.push(Step {
                    source: LocationId::new(source),
                    target: LocationId(target.0),
                    action,
                    span,
                });
            }
        }
        let locations = self.labels.into_iter().zip(self.spans);
        let locations = locations.map(|(labels, span)| Location { labels, span });
        (locations.collect(), steps, LocationId(entry.0))
    }
}
