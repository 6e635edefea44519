//! The machine that changes one state in place against the one that makes new states: the same events,
//! the same states, and back again.

use wattle_memory::reference::{InPlace, Machine, Outcome, State};
use wattle_memory::{Event, Exact, Layout, MemoryModel, Pso, Sc, Tso};
use wattle_model::{Instance, Program};
use wattle_random::{Rng, Shape, trial};

type StateOf<L> = State<<L as Layout>::Buffer<Exact>>;

/// Events in an order that does not depend on who lists them.
fn events_in_place(m: &InPlace<'_>) -> Vec<Event> {
    let instance = m.instance;
    let inside =
        |t: &wattle_model::ThreadId| instance.thread(*t).atomic[m.locations[t.index()].index()];
    let alone = instance.thread_ids().find(inside);
    let mut events = Vec::new();
    for t in instance
        .thread_ids()
        .filter(|t| alone.is_none_or(|a| a == *t))
    {
        for s in instance.thread(t).outgoing(m.locations[t.index()]) {
            if m.enabled(t, *s) {
                let value = None;
                events.push(Event::Step {
                    thread: t,
                    step: *s,
                    value,
                });
            }
        }
        for at in (0..m.pending(t).len()).filter(|at| m.may_access(t) && m.is_oldest(t, *at)) {
            let p = m.pending(t)[at];
            let (cell, value, keep) = (p.cell, p.value, false);
            events.push(Event::Drain {
                thread: t,
                cell,
                value,
                keep,
            });
        }
    }
    events.sort();
    events
}

fn same<L: Layout>(a: &StateOf<L>, b: &InPlace<'_>) -> bool {
    let entries = |t: wattle_model::ThreadId| {
        let mut mine: Vec<_> = b.pending(t).iter().map(|p| (p.cell, p.value)).collect();
        let mut its = L::entries::<Exact>(&a.buffers[t.index()]);
        if b.model == MemoryModel::Pso {
            mine.sort();
            its.sort();
        }
        mine == its
    };
    let registers = |t: wattle_model::ThreadId| {
        let all = a.registers[t.index()].iter().enumerate();
        let mut all = all.map(|(r, v)| b.register(t, wattle_model::RegisterId::new(r)) == *v);
        all.all(|equal| equal)
    };
    a.locations == b.locations
        && a.memory == b.memory
        && a.holder == b.holder
        && b.instance.thread_ids().all(entries)
        && b.instance.thread_ids().all(registers)
}

fn walk<L: Layout>(instance: &Instance, rng: &mut Rng) -> Option<String> {
    let machine = Machine::<L, Exact>::new(instance, ()).ok()?;
    for start in machine.starts().ok()?.iter().take(3) {
        let mut state = machine.initial(start);
        let mut mine = InPlace::new(instance, L::MODEL, start);
        let mut passed = Vec::new();
        for _ in 0..40 {
            if !same::<L>(&state, &mine) {
                return Some(format!(
                    "{}: states differ after {} events",
                    L::MODEL,
                    passed.len()
                ));
            }
            let all = machine.events(&state);
            let mut plain: Vec<Event> = all.clone();
            for e in &mut plain {
                if let Event::Step { value, .. } = e {
                    *value = None;
                }
            }
            plain.sort();
            plain.dedup();
            if plain != events_in_place(&mine) {
                return Some(format!("{}: other events", L::MODEL));
            }
            if all.is_empty() {
                break;
            }
            let event = all[rng.below(all.len())];
            let mark = mine.mark();
            let faulted = match event {
                Event::Step {
                    thread,
                    step,
                    value,
                } => mine.take(thread, step, value).err(),
                Event::Drain { thread, cell, .. } => {
                    let at = mine.pending(thread).iter().position(|p| p.cell == cell)?;
                    mine.drain(thread, at);
                    None
                }
            };
            match (machine.apply(&state, &event), faulted) {
                (Outcome::Next(next), None) => {
                    passed.push((mark, std::mem::replace(&mut state, next)));
                }
                (Outcome::Fault(f), Some(kind)) if f.kind == kind => break,
                (_, faulted) => return Some(format!("{}: a fault {faulted:?}", L::MODEL)),
            }
        }
        while let Some((mark, before)) = passed.pop() {
            mine.undo_to(mark);
            if !same::<L>(&before, &mine) {
                return Some(format!("{}: not taken back", L::MODEL));
            }
        }
    }
    None
}

#[test]
fn in_place_is_the_reference_machine() {
    let shape = Shape {
        statements: 6,
        loops: wattle_random::Loops::Any,
        faults: true,
        ..Shape::default()
    };
    let complaint = |program: &Program, n: u64, _: &mut ()| {
        let instance = program.instance().ok()?;
        let mut rng = Rng::new(n);
        walk::<Sc>(&instance, &mut rng)
            .or_else(|| walk::<Tso>(&instance, &mut rng))
            .or_else(|| walk::<Pso>(&instance, &mut rng))
    };
    trial(&shape, 3000, 77, complaint);
}
