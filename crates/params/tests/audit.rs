//! The auditor takes the proofs that are proofs, and refuses damaged ones.

use wattle_auditor::{AuditError, Audited, Solvers, audit_system};
use wattle_evidence::Control;
use wattle_evidence::certificate::cubes::{CellOf, Cube, Number, Relation, Value};
use wattle_evidence::certificate::{Certificate, Cubes};
use wattle_memory::MemoryModel;
use wattle_model::array::ArraySystem;
use wattle_params::certificate::certificate;
use wattle_params::{Options, Outcome, check};

/// A lock by flags: FENCE stands before the look at the other's flag.
const FLAGS: &str = "
number_procs 2
type loc = L1 | L2 | CS
array PC[proc] : loc
weak array X[proc] : bool
init (p) { PC[p] = L1 && X[p] = False }
unsafe (p q) { PC[p] = CS && PC[q] = CS }
transition t_req ([p])
requires { PC[p] = L1 }
{ PC[p] := L2; X[p] := True }
transition t_enter ([p] q)
requires { PC[p] = L2 && X[q] = False FENCE }
{ PC[p] := CS }
transition t_exit ([p])
requires { PC[p] = CS }
{ PC[p] := L1; X[p] := False }
";

/// A lock with tickets: integers, thread identifiers, an atomic step.
const TICKETS: &str = "
type loc = Idle | Wait | CS
array PC[proc] : loc
array T[proc] : int
weak var Next : int
weak var Now : int
weak var Owner : proc
init (p) { PC[p] = Idle && Next = 0 && Now = 0 && T[p] = 0 }
unsafe (p) { PC[p] = CS && p @ Now < 0 }
transition take ([p])
requires { PC[p] = Idle && fence() }
{ PC[p] := Wait; T[p] := Next; Next := Next + 1 }
transition enter ([p])
requires { PC[p] = Wait && Now = T[p] && Now >= 0 }
{ PC[p] := CS; Owner := p; Now := Now }
transition leave ([p])
requires { PC[p] = CS && Now >= 0 }
{ PC[p] := Idle; Now := Now + 1 }
";

fn system(text: &str) -> ArraySystem {
    wattle_syntax::cubicle::parse(text)
        .system
        .unwrap_or_else(|| panic!("does not parse: {text}"))
}

fn proof(system: &ArraySystem, model: MemoryModel) -> Cubes {
    let options = Options {
        views: 0,
        ..Options::default()
    };
    let (outcome, _) = check(system, model, options, &|_| false);
    match outcome {
        Outcome::Holds(proof) => match certificate(system, model, &proof) {
            Certificate::Cubes(cubes) => cubes,
            other => panic!("{model}: {}", other.describe()),
        },
        other => panic!("no proof on {model}: {other:?}"),
    }
}

fn audit(system: &ArraySystem, cubes: &Cubes) -> Result<Audited, AuditError> {
    let certificate = Certificate::Cubes(cubes.clone());
    audit_system(
        &Solvers::own(),
        system,
        cubes.model,
        &certificate,
        &Control::unlimited(),
    )
}

#[test]
fn proofs_are_taken() {
    let flags = FLAGS.replace("FENCE", "&& fence()");
    for model in MemoryModel::ALL {
        // Tickets without end need too many open reads under TSO.
        let tickets = (model == MemoryModel::Sc).then_some(TICKETS);
        for text in tickets.into_iter().chain([&flags[..]]) {
            let system = system(text);
            let cubes = proof(&system, model);
            let audited = audit(&system, &cubes);
            let checked = audited.map(|a| a.checked).map_err(|e| e.to_string());
            assert_eq!(checked, Ok(cubes.cubes.len() as u64), "{model} {text}");
            let kept = Certificate::Cubes(cubes);
            let json = serde_json::to_string(&kept).unwrap_or_default();
            assert_eq!(serde_json::from_str::<Certificate>(&json).ok(), Some(kept));
        }
    }
}

/// Rights that a thread gives to one other at a time: an array with three indices.
const RIGHTS: &str = "
array Right[proc, proc, proc] : bool
init (p q r) { Right[p, q, r] = False }
unsafe (p q r s) { Right[p, q, s] = True && Right[p, r, s] = True }
transition give ([p] q s)
requires { Right[p, q, s] = False && forall_other r. Right[p, r, s] = False }
{ Right[p, q, s] := True }
transition take_back ([p] s)
{ Right[x, y, z] := case | x = p && z = s : False | _ : Right[x, y, z] }
";

#[test]
fn arrays_have_three_indices() {
    let rights = system(RIGHTS);
    let shown = rights.to_string();
    assert!(shown.contains("Right[proc, proc, proc]"), "{shown}");
    assert_eq!(system(&shown).to_string(), shown);
    for model in MemoryModel::ALL {
        let cubes = proof(&rights, model);
        assert!(audit(&rights, &cubes).is_ok(), "{model}");
        // Who does not look at the others' rights gives too many.
        let broken = RIGHTS.replace(" && forall_other r. Right[p, r, s] = False", "");
        let broken = system(&broken);
        assert!(audit(&broken, &cubes).is_err(), "{model}");
        let (outcome, _) = check(&broken, model, Options::default(), &|_| false);
        assert!(matches!(outcome, Outcome::Violated(_)), "{model}");
    }
    let four = RIGHTS.replace("proc, proc, proc", "proc, proc, proc, proc");
    assert!(wattle_syntax::cubicle::parse(&four).system.is_none());
}

/// Under TSO a guard may touch what is not weak only of the acting thread.
#[test]
fn guards_look_at_their_own() {
    let own = FLAGS.replace("FENCE", "&& fence()");
    let others = own.replace(
        "requires { PC[p] = L2",
        "requires { PC[p] = L2 && PC[q] = L1",
    );
    assert_ne!(own, others);
    for model in MemoryModel::ALL {
        let cubes = proof(&system(&own), model);
        let said = audit(&system(&others), &cubes);
        // Its stores keep their order, so that PSO is TSO here.
        let refused = matches!(said, Err(AuditError::Refused(_)));
        assert_eq!(refused, model != MemoryModel::Sc, "{model}: {said:?}");
    }
}

/// `WRITES` is a case of an update of all elements, of a weak array or of one that is not.
const ROWS: &str = "
type loc = A | B
array PC[proc] : loc
array R[proc, proc] : bool
weak array W[proc, proc] : bool
init (i j) { PC[i] = A && R[i, j] = False && W[i, j] = False }
unsafe (i j) { PC[i] = B && PC[j] = B && R[i, j] = True && W[i, j] = True }
transition go ([i])
requires { PC[i] = A }
{ WRITES }
";

/// Under TSO a step may touch what is not weak only of the acting thread: rows of others are not, whatever
/// the second index says, and where they are only looked at in branches that do not apply they are not touched.
#[test]
fn rows_of_others_are_noticed() {
    let with = |writes: &str| system(&ROWS.replace("WRITES", writes));
    let own = with("R[x, y] := case | x = i : True | _ : R[x, y]");
    let cubes = proof(&own, MemoryModel::Tso);
    for (writes, taken) in [
        ("R[x, y] := case | x = i : True | _ : R[x, y]", true),
        ("R[x, y] := case | y = i : True | _ : R[x, y]", false),
        (
            "R[x, y] := case | x = i || y = i : True | _ : R[x, y]",
            false,
        ),
        (
            "W[x, y] := case | x = i && R[x, y] = True && y <> i : True | _ : False",
            true,
        ),
        (
            "W[x, y] := case | y = i && R[x, y] = True : True | _ : False",
            false,
        ),
        (
            "W[x, y] := case | y = i : True | R[x, y] = True : True | _ : False",
            false,
        ),
    ] {
        let refused = match audit(&with(writes), &cubes) {
            Err(e) => e.to_string().contains("not the acting thread's"),
            Ok(_) => false,
        };
        assert_eq!(refused, !taken, "{writes}");
    }
}

#[test]
fn a_missing_cube_is_noticed() {
    let system = system(&FLAGS.replace("FENCE", "&& fence()"));
    // Under PSO the search keeps more than the auditor asks for.
    for model in [MemoryModel::Sc, MemoryModel::Tso] {
        let cubes = proof(&system, model);
        for i in 0..cubes.cubes.len() {
            let mut damaged = cubes.clone();
            damaged.cubes.remove(i);
            assert!(
                audit(&system, &damaged).is_err(),
                "{model} without cube {i}"
            );
        }
    }
}

/// Two stores of which the second tells of the first.
const MESSAGE: &str = "
type loc = A | B | C | D
array PC[proc] : loc
weak var X : bool
weak var Y : bool
init (p) { PC[p] = A && X = False && Y = False }
unsafe (q) { PC[q] = D && q @ X = False }
transition first ([p]) requires { PC[p] = A } { PC[p] := B; X := True }
transition second ([p]) requires { PC[p] = B } { PC[p] := C; Y := True }
transition told ([q]) requires { PC[q] = A && Y = True } { PC[q] := D }
";

/// What TSO keeps in order PSO does not: a proof for the one that says it is for the other is none.
#[test]
fn a_proof_for_tso_is_none_for_pso() {
    let system = system(MESSAGE);
    let mut cubes = proof(&system, MemoryModel::Tso);
    assert!(audit(&system, &cubes).is_ok());
    cubes.model = MemoryModel::Pso;
    assert!(audit(&system, &cubes).is_err());
    // With both stores at once there is nothing to keep in order.
    let both = MESSAGE
        .replace("PC[p] := B; X := True", "PC[p] := B; X := True; Y := True")
        .replace("PC[p] := C; Y := True", "PC[p] := C")
        .replace("{ PC[p] = A }", "{ PC[p] = A && fence() }");
    let system = self::system(&both);
    for model in MemoryModel::ALL {
        assert!(audit(&system, &proof(&system, model)).is_ok(), "{model}");
    }
}

/// Every single literal left out, and literals that make a cube smaller.
fn changed(cube: &Cube) -> Vec<(&'static str, Cube)> {
    let mut out = Vec::new();
    for i in 0..cube.among.len() {
        let mut weaker = cube.clone();
        weaker.among.remove(i);
        out.push(("weaker", weaker));
        for value in 0..3u8 {
            let mut other = cube.clone();
            other.among[i].1 = vec![value];
            if other != *cube {
                out.push(("other", other));
            }
        }
    }
    let mut ordered = cube.clone();
    if cube.threads.len() > 1 && cube.ordered.is_empty() {
        ordered.ordered.push((0, 1));
        out.push(("smaller", ordered));
    }
    out
}

/// What was changed may still be a proof of the fenced lock. It must never be one of the lock that is
/// broken, and a smaller cube leaves a hole.
#[test]
fn changed_cubes_prove_nothing_false() {
    let fenced = system(&FLAGS.replace("FENCE", "&& fence()"));
    let broken = system(&FLAGS.replace("FENCE", ""));
    for model in [MemoryModel::Tso, MemoryModel::Pso] {
        let cubes = proof(&fenced, model);
        assert!(audit(&broken, &cubes).is_err(), "{model}");
        for i in 0..cubes.cubes.len() {
            for (how, cube) in changed(&cubes.cubes[i]) {
                let mut damaged = cubes.clone();
                damaged.cubes[i] = cube;
                assert!(audit(&broken, &damaged).is_err(), "{model} {how} cube {i}");
                if how == "smaller" && model == MemoryModel::Tso {
                    assert!(audit(&fenced, &damaged).is_err(), "{model} {how} cube {i}");
                }
            }
        }
    }
}

#[test]
fn numbers_that_name_nothing_are_corrupt() {
    let system = system(&FLAGS.replace("FENCE", "&& fence()"));
    let cubes = proof(&system, MemoryModel::Tso);
    let corrupt = |change: &dyn Fn(&mut Cubes)| {
        let mut damaged = cubes.clone();
        change(&mut damaged);
        matches!(audit(&system, &damaged), Err(AuditError::Corrupt(_)))
    };
    assert!(corrupt(&|c| c.cells[0].push('x')));
    assert!(corrupt(&|c| c.cubes[0].threads = vec![1, 1]));
    assert!(corrupt(&|c| c.cubes[0].ordered = vec![(0, 9)]));
    assert!(corrupt(&|c| c.cubes[0].after_reads_of = vec![vec![50]]));
    assert!(corrupt(&|c| c.cubes[0].among[0].1.clear()));
    assert!(corrupt(&|c| c.cubes[0].after_stores_of = vec![vec![]; 9]));
}

/// There is room for so many threads in a cube and not for more: a step whose threads might not fit would be missed.
#[test]
fn too_many_threads_are_refused() {
    let mut system = system(&FLAGS.replace("FENCE", "&& fence()"));
    let cubes = proof(&system, MemoryModel::Tso);
    let mut crowded = cubes.clone();
    crowded.cubes[0].threads = vec![0; 15];
    assert!(matches!(
        audit(&system, &crowded),
        Err(AuditError::Corrupt(_))
    ));
    let names = (0..17).map(|i| format!("p{i}")).collect();
    system.bad[0].params = names;
    assert!(matches!(
        audit(&system, &cubes),
        Err(AuditError::Refused(_))
    ));
}

/// Numbers are not compared with threads, nor taken for members of a set.
#[test]
fn values_of_different_kinds_are_corrupt() {
    let system = system(TICKETS);
    let cubes = proof(&system, MemoryModel::Sc);
    let cell = |name: &str| {
        let place = system.cells.iter().position(|c| c.name == name);
        let cell = place.map_or(u16::MAX, |c| c as u16);
        Value::Cell(CellOf { cell, of: vec![] })
    };
    let corrupt = |change: &dyn Fn(&mut Cube)| {
        let mut damaged = cubes.clone();
        change(&mut damaged.cubes[0]);
        matches!(audit(&system, &damaged), Err(AuditError::Corrupt(_)))
    };
    let zero = |value: Value| Number {
        terms: vec![(1, value)],
        constant: 0,
        relation: Relation::Equal,
    };
    assert!(!corrupt(&|c| c.numbers.push(zero(cell("Next")))));
    assert!(corrupt(&|c| c.numbers.push(zero(cell("Owner")))));
    assert!(corrupt(&|c| c.numbers.push(zero(cell("PC")))));
    assert!(corrupt(&|c| c.among.push((cell("Next"), vec![0]))));
    assert!(corrupt(&|c| c.same.push((cell("Next"), cell("Now"), true))));
    assert!(corrupt(&|c| c.same.push((
        cell("Next"),
        cell("Owner"),
        true
    ))));
}

/// Under PSO a thread may go on reading its own store after another thread's store to the same cell,
/// made later, has reached memory and a fence has been passed. A search that orders the read before
/// that store misses the run.
#[test]
fn own_stores_outlive_others_under_pso() {
    let text = "
type loc = A0 | A1 | A2 | A3 | A4 | B0 | B1 | B2 | B3 | B4
type val = V0 | V1 | V2
array PC[proc] : loc
weak var C : val
weak var D : bool
weak var Y : bool
init (z) { PC[z] = A0 && C = V0 && D = False && Y = False }
unsafe (q) { PC[q] = A4 }
transition q0 ([q]) requires { PC[q] = A0 && q = #1 } { PC[q] := A1; C := V2; }
transition q1 ([q]) requires { PC[q] = A1 } { PC[q] := A2; D := True; }
transition q2 ([q]) requires { PC[q] = A2 && Y = True } { PC[q] := A3; }
transition q3 ([q]) requires { PC[q] = A3 && C = V2 } { PC[q] := A4; }
transition p0 ([p]) requires { PC[p] = A0 && p = #2 && D = True } { PC[p] := B1; }
transition p1 ([p]) requires { PC[p] = B1 } { PC[p] := B2; C := V1; }
transition p2 ([p]) requires { PC[p] = B2 && fence() } { PC[p] := B3; }
transition p3 ([p]) requires { PC[p] = B3 } { PC[p] := B4; Y := True; }
";
    let system = system(text);
    let options = Options {
        small_first: false,
        ..Options::default()
    };
    let verdict = |model| check(&system, model, options, &|_| false).0;
    assert!(matches!(verdict(MemoryModel::Tso), Outcome::Holds(_)));
    assert!(!matches!(verdict(MemoryModel::Pso), Outcome::Holds(_)));
}

/// With two threads nobody gets past the universal guard; that one thread alone does is no answer.
#[test]
fn a_violation_has_the_number_of_threads_that_is_fixed() {
    let text = |threads: &str| {
        format!(
            "{threads}type loc = A | B | C | D\nweak var X : int\nweak var Y : int\narray PC[proc] : loc\n\
             weak array F[proc] : int\ninit (p) {{ PC[p] = A && X = 0 && Y = 0 && F[p] = 0 }}\n\
             unsafe (p) {{ PC[p] = D && p @ X = 1 }}\n\
             transition t1 ([p])\nrequires {{ PC[p] = B && fence() }}\n{{ PC[p] := C; Y := 1; }}\n\
             transition t2 ([p])\nrequires {{ PC[p] = C && fence() }}\n{{ PC[p] := D; X := 1; }}\n\
             transition t3 ([p])\nrequires {{ PC[p] = A && Y <> 1 && forall_other z. F[z] = 1 }}\n\
             {{ PC[p] := B; X := 1; }}\n"
        )
    };
    for model in [MemoryModel::Sc, MemoryModel::Tso] {
        let run = |threads: &str| {
            check(&system(&text(threads)), model, Options::default(), &|_| {
                false
            })
            .0
        };
        let any = run("");
        assert!(
            matches!(&any, Outcome::Violated(r) if r.threads == 1),
            "{any:?}"
        );
        let two = run("number_procs 2\n");
        assert!(!matches!(two, Outcome::Violated(_)), "{two:?}");
    }
}
