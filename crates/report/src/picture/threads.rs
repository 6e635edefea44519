//! The threads' graphs, one panel each: locations and steps from top to bottom.
//!
//! A location is a circle with its number, a step the box under it. A step that leads to the next
//! location down points at it; all others go through a lane at the right, one lane for each target.

use super::lanes;
use super::svg::{Anchor, Canvas, Pen, width};
use crate::words;
use std::collections::{BTreeMap, BTreeSet};
use wattle_model::graph::Action;
use wattle_model::instance::{Step, Thread};
use wattle_model::{Instance, LocationId, StepId, ThreadId};

/// Steps that are not in the source: fences put in, and what makes a statement atomic.
pub type Added = BTreeSet<(ThreadId, StepId)>;

const ROW: f64 = 32.0;
const BOX: f64 = 22.0;
const RADIUS: f64 = 11.0;
const LANE: f64 = 10.0;
const GAP: f64 = 36.0;
/// Panels go side by side up to this width.
const PAGE: f64 = 1500.0;
const TRUNK: Pen = Pen {
    colour: "#52606d",
    width: 1.4,
    dashed: false,
};
const COLOURS: [&str; 6] = [
    "#2f6f9f", "#b3541e", "#5b7f2b", "#7b4b94", "#a3712a", "#2d7d74",
];

/// All threads, with what was added marked, in the words of their source if it is there.
pub fn threads(instance: &Instance, added: &Added, source: &str) -> String {
    let mut page = Canvas::default();
    let (mut x, mut y, mut height, mut widest) = (GAP / 2.0, GAP / 2.0, 0.0f64, 0.0f64);
    for (t, copies) in families(instance) {
        let panel = Panel::new((instance, source), t, copies, added);
        let (canvas, w, h) = panel.draw();
        if x > GAP && x + w > PAGE {
            (x, y, height) = (GAP / 2.0, y + height + GAP, 0.0);
        }
        page.place((x, y), &canvas);
        x += w + GAP;
        height = height.max(h);
        widest = widest.max(x);
    }
    page.finish((widest, y + height + GAP / 2.0), "threads")
}

/// The first thread of every family, and how many there are: their graphs are the same but for
/// constants.
pub(crate) fn families(instance: &Instance) -> Vec<(ThreadId, usize)> {
    let of = |t: ThreadId| instance.thread(t).family;
    let all = || instance.thread_ids();
    let is_first = |t: &ThreadId| all().find(|u| of(*u) == of(*t)) == Some(*t);
    let count = |t: ThreadId| all().filter(|u| of(*u) == of(t)).count();
    all().filter(is_first).map(|t| (t, count(t))).collect()
}

/// `p0`, `p0 (one of 3)`
pub(crate) fn title(name: &str, copies: usize) -> String {
    match copies {
        1 => name.to_string(),
        n => format!("{name} (one of {n})"),
    }
}

/// What a step is called: in the words of its source if it is from there.
pub(crate) fn text(
    (source, instance): (&str, &Instance),
    thread: &Thread,
    s: StepId,
    added: &BTreeSet<StepId>,
) -> String {
    let step = thread.step(s);
    if added.contains(&s) {
        return words::step(instance, thread, step);
    }
    let text = words::written(source, instance, thread, step);
    match step.span.is_some() {
        true => format!("{text}  :{}", step.span.line),
        false => text,
    }
}

/// The added steps of one thread.
pub(crate) fn of(added: &Added, t: ThreadId) -> BTreeSet<StepId> {
    let mine = added.iter().filter(|(of, _)| *of == t);
    mine.map(|(_, s)| *s).collect()
}

/// One row of a panel.
enum Row {
    Location(LocationId),
    Step(StepId),
}

struct Panel<'i> {
    instance: &'i Instance,
    source: &'i str,
    thread: &'i Thread,
    rows: Vec<Row>,
    /// The row of each location.
    row_of: BTreeMap<LocationId, usize>,
    /// Its steps that are not in the source.
    added: BTreeSet<StepId>,
    title: String,
}

impl<'i> Panel<'i> {
    fn new(
        (instance, source): (&'i Instance, &'i str),
        t: ThreadId,
        copies: usize,
        added: &Added,
    ) -> Self {
        let thread = instance.thread(t);
        let mut panel = Panel {
            instance,
            source,
            thread,
            rows: Vec::new(),
            row_of: BTreeMap::new(),
            added: of(added, t),
            title: title(&thread.name, copies),
        };
        let locations = (0..thread.locations.len()).map(LocationId::new);
        // Places that can wait; the entry comes first.
        let mut later: Vec<LocationId> = locations.rev().collect();
        let mut next = Some(thread.entry);
        while let Some(l) = next.or_else(|| later.pop()) {
            next = None;
            if panel.row_of.contains_key(&l) {
                continue;
            }
            panel.row_of.insert(l, panel.rows.len());
            panel.rows.push(Row::Location(l));
            let mut steps = thread.outgoing(l).to_vec();
            let goes_on = |s: &StepId| !panel.row_of.contains_key(&thread.step(*s).target);
            // What comes first in the text goes on below.
            let text = |s: &StepId| {
                let target = thread.step(*s).target;
                let starts = thread.outgoing(target).iter();
                let starts = starts.map(|s| thread.step(*s).span.start);
                (starts.min().unwrap_or(u32::MAX), target)
            };
            let first = steps
                .iter()
                .filter(|s| goes_on(s))
                .min_by_key(|s| text(s))
                .copied();
            if let Some(i) = steps.iter().position(|s| Some(*s) == first) {
                let last = steps.remove(i);
                steps.push(last);
                next = Some(thread.step(last).target);
            }
            panel.rows.extend(steps.into_iter().map(Row::Step));
        }
        panel
    }

    fn text(&self, s: StepId) -> String {
        text((self.source, self.instance), self.thread, s, &self.added)
    }

    fn label(&self, l: LocationId) -> String {
        self.thread.locations[l.index()].labels.join(" ")
    }

    fn draw(&self) -> (Canvas, f64, f64) {
        let mut canvas = Canvas::default();
        let names = self.row_of.keys().map(|l| width(&self.label(*l)));
        let x = names.fold(0.0, f64::max) + 36.0;
        let left = x - 16.0;
        let boxes = self.rows.iter().map(|row| match row {
            Row::Step(s) => width(&self.text(*s)) + 16.0,
            Row::Location(_) => 2.0 * RADIUS,
        });
        let right = left + boxes.fold(0.0, f64::max);
        let y = |row: usize| 46.0 + row as f64 * ROW;
        canvas.text((left, 16.0), Anchor::Start, "name", &self.title);
        let lanes = self.lines(&mut canvas, x, left, right, &y);
        for (i, row) in self.rows.iter().enumerate() {
            match row {
                Row::Location(l) => {
                    let ended = self.thread.outgoing(*l).is_empty();
                    let class = if ended { "end" } else { "place" };
                    canvas.circle((x, y(i)), RADIUS, class);
                    let number = l.index().to_string();
                    canvas.text((x, y(i) + 3.5), Anchor::Middle, "small", &number);
                    let label = self.label(*l);
                    canvas.text((left - 14.0, y(i) + 4.0), Anchor::End, "label", &label);
                }
                Row::Step(s) => {
                    let text = self.text(*s);
                    let (class, on) = match self.added.contains(s) {
                        true => ("fence", "on"),
                        false => (class(self.thread.step(*s)), ""),
                    };
                    canvas.rounded((left, y(i)), (width(&text) + 16.0, BOX), class);
                    canvas.text((left + 8.0, y(i) + 4.0), Anchor::Start, on, &text);
                }
            }
        }
        let w = right + 14.0 + lanes as f64 * LANE;
        (canvas, w, y(self.rows.len()))
    }

    /// Draws all lines; gives the number of lanes.
    fn lines(
        &self,
        canvas: &mut Canvas,
        x: f64,
        left: f64,
        right: f64,
        y: &dyn Fn(usize) -> f64,
    ) -> usize {
        // By target: the rows that lead there through a lane.
        let mut sources: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let mut from = 0;
        for (i, row) in self.rows.iter().enumerate() {
            let (below, above) = (y(i) - BOX / 2.0, y(i - i.min(1)));
            match row {
                Row::Location(_) => from = i,
                Row::Step(s) => {
                    match from + 1 == i {
                        true => canvas.line(&[(x, above + RADIUS), (x, below)], TRUNK, true),
                        // The second way out of a location goes around the first.
                        false => {
                            let bus = left - 8.0;
                            let points = [
                                (x - RADIUS, y(from)),
                                (bus, y(from)),
                                (bus, y(i)),
                                (left, y(i)),
                            ];
                            canvas.line(&points, TRUNK, true);
                        }
                    }
                    let target = self.row_of[&self.thread.step(*s).target];
                    match target == i + 1 {
                        true => {
                            let points = [(x, y(i) + BOX / 2.0), (x, y(target) - RADIUS)];
                            canvas.line(&points, TRUNK, true);
                        }
                        false => sources.entry(target).or_default().push(i),
                    }
                }
            }
        }
        let span = |(target, rows): (&usize, &Vec<usize>)| {
            let all = rows.iter().chain([target]);
            let low = all.clone().min().copied().unwrap_or(0);
            (low, all.max().copied().unwrap_or(0))
        };
        let spans: Vec<(usize, usize)> = sources.iter().map(span).collect();
        let (of, count) = lanes::assign(&spans);
        for (n, (target, rows)) in sources.iter().enumerate() {
            let lane = right + 14.0 + of[n] as f64 * LANE;
            let pen = Pen {
                colour: COLOURS[n % COLOURS.len()],
                ..TRUNK
            };
            for i in rows {
                let Row::Step(s) = &self.rows[*i] else {
                    continue;
                };
                let end = left + width(&self.text(*s)) + 16.0;
                let points = [
                    (end, y(*i)),
                    (lane, y(*i)),
                    (lane, y(*target)),
                    (x + RADIUS, y(*target)),
                ];
                canvas.line(&points, pen, true);
            }
        }
        count
    }
}

/// What touches memory, what waits, and the rest.
fn class(step: &Step) -> &'static str {
    match step.action {
        Action::Load { .. } | Action::Store { .. } => "touch",
        Action::Fence(_)
        | Action::AtomicBegin(_)
        | Action::AtomicEnd
        | Action::Lock
        | Action::Unlock => "wait",
        _ => "step",
    }
}
