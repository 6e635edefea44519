//! The judge on programs whose answers everybody knows, and a short campaign.

use wattle_adversary::ask::{Engine, Said};
use wattle_adversary::brute::Truth;
use wattle_adversary::campaign::Campaign;
use wattle_adversary::table::Table;
use wattle_adversary::trial::{Judge, Limits, compare, instances, trial};
use wattle_memory::MemoryModel;
use wattle_model::Program;
use wattle_syntax::{Language, parse};

fn program(text: &str) -> Program {
    let parsed = parse(Language::Wtl, text);
    parsed.program.unwrap_or_else(|| panic!("{text}"))
}

/// What the judge says about the first property: SC, TSO, PSO.
fn truths(text: &str, deadlock: bool) -> [Truth; 3] {
    let program = program(text);
    let question = (!program.properties.is_empty()).then_some(0);
    MemoryModel::ALL.map(|m| Judge::of(&program, m, Limits::default()).truth(question, deadlock))
}

const HOLDS: [Truth; 3] = [Truth::Holds; 3];
const VIOLATED: [Truth; 3] = [Truth::Violated; 3];

#[test]
fn memory_models_are_told_apart() {
    let sb = "shared x, y; \
        thread p { local a; x = 1; a = y; } thread q { local b; y = 1; b = x; } \
        finally !(p.a == 0 && q.b == 0);";
    assert_eq!(
        truths(sb, false),
        [Truth::Holds, Truth::Violated, Truth::Violated]
    );
    let mp = "shared x, y; \
        thread p { x = 1; y = 1; } thread q { local a, b; a = y; b = x; } \
        finally !(q.a == 1 && q.b == 0);";
    assert_eq!(
        truths(mp, false),
        [Truth::Holds, Truth::Holds, Truth::Violated]
    );
}

/// What a thread sees is its own newest pending store, else memory.
#[test]
fn pending_stores_are_seen_by_their_thread() {
    let relaxed = [Truth::Holds, Truth::Violated, Truth::Violated];
    let one = "shared x; thread p { x = 1; l: skip; } thread q { skip; }";
    assert_eq!(
        truths(&format!("{one} never p::x == 1 && q::x == 0;"), false),
        relaxed
    );
    assert_eq!(
        truths(&format!("{one} never p@l && p::x == 0;"), false),
        HOLDS
    );
    assert_eq!(
        truths(&format!("{one} never p@l && x == 0;"), false),
        relaxed
    );
    let fenced = "shared x; thread p { x = 1; fence; l: skip; } thread q { skip; }";
    assert_eq!(
        truths(&format!("{fenced} never p@l && q::x == 0;"), false),
        HOLDS
    );
    let both = "shared x: 0..2; thread p { x = 1; } thread q { x = 2; }";
    assert_eq!(
        truths(&format!("{both} never p::x == 1 && q::x == 2;"), false),
        relaxed
    );
    // The newest of several, and of each cell of an array its own.
    let two = "shared x[2]: 0..2; thread p[2] { x[self] = 1; x[self] = 2; l: skip; }";
    assert_eq!(
        truths(&format!("{two} never p[i]@l && p[i]::x[i] != 2;"), false),
        HOLDS
    );
    assert_eq!(
        truths(&format!("{two} never p[i]@l && p[j]::x[i] == 0;"), false),
        relaxed
    );
}

#[test]
fn kinds_of_questions() {
    let body = "shared x: 0..2; thread p { x = 1; x = 2; l: skip; }";
    assert_eq!(truths(&format!("{body} never x == 2;"), false), VIOLATED);
    assert_eq!(
        truths(&format!("{body} never x == 0 && x == 1;"), false),
        HOLDS
    );
    assert_eq!(truths(&format!("{body} always x <= 1;"), false), VIOLATED);
    assert_eq!(truths(&format!("{body} finally x == 2;"), false), HOLDS);
    assert_eq!(truths(&format!("{body} reachable x == 2;"), false), HOLDS);
    assert_eq!(
        truths(&format!("{body} reachable x == 1;"), false),
        VIOLATED
    );
}

#[test]
fn faults_break_what_must_hold_and_not_what_can_be_reached() {
    let body = "shared x; thread p { choose { x = 1; } or { assert 0; } }";
    assert_eq!(truths(body, false), VIOLATED);
    assert_eq!(truths(&format!("{body} never x == 5;"), false), VIOLATED);
    assert_eq!(truths(&format!("{body} reachable x == 1;"), false), HOLDS);
    let range = "shared x: 0..1; thread p { x = 2; }";
    assert_eq!(truths(range, false), VIOLATED);
    let index = "shared a[2]; thread p { local r = 2; a[r] = 1; }";
    assert_eq!(truths(index, false), VIOLATED);
    let zero = "thread p { local r, s; s = 1 / r; }";
    assert_eq!(truths(zero, false), VIOLATED);
}

#[test]
fn deadlocks() {
    let stuck = "shared x; thread p { await x == 1; }";
    assert_eq!(truths(stuck, false), HOLDS);
    assert_eq!(truths(stuck, true), VIOLATED);
    let fine = "shared x; thread p { await x == 1; } thread q { x = 1; }";
    assert_eq!(truths(fine, true), HOLDS);
    // A run that an assumption ends is none.
    assert_eq!(truths("thread p { assume 0; }", true), HOLDS);
    let held = "shared x; thread p { lock; } thread q { x = 1; }";
    assert_eq!(truths(held, true), VIOLATED);
}

#[test]
fn properties_without_a_value() {
    let text = "shared a[2], x; thread p { x = 2; } never a[x] == 1;";
    assert_eq!(truths(text, false), [Truth::NoValue; 3]);
}

#[test]
fn open_families_have_one_to_five_threads() {
    let four = program("shared x; thread p[*] { local r; r = fetch_add(x, 1); assert r != 3; }");
    let sizes: Vec<usize> = instances(&four, 5)
        .iter()
        .map(|i| i.threads.len())
        .collect();
    assert_eq!(sizes, [1, 2, 3, 4, 5]);
    let judge = Judge::of(&four, MemoryModel::Sc, Limits::default());
    assert_eq!(judge.truth(None, false), Truth::Violated);
    let three = Limits {
        threads: 3,
        ..Limits::default()
    };
    let judge = Judge::of(&four, MemoryModel::Sc, three);
    assert_eq!(judge.truth(None, false), Truth::Open);
    let two = program("shared x; thread p[*] { x = 1; } thread q[*] { x = 2; } never x == 3;");
    let sizes: Vec<usize> = instances(&two, 3).iter().map(|i| i.threads.len()).collect();
    assert_eq!(sizes, [2, 3, 3]);
}

#[test]
fn a_wrong_judge_is_noticed() {
    let right = program("shared x; thread p { x = 1; } never x == 1;");
    let wrong = program("shared x; thread p { x = 1; } never x == 2;");
    let explicit = Engine::all()
        .into_iter()
        .find(|e| e.name == "explicit")
        .expect("there is one");
    for (about, said) in [(&right, Said::Violated), (&wrong, Said::Holds)] {
        let other = if said == Said::Holds { &right } else { &wrong };
        for (judged, agrees) in [(about, true), (other, false)] {
            let judge = Judge::of(judged, MemoryModel::Sc, Limits::default());
            let (answers, found) = compare(
                about,
                &explicit,
                MemoryModel::Sc,
                false,
                || &judge,
                Limits::default(),
            );
            assert_eq!(answers.said, std::slice::from_ref(&said));
            assert_eq!(found.is_none(), agrees, "{found:?}");
        }
    }
}

#[test]
fn cells_that_are_refused_are_not_empty() {
    let program = program("shared x: 0..1; thread p { x = 1; } never x == 1;");
    let mut table = Table::of_one();
    let found = trial(
        &program,
        &[],
        false,
        (&Engine::all(), Limits::default()),
        &mut table,
        &mut Vec::new(),
    );
    assert_eq!(found, []);
    let names: Vec<&str> = Engine::all().iter().map(|e| e.name).collect();
    let empty = table.empty(&names);
    let has = |what: &str| empty.iter().any(|e| e == what);
    assert!(has("`lock` by explicit on SC"), "{empty:?}");
    assert!(!has("`never` by explicit on SC"), "{empty:?}");
    // It says itself that it is for any number of threads.
    assert!(!has("`never` by params on SC"), "{empty:?}");
}

#[test]
fn a_short_campaign_finds_nothing() {
    let campaign = Campaign {
        seed: 1,
        profile: None,
        // Not the first: the gallery before it is for a release build.
        first: 1,
        programs: 20,
        time: None,
        jobs: 1,
        limits: Limits::default(),
        resume: None,
        audits: None,
        engines: Engine::all(),
    };
    let done = campaign.run().expect("it runs");
    assert_eq!(done.disagreements, Vec::<String>::new());
    assert_eq!(done.table.programs, 20);
}
