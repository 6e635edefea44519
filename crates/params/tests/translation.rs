//! The systems of all examples are validated against their programs by the auditor, and those that are
//! known to be wrong are not.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use wattle_auditor::translation::{Translation, validate};
use wattle_auditor::{AuditError, Solvers};
use wattle_evidence::control::Control;
use wattle_evidence::related::Held;
use wattle_memory::MemoryModel;
use wattle_model::array::{ArraySystem, FenceKind, Formula, Term, Transition, Value};
use wattle_model::{Count, Program};
use wattle_params::lower::{Lowered, lower};
use wattle_params::machine::{Candidates, Machine, State};

fn validated(
    program: &Program,
    question: Option<usize>,
    lowered: &Lowered,
) -> Result<u64, AuditError> {
    let translation = Translation {
        program,
        property: question,
        system: &lowered.system,
        relation: lowered.relation(),
        assumptions: &lowered.assumptions(),
    };
    let result = validate(&Solvers::own(), &translation, &Control::unlimited());
    result.map(|a| a.checked)
}

/// The programs of a folder, with every family open.
fn programs(folder: &str) -> Vec<(String, Program)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(folder);
    let Ok(list) = std::fs::read_dir(&folder) else {
        println!("skipped: {} is not here", folder.display());
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = list.filter_map(|e| Some(e.ok()?.path())).collect();
    paths.sort();
    let mut all = Vec::new();
    for path in paths {
        let Ok(text) = std::fs::read_to_string(&path) else {
            continue;
        };
        let program = match path.extension().and_then(|e| e.to_str()) {
            Some("wtl") => wattle_syntax::wtl::parse(&text).program,
            Some("asm") => wattle_syntax::x86::parse(&text).program,
            _ => None,
        };
        let Some(mut program) = program else {
            continue;
        };
        for f in program
            .families
            .iter_mut()
            .filter(|f| f.count != Count::One)
        {
            f.count = Count::Any;
        }
        let name = path
            .file_name()
            .and_then(|n| n.to_str())
            .unwrap_or_default();
        all.push((name.to_string(), program));
    }
    all
}

/// Validates every system of the folder; gives those that were not, with the reason.
fn folder(folder: &str) -> (usize, Vec<(String, AuditError)>) {
    let (mut fine, mut not) = (0, Vec::new());
    for (name, program) in programs(folder) {
        let questions = match program.properties.len() {
            0 => vec![None],
            n => (0..n).map(Some).collect(),
        };
        for question in questions {
            let Ok(lowered) = lower(&program, question) else {
                continue;
            };
            match validated(&program, question, &lowered) {
                Ok(_) => fine += 1,
                Err(e) => {
                    println!("{name} {question:?}: {e}");
                    not.push((name.clone(), e));
                }
            }
        }
    }
    println!("{folder}: {fine} validated, {} not", not.len());
    (fine, not)
}

/// Every system is validated, or there is something in it that is not treated, which is said.
fn all_validated(name: &str, least: usize) {
    let (fine, not) = folder(name);
    assert!(fine >= least, "{name}: only {fine}, {not:?}");
    for (file, why) in &not {
        assert!(
            matches!(why, AuditError::Refused(_)),
            "{name}/{file}: {why}"
        );
    }
}

#[test]
fn systems_of_families_are_validated() {
    all_validated("examples/families", 17);
}

#[test]
fn systems_of_machine_code_are_validated() {
    all_validated("examples/x86", 20);
}

#[test]
fn systems_of_examples_are_validated() {
    all_validated("examples", 20);
    all_validated("../shared/suites/families", 0);
}

/// A system of a random family is validated or refused with the reason.
#[test]
fn systems_of_random_families_are_validated() {
    let (mut fine, mut refused) = (0, 0);
    for seed in 0..RANDOM {
        let text = wattle_random::source(seed, wattle_random::Profile::Families).text;
        let Some(program) = wattle_syntax::wtl::parse(&text).program else {
            continue;
        };
        for question in (0..program.properties.len()).map(Some) {
            let Ok(lowered) = lower(&program, question) else {
                continue;
            };
            match validated(&program, question, &lowered) {
                Ok(_) => fine += 1,
                Err(AuditError::Refused(why)) => {
                    println!("{seed} {question:?}: {why}");
                    refused += 1;
                }
                Err(e) => panic!("seed {seed}, {question:?}: {e}\n{text}"),
            }
        }
    }
    println!("{fine} validated, {refused} refused");
    assert!(fine > 20 && fine > 9 * refused, "{fine} {refused}");
}

const RANDOM: u64 = 150;

/// All states with two threads, of one model that orders everything.
fn states(system: &ArraySystem) -> BTreeSet<State> {
    let machine = Machine::new(system, MemoryModel::Sc, 2);
    let candidates = Candidates::of(system);
    let (mut open, _) = machine.initial(&candidates);
    let mut seen = BTreeSet::new();
    while let Some(mut state) = open.pop() {
        if seen.insert(state.clone()) {
            machine.successors(&mut state, &candidates, &mut |_, next| {
                open.push(next.clone())
            });
        }
    }
    seen
}

/// Systems that differ in one place: each is not validated, or reaches all that the right one does. Gives
/// how many were not. Of many transitions some are taken.
fn mutants(program: &Program, lowered: &Lowered, each: usize) -> usize {
    let right = states(&lowered.system);
    let mut noticed = 0;
    let mut put = |what: String, change: &dyn Fn(&mut ArraySystem)| {
        let mut other = lowered.clone();
        change(&mut other.system);
        match validated(program, Some(0), &other) {
            Ok(_) => assert!(states(&other.system).is_superset(&right), "{what}"),
            Err(_) => noticed += 1,
        }
    };
    let all = lowered.system.transitions.iter().enumerate();
    for (n, t) in all.step_by(each) {
        let told = |what: &str| format!("{}: {what}\n{t:?}", t.name);
        put(told("none"), &|s| drop(s.transitions.remove(n)));
        for u in 0..t.updates.len() {
            put(told("an update less"), &|s| {
                drop(s.transitions[n].updates.remove(u))
            });
            if let Value::Term(Term::Bool(b)) = t.updates[u].branches[0].value {
                put(told("the opposite"), &|s| {
                    s.transitions[n].updates[u].branches[0].value = Value::Term(Term::Bool(!b));
                });
            }
        }
    }
    noticed
}

/// What the program does and the system does not is found: a guard too many, another value, another
/// place, a store that is missing, a start or a violation that is not known.
#[test]
fn a_wrong_system_is_not_validated() {
    let text = "shared lock: 0..1, owner: t = none, flag[t]: 0..2;\n\
        thread t[*] { local r: 0..3, q: t = none; loop {\n\
        if cas(lock, 0, 1) == 1 { owner = self; q = owner; if q != none { r = flag[q]; }\n\
        critical: skip; flag[self] = r < 2 ? r + 1 : 0; owner = none; lock = 0; } } }\n\
        never t[i]@critical && t[j]@critical;\n";
    let program = wattle_syntax::wtl::parse(text).program.expect("a program");
    let lowered = lower(&program, Some(0)).expect("a system");
    let right = validated(&program, Some(0), &lowered);
    assert!(right.is_ok(), "{right:?}");
    let noticed = mutants(&program, &lowered, 1);
    assert!(noticed > 40, "{noticed}");
    let mut less = lowered.clone();
    less.system.bad.remove(0);
    assert!(validated(&program, Some(0), &less).is_err());
    let mut other = program.clone();
    other.regions[0].init = wattle_model::Init::All(wattle_model::Expr::Const(1));
    assert!(validated(&other, Some(0), &lowered).is_err());
    assert!(validated(&program, Some(0), &lowered).is_ok());
}

/// Who need not wait for an empty buffer does not.
#[test]
fn a_system_that_waits_is_not_validated() {
    let text = "shared x: 0..2; thread t[*] { local r: 0..2; x = 1; r = x; x = 2; here: skip; }\n\
        never t[i]@here && t[j]@here;\n";
    let program = wattle_syntax::wtl::parse(text).program.expect("a program");
    let lowered = lower(&program, Some(0)).expect("a system");
    assert!(validated(&program, Some(0), &lowered).is_ok());
    for n in 0..lowered.system.transitions.len() {
        let mut waits = lowered.clone();
        waits.system.transitions[n].fence = Some(FenceKind::Full);
        assert!(validated(&program, Some(0), &waits).is_err(), "{n}");
    }
}

/// The second of two stores at once counts, also if the first changes nothing.
#[test]
fn a_store_after_one_that_changes_nothing_is_not_forgotten() {
    let text = "shared x: 0..2; thread t[*] { local r: 0..2; atomic { r = x; x = r; x = 2; } here: skip; }\n\
        never t[i]@here && x == 1;\n";
    let program = wattle_syntax::wtl::parse(text).program.expect("a program");
    let lowered = lower(&program, Some(0)).expect("a system");
    assert!(validated(&program, Some(0), &lowered).is_ok());
    assert!(mutants(&program, &lowered, 1) > 1);
}

/// What is done in two steps of the system, and by one that also wants what the second does: who gets stuck between them
/// is forgotten there.
#[test]
fn who_may_be_stuck_after_a_store_is_not_forgotten() {
    let text = "shared x: 0..1; thread t[*] { local r: 0..1; r = x; x = 1; skip; assume r == 1; here: skip; skip; }\n\
        never t[i]@here && x == 0;\n";
    let program = wattle_syntax::wtl::parse(text).program.expect("a program");
    let lowered = lower(&program, Some(0)).expect("a system");
    let right = validated(&program, Some(0), &lowered);
    assert!(right.is_ok(), "{right:?}");
    let place = lowered.relation().locations[0];
    let leads = |t: &Transition| {
        let update = t.updates.iter().find(|u| u.cell == place);
        update.map(|u| u.branches[0].value.clone())
    };
    let at = |t: &Transition, value: &Value| {
        let Value::Term(wanted) = value else {
            return false;
        };
        let mut found = false;
        t.guard.for_each_literal(&mut |l| {
            let here = |term: &Term| matches!(term, Term::Read(a) if a.cell == place);
            found |= here(&l.left) && l.right == *wanted || here(&l.right) && l.left == *wanted;
        });
        found
    };
    let all = &lowered.system.transitions;
    let stores = all
        .iter()
        .position(|t| t.updates.iter().any(|u| lowered.system.cell(u.cell).weak));
    let stores = stores.expect("somebody stores");
    let between = leads(&all[stores]).expect("it goes on");
    let next: Vec<usize> = (0..all.len()).filter(|n| at(&all[*n], &between)).collect();
    let [next] = next[..] else {
        panic!("{next:?} {all:#?}")
    };
    let mut other = lowered.clone();
    let Formula::And(parts) = &all[next].guard else {
        panic!("{:?}", all[next].guard)
    };
    let wants = parts.iter().filter(|f| {
        let mut place_only = false;
        f.for_each_access(&mut |a| place_only |= a.cell == place);
        !place_only
    });
    let both: Vec<Formula> = std::iter::once(all[stores].guard.clone())
        .chain(wants.cloned())
        .collect();
    let merged = &mut other.system.transitions[stores];
    merged.guard = Formula::And(both);
    let to = leads(&all[next]).expect("it goes on");
    merged
        .updates
        .iter_mut()
        .filter(|u| u.cell == place)
        .for_each(|u| u.branches[0].value = to.clone());
    other.system.transitions.remove(next);
    let wrong = validated(&program, Some(0), &other);
    assert!(
        matches!(wrong, Err(AuditError::Translation(_))),
        "{wrong:?}"
    );
}

/// What is said of the values that variables have holds at the start, too.
#[test]
fn a_start_that_is_not_foreseen_is_noticed() {
    for text in [
        "shared x: 0..3 = any; thread t[*] { local r: 0..3; r = x; x = r; here: skip; } never t[i]@here && x == 4;",
        "shared x: 0..3; thread t[*] { local r: 0..3 = any; r = x; x = r; here: skip; } never t[i]@here && x == 4;",
    ] {
        let program = wattle_syntax::wtl::parse(text).program.expect("a program");
        let lowered = lower(&program, Some(0)).expect("a system");
        let right = validated(&program, Some(0), &lowered);
        assert!(right.is_ok(), "{right:?}");
        let mut relation = lowered.relation().clone();
        let held = relation.regions.iter_mut().chain(&mut relation.registers);
        let mut fewer = 0;
        for held in held.flatten() {
            match held {
                Held::Few { values, .. } => fewer += usize::from(values.pop().is_some()),
                Held::Number { bounds, .. } => {
                    *bounds = (Some(0), Some(2));
                    fewer += 1;
                }
                Held::Thread { .. } | Held::Counter { .. } => {}
            }
        }
        assert!(fewer > 0, "{relation:?}");
        let translation = Translation {
            program: &program,
            property: Some(0),
            system: &lowered.system,
            relation: &relation,
            assumptions: &[],
        };
        let wrong = validate(&Solvers::own(), &translation, &Control::unlimited());
        let wrong = format!("{:?}", wrong.map(|a| a.checked));
        assert!(
            wrong.contains("a start with a value not foreseen"),
            "{wrong}"
        );
    }
}

/// Elements of an array are told apart, and several stores at once, some of which change nothing.
#[test]
fn elements_and_stores_at_once_are_told_apart() {
    let text = "shared a[2]: 0..2, x: 0..1, owner: t = none;\n\
        thread t[*] { local r: 0..2, q: t = none; r = a[1]; a[0] = 1; a[1] = 2;\n\
        atomic { q = owner; owner = q; x = 1; owner = self; owner = q; owner = none; a[0] = r; a[0] = 1; }\n\
        atomic { owner = none; owner = self; } here: skip; }\n\
        never t[i]@here && a[0] == 2;\n";
    let program = wattle_syntax::wtl::parse(text).program.expect("a program");
    let lowered = lower(&program, Some(0)).expect("a system");
    let right = validated(&program, Some(0), &lowered);
    assert!(right.is_ok(), "{right:?}");
    let noticed = mutants(&program, &lowered, 1);
    assert!(noticed > 6, "{noticed}");
}

/// A fault of the program is one of the system, and a property that wants a label's absence anywhere is told from one
/// that does not: what nobody notices on the way is only what nobody can ask about.
#[test]
fn faults_and_labels_are_noticed() {
    let text = "shared x: 0..2; thread t[*] { local r: 0..2; r = x; x = 1; assert r == 0; }";
    let program = wattle_syntax::wtl::parse(text).program.expect("a program");
    let lowered = lower(&program, None).expect("a system");
    assert!(validated(&program, None, &lowered).is_ok());
    let mut less = lowered.clone();
    assert!(!less.system.bad.is_empty());
    less.system.bad.clear();
    assert!(validated(&program, None, &less).is_err());
    // The system of a program that does not assert is none of one that does.
    let silent = text.replace("assert r == 0;", "skip;");
    let silent = wattle_syntax::wtl::parse(&silent)
        .program
        .expect("a program");
    let silent = lower(&silent, None).expect("a system");
    assert!(validated(&program, None, &silent).is_err());
}

/// The same where threads are counted: an element too few, or all of them where none is meant.
#[test]
fn a_wrong_counter_is_not_validated() {
    let text = "shared left = count(t), gate: bool;\n\
        thread t[*] { local r; r = fetch_add(left, -1); if r == 0 { gate = 1; }\n\
        atomic { left = count(t); } here: skip; }\n\
        never t[i]@here && t[j]@here && gate == 1;\n";
    let program = wattle_syntax::wtl::parse(text).program.expect("a program");
    let lowered = lower(&program, Some(0)).expect("a system");
    let right = validated(&program, Some(0), &lowered);
    assert!(right.is_ok(), "{right:?}");
    let noticed = mutants(&program, &lowered, 5);
    assert!(noticed > 3, "{noticed}");
}

/// The same where threads are counted in two steps and may lose count, and a property asks what a thread sees of it.
#[test]
fn a_wrong_lost_count_is_not_validated() {
    let text = "shared left = count(t);\n\
        thread t[*] { local r; r = left; left = r - 1; down: skip; r = left; if r == count(t) { left = r + 1; } }\n\
        never t[i]@down && t[i]::left == count(t);\n";
    let program = wattle_syntax::wtl::parse(text).program.expect("a program");
    let lowered = lower(&program, Some(0)).expect("a system");
    let right = validated(&program, Some(0), &lowered);
    assert!(right.is_ok(), "{right:?}");
    let noticed = mutants(&program, &lowered, 1);
    assert!(noticed > 3, "{noticed}");
    let mut less = lowered.clone();
    less.system.bad.remove(0);
    assert!(validated(&program, Some(0), &less).is_err());
}

/// Validation looks at its budget all the time, and then says nothing about the system.
#[test]
fn validation_stops_when_it_is_told() {
    let text = "shared x: 0..2; thread t[*] { local r; r = x; if r < 2 { x = r + 1; } }\n\
        never x == 3;\n";
    let program = wattle_syntax::wtl::parse(text).program.expect("a program");
    let lowered = lower(&program, Some(0)).expect("a system");
    let translation = Translation {
        program: &program,
        property: Some(0),
        system: &lowered.system,
        relation: lowered.relation(),
        assumptions: &lowered.assumptions(),
    };
    let raised = std::sync::atomic::AtomicBool::new(true);
    let flags = [&raised];
    let control = Control::unlimited().with_cancel(&flags);
    let result = validate(&Solvers::own(), &translation, &control);
    assert!(matches!(result, Err(AuditError::Stopped(_))), "{result:?}");
}
