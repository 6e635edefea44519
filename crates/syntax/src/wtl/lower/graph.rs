//! A thread's graph while it is being built.
//!
//! Jumps make no steps: the place that jumps becomes one with its target. Two places must stay
//! apart and get a `skip` between them: a place with a label of its own (the label would hold at
//! the target too), and a jump to itself (an empty endless loop must not look like a thread that
//! has ended). A branch of `choose` starts where the `choose` stands, unless something else leads to
//! that start or a label names it.

use super::gaps::Gaps;
use wattle_model::program::{Action, Step};
use wattle_model::{Location, LocationId, Span};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Node(u32);

impl Node {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

enum Out {
    Step(Node, Action, Span),
    /// A branch of a `choose`.
    Branch(Node),
}

#[derive(Default)]
pub(super) struct Graph {
    /// Where a place that jumps goes.
    forward: Vec<Option<Node>>,
    labels: Vec<Vec<String>>,
    spans: Vec<Span>,
    outs: Vec<(Node, Out)>,
    /// Is told everything and has no say.
    pub gaps: Gaps,
}

impl Graph {
    pub fn fresh(&mut self) -> Node {
        let place = Node(u32::try_from(self.forward.len()).unwrap_or(u32::MAX));
        self.forward.push(None);
        self.labels.push(Vec::new());
        self.spans.push(Span::NONE);
        self.gaps.fresh();
        place
    }

    pub fn step(&mut self, from: Node, to: Node, action: Action, span: Span) {
        self.outs.push((from, Out::Step(to, action, span)));
        self.gaps.leads_to(to);
    }

    pub fn branch(&mut self, from: Node, start: Node) {
        self.outs.push((from, Out::Branch(start)));
        self.gaps.starts_at(start);
    }

    pub fn add_label(&mut self, at: Node, label: &str) {
        self.labels[at.index()].push(label.to_string());
        self.gaps.label(at, label);
    }

    pub fn set_span(&mut self, at: Node, span: Span) {
        self.spans[at.index()] = span;
    }

    /// Makes a placeholder (no label, no steps) one with a place.
    pub fn identify(&mut self, placeholder: Node, at: Node) {
        if self.find(placeholder) != self.find(at) {
            self.forward[placeholder.index()] = Some(at);
            self.gaps.goes(placeholder, at);
        }
    }

    /// Leaves `from`, which has no steps, for `to`.
    pub fn jump(&mut self, from: Node, to: Node, span: Span) {
        match self.labels[from.index()].is_empty() && self.find(from) != self.find(to) {
            true => self.identify(from, to),
            false => self.step(from, to, Action::Skip, span),
        }
    }

    fn find(&mut self, place: Node) -> Node {
        let mut end = place;
        while let Some(next) = self.forward[end.index()] {
            end = next;
        }
        let mut at = place;
        while let Some(next) = self.forward[at.index()] {
            self.forward[at.index()] = Some(end);
            at = next;
        }
        end
    }

    /// Locations, steps and the entry; unreachable places included.
    pub fn finish(&mut self, entry: Node) -> (Vec<Location>, Vec<Step>, LocationId) {
        let n = self.forward.len();
        let resolved: Vec<Node> = (0..n).map(|i| self.find(Node(i as u32))).collect();
        let entry = resolved[entry.index()];
        // A start of a branch that nothing else leads to and nobody names.
        let mut private: Vec<bool> = self.labels.iter().map(Vec::is_empty).collect();
        private[entry.index()] = false;
        for (i, to) in resolved.iter().enumerate() {
            if to.index() != i {
                private[to.index()] = false;
                private[i] = false;
            }
        }
        let mut outgoing: Vec<Vec<usize>> = vec![Vec::new(); n];
        for (i, (from, out)) in self.outs.iter().enumerate() {
            outgoing[resolved[from.index()].index()].push(i);
            if let Out::Step(to, ..) = out {
                private[resolved[to.index()].index()] = false;
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
                        let first = &outgoing[start.index()];
                        if private[start.index()] && !first.is_empty() {
                            work.extend(first.iter().rev());
                            continue;
                        }
                        (*start, Action::Skip, Span::NONE)
                    }
                };
                steps.push(Step {
                    source: LocationId::new(source),
                    target: LocationId(resolved[target.index()].0),
                    action,
                    span,
                });
                self.gaps.made(i);
            }
        }
        let labels = std::mem::take(&mut self.labels).into_iter();
        let locations = labels.zip(&self.spans);
        let locations = locations.map(|(labels, span)| Location {
            labels,
            span: *span,
        });
        (locations.collect(), steps, LocationId(entry.0))
    }
}
