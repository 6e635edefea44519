//! A search that is cut off and goes on from what was kept of it, against one that is not.

use std::io::Cursor;
use std::sync::{Arc, Mutex};
use wattle_evidence::{Answer, Control, Engine, Reason, Task};
use wattle_memory::MemoryModel;
use wattle_model::Instance;
use wattle_search::{Explicit, Keep, Kept, KeptExplicit};

/// Keeps everything at the end of every level, in memory.
#[derive(Default)]
struct Memory(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    name: String,
    log: Vec<u8>,
    whole: Option<(String, Vec<u8>, Vec<u8>)>,
    opened: usize,
    saved: usize,
}

impl Keep for Memory {
    fn open(&self, name: &str) -> Option<Kept> {
        let mut inner = self.0.lock().ok()?;
        let (of, log, head) = inner.whole.clone()?;
        (of == name).then(|| {
            inner.opened += 1;
            Kept {
                log: Box::new(Cursor::new(log)),
                head,
            }
        })
    }

    fn is_due(&self) -> bool {
        true
    }

    fn begin(&self, name: &str) {
        let mut inner = self.0.lock().expect("nobody panics");
        inner.name = name.into();
        inner.log.clear();
    }

    fn append(&self, bytes: &[u8]) {
        self.0.lock().expect("nobody panics").log.extend(bytes);
    }

    fn commit(&self, head: &[u8]) {
        let mut inner = self.0.lock().expect("nobody panics");
        inner.whole = Some((inner.name.clone(), inner.log.clone(), head.to_vec()));
        inner.saved += 1;
    }
}

fn instance(text: &str) -> Instance {
    let parsed = wattle_syntax::wtl::parse(text);
    let program = parsed.program.expect("it parses");
    program.instance().expect("an instance")
}

/// Goes on again and again with so much work at a time, until there is an answer.
fn in_pieces(task: &Task<'_>, explicit: Explicit, memory: &Arc<Memory>) -> Answer {
    for piece in 1.. {
        let keep = memory.clone();
        let engine = KeptExplicit { explicit, keep };
        let control = Control::unlimited().with_workers(1 + piece % 3);
        // What was counted before counts: each time it gets further.
        let control = control.with_budget(Some(1000 * 3 * piece as u64));
        let answer = engine.run(task, &control);
        let stopped = matches!(
            &answer,
            Answer::Undecided {
                reason: Reason::Stopped { .. },
                ..
            }
        );
        if !stopped {
            return answer;
        }
    }
    unreachable!("it comes to an end")
}

const PROGRAMS: [&str; 4] = [
    // Holds, with many levels.
    "shared x: 0..30, y: 0..30, z: 0..9;
     thread p { loop { x = (x + 1) % 31; fence; } }
     thread q { loop { y = (y + 7) % 31; fence; } }
     thread r { loop { z = (z + 3) % 10; fence; } }
     never x == 30 && y == 30 && z == 10;",
    // Violated, far from the start.
    "shared x: 0..40, y: 0..40;
     thread p[2] { local a: 0..40; loop { a = x; x = (a + 1) % 41; fence; } }
     thread q { local a: 0..40; loop { a = y; y = (a + 1) % 41; fence; } }
     never x == 20 && y == 30;",
    // Values that do not fit their fields at first.
    "shared x, y;
     thread p { local i; while i < 150 { i = i + 1; x = i; fence; } }
     thread q { local i; while i < 140 { i = i + 1; y = i; fence; } }
     never x == 151;",
    // Threads that are alike, and events that are left out.
    "shared x: 0..40, y[3]: 0..14;
     thread p[3] { local i: 0..14; while i < 14 { i = i + 1; y[self] = i; fence; } atomic { x = x + 1; } }
     never x == 4;",
];

#[test]
fn it_goes_on_where_it_was() {
    let (mut opened, mut saved) = (0, 0);
    for text in PROGRAMS {
        let instance = instance(text);
        for model in [MemoryModel::Sc, MemoryModel::Tso] {
            let task = Task {
                instance: &instance,
                model,
                question: Some(0),
                deadlock: false,
            };
            let explicit = Explicit::default();
            let memory = Arc::new(Memory::default());
            let pieces = in_pieces(&task, explicit, &memory);
            let whole = explicit.run(&task, &Control::unlimited());
            assert_eq!(shown(&whole), shown(&pieces), "{model}\n{text}");
            let inner = memory.0.lock().expect("nobody panics");
            opened += inner.opened;
            saved += inner.saved;
        }
    }
    println!("kept {saved} times, gone on {opened} times");
    assert!(opened > 4 && saved > 100, "{opened} {saved}");
}

/// The answer, with its run, and how many states it took.
fn shown(answer: &Answer) -> String {
    match answer {
        Answer::Reached { trace, effort } => format!("{:?} {}", trace.events, effort.states),
        Answer::Unreachable { effort, .. } => format!("unreachable {}", effort.states),
        Answer::Bounded { limits, effort } => format!("{limits:?} {}", effort.states),
        other => panic!("{other:?}"),
    }
}

#[test]
fn nobody_gets_what_another_search_left() {
    let instance = instance(PROGRAMS[0]);
    let memory = Arc::new(Memory::default());
    for (model, reduced) in [
        (MemoryModel::Sc, true),
        (MemoryModel::Tso, true),
        (MemoryModel::Sc, false),
    ] {
        let task = Task {
            instance: &instance,
            model,
            question: Some(0),
            deadlock: false,
        };
        let mut explicit = Explicit::default();
        explicit.options.persistent = reduced;
        let keep = memory.clone();
        KeptExplicit { explicit, keep }.run(&task, &Control::unlimited());
    }
    assert_eq!(memory.0.lock().expect("nobody panics").opened, 0);
}
