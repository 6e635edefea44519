//! What pictures are drawn from: a run's happens-before relation, and where fences go.

use wattle_evidence::happens_before::{Edge, EdgeKind, Relation, relation};
use wattle_evidence::{Task, Trace};
use wattle_memory::reference::ReplayError;
use wattle_model::{Instance, StepId};
use wattle_repair::{Fix, SiteKind};
use wattle_report::picture::{Access, Arrow, Kind, Mark, Order};
use wattle_report::{why, words};

/// The happens-before graph of a run, with a cycle if there is one. Of the arrows that follow from
/// others only those of the cycle are kept.
pub fn order(task: &Task<'_>, trace: &Trace) -> Result<Order, ReplayError> {
    let instance = task.instance;
    let found = relation(instance, trace.model, &trace.start, &trace.events)?;
    let (states, _) =
        wattle_memory::reference::replay(instance, trace.model, &trace.start, &trace.events)?;
    let cycle = found.cycle().unwrap_or_default();
    let accesses = found.nodes.iter().map(|n| {
        let event = &trace.events[n.event];
        let text = words::event(instance, event, &states[n.event], states.get(n.event + 1));
        let line = match event {
            wattle_memory::Event::Step { thread, step, .. } => {
                instance.thread(*thread).step(*step).span.line
            }
            wattle_memory::Event::Drain { .. } => 0,
        };
        Access {
            thread: n.thread.index(),
            text: match line {
                0 => text,
                line => format!("{text} :{line}"),
            },
            write: n.write,
        }
    });
    let shown = |e: &&Edge| cycle.contains(*e) || !follows(&found, e);
    // Into the access that overtook, from what it overtook or from something after that.
    let overtakings = why::overtakings(task, trace, &states);
    let reordered = |e: &Edge| {
        let (from, to) = (&found.nodes[e.from], &found.nodes[e.to]);
        let mut all = overtakings.iter();
        e.kind == EdgeKind::ProgramOrder
            && all.any(|o| o.thread == to.thread && o.later == to.event && o.store <= from.event)
    };
    let arrows = found.edges.iter().filter(shown).map(|e| Arrow {
        from: e.from,
        to: e.to,
        kind: kind(e.kind),
        cycle: cycle.contains(e),
        reordered: reordered(e),
    });
    Ok(Order {
        threads: instance.threads.iter().map(|t| t.name.clone()).collect(),
        accesses: accesses.collect(),
        arrows: arrows.collect(),
    })
}

fn kind(kind: EdgeKind) -> Kind {
    match kind {
        EdgeKind::ProgramOrder => Kind::ProgramOrder,
        EdgeKind::ReadsFrom => Kind::ReadsFrom,
        EdgeKind::FromRead => Kind::FromRead,
        EdgeKind::WriteOrder => Kind::WriteOrder,
        EdgeKind::Together => Kind::Together,
    }
}

/// Whether a conflict is between accesses with a store of the cell in between, or within a thread.
fn follows(relation: &Relation, e: &Edge) -> bool {
    let (a, b) = (&relation.nodes[e.from], &relation.nodes[e.to]);
    if e.kind == EdgeKind::ProgramOrder {
        return false;
    }
    let between = relation
        .nodes
        .iter()
        .any(|n| n.write && n.cell == a.cell && a.time < n.time && n.time < b.time);
    a.thread == b.thread || (between && e.kind != EdgeKind::Together)
}

/// The places of a fix in every thread of its families.
pub fn marks(instance: &Instance, fix: &Fix) -> Vec<Mark> {
    let mut marks = Vec::new();
    for site in &fix.sites {
        let all = instance.thread_ids();
        for t in all.filter(|t| instance.thread(*t).family == site.family) {
            let behind = |s: StepId| instance.thread(t).step(s).target;
            marks.push(match site.kind {
                SiteKind::FenceBehind(s) => Mark::Fence(t, behind(s)),
                SiteKind::StoreFenceBehind(s) => Mark::StoreFence(t, behind(s)),
                SiteKind::Fence(l) => Mark::Fence(t, l),
                SiteKind::StoreFence(l) => Mark::StoreFence(t, l),
                SiteKind::Swap(s) => Mark::Swap(t, s),
                SiteKind::Lock(l) => Mark::Lock(t, l),
            });
        }
    }
    marks
}
