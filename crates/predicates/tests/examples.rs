//! The programs the engine is for: mutual exclusion with unbounded integers, and the classics.

use wattle_auditor::audit;
use wattle_evidence::{Answer, Control, Engine, Task};
use wattle_memory::MemoryModel::{self, Pso, Sc, Tso};
use wattle_model::Instance;
use wattle_predicates::Cegar;

/// `Some(true)` if something bad is reachable; evidence is checked.
fn decide(instance: &Instance, model: MemoryModel) -> Option<bool> {
    let task = Task {
        instance,
        model,
        question: (!instance.questions.is_empty()).then_some(0),
        deadlock: false,
    };
    match Cegar::default().run(&task, &Control::unlimited()) {
        Answer::Reached { trace, .. } => {
            trace.check(&task).unwrap();
            Some(true)
        }
        Answer::Unreachable { certificate, .. } => {
            audit(&task, &certificate, &Control::unlimited()).unwrap();
            // What is written down reads back.
            let text = serde_json::to_string(&certificate).unwrap();
            assert_eq!(
                serde_json::from_str::<wattle_evidence::Certificate>(&text).unwrap(),
                certificate
            );
            Some(false)
        }
        Answer::Bounded { .. } | Answer::Undecided { .. } => None,
    }
}

fn wtl(text: &str) -> Instance {
    let program = wattle_syntax::wtl::parse(text).program.unwrap();
    program.instance().unwrap()
}

fn example(name: &str) -> Instance {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    wtl(&std::fs::read_to_string(root.join(name)).unwrap())
}

#[test]
fn classics() {
    for (name, model, reachable) in [
        ("peterson.wtl", Sc, false),
        ("peterson.wtl", Tso, true),
        ("peterson-fenced.wtl", Tso, false),
        ("peterson-fenced.wtl", Pso, true),
        ("dekker.wtl", Sc, false),
        ("litmus-sb.wtl", Tso, true),
        ("bakery.wtl", Sc, false),
    ] {
        assert_eq!(
            decide(&example(name), model),
            Some(reachable),
            "{name} {model}"
        );
    }
}

const TICKET: &str = "
    shared next: int, serving: int;
    thread p[2] {
        local my: int;
        loop {
            my = fetch_add(next, 1);
            await serving == my;
            critical: skip;
            serving = my + 1;
        }
    }
    never p[0]@critical && p[1]@critical;";

#[test]
fn the_ticket_lock_holds_with_unbounded_tickets() {
    for model in MemoryModel::ALL {
        assert_eq!(decide(&wtl(TICKET), model), Some(false), "{model}");
    }
}

#[test]
fn a_ticket_lock_that_serves_too_many_is_broken() {
    let broken = TICKET.replace("serving = my + 1", "serving = my + 2");
    assert_eq!(
        decide(&wtl(&broken), Sc),
        Some(false),
        "nobody is served, nobody meets"
    );
    let broken = TICKET.replace("await serving == my", "await serving >= my - 1");
    assert_eq!(decide(&wtl(&broken), Sc), Some(true));
}

#[test]
fn the_integer_programs_of_the_suite() {
    let root =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/suites/memorax");
    let read = |name: &str| std::fs::read_to_string(root.join(name)).ok();
    for (name, model, reachable) in [
        ("bakery.rmm", Sc, false),
        ("ticket_spin_lock.rmm", Sc, false),
        ("ticket_spin_lock.rmm", Tso, false),
    ] {
        let Some(text) = read(name) else {
            println!("skipped: the suites are not here");
            return;
        };
        let program = wattle_syntax::rmm::parse(&text).program.unwrap();
        let instance = program.instance().unwrap();
        assert_eq!(decide(&instance, model), Some(reachable), "{name} {model}");
    }
}

#[test]
fn ranges_are_faults_and_choices_are_explored() {
    let text =
        "shared x: 0..3; thread p { local r: 0..3; loop { r = x; x = r + 1; } } never x == 9;";
    assert_eq!(decide(&wtl(text), Sc), Some(true), "x leaves its range");
    let text = "shared x: int; thread p { local r: int; r = x; x = r + 1; r = x; assert r == 1; }";
    for model in MemoryModel::ALL {
        assert_eq!(decide(&wtl(text), model), Some(false));
    }
}

#[test]
fn remainders_by_constants_are_exact() {
    let text = |bad: &str| {
        format!(
            "shared x: int; thread p {{ local r: int; local s: int; \
             loop {{ r = x; x = r + 2; s = r % 2; assert s {bad}; }} }}"
        )
    };
    assert_eq!(decide(&wtl(&text("== 0")), Sc), Some(false));
    assert_eq!(decide(&wtl(&text("== 1")), Sc), Some(true));
    let text = "shared x: int; thread p { local r: int; r = 0 - 7; r = r % 3; assert r == 0 - 1; }";
    assert_eq!(decide(&wtl(text), Sc), Some(false), "the dividend's sign");
}

const BAKERY: &str = "
    shared choosing[2]: 0..1, number[2]: int;
    thread customer[2] {
        local n, m;
        let other = 1 - self;
        loop {
            choosing[self] = 1;
            fence;
            m = number[other];
            n = m + 1;
            number[self] = n;
            fence;
            choosing[self] = 0;
            fence;
            await choosing[other] == 0;
            await number[other] == 0 || number[other] > n
                  || (number[other] == n && self < other);
            critical: skip;
            number[self] = 0;
        }
    }
    never customer[0]@critical && customer[1]@critical;";

#[test]
fn the_fenced_bakery_holds_with_unbounded_tickets() {
    for model in [Sc, Tso] {
        assert_eq!(decide(&wtl(BAKERY), model), Some(false), "{model}");
    }
}

/// Loops that store without a fence: buffers have no bound.
#[test]
fn buffers_without_a_bound_are_proved() {
    for (text, bad) in [
        (
            "shared x: int; thread p { loop { x = 1; } } \
             thread q { local s: int; s = x; assert s <= 1; assert s >= 0; }",
            false,
        ),
        (
            "shared x: int; thread p { loop { x = 1; x = 2; } } \
             thread q { local s: int; s = x; assert s != 2; }",
            true,
        ),
        (
            "shared x, y; thread p { local r; loop { x = 1; y = 1; r = x; assert r == 1; \
             x = 2; r = x; assert r == 2; } } thread q { local s; s = y; s = x; assert s != 3; }",
            false,
        ),
        (
            "shared c: int; thread p { local r; loop { r = c; c = r + 1; } } \
             thread q { local r; r = c; assert r >= 0; }",
            false,
        ),
    ] {
        for model in MemoryModel::ALL {
            assert_eq!(decide(&wtl(text), model), Some(bad), "{model} {text}");
        }
    }
}

/// A certificate whose buffers are blurred proves nothing if classes or their use are changed.
#[test]
fn the_auditor_has_its_own_idea_of_blurred_buffers() {
    let text = "shared x: int; thread p { loop { x = 1; x = 2; } } \
                thread q { local s: int; s = x; assert s <= 2; }";
    let instance = wtl(text);
    for model in [Tso, Pso] {
        let task = Task {
            instance: &instance,
            model,
            question: None,
            deadlock: false,
        };
        let answer = Cegar::default().run(&task, &Control::unlimited());
        let Answer::Unreachable { certificate, .. } = answer else {
            panic!("it holds under {model}");
        };
        let wattle_evidence::Certificate::Inductive(whole) = certificate else {
            panic!("another kind of certificate");
        };
        assert!(whole.blur.is_some());
        let check = |c: wattle_evidence::certificate::Inductive| {
            let c = wattle_evidence::Certificate::Inductive(c);
            audit(&task, &c, &Control::unlimited())
        };
        assert!(check(whole.clone()).is_ok());
        let mut exact = whole.clone();
        exact.blur = None;
        assert!(check(exact).is_err(), "exact buffers grow for ever");
        let mut fewer = whole.clone();
        fewer
            .invariants
            .retain(|i| i.control.buffers[0].before.is_empty());
        assert!(check(fewer).is_err(), "old stores are left out");
        let mut ranges = whole.clone();
        for (_, _, hi) in &mut ranges.ranges {
            *hi = hi.map(|h| h - 1);
        }
        assert!(check(ranges).is_err(), "values leave the ranges");
        let mut unsorted = whole;
        if let Some(blur) = &mut unsorted.blur {
            blur.cuts.iter_mut().for_each(|c| c.reverse());
        }
        assert!(check(unsorted).is_err(), "classes that overlap");
    }
}

#[test]
fn what_is_not_linear_is_refused() {
    for body in ["r = r * r;", "r = r / 2;", "r = r & 5;"] {
        let text =
            format!("shared x: int; thread p {{ local r: int; {body} x = r; }} never x == 7;");
        let instance = wtl(&text);
        let task = Task {
            instance: &instance,
            model: Sc,
            question: Some(0),
            deadlock: false,
        };
        assert!(Cegar::default().accepts(&task).is_err(), "{body}");
    }
}

/// A certificate of which something is taken away proves nothing.
#[test]
fn the_auditor_sees_what_is_missing() {
    let instance = example("peterson.wtl");
    let task = Task {
        instance: &instance,
        model: Sc,
        question: Some(0),
        deadlock: false,
    };
    let Answer::Unreachable { certificate, .. } =
        Cegar::default().run(&task, &Control::unlimited())
    else {
        panic!("peterson holds under SC");
    };
    let wattle_evidence::Certificate::Inductive(whole) = certificate else {
        panic!("another kind of certificate");
    };
    let fails = |c: wattle_evidence::certificate::Inductive| {
        let c = wattle_evidence::Certificate::Inductive(c);
        audit(&task, &c, &Control::unlimited()).is_err()
    };
    for n in 0..whole.invariants.len() {
        let mut less = whole.clone();
        less.invariants.remove(n);
        assert!(fails(less), "without control state {n}");
    }
    let mut wrong = whole.clone();
    wrong.model = Tso;
    assert!(fails(wrong));
    let mut all = whole;
    for invariant in &mut all.invariants {
        invariant.cubes = vec![Vec::new()];
    }
    assert!(fails(all), "true everywhere proves nothing");
}

/// Words of 32 bits that nobody has set are followed as symbols, around and back.
#[test]
fn words_that_begin_with_anything() {
    let text = |condition: &str| {
        format!(
            "shared x: i32 = any; thread p {{ local a: i32 = any; local b, c: i32; local d: i32; \
             b = x; c = b + a; d = c - a; assert !({condition}); }}"
        )
    };
    let answers = [
        ("c == 1000 && a == 123456", true),
        ("c < 0 && a > 0 && b > 0", true),
        ("u32(c) < u32(a)", true),
        ("d != b", false),
        ("c == b && a != 0", false),
        ("a > 0 && b < 0 && c > a", false),
        ("u32(a) < u32(b) && u32(b) <= u32(a)", false),
        ("u32(a) < 200 && a < 0", false),
    ];
    for (condition, reachable) in answers {
        let instance = wtl(&text(condition));
        for model in [Sc, Tso] {
            let answer = decide(&instance, model);
            assert_eq!(answer, Some(reachable), "{condition} {model}");
        }
    }
}

/// Where all beginnings can be gone through both say the same.
#[test]
fn symbols_and_all_words_say_the_same() {
    let symbols = Cegar {
        hunt: 0,
        ..Cegar::default()
    };
    for condition in [
        "s < 10 && r > 20000",
        "i16(r) < 0 - 5 && s > 3",
        "r == s",
        "i16(s) < i16(r) && r < 100",
        "s < r && r < 25536",
        "i16(r) >= 0 && r > 32767",
        "i16(r) == 0 - 32768 && s == 7232",
        "r < 30000 && s < 4464",
    ] {
        let instance = wtl(&format!(
            "shared x: u16 = any; thread p {{ local r, s: u16; r = x; s = r + 40000; \
             assert !({condition}); }}"
        ));
        let task = Task {
            instance: &instance,
            model: Sc,
            question: None,
            deadlock: false,
        };
        let control = Control::unlimited();
        let reached = |answer: Answer| match answer {
            Answer::Reached { .. } => Some(true),
            Answer::Unreachable { .. } => Some(false),
            Answer::Bounded { .. } | Answer::Undecided { .. } => None,
        };
        let numbers = reached(wattle_search::Explicit::default().run(&task, &control));
        assert!(numbers.is_some(), "{condition}");
        let found = reached(symbols.run(&task, &control));
        assert_eq!(found, numbers, "{condition}");
    }
}
