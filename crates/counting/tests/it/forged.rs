//! A certificate that says too much, or is about something else, proves nothing.

use crate::proves::{COUNT_UNDER_LOCK, SEMAPHORE};
use crate::{audited, counted, granted, read};
use wattle_auditor::AuditError;
use wattle_auditor::counting::told;
use wattle_counting::{Granted, Outcome};
use wattle_evidence::Scope;
use wattle_evidence::certificate::counting::{Counted, Fact, Known, Place, Sum};
use wattle_evidence::certificate::{Comparison, Counting, PendingStores, Predicate, Quantity};
use wattle_memory::MemoryModel;
use wattle_model::graph::Action;
use wattle_model::{CellId, LocationId, Program, RegisterId, ThreadId};

fn semaphore() -> (Program, Counting) {
    let program = read(SEMAPHORE);
    match counted(&program, MemoryModel::Tso, Some(0)) {
        Outcome::Proved(c) => (program, c),
        other => panic!("{other:?}"),
    }
}

#[test]
fn forged_certificates_are_refused() {
    let (program, honest) = semaphore();
    let judge = |c: &Counting| audited(&program, MemoryModel::Tso, Some(0), c);
    assert_eq!(judge(&honest), Ok(()));
    let mut forged: Vec<(&str, Counting)> = Vec::new();
    let mut change = |name, f: &dyn Fn(&mut Counting)| {
        let mut c = honest.clone();
        f(&mut c);
        forged.push((name, c));
    };
    change("another model", &|c| c.model = MemoryModel::Sc);
    change("no facts", &|c| c.facts.clear());
    change("a fact that excludes all", &|c| {
        c.facts.push(Fact(Vec::new()))
    });
    for (k, is) in [(1, Comparison::Zero), (-3, Comparison::AtMostZero)] {
        change("a value that the cell does not keep", &move |c| {
            c.facts.push(Fact(vec![Sum {
                sum: vec![(k, Counted::Cell(CellId::new(0)))],
                constant: 0,
                is,
            }]));
            // Alone it would be a fact of the start, or of nothing.
            c.facts.push(Fact(vec![Sum {
                sum: vec![(1, Counted::Cell(CellId::new(0)))],
                constant: -2,
                is: Comparison::Zero,
            }]));
        });
    }
    change("a cell that there is not", &|c| {
        c.facts[0].0[0].sum.push((1, Counted::Cell(CellId::new(9))));
    });
    change("a place that there is not", &|c| {
        c.facts[0].0[0].sum.push((1, Counted::Place(999)));
    });
    let last = honest.places.len() as u32;
    change("a place after the last", &move |c| {
        c.facts[0].0[0].sum.push((0, Counted::Place(last)));
    });
    change("no place at the entry", &|c| {
        c.places.remove(0);
    });
    change("no places", &|c| c.places.clear());
    change("nothing at all", &|c| {
        c.places.clear();
        c.facts.clear();
    });
    change("a location that there is not", &|c| {
        c.places[0].location = LocationId::new(999);
    });
    change("another thread", &|c| c.places[0].role = ThreadId::new(2));
    change("threads that there are not", &|c| {
        c.at_most = Some(100_000);
        c.places.iter_mut().for_each(|p| p.role = ThreadId::new(99));
    });
    change("a store of a cell that there is not", &|c| {
        c.places[0].pending = PendingStores {
            entries: vec![(0, CellId::new(9))],
            ..PendingStores::default()
        };
    });
    change("another divisor", &|c| {
        c.facts[0].0[0].is = Comparison::MultipleOf(0);
    });
    for (name, c) in &forged {
        assert!(judge(c).is_err(), "{name}");
    }
    // Each fact is weakened or dropped in turn: the rest proves the property or is refused, and a
    // stronger one is never kept.
    for n in 0..honest.facts.len() {
        let mut stronger = honest.clone();
        for part in &mut stronger.facts[n].0 {
            part.constant += 1;
        }
        assert!(judge(&stronger).is_err(), "fact {n} moved by one");
    }
}

#[test]
fn a_proof_is_of_its_program() {
    let (_, honest) = semaphore();
    // One more may enter.
    let other = read(&SEMAPHORE.replace("s = 2", "s = 3"));
    assert!(audited(&other, MemoryModel::Tso, Some(0), &honest).is_err());
    // The last one is let in too.
    let other = read(&SEMAPHORE.replace("r > 0", "r >= 0"));
    assert!(audited(&other, MemoryModel::Tso, Some(0), &honest).is_err());
    // Who leaves gives back two.
    let other = read(&SEMAPHORE.replace("fetch_add(s, 1)", "fetch_add(s, 2)"));
    assert!(audited(&other, MemoryModel::Tso, Some(0), &honest).is_err());
    // Two are too many.
    let other = read(&SEMAPHORE.replace(" && p[k]@cs", ""));
    assert!(audited(&other, MemoryModel::Tso, Some(0), &honest).is_err());
}

/// Readers are counted in a byte: right with 255 threads, and not with one more.
#[test]
fn no_more_threads_than_a_counter_has_values() {
    let program = read(
        "shared w: bool, n: u8;
         thread p[*] { local r; loop { choose {
           loop { atomic { r = w; if r == 0 { n = n + 1; } } if r == 0 { break; } } rd: skip; fetch_add(n,-1); }
         or { loop { atomic { r = w + n; if r == 0 { w = 1; } } if r == 0 { break; } } wr: skip; w = 0; } } }
         never p[i]@wr && p[j]@rd;",
    );
    let most = |n: u32| granted(&program, MemoryModel::Tso, Some(0), Granted::AtMost(n));
    let Outcome::Proved(honest) = most(255) else {
        panic!("255 threads fit");
    };
    let judge = |c: &Counting| audited(&program, MemoryModel::Tso, Some(0), c);
    assert_eq!(judge(&honest), Ok(()));
    assert!(matches!(most(256), Outcome::Open(_)));
    for at_most in [Some(256), Some(1 << 22), None] {
        let forged = Counting {
            at_most,
            ..honest.clone()
        };
        assert!(judge(&forged).is_err(), "{at_most:?}");
    }
}

/// The auditor looks itself whether threads are told apart.
#[test]
fn told_apart() {
    let texts = [
        "shared x; thread t[*] { x = self; } never x == 7;",
        "shared x[thread]; thread t[*] { x[self] = 1; no: skip; } never t[i]@no;",
        "shared x: t; thread t[*] { x = none; } never x == 7;",
        "shared x; thread t[*] { x = 1; no: skip; } never t[0]@no;",
        "shared x; thread t[*] { x = 1; } finally x == 1;",
        "shared x; thread t[*] { lock; x = 1; unlock; } never x == 7;",
        "shared x; thread t[*] { atomic buffered { x = 1; } } never x == 7;",
    ];
    let empty = Counting {
        model: MemoryModel::Tso,
        no_wrap: false,
        at_most: None,
        unwrapped: false,
        distinct: Vec::new(),
        places: Vec::new(),
        facts: Vec::new(),
        known: Vec::new(),
    };
    for text in texts {
        let program = read(text);
        let said = audited(&program, MemoryModel::Tso, Some(0), &empty);
        // Whatever the certificate says.
        assert!(
            matches!(said, Err(AuditError::Refused(_))),
            "{text}: {said:?}"
        );
    }
}

/// How many threads there are is a number of its own, and a value outside a range is a fault even where
/// numbers are taken not to wrap around.
#[test]
fn what_a_few_threads_break_is_not_proved() {
    let texts = [
        "shared n; thread p[*] { local r; r = fetch_add(n, 1); if r == count(p) - 1 { no: skip; } } never p[i]@no;",
        "shared n = count(p); thread p[*] { local r; r = fetch_add(n, -1); if r == 1 { no: skip; } } never p[i]@no;",
        "shared n: 0..3; thread p[*] { fetch_add(n, 1); no: skip; } never p[i]@no && n == 9;",
        "shared n: u8; thread p[*] { local r: 0..3; r = fetch_add(n, 1); } never n == 300;",
        "shared a[2]: 0..3, n: u8; thread p[*] { fetch_add(n, 1); fetch_add(a[1], 1); } never n == 300;",
    ];
    for (text, model) in texts.iter().flat_map(|t| MemoryModel::ALL.map(|m| (t, m))) {
        let program = read(text);
        for free in [Granted::Nothing, Granted::NoWrap] {
            let said = granted(&program, model, Some(0), free);
            assert!(
                !matches!(said, Outcome::Proved(_)),
                "{model} {free:?} {text}"
            );
        }
    }
}

/// A certificate without facts: one place, where nothing is known, for each location of each thread named.
fn everywhere(program: &Program, roles: &[u32]) -> Counting {
    let Ok(counted) = program.counted_crowd(None) else {
        panic!("its threads are alike");
    };
    let threads = &counted.crowd.instance.threads;
    let of = |role: &u32| {
        let role = ThreadId::new(*role as usize);
        let locations = (0..threads[role.index()].locations.len()).map(LocationId::new);
        locations.map(move |location| Place {
            role,
            location,
            pending: PendingStores::default(),
            when: Vec::new(),
        })
    };
    Counting {
        model: MemoryModel::Sc,
        no_wrap: false,
        at_most: None,
        unwrapped: false,
        distinct: Vec::new(),
        places: roles.iter().flat_map(of).collect(),
        facts: Vec::new(),
        known: Vec::new(),
    }
}

/// Where nobody is counted nothing holds, whatever numbers would say.
#[test]
fn every_thread_has_a_place() {
    let program = read(
        "shared x; thread p[*] { local r; r = x; assert r <= 0; } thread q { x = 1; assert 1 == 1; }",
    );
    let fine = read("shared x; thread p[*] { local r; r = x; } thread q { x = 1; }");
    let said = |program: &Program, roles: &[u32], no_wrap: bool| {
        let c = Counting {
            no_wrap,
            ..everywhere(program, roles)
        };
        audited(program, MemoryModel::Sc, None, &c)
    };
    assert_eq!(said(&fine, &[0, 1], false), Ok(()));
    for no_wrap in [false, true] {
        for roles in [&[][..], &[0], &[1], &[0, 1]] {
            assert!(said(&program, roles, no_wrap).is_err(), "{roles:?}");
        }
        for roles in [&[][..], &[0], &[1]] {
            assert!(said(&fine, roles, no_wrap).is_err(), "{roles:?}");
        }
    }
}

/// `count(p)` is how many threads there are, not one more and not the opposite.
#[test]
fn the_number_of_threads_is_exact() {
    for (says, holds) in [
        ("count(p) > 0", true),
        ("count(p) > 1", false),
        ("count(p) < 1", false),
    ] {
        let program = read(&format!("shared x; thread p[*] {{ assert {says}; }}"));
        let said = audited(&program, MemoryModel::Sc, None, &everywhere(&program, &[0]));
        assert_eq!(said.is_ok(), holds, "{says}: {said:?}");
    }
}

/// Memory is not the thread's own: others change it while it stays.
#[test]
fn a_place_says_nothing_of_memory() {
    let program =
        read("shared x; thread p[*] { local r; r = x; assert r == 0; } thread q { x = 1; }");
    let mut c = everywhere(&program, &[0, 1]);
    let zero = |q: Quantity| Predicate {
        sum: vec![(1, q)],
        constant: 0,
        is: Comparison::Zero,
    };
    let entry = program.families[0].entry;
    for place in c.places.iter_mut().filter(|p| p.role == ThreadId::new(0)) {
        place.when.push(match place.location == entry {
            true => zero(Quantity::Cell(CellId::new(0))),
            false => zero(Quantity::Register(ThreadId::new(0), RegisterId::new(0))),
        });
    }
    let said = audited(&program, MemoryModel::Sc, None, &c);
    assert!(matches!(said, Err(AuditError::Corrupt(_))), "{said:?}");
}

/// What a certificate takes for granted is told, once.
#[test]
fn what_is_taken_for_granted_is_told() {
    let program = read("shared n: u8; thread p[*] { fetch_add(n, 1); }");
    let (few, many) = (Some(7), Some(70_000));
    for (no_wrap, at_most) in [(false, None), (true, None), (false, few), (false, many)] {
        let c = Counting {
            no_wrap,
            at_most,
            ..everywhere(&program, &[0])
        };
        let (mut scope, mut all) = (Scope::default(), Vec::new());
        for _ in 0..2 {
            told(&program, &c, &mut scope, &mut all);
            assert_eq!(all.len(), usize::from(no_wrap || at_most == few));
        }
        assert_eq!(scope.threads == "at most 70000 threads", at_most == many);
    }
}

fn equal(one: Counted, other: Counted) -> Fact {
    Fact(vec![Sum {
        sum: vec![(1, one), (-1, other)],
        constant: 0,
        is: Comparison::Zero,
    }])
}

/// What a thread knows of memory, others may change.
#[test]
fn what_others_change_is_not_known() {
    let (register, cell) = (RegisterId::new(0), CellId::new(0));
    let knows = |place: u32| Known {
        place,
        fact: equal(Counted::Register(register), Counted::Cell(cell)),
    };
    for (text, stands) in [
        (
            "shared n; thread p[*] { local r; r = n; a: skip; assert r >= 0; }",
            true,
        ),
        (
            "shared n; thread p[*] { local r; r = n; a: skip; n = 1; assert r >= 0; }",
            false,
        ),
        (
            "shared n; thread p[*] { local r; r = n; a: skip; assert r >= 0; } thread q { n = 1; }",
            false,
        ),
    ] {
        let program = read(text);
        let Outcome::Proved(mut c) = counted(&program, MemoryModel::Sc, None) else {
            panic!("{text}");
        };
        let judge = |c: &Counting| audited(&program, MemoryModel::Sc, None, c);
        assert_eq!(judge(&c), Ok(()), "{text}");
        let mut steps = program.families[0].steps.iter();
        let read = steps.find(|s| matches!(s.action, Action::Load { .. }));
        let at = read.map(|s| s.target);
        let mut places = c.places.iter();
        let here = places.position(|p| p.role == ThreadId::new(0) && Some(p.location) == at);
        c.known = vec![knows(here.unwrap_or(usize::MAX) as u32)];
        assert_eq!(judge(&c).is_ok(), stands, "{text}");
    }
}

#[test]
fn forged_knowledge_is_refused() {
    let program = read(COUNT_UNDER_LOCK);
    let Outcome::Proved(honest) = counted(&program, MemoryModel::Sc, Some(0)) else {
        panic!("it is proved");
    };
    let judge = |c: &Counting| audited(&program, MemoryModel::Sc, Some(0), c);
    assert_eq!(judge(&honest), Ok(()));
    assert!(!honest.known.is_empty());
    let mut forged: Vec<(&str, Counting)> = Vec::new();
    let mut change = |name, f: &dyn Fn(&mut Counting)| {
        let mut c = honest.clone();
        f(&mut c);
        forged.push((name, c));
    };
    change("nothing is known", &|c| c.known.clear());
    change("at a place that there is not", &|c| c.known[0].place = 999);
    change("of a register that there is not", &|c| {
        let of = Counted::Register(RegisterId::new(99));
        c.known[0].fact = equal(of, of);
    });
    change("of a store that is not pending", &|c| {
        c.known[0].fact = equal(Counted::Entry(7), Counted::Entry(7));
    });
    change("of nobody's register", &|c| {
        let of = Counted::Register(RegisterId::new(0));
        c.facts.push(equal(of, of));
    });
    for (name, c) in &forged {
        assert!(judge(c).is_err(), "{name}");
    }
    // Each moved by one: what stands then was no closest bound.
    let moved = |n: usize| {
        let mut c = honest.clone();
        c.known[n].fact.0[0].constant += 1;
        judge(&c).is_err()
    };
    assert!((0..honest.known.len()).filter(|n| moved(*n)).count() > 0);
}
