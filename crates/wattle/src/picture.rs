//! What pictures are drawn from: a run's happens-before relation, and where fences go.

use wattle_evidence::happens_before::{Edge, EdgeKind, Node, Relation, relation};
use wattle_evidence::{Task, Trace};
use wattle_memory::reference::ReplayError;
use wattle_model::{Instance, StepId, ThreadId};
use wattle_repair::Fenced;
use wattle_report::picture::{Access, Added, Arrow, Kind, Order};
use wattle_report::{why, words};

/// The happens-before graph of a run, with a cycle if there is one: rather one that tells the story of
/// *why*, from a store to the access that overtook it and back. Of the arrows that follow from others only
/// those of the cycle and the reordered pairs are kept.
pub fn order(task: &Task<'_>, trace: &Trace) -> Result<Order, ReplayError> {
    let instance = task.instance;
    let found = relation(instance, trace.model, &trace.start, &trace.events)?;
    let (states, _) =
        wattle_memory::reference::replay(instance, trace.model, &trace.start, &trace.events)?;
    let reordered = reordered(&found, &why::overtakings(task, trace, &states));
    let told = reordered.iter().filter_map(|pair| {
        let back = found.path(pair.to, pair.from)?;
        Some([vec![*pair], back].concat())
    });
    let told = told.min_by_key(Vec::len);
    let cycle = told.or_else(|| found.cycle()).unwrap_or_default();
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
    // Which of two stores is overwritten is not known while neither has left its buffer.
    let pending = |n: usize| found.nodes[n].write && found.nodes[n].time >= trace.events.len();
    let open = |e: &Edge| e.kind == EdgeKind::WriteOrder && pending(e.from) && pending(e.to);
    let shown = |e: &&Edge| cycle.contains(*e) || !(follows(&found, e) || open(e));
    let pairs = reordered.iter().filter(|p| !found.edges.contains(p));
    let arrows = found.edges.iter().filter(shown).chain(pairs);
    let arrows = arrows.map(|e| Arrow {
        from: e.from,
        to: e.to,
        kind: kind(e.kind),
        cycle: cycle.contains(e),
        reordered: reordered.contains(e),
    });
    Ok(Order {
        threads: instance.threads.iter().map(|t| t.name.clone()).collect(),
        accesses: accesses.collect(),
        arrows: arrows.collect(),
    })
}

/// From each store to what overtook it.
fn reordered(relation: &Relation, overtakings: &[why::Overtaking]) -> Vec<Edge> {
    let node = |is: &dyn Fn(&Node) -> bool| relation.nodes.iter().position(is);
    let pair = |o: &why::Overtaking| {
        let from = node(&|n| n.write && n.event == o.store)?;
        // Of a store the later event is its drain.
        let to = node(&|n| match o.later_is_load {
            true => n.event == o.later,
            false => n.write && n.time == o.later,
        })?;
        Some(Edge {
            from,
            to,
            kind: EdgeKind::ProgramOrder,
        })
    };
    overtakings.iter().filter_map(pair).collect()
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

/// The steps of a fenced program's instance that the program without the fences has not.
pub fn added(fenced: &Fenced, instance: &Instance) -> Added {
    let of_thread = |t: ThreadId| {
        let thread = instance.thread(t);
        let steps = (0..thread.steps.len()).map(StepId::new);
        let new = steps.filter(|s| fenced.step(thread.family, *s).is_none());
        new.map(|s| (t, s)).collect::<Vec<_>>()
    };
    instance.thread_ids().flat_map(of_thread).collect()
}
