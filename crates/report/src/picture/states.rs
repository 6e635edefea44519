//! The states of a small program and the events between them, in rows by their distance from the start.

use super::svg::{Anchor, Canvas, Pen, width};
use crate::dot::quoted;
use std::fmt::Write;

/// A state as it is drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// What is written in its box.
    pub lines: Vec<String>,
    /// So many events after the start.
    pub row: usize,
    pub kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Plain,
    First,
    Final,
    /// The property's target is true, or a step is a fault.
    Bad,
}

/// The states, and for each event where it leads from and to, and what it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct States {
    pub title: String,
    pub states: Vec<Shown>,
    pub events: Vec<(usize, usize, String)>,
}

const LINE: f64 = 15.0;
const GAP: (f64, f64) = (70.0, 64.0);
const MARGIN: f64 = 40.0;

impl States {
    /// In the language of Graphviz.
    pub fn dot(&self) -> String {
        let mut out = String::from("digraph states {\n  node [shape=box, fontsize=10];\n");
        let _ = writeln!(out, "  label={};", quoted(&self.title));
        for (i, state) in self.states.iter().enumerate() {
            let look = match state.kind {
                Kind::Plain => "",
                Kind::First => ", penwidth=2",
                Kind::Final => ", peripheries=2",
                Kind::Bad => ", color=red, penwidth=2",
            };
            let label = quoted(&state.lines.join("\n"));
            let _ = writeln!(out, "  s{i} [label={label}{look}];");
        }
        for (from, to, event) in &self.events {
            let _ = writeln!(out, "  s{from} -> s{to} [label={}];", quoted(event));
        }
        out.push_str("}\n");
        out
    }

    /// As a picture.
    pub fn svg(&self) -> String {
        let size = |s: &Shown| {
            let widest = s.lines.iter().map(|l| width(l)).fold(30.0, f64::max);
            (widest + 16.0, s.lines.len().max(1) as f64 * LINE + 10.0)
        };
        let rows = self.states.iter().map(|s| s.row + 1).max().unwrap_or(0);
        let mut row_width = vec![0.0; rows];
        let mut row_height: Vec<f64> = vec![0.0; rows];
        for state in &self.states {
            let (w, h) = size(state);
            row_width[state.row] += w + GAP.0;
            row_height[state.row] = row_height[state.row].max(h);
        }
        let widest = row_width.iter().copied().fold(width(&self.title), f64::max);
        let mut next: Vec<f64> = row_width
            .iter()
            .map(|w| MARGIN + (widest - w + GAP.0) / 2.0)
            .collect();
        let mut top = vec![MARGIN + 30.0; rows + 1];
        for r in 0..rows {
            top[r + 1] = top[r] + row_height[r] + GAP.1;
        }
        // Left, middle height, width and height of each box.
        let mut boxes = Vec::new();
        for state in &self.states {
            let (w, h) = size(state);
            let x = next[state.row];
            next[state.row] += w + GAP.0;
            boxes.push((x, top[state.row] + row_height[state.row] / 2.0, w, h));
        }
        let mut canvas = Canvas::default();
        canvas.text((MARGIN, MARGIN - 10.0), Anchor::Start, "name", &self.title);
        let pen = Pen {
            colour: "#9fb3c8",
            width: 1.2,
            dashed: false,
        };
        for (from, to, event) in &self.events {
            let (a, b) = (boxes[*from], boxes[*to]);
            let (points, label) = route(a, b);
            canvas.line(&points, pen, true);
            canvas.text(label, Anchor::Middle, "edge", event);
        }
        for (state, (x, y, w, h)) in self.states.iter().zip(&boxes) {
            let class = match state.kind {
                Kind::Plain => "place",
                Kind::First => "touch",
                Kind::Final => "end",
                Kind::Bad => "wait bad",
            };
            canvas.rounded((*x, *y), (*w, *h), class);
            let first = y - state.lines.len() as f64 * LINE / 2.0 + 11.0;
            for (i, line) in state.lines.iter().enumerate() {
                let at = (x + w / 2.0, first + i as f64 * LINE);
                canvas.text(at, Anchor::Middle, "", line);
            }
        }
        let height = top.last().copied().unwrap_or(MARGIN) + MARGIN;
        canvas.finish((widest + 2.0 * MARGIN, height), &self.title)
    }
}

type Box = (f64, f64, f64, f64);

/// The line from one box to another, and where its text goes: from bottom to top if the other one is below,
/// round the right side otherwise.
fn route(a: Box, b: Box) -> (Vec<(f64, f64)>, (f64, f64)) {
    let (start, end) = (
        (a.0 + a.2 / 2.0, a.1 + a.3 / 2.0),
        (b.0 + b.2 / 2.0, b.1 - b.3 / 2.0),
    );
    if start.1 < end.1 {
        let text = (0.6 * start.0 + 0.4 * end.0, 0.6 * start.1 + 0.4 * end.1);
        return (vec![start, end], text);
    }
    let (start, end) = ((a.0 + a.2, a.1), (b.0 + b.2, b.1 + b.3 / 4.0));
    let side = start.0.max(end.0) + GAP.0 / 3.0;
    let text = (side, (start.1 + end.1) / 2.0);
    (vec![start, (side, start.1), (side, end.1), end], text)
}
