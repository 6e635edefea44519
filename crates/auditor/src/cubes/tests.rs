//! Facts of cubes one by one: threads that join, sets of values, reads that name what is not there.

use super::assume::{Draft, Rules};
use super::facts::{CellAt, Facts, NOBODY, OTHER, Open, Part, Set, Value};
use super::inside::{Choice, Chosen};
use super::query::among;
use super::step::{Step, substitute};
use wattle_logic::{Answer, Native, Solver, eq};
use wattle_memory::MemoryModel;
use wattle_model::array::ArraySystem;

const SYSTEM: &str = "type loc = A | B | C
array PC[proc] : loc
var Owner : proc
weak var X : bool
init (z) { PC[z] = A && X = False }
unsafe (p q) { PC[p] = C && PC[q] = C }
transition t ([p]) requires { PC[p] = A } { PC[p] := B; X := True; }
";

fn system() -> ArraySystem {
    let read = wattle_syntax::cubicle::parse(SYSTEM);
    let Some(system) = read.system else {
        panic!("{:?}", read.diagnostics)
    };
    system
}

/// The cells of the system.
const PC: u16 = 0;
const OWNER: u16 = 1;
const X: u16 = 2;

fn threads(all: &[u16]) -> Facts {
    let mut facts = Facts::default();
    for constant in all {
        facts.join(*constant);
    }
    facts
}

fn cell(c: u16, of: &[u8]) -> Value {
    Value::Cell(CellAt::new(c, of))
}

#[test]
fn constants_come_first_and_in_order() {
    assert_eq!(threads(&[0, 0]).later, [0, 0]);
    assert_eq!(threads(&[1, 2]).later, [0b10, 0]);
    assert_eq!(threads(&[2, 1]).later, [0, 0b1]);
    assert_eq!(threads(&[1, 0]).later, [0b10, 0]);
    assert_eq!(threads(&[0, 1]).later, [0, 0b1]);
    let all = threads(&[2, 0, 1, 3]).later;
    assert_eq!(all, [0b1010, 0, 0b1011, 0b10]);
}

/// Which threads a cell holds, and what "another one" is.
#[test]
fn another_thread_is_none_of_those_known() {
    let system = system();
    let rules = Rules::new(&system, MemoryModel::Sc);
    let facts = threads(&[0, 0]);
    let may = |value: Value, set: Set, n: i64| {
        let formula = among(&rules, &facts, value, set);
        let query = [formula, eq(rules.names.var(value), n)];
        matches!(Native::new().check(&query), Answer::Sat(_))
    };
    for (set, holds) in [
        (0b01, [false, true, false, false]),
        (0b11, [false, true, true, false]),
        (OTHER, [true, false, false, true]),
        (OTHER | 0b10, [true, false, true, true]),
    ] {
        for (n, holds) in (-1..3).zip(holds) {
            assert_eq!(may(cell(OWNER, &[]), set, n), holds, "{set:b} {n}");
        }
    }
    for (n, holds) in (-1..3).zip([false, true, false, true]) {
        assert_eq!(may(cell(PC, &[0]), 0b101, n), holds, "{n}");
    }
}

#[test]
fn who_joins_was_another_thread() {
    let system = system();
    let rules = Rules::new(&system, MemoryModel::Sc);
    let mut from = threads(&[0]);
    from.among.insert(cell(OWNER, &[]), OTHER);
    from.among.insert(cell(PC, &[0]), 0b10);
    let mut into = threads(&[0, 0, 0]);
    assert_eq!(substitute(&from, &mut into, &rules, &|_| None), Ok(()));
    assert_eq!(into.among[&cell(OWNER, &[])], OTHER | 0b110);
    assert_eq!(into.among[&cell(PC, &[0])], 0b10);
}

#[test]
fn only_what_is_there_is_read() {
    let system = system();
    let rules = Rules::new(&system, MemoryModel::Tso);
    let sound = |reader: u8, place: CellAt| {
        let mut facts = threads(&[0]);
        let part = Part {
            reader,
            place,
            own: false,
        };
        let parts = vec![part];
        facts.reads.push(Open { parts, before: 1 });
        facts.is_sound(&rules)
    };
    let (here, strange) = (CellAt::new(X, &[]), CellAt::new(9, &[]));
    assert!(sound(0, here) && sound(NOBODY, here));
    assert!(!sound(1, here));
    assert!(!sound(0, strange) && !sound(NOBODY, strange));
    assert!(!sound(0, CellAt::new(PC, &[1])) && !sound(NOBODY, CellAt::new(PC, &[])));
}

/// A value is known to be among some if nothing else is left of it.
#[test]
fn what_is_not_said_is_not_known() {
    let system = system();
    let rules = Rules::new(&system, MemoryModel::Sc);
    let at = |set: Option<Set>| {
        let mut facts = threads(&[0]);
        facts.among.extend(set.map(|s| (cell(PC, &[0]), s)));
        facts
    };
    let choice = Choice {
        threads: vec![0],
        moments: Vec::new(),
    };
    for (wanted, said, known) in [
        (0b01, None, false),
        (0b01, Some(0b01), true),
        (0b01, Some(0b11), false),
        (0b01, Some(0b10), false),
        (0b11, Some(0b01), true),
        (0b110, Some(0b111), false),
    ] {
        let (cube, facts) = (at(Some(wanted)), at(said));
        let chosen = Chosen {
            rules: &rules,
            cube: &cube,
            facts: &facts,
            choice: &choice,
        };
        assert_eq!(chosen.is_known(), known, "{wanted:b} {said:?}");
    }
}

/// PSO: whoever looks at a store that nobody sees looked before it, or at a store of its own.
#[test]
fn nobody_looks_at_a_store_that_is_not_seen() {
    let system = system();
    let rules = Rules::new(&system, MemoryModel::Pso);
    let mut facts = threads(&[0, 0]);
    let x = CellAt::new(X, &[]);
    let parts = [
        (1, x, false),
        (0, x, false),
        (1, x, true),
        (1, CellAt::new(PC, &[1]), false),
    ];
    for (e, (reader, place, own)) in parts.into_iter().enumerate() {
        let parts = vec![Part { reader, place, own }];
        let before = 1 << e;
        facts.reads.push(Open { parts, before });
    }
    let draft = |facts: &Facts| Draft {
        facts: facts.clone(),
        moment: None,
        actor: Some(0),
    };
    let told = |facts: &Facts| {
        let step = Step {
            rules: &rules,
            facts,
            spoken: &[],
            transition: &system.transitions[0],
            args: vec![0],
            actor: Some(0),
            atomic: false,
        };
        let drafts = step.unseen(draft(facts), 0, x);
        let reads = |d: &Draft| {
            let all = d.facts.reads.iter();
            all.map(|r| (r.parts[0].own, r.before)).collect::<Vec<_>>()
        };
        drafts.iter().map(reads).collect::<Vec<_>>()
    };
    let as_it_was = [(false, 1), (false, 2), (true, 4), (false, 8)];
    // Without a fence later on it may be that it is still pending.
    assert_eq!(told(&facts), [as_it_was.to_vec()]);
    facts.after_stores_of[0] = 0b10;
    let own = [(true, 1), (false, 2), (true, 4), (false, 8)];
    let before = [(false, 3), (false, 2), (true, 4), (false, 8)];
    assert_eq!(told(&facts), [own.to_vec(), before.to_vec()]);
    // It is not before what it is after.
    facts.after_stores_of[0] = 0b01;
    assert_eq!(told(&facts), [own.to_vec()]);
    // Memory itself has no store of its own.
    facts.reads[0].parts[0].reader = NOBODY;
    assert_eq!(told(&facts), Vec::<Vec<(bool, u64)>>::new());
}
