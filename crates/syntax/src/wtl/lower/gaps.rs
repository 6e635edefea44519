//! Where something can be put into the text of a thread. What is put in is proved again, so nobody has to trust this.
//!
//! The text has more places than the graph: where a block ends, before a loop and its condition, before a
//! label and behind it. Here each is a place of its own, so that it is known in the end which steps come by it.

use super::super::ast::{Block, Statement, StatementKind};
use super::graph::Node;
use crate::gaps::{Gap, Side};
use std::collections::{BTreeMap, BTreeSet};
use wattle_model::{Span, StepId};

/// A place of the text.
type Spot = usize;

/// Where a step of the graph leads.
enum Target {
    Spot(Spot),
    /// The start of a branch.
    Start(Node),
}

#[derive(Default)]
pub(super) struct Gaps {
    /// Where a place of the graph is in the text by now, and which labels it has.
    of: Vec<Spot>,
    labels: Vec<Vec<String>>,
    /// Where a spot that jumps or only precedes another one goes.
    next: Vec<Option<Spot>>,
    targets: Vec<Target>,
    /// The targets of the steps, in their order.
    made: Vec<usize>,
    /// With the labels that stand before it.
    found: Vec<(Side, Spot, Vec<String>)>,
}

impl Gaps {
    pub fn fresh(&mut self) {
        self.of.push(self.next.len());
        self.labels.push(Vec::new());
        self.next.push(None);
    }

    pub fn label(&mut self, at: Node, label: &str) {
        self.labels[at.index()].push(label.to_string());
    }

    pub fn leads_to(&mut self, to: Node) {
        self.targets.push(Target::Spot(self.of[to.index()]));
    }

    pub fn starts_at(&mut self, start: Node) {
        self.targets.push(Target::Start(start));
    }

    pub fn goes(&mut self, from: Node, to: Node) {
        self.next[self.of[from.index()]] = Some(self.of[to.index()]);
    }

    /// The text goes on behind this. Who comes there from now on does not come by what is before.
    fn behind(&mut self, at: Node) {
        let new = self.next.len();
        self.next.push(None);
        let old = std::mem::replace(&mut self.of[at.index()], new);
        self.next[old] = Some(new);
    }

    fn gap(&mut self, at: Node, side: Side) {
        let (spot, labels) = (self.of[at.index()], self.labels[at.index()].clone());
        self.found.push((side, spot, labels));
    }

    /// A statement and its labels come next. Who jumps to a label does not come by what is before it.
    pub fn before(&mut self, at: Node, s: &Statement) {
        let shows = !matches!(s.kind, StatementKind::Nothing | StatementKind::Let(_));
        if shows || !s.labels.is_empty() {
            self.gap(at, Side::Before(s.span));
        }
        if !s.labels.is_empty() {
            self.behind(at);
        }
    }

    /// Its labels are told.
    pub fn behind_labels(&mut self, at: Node, s: &Statement) {
        if !s.labels.is_empty() {
            self.gap(at, Side::BehindLabels(s.span));
        }
    }

    /// The rounds of a loop begin here: who comes round does not come by what is before the loop.
    pub fn round(&mut self, at: Node) {
        self.behind(at);
    }

    /// The end of a block, where something can be put behind its last statement.
    pub fn end(&mut self, at: Node, b: &Block) {
        // Nothing goes between the words of `else if`.
        if let [s] = &b.statements[..]
            && matches!(s.kind, StatementKind::If(..))
            && s.span.end == b.close.end
        {
            let mut found = self.found.iter();
            let last = found.rposition(|g| g.0 == Side::Before(s.span));
            last.map(|g| self.found.remove(g));
            return;
        }
        // A label before the brace has no text of its own: the gap is the one behind it.
        let bare =
            |s: &&Statement| matches!(s.kind, StatementKind::Nothing) && !s.labels.is_empty();
        if let Some(last) = b.statements.last().filter(|s| !bare(s)) {
            self.gap(at, Side::Behind(last.span));
        }
    }

    /// Nothing can be put into an atomic block, which ends here.
    pub fn none_inside(&mut self, block: Span) {
        let inside = |(side, ..): &(Side, Spot, Vec<String>)| match side {
            Side::Before(span) | Side::BehindLabels(span) | Side::Behind(span) => {
                block.start < span.start && span.end <= block.end
            }
        };
        while self.found.pop_if(|gap| inside(gap)).is_some() {}
    }

    /// The next step of the graph is the one that was told as this.
    pub fn made(&mut self, told: usize) {
        self.made.push(told);
    }

    /// Who comes to a place comes by those that it goes on to. The same text in several rounds of an
    /// unrolled loop is one gap.
    pub fn finish(&self) -> Vec<Gap> {
        let mut at: BTreeMap<Spot, Vec<usize>> = BTreeMap::new();
        for (g, (_, spot, _)) in self.found.iter().enumerate() {
            at.entry(*spot).or_default().push(g);
        }
        let mut gaps: BTreeMap<(Side, &[String]), BTreeSet<StepId>> = BTreeMap::new();
        for (s, told) in self.made.iter().enumerate() {
            let mut next = Some(match self.targets[*told] {
                Target::Spot(spot) => spot,
                Target::Start(start) => self.of[start.index()],
            });
            while let Some(spot) = next {
                for g in at.get(&spot).into_iter().flatten() {
                    let (side, _, labels) = &self.found[*g];
                    let ways = gaps.entry((*side, labels)).or_default();
                    ways.insert(StepId::new(s));
                }
                next = self.next[spot];
            }
        }
        let mut copies: BTreeMap<Side, usize> = BTreeMap::new();
        for (side, ..) in &self.found {
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
