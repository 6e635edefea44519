//! The happens-before graph of a run: a column for each thread, a row for each access.
//!
//! An arrow between columns goes along its access's row, which has no other box, to a lane beside
//! the other column. Program order is the line down a column; where it leaves out an access, it goes
//! beside the column.

use super::lanes;
use super::svg::{Anchor, Canvas, Pen, width};
use crate::dot::quoted;
use std::fmt::Write;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// Position among [`Order::threads`].
    pub thread: usize,
    pub text: String,
    pub write: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    ProgramOrder,
    ReadsFrom,
    FromRead,
    WriteOrder,
    Together,
}

impl Kind {
    pub const ALL: [Kind; 5] = [
        Kind::ProgramOrder,
        Kind::ReadsFrom,
        Kind::FromRead,
        Kind::WriteOrder,
        Kind::Together,
    ];

    pub fn words(self) -> &'static str {
        match self {
            Kind::ProgramOrder => "po: program order",
            Kind::ReadsFrom => "rf: is read by",
            Kind::FromRead => "fr: reads what is overwritten by",
            Kind::WriteOrder => "co: is overwritten by",
            Kind::Together => "forced by an atomic block or a lock",
        }
    }

    /// As the literature calls it; written beside the arrow.
    pub fn short(self) -> &'static str {
        match self {
            Kind::ProgramOrder => "po",
            Kind::ReadsFrom => "rf",
            Kind::FromRead => "fr",
            Kind::WriteOrder => "co",
            Kind::Together => "",
        }
    }

    fn colour(self) -> &'static str {
        match self {
            Kind::ProgramOrder => "#52606d",
            Kind::ReadsFrom => "#2e7d32",
            Kind::FromRead => "#d9822b",
            Kind::WriteOrder => "#2f6f9f",
            Kind::Together => "#7b4b94",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrow {
    /// Positions among [`Order::accesses`].
    pub from: usize,
    pub to: usize,
    pub kind: Kind,
    /// Part of the cycle that no SC run has.
    pub cycle: bool,
    /// The later access took effect before the earlier one: what *why* speaks of.
    pub reordered: bool,
}

/// A run's happens-before graph, to be drawn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Order {
    pub threads: Vec<String>,
    pub accesses: Vec<Access>,
    pub arrows: Vec<Arrow>,
}

const ROW: f64 = 40.0;
const BOX: f64 = 26.0;
const LANE: f64 = 11.0;
/// How high a fence between two boxes is.
const FENCE: f64 = 11.0;
/// Between two ends of arrows at one side of a box.
const PORT: f64 = 5.0;
const TOP: f64 = 56.0;

/// An arrow between columns, on its way.
struct Route {
    arrow: usize,
    /// It comes to its target from the left.
    from_left: bool,
    /// It leaves its source on the right.
    to_right: bool,
}

impl Order {
    fn in_cycle(&self, access: usize) -> bool {
        let mut arrows = self.arrows.iter();
        arrows.any(|a| a.cycle && (a.from == access || a.to == access))
    }

    pub fn svg(&self) -> String {
        let routes = self.routes();
        // The gutter left of each column, and one right of the last.
        let gutters = self.threads.len() + 1;
        let gutter = |r: &Route| {
            let column = self.accesses[self.arrows[r.arrow].to].thread;
            if r.from_left { column } else { column + 1 }
        };
        let mut lane = vec![0; routes.len()];
        let mut counts = vec![0; gutters];
        for (g, count) in counts.iter_mut().enumerate() {
            let mine: Vec<usize> = (0..routes.len())
                .filter(|r| gutter(&routes[*r]) == g)
                .collect();
            let spans = mine.iter().map(|r| {
                let a = &self.arrows[routes[*r].arrow];
                (a.from.min(a.to), a.from.max(a.to))
            });
            let (of, lanes) = lanes::assign(&spans.collect::<Vec<_>>());
            for (r, l) in mine.iter().zip(of) {
                lane[*r] = l;
            }
            *count = lanes;
        }
        let columns: Vec<f64> = (0..self.threads.len()).map(|t| self.column(t)).collect();
        let mut left = Vec::new();
        let mut x = 12.0;
        // What is written beside an arrow within a column needs room.
        let room = |g: usize| {
            let skips = |r: &&Route| self.skips(&self.arrows[r.arrow]) && gutter(r) == g;
            let words = routes
                .iter()
                .filter(skips)
                .map(|r| words(&self.arrows[r.arrow]));
            30.0 + counts[g] as f64 * LANE + words.map(width).fold(0.0, f64::max)
        };
        for (g, w) in columns.iter().enumerate() {
            x += room(g);
            left.push(x);
            x += w;
        }
        let edge = x + room(columns.len());
        let mut canvas = Canvas::default();
        for (t, name) in self.threads.iter().enumerate() {
            let middle = left[t] + columns[t] / 2.0;
            canvas.text((middle, 24.0), Anchor::Middle, "name", name);
        }
        let y = |row: usize| TOP + row as f64 * ROW;
        self.program_order(&mut canvas, &left, &columns, &y);
        let mut ports: std::collections::BTreeMap<(usize, bool), usize> = Default::default();
        let mut port = |access: usize, right: bool| {
            let n = ports.entry((access, right)).or_insert(0);
            *n += 1;
            // 0, +1, -1, +2, -2
            let step = (*n / 2) as f64 * if n.is_multiple_of(2) { 1.0 } else { -1.0 };
            (step * PORT).clamp(-BOX / 2.0 + 3.0, BOX / 2.0 - 3.0)
        };
        for (r, route) in routes.iter().enumerate() {
            let a = &self.arrows[route.arrow];
            let side = |access: usize, right: bool| {
                let t = self.accesses[access].thread;
                left[t] + if right { columns[t] } else { 0.0 }
            };
            let t = self.accesses[a.to].thread;
            let away = 18.0 + lane[r] as f64 * LANE;
            let lane = match route.from_left {
                true => left[t] - away,
                false => left[t] + columns[t] + away,
            };
            let start = y(a.from) + port(a.from, route.to_right);
            let end = y(a.to) + port(a.to, !route.from_left);
            let points = [
                (side(a.from, route.to_right), start),
                (lane, start),
                (lane, end),
                (side(a.to, !route.from_left), end),
            ];
            canvas.line(&points, pen(a), true);
            // Beside its column, or above where it leaves its box.
            let (at, right) = match self.skips(a) {
                true => ((lane, (start + end) / 2.0 + 3.0), !route.from_left),
                false => ((points[0].0, start - 4.0), route.to_right),
            };
            let (x, anchor) = match right {
                true => (at.0 + 4.0, Anchor::Start),
                false => (at.0 - 4.0, Anchor::End),
            };
            canvas.text((x, at.1), anchor, "edge", words(a));
        }
        for (i, access) in self.accesses.iter().enumerate() {
            let (x, w) = (left[access.thread], columns[access.thread]);
            let class = if access.write { "write" } else { "read" };
            let class = match self.in_cycle(i) {
                true => format!("{class} bad"),
                false => class.to_string(),
            };
            canvas.rounded((x, y(i)), (w, BOX), &class);
            let middle = x + w / 2.0;
            canvas.text((middle, y(i) + 4.0), Anchor::Middle, "", &access.text);
        }
        // The fence that the words under the trace speak of.
        if let Some(before) = self.fence() {
            let t = self.accesses[before].thread;
            let at = y(before) - ROW / 2.0;
            canvas.rounded((left[t], at), (columns[t], FENCE), "fence");
            let middle = left[t] + columns[t] / 2.0;
            canvas.text((middle, at + 3.0), Anchor::Middle, "put", "fence");
        }
        let bottom = y(self.accesses.len());
        let end = self.legend(&mut canvas, bottom);
        canvas.finish((edge.max(330.0), end), "happens-before")
    }

    /// The access before which a fence stops this run: what overtook a store, in the cycle.
    fn fence(&self) -> Option<usize> {
        let pair = self.arrows.iter().find(|a| a.cycle && a.reordered);
        pair.map(|a| a.to)
    }

    fn column(&self, t: usize) -> f64 {
        let mine = self.accesses.iter().filter(|a| a.thread == t);
        let widest = mine.map(|a| width(&a.text)).fold(0.0, f64::max);
        (widest + 20.0).max(width(&self.threads[t]) * 1.3)
    }

    /// Whether program order leaves out an access of its thread.
    fn skips(&self, a: &Arrow) -> bool {
        let thread = self.accesses[a.from].thread;
        let same = thread == self.accesses[a.to].thread;
        let mut between = self.accesses[a.from.min(a.to)..a.to].iter().skip(1);
        same && a.kind == Kind::ProgramOrder && between.any(|b| b.thread == thread)
    }

    fn routes(&self) -> Vec<Route> {
        let arrows = self.arrows.iter().enumerate();
        let between = arrows.filter_map(|(i, a)| {
            let (from, to) = (self.accesses[a.from].thread, self.accesses[a.to].thread);
            let last = from + 1 == self.threads.len();
            match from == to {
                false => Some(Route {
                    arrow: i,
                    from_left: from < to,
                    to_right: from < to,
                }),
                // On the side where there are fewer others.
                true => self.skips(a).then_some(Route {
                    arrow: i,
                    from_left: !last,
                    to_right: last,
                }),
            }
        });
        between.collect()
    }

    fn program_order(
        &self,
        canvas: &mut Canvas,
        left: &[f64],
        columns: &[f64],
        y: &dyn Fn(usize) -> f64,
    ) {
        let own = self.arrows.iter().filter(|a| {
            let same = self.accesses[a.from].thread == self.accesses[a.to].thread;
            same && a.kind == Kind::ProgramOrder && !self.skips(a)
        });
        for a in own {
            let t = self.accesses[a.from].thread;
            let x = left[t] + columns[t] / 2.0;
            let points = [(x, y(a.from) + BOX / 2.0), (x, y(a.to) - BOX / 2.0)];
            canvas.line(&points, pen(a), true);
            let middle = (points[0].1 + points[1].1) / 2.0 + 3.0;
            canvas.text((x + 4.0, middle), Anchor::Start, "edge", words(a));
        }
    }

    /// Gives the height of the picture.
    fn legend(&self, canvas: &mut Canvas, top: f64) -> f64 {
        let mut y = top;
        for kind in Kind::ALL {
            let Some(arrow) = self.arrows.iter().find(|a| a.kind == kind) else {
                continue;
            };
            let thin = Arrow {
                cycle: false,
                ..arrow.clone()
            };
            canvas.line(&[(20.0, y), (56.0, y)], pen(&thin), true);
            canvas.text((66.0, y + 4.0), Anchor::Start, "small", kind.words());
            y += 18.0;
        }
        if self.arrows.iter().any(|a| a.cycle) {
            let pen = Pen {
                colour: "#c62828",
                width: 3.0,
                dashed: false,
            };
            canvas.line(&[(20.0, y), (56.0, y)], pen, true);
            let words = "the cycle: no SC run has this";
            canvas.text((66.0, y + 4.0), Anchor::Start, "small", words);
            y += 18.0;
        }
        if self.fence().is_some() {
            canvas.rounded((20.0, y), (36.0, FENCE), "fence");
            let words = "a fence here stops this run";
            canvas.text((66.0, y + 4.0), Anchor::Start, "small", words);
            y += 18.0;
        }
        y + 4.0
    }

    /// The same for Graphviz.
    pub fn dot(&self) -> String {
        let mut out = String::from("digraph happens_before {\n  node [shape=box, fontsize=10];\n");
        for (t, name) in self.threads.iter().enumerate() {
            let _ = writeln!(
                out,
                "  subgraph cluster_{t} {{\n    label={};",
                quoted(name)
            );
            let mine = self.accesses.iter().enumerate();
            for (i, a) in mine.filter(|(_, a)| a.thread == t) {
                let bad = if self.in_cycle(i) { ", color=red" } else { "" };
                let _ = writeln!(out, "    a{i} [label={}{bad}];", quoted(&a.text));
            }
            out.push_str("  }\n");
        }
        for a in &self.arrows {
            let style = match a.cycle {
                true => ", color=red, penwidth=2".to_string(),
                false => format!(", color={}", quoted(a.kind.colour())),
            };
            let label = format!(", label={}", quoted(words(a)));
            let _ = writeln!(
                out,
                "  a{} -> a{} [fontsize=9{label}{style}];",
                a.from, a.to
            );
        }
        out.push_str("}\n");
        out
    }
}

/// What is written beside an arrow.
fn words(a: &Arrow) -> &'static str {
    match a.reordered {
        true => "po, reordered",
        false => a.kind.short(),
    }
}

fn pen(a: &Arrow) -> Pen {
    Pen {
        colour: if a.cycle { "#c62828" } else { a.kind.colour() },
        width: if a.cycle { 3.0 } else { 1.2 },
        dashed: a.kind == Kind::Together || a.reordered,
    }
}
