//! Numbers that wrap around as numbers that do not: every run of the one program is a run of the other, and tickets.
//!
//! Set `WATTLE_SEED` to try other programs, `WATTLE_PROGRAMS` to try more.

use crate::{audited, granted, read};
use std::collections::BTreeMap;
use wattle_counting::{Granted, Outcome};
use wattle_evidence::{Answer, Control, Engine, Task};
use wattle_memory::reference::{Machine, Outcome as Next, State};
use wattle_memory::{Event, Exact, Layout, MemoryModel, Pso, Sc, Tso};
use wattle_model::graph::Action;
use wattle_model::{CellId, Counts, Instance, LocationId, Program, RegisterId, Type};
use wattle_random::{Rng, setting};
use wattle_search::Explicit;

fn instance(program: &Program, threads: u32) -> Instance {
    let counts = BTreeMap::from([("p".to_string(), threads)]);
    match program.instantiate(&Counts(counts)) {
        Ok(instance) => instance,
        Err(e) => panic!("{e:?}"),
    }
}

/// Two instances whose threads have the same locations, but for those that only the second has.
struct Beside<'i, L: Layout> {
    narrow: Machine<'i, L, Exact>,
    wide: Machine<'i, L, Exact>,
    /// Locations of the narrow one.
    locations: usize,
}

type Of<L> = State<<L as Layout>::Buffer<Exact>>;

/// How a run went on.
enum Ran {
    /// A number was too far from another.
    Apart,
    On,
}

impl<L: Layout> Beside<'_, L> {
    fn same(&self, ty: (Type, Type), narrow: i64, wide: i64) -> bool {
        match ty {
            // What holds fewer bits than its type has room for is cut to these.
            (Type::Wrap { bits, .. }, Type::Int) => {
                let fewer = (1..bits).map(|bits| Type::Wrap {
                    bits,
                    signed: false,
                });
                let mut all = fewer.chain([ty.0]);
                all.any(|ty| ty.admit(wide) == Some(narrow))
            }
            _ => narrow == wide,
        }
    }

    /// The same locations, but for those behind an assertion, and the same values up to what is cut off.
    fn alike(&self, narrow: &Of<L>, wide: &Of<L>) -> bool {
        let (n, w) = (self.narrow.instance, self.wide.instance);
        let at = narrow.locations.iter().zip(&wide.locations);
        let mut at = at.map(|(a, b)| a == b || b.index() >= self.locations);
        let cells = n.cells.iter().zip(&w.cells).map(|(a, b)| (a.ty, b.ty));
        let values = narrow.memory.iter().zip(&wide.memory);
        let mut memory = cells.zip(values).map(|(ty, (a, b))| self.same(ty, *a, *b));
        let threads = n.threads.iter().zip(&w.threads);
        let types = threads.flat_map(|(a, b)| {
            let both = a.registers.iter().zip(&b.registers);
            both.map(|(a, b)| (a.ty, b.ty))
        });
        let values = narrow.registers.iter().flatten();
        let values = values.zip(wide.registers.iter().flatten());
        let read = w.threads.iter().flat_map(|t| {
            let mut read = vec![false; t.registers.len()];
            let mut note = |r: RegisterId| read[r.index()] = true;
            t.steps
                .iter()
                .for_each(|s| s.action.for_each_read(&mut note));
            read
        });
        // What nobody reads there is not kept up.
        let own = types.zip(values).zip(read).filter(|(_, read)| *read);
        let mut own = own.map(|((ty, (a, b)), _)| self.same(ty, *a, *b));
        at.all(|same| same) && memory.all(|same| same) && own.all(|same| same)
    }

    /// The same event there, after what is asserted first.
    fn follow(&self, narrow: &Of<L>, wide: Of<L>, event: &Event) -> Result<(Ran, Of<L>), String> {
        let Event::Step { thread, step, .. } = *event else {
            let cell: CellId = match *event {
                Event::Drain { cell, .. } => cell,
                Event::Step { .. } => return Err("no drain".into()),
            };
            let t = event.thread();
            let all = self.wide.events(&wide);
            let own = |e: &&Event| matches!(e, Event::Drain { cell: c, thread, .. } if (*c, *thread) == (cell, t));
            let drain = all.iter().find(own).ok_or("no such drain")?;
            return match self.wide.apply(&wide, drain) {
                Next::Next(next) => Ok((Ran::On, next)),
                Next::Fault(_) | Next::Full(_) => Err("a drain that is a fault".into()),
            };
        };
        let t = thread.index();
        let program = &self.wide.instance.threads[t];
        let here: LocationId = wide.locations[t];
        let mut wide = wide;
        let asserted = program.outgoing(here).iter().copied().find(|s| {
            let s = program.step(*s);
            s.target.index() >= self.locations && matches!(s.action, Action::Assert { .. })
        });
        if let Some(s) = asserted {
            let event = Event::Step {
                thread,
                step: s,
                value: None,
            };
            wide = match self.wide.apply(&wide, &event) {
                Next::Next(next) => next,
                Next::Fault(_) => return Ok((Ran::Apart, wide)),
                Next::Full(_) => return Err("full".into()),
            };
        }
        let value = match program.step(step).action {
            Action::Havoc { register, .. } => Some(narrow.registers[t][register.index()]),
            _ => None,
        };
        let event = Event::Step {
            thread,
            step,
            value,
        };
        if !self.wide.can(&wide, &event) {
            return Err(format!("{event:?} is not possible"));
        }
        match self.wide.apply(&wide, &event) {
            Next::Next(next) => Ok((Ran::On, next)),
            Next::Fault(_) | Next::Full(_) => Err(format!("{event:?} is a fault")),
        }
    }
}

/// Random runs of the program are runs of the unwrapped one; how many steps were taken beside each other.
fn runs_beside<L: Layout>(program: &Program, rng: &mut Rng) -> Result<u64, String> {
    let Some((unwrapped, _)) = program.unwrapped() else {
        return Ok(0);
    };
    let (narrow, wide) = (instance(program, 3), instance(&unwrapped, 3));
    let machine = |i| Machine::<L, Exact>::new(i, ());
    let (Ok(narrow_machine), Ok(wide_machine)) = (machine(&narrow), machine(&wide)) else {
        // A number without a bound that may be anything.
        return Ok(0);
    };
    let beside = Beside::<L> {
        locations: narrow.threads[0].locations.len(),
        narrow: narrow_machine,
        wide: wide_machine,
    };
    let starts = beside.narrow.starts().map_err(|e| format!("{e:?}"))?;
    let wide_starts = beside.wide.starts().map_err(|e| format!("{e:?}"))?;
    let (start, wide_start) = (&starts[0], &wide_starts[0]);
    let mut steps = 0;
    for _ in 0..4 {
        let mut a = beside.narrow.initial(start);
        let mut b = beside.wide.initial(wide_start);
        for _ in 0..60 {
            let events = beside.narrow.events(&a);
            if events.is_empty() {
                break;
            }
            let event = rng.pick(&events);
            let Next::Next(next) = beside.narrow.apply(&a, event) else {
                break;
            };
            a = next;
            match beside.follow(&a, b, event)? {
                (Ran::Apart, _) => break,
                (Ran::On, next) => b = next,
            }
            steps += 1;
            if !beside.alike(&a, &b) {
                return Err(format!("{a:?}\n{b:?}\nare not alike"));
            }
        }
    }
    Ok(steps)
}

fn statement(rng: &mut Rng, depth: u32) -> String {
    let (x, y) = (*rng.pick(&["x", "y"]), *rng.pick(&["x", "y", "z"]));
    let (r, s) = (
        *rng.pick(&["r", "s", "w"]),
        *rng.pick(&["r", "s", "w", "n"]),
    );
    let k = rng.between(0, 3);
    let op = *rng.pick(&["==", "!=", "<", ">="]);
    let inner = match depth {
        0 => "skip;".to_string(),
        _ => statement(rng, depth - 1),
    };
    let value = match rng.below(9) {
        0 => format!("{s} + {k}"),
        1 => format!("{s} - {r}"),
        2 => format!("u2({s} + {k})"),
        3 => format!("{s} & 1"),
        4 => format!("-{s}"),
        5 => format!("u3({s} * 3)"),
        6 => format!("({s} < {k} ? {s} : {r})"),
        7 => format!("i3({s} - {k})"),
        _ => format!("{k}"),
    };
    match rng.below(9) {
        0 => format!("{r} = {x}; "),
        1 => format!("{r} = fetch_add({x}, {k}); "),
        2 => format!("{y} = {value}; "),
        3 => format!("{r} = {value}; "),
        4 => format!("if {r} {op} ({value}) {{ {inner} }} "),
        5 => format!("if {r} == {s} {{ {inner} }} else {{ {y} = {s}; }} "),
        6 => format!("if cas({x}, {r}, {value}) {{ {inner} }} "),
        7 => format!("if {s} == {k} && {r} {op} {s} {{ {inner} }} "),
        _ => format!("atomic {{ {r} = {x}; {x} = {r} + 1; {s} = {y}; }} "),
    }
}

#[test]
fn runs_are_runs_of_the_unwrapped_program() {
    let (seed, programs) = (setting("WATTLE_SEED", 1), setting("WATTLE_PROGRAMS", 400));
    let (mut steps, mut unwrapped) = (0, 0);
    for n in 0..programs {
        let mut rng = Rng::new(seed.wrapping_mul(104_729).wrapping_add(n));
        let body: String = (0..4).map(|_| statement(&mut rng, 1)).collect();
        let text = format!(
            "shared x: u2, y: u3 = 5, z: i3;\n\
             thread p[*] {{ local r: u2, s: u3, w: i3, v: u5, n: int; loop {{ {body} }} }}"
        );
        let program = read(&text);
        unwrapped += u64::from(program.unwrapped().is_some());
        for model in MemoryModel::ALL {
            let ran = match model {
                MemoryModel::Sc => runs_beside::<Sc>(&program, &mut rng),
                MemoryModel::Tso => runs_beside::<Tso>(&program, &mut rng),
                MemoryModel::Pso => runs_beside::<Pso>(&program, &mut rng),
            };
            match ran {
                Ok(more) => steps += more,
                Err(why) => panic!("{text}\n{model}: {why}"),
            }
        }
    }
    println!("{unwrapped} of {programs} programs, {steps} steps");
    assert!(unwrapped * 3 >= programs && steps >= programs * 20);
}

/// The least number of threads, up to so many, that break the property.
fn broken(program: &Program, model: MemoryModel, most: u32) -> Option<u32> {
    (1..=most).find(|n| {
        let instance = instance(program, *n);
        let task = Task {
            instance: &instance,
            model,
            question: Some(0),
            deadlock: false,
        };
        let said = Explicit::default().run(&task, &Control::unlimited());
        matches!(said, Answer::Reached { .. })
    })
}

fn ticket(ty: &str, first: i64, unlock: &str) -> String {
    format!(
        "shared next: {ty} = {first}, now: {ty} = {first};\n\
         thread p[*] {{ local my: {ty}, c: {ty}; loop {{ my = fetch_add(next, 1);\n\
         loop {{ c = now; if c == my {{ break; }} }} critical: skip; {unlock} }} }}\n\
         never p[i]@critical && p[j]@critical;"
    )
}

/// With as many threads as numbers it is right, with one more it is not.
#[test]
fn a_ticket_lock_stands_as_many_threads_as_it_has_tickets() {
    for unlock in [
        "now = my + 1;",
        "c = now; now = c + 1;",
        "fetch_add(now, 1);",
    ] {
        for (ty, first, values) in [("u1", 0, 2), ("i2", 0, 4)] {
            let program = read(&ticket(ty, first, unlock));
            for model in MemoryModel::ALL {
                let what = format!("{ty}, {unlock} {model}");
                let said = granted(&program, model, Some(0), Granted::Unwrapped(values));
                let Outcome::Proved(c) = said else {
                    panic!("{what}: {said:?}");
                };
                assert_eq!(audited(&program, model, Some(0), &c), Ok(()), "{what}");
                assert_eq!(
                    broken(&program, model, values + 1),
                    Some(values + 1),
                    "{what}"
                );
                // With more threads nothing is proved.
                let more = granted(&program, model, Some(0), Granted::Unwrapped(values + 1));
                assert!(!matches!(more, Outcome::Proved(_)), "{what}");
                let mut forged = c.clone();
                forged.at_most = Some(values + 1);
                assert!(
                    audited(&program, model, Some(0), &forged).is_err(),
                    "{what}"
                );
                let mut forged = c.clone();
                forged.unwrapped = false;
                assert!(
                    audited(&program, model, Some(0), &forged).is_err(),
                    "{what}"
                );
                let mut forged = c.clone();
                forged.distinct.clear();
                assert!(
                    audited(&program, model, Some(0), &forged).is_err(),
                    "{what}"
                );
                // At first all have the same, and of what there is not nothing can be said.
                let entry = program.families[0].entry;
                let mut first = c.places.iter();
                let first = first.position(|p| p.location == entry && p.pending.entries.is_empty());
                let first = first.expect("a place at the entry") as u32;
                let (place, register) = c.distinct[0].0[0];
                let beyond = RegisterId::new(99);
                for member in [(first, register), (999, register), (place, beyond)] {
                    let mut forged = c.clone();
                    forged.distinct[0].0.push(member);
                    let said = audited(&program, model, Some(0), &forged);
                    assert!(said.is_err(), "{what}, {member:?}");
                }
            }
        }
    }
}

/// Compilers keep narrow numbers in wide registers.
#[test]
fn narrow_numbers_in_wide_registers() {
    let text = ticket("u2", 1, "now = my + 1;").replace("c: u2", "c: u8");
    let program = read(&text);
    let said = granted(&program, MemoryModel::Tso, Some(0), Granted::Unwrapped(4));
    let Outcome::Proved(c) = said else {
        panic!("{said:?}");
    };
    assert_eq!(audited(&program, MemoryModel::Tso, Some(0), &c), Ok(()));
    // What is added is not cut there: 4 is not 0.
    let never = read(&text.replace("c = now;", "c = now; c = c + 1;"));
    let said = granted(&never, MemoryModel::Tso, Some(0), Granted::Unwrapped(4));
    assert!(!matches!(said, Outcome::Proved(_)));
}

/// A try-lock that keeps a copy of the counter is wrong whatever its width: the copy may be as old as it likes.
#[test]
fn stale_copies_are_not_proved() {
    let program = read(
        "shared next: u2, now: u2;\n\
         thread p[*] { local n: u2, c: u2; loop { c = now; n = next;\n\
         if c == n { if cas(next, n, n + 1) { critical: skip; now = n + 1; } } } }\n\
         never p[i]@critical && p[j]@critical;",
    );
    for model in MemoryModel::ALL {
        assert_eq!(broken(&program, model, 2), Some(2), "{model}");
        let said = granted(&program, model, Some(0), Granted::Unwrapped(2));
        assert!(!matches!(said, Outcome::Proved(_)), "{model}");
    }
}
