//! Views of two threads: every two threads of every state that some instance reaches look like one, and
//! the auditor takes what the search finds and nothing less.

mod random;

use random::random_system;
use std::collections::{BTreeSet, HashSet};
use wattle_auditor::{AuditError, Solvers, audit_system};
use wattle_evidence::Control;
use wattle_evidence::certificate::{Certificate, Views};
use wattle_memory::MemoryModel;
use wattle_model::array::ArraySystem;
use wattle_params::certificate::certificate;
use wattle_params::compile::Compiled;
use wattle_params::machine::{self, Candidates, Machine};
use wattle_params::pairs::saturate::Reach;
use wattle_params::pairs::shape::{Shape, Sort};
use wattle_params::pairs::state::{Entry, NOBODY, SPACING, State, UNKNOWN, Val, Write};
use wattle_params::pairs::witness::candidates;
use wattle_params::pairs::{self, prove};

const REACH: Reach = Reach {
    views: 300,
    work: 3_000,
    precise: false,
    named: false,
    witness: None,
};

fn value(shape: &Shape, cell: u16, value: i64) -> Val {
    match shape.cells[usize::from(cell)].sort {
        Sort::Finite(_) => value as Val,
        Sort::Thread if value == 0 => NOBODY,
        Sort::Thread => value as Val * SPACING,
        Sort::Int | Sort::Other => (value + 1000) as Val * (SPACING / 16),
    }
}

/// What two threads of a state look like; rows of equal entries are one. The second is where a row of
/// one or more entries might stand for one.
fn view(shape: &Shape, machine: &Machine<'_>, state: &machine::State, of: [u8; 2]) -> Vec<State> {
    let at = |cell: u16, args: &[u8]| {
        let v = state.values[machine.position(cell, args)];
        value(shape, cell, v)
    };
    let mut vals: Vec<Val> = of.iter().map(|t| Val::from(*t) * SPACING).collect();
    let anchors = shape.anchors.iter();
    vals.extend(anchors.map(|c| (c + 1000) as Val * (SPACING / 16)));
    let of_arity = |n: usize| {
        let cells = shape.cells.iter().enumerate();
        cells
            .filter(move |(_, c)| c.arity == n)
            .map(|(i, _)| i as u16)
    };
    let own = |c: &u16| usize::from(*c) < machine.system.cells.len();
    vals.extend(of_arity(0).filter(own).map(|c| at(c, &[])));
    if let Some(w) = shape.witness {
        let shows = |t: &u8| w.values >> at(w.cell, &[*t]) & 1 != 0;
        let mut all = (1..=machine.threads).filter(shows);
        let first = all.next();
        let last = all.next_back().or(first);
        vals.extend([first, last].map(|t| t.map_or(NOBODY, |t| Val::from(t) * SPACING)));
    }
    for t in of {
        vals.extend(of_arity(1).map(|c| at(c, &[t])));
    }
    for c in of_arity(2) {
        for i in of {
            vals.extend(of.iter().map(|j| at(c, &[i, *j])));
        }
    }
    let mut buffers = Vec::new();
    for t in of {
        let mut buffer: Vec<Entry> = Vec::new();
        for e in &state.buffers[usize::from(t) - 1] {
            let writes: Vec<Write> = match e {
                machine::Entry::Mark => Vec::new(),
                machine::Entry::Writes(list) => {
                    let write = |(position, v): &(usize, i64)| {
                        let (cell, threads) = machine.cell_at(*position);
                        let mut args = [0; 2];
                        for (a, t) in args.iter_mut().zip(threads) {
                            *a = Val::from(t) * SPACING;
                        }
                        Write {
                            cell,
                            args,
                            value: value(shape, cell, *v),
                        }
                    };
                    list.iter().map(write).collect()
                }
            };
            match buffer.last_mut() {
                Some(last) if !writes.is_empty() && last.writes == writes => last.many = true,
                _ => buffer.push(Entry {
                    writes,
                    many: false,
                }),
            }
        }
        buffers.push(buffer);
    }
    let mut whole = State {
        vals,
        buffers,
        extra: Vec::new(),
    };
    for ghost in whole.ghosts(shape) {
        for c in &shape.kept {
            let value = at(*c, &[(ghost / SPACING) as u8]);
            whole.extra.push((*c, [ghost, 0], value));
        }
    }
    let mut out = vec![whole];
    for t in 0..2 {
        for e in 0..out[0].buffers[t].len() {
            let mut more = out.clone();
            more.retain(|s| !s.buffers[t][e].many && !s.buffers[t][e].writes.is_empty());
            more.iter_mut().for_each(|s| s.buffers[t][e].many = true);
            out.extend(more);
        }
    }
    out
}

/// Compares with all states of an instance, up to a limit. Says how many were looked at.
fn contains_all(
    compiled: &Compiled<'_>,
    proof: &pairs::Proof,
    reach: Reach,
    threads: u8,
    text: &str,
) -> usize {
    let Some(shape) = Shape::new(compiled, reach.named, reach.witness) else {
        panic!("no shape")
    };
    let known: HashSet<&[u8]> = proof.views.iter().map(|v| &v[..]).collect();
    // Where views leave values open.
    let values = shape.sorts(2).len();
    let open_at = |v: &&[u8]| (0..values).filter(|p| v[*p] == 255).collect();
    let open_places: BTreeSet<Vec<usize>> = known.iter().map(open_at).collect();
    let machine = Machine::new(compiled.system, compiled.model, threads);
    let mut candidates = Candidates::of(compiled.system);
    candidates.limit = 64;
    let (initial, _) = machine.initial(&candidates);
    let mut seen: BTreeSet<machine::State> = BTreeSet::new();
    let mut open: Vec<machine::State> = initial.into_iter().take(8).collect();
    let mut at = 0;
    while at < open.len() && seen.len() < 400 {
        let mut state = open[at].clone();
        at += 1;
        if state.buffers.iter().any(|b| b.len() > 4) || !seen.insert(state.clone()) {
            continue;
        }
        assert!(machine.bad(&state).is_none(), "bad, and proved\n{text}");
        for i in 1..=threads {
            for j in i + 1..=threads {
                let pairs = [[i, j], [j, i]].into_iter();
                let mut views = pairs.flat_map(|of| view(&shape, &machine, &state, of));
                let found = views.any(|v| {
                    open_places.iter().any(|places| {
                        let mut v = v.clone();
                        places.iter().for_each(|p| v.vals[*p] = UNKNOWN);
                        known.contains(&v.pack(&shape)[..])
                    })
                });
                assert!(
                    found,
                    "{}: {i} and {j} of {state:?}\n{text}",
                    compiled.model
                );
            }
        }
        machine.successors(&mut state, &candidates, &mut |_, next| {
            open.push(next.clone())
        });
    }
    seen.len()
}

fn audit(
    system: &ArraySystem,
    certificate: &Certificate,
    model: MemoryModel,
) -> Option<AuditError> {
    let control = Control::unlimited();
    audit_system(&Solvers::own(), system, model, certificate, &control).err()
}

#[test]
fn every_two_threads_look_like_a_view() {
    let count = std::env::var("WATTLE_FAMILIES").ok();
    let count = count.and_then(|s| s.parse().ok()).unwrap_or(1500);
    let (mut proofs, mut witnesses, mut states) = (0, 0, 0);
    for seed in 0..count {
        let text = random_system(seed, usize::from(seed % 2 == 1));
        let Some(system) = wattle_syntax::cubicle::parse(&text).system else {
            panic!("{text}")
        };
        for model in MemoryModel::ALL {
            let Ok(compiled) = Compiled::new(&system, model) else {
                panic!("{text}")
            };
            let reach = Reach {
                precise: seed % 5 == 0,
                named: seed % 4 == 1,
                witness: candidates(&compiled).pop().filter(|_| seed % 4 > 1),
                ..REACH
            };
            let Ok(proof) = prove(&compiled, reach, &|| false) else {
                continue;
            };
            proofs += 1;
            witnesses += u64::from(reach.witness.is_some());
            for threads in 1..=3 {
                states += contains_all(&compiled, &proof, reach, threads, &text);
            }
            if seed % 3 == 0 || reach.named || reach.witness.is_some() {
                let written = certificate(&system, model, &wattle_params::Proof::Views(proof));
                let wrong = audit(&system, &written, model);
                assert!(wrong.is_none(), "seed {seed} {model}: {wrong:?}\n{text}");
            }
        }
    }
    println!("{proofs} proofs, {states} states");
    assert!(proofs * 3 > count, "only {proofs} proofs");
    assert!(witnesses * 100 > count, "only {witnesses} with witnesses");
}

#[test]
fn every_two_threads_of_a_lock_look_like_a_view() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/families");
    for (name, named) in [
        ("burns", false),
        ("mcs", false),
        ("ticket-lock", false),
        ("bakery", false),
        ("clh", true),
    ] {
        let Ok(text) = std::fs::read_to_string(format!("{folder}/{name}.wtl")) else {
            panic!("{name} is not there")
        };
        let Ok(program) = wattle_syntax::wtl::parse(&text).into_result() else {
            panic!("{name} does not parse")
        };
        let lowered = match wattle_params::lower::lower(&program, Some(0)) {
            Ok(lowered) => lowered,
            Err(e) => panic!("{name}: {}", e.message),
        };
        for model in MemoryModel::ALL {
            let Ok(compiled) = Compiled::new(&lowered.system, model) else {
                panic!("{name} does not compile")
            };
            let reach = Reach {
                views: 10_000,
                work: 500_000,
                precise: false,
                named,
                witness: None,
            };
            let Ok(proof) = prove(&compiled, reach, &|| false) else {
                panic!("{name}: no proof on {model}")
            };
            for threads in 1..=3 {
                assert!(contains_all(&compiled, &proof, reach, threads, name) > 0);
            }
        }
    }
}

const TICKETS: &str = "
type loc = Out | Wait | In
array PC[proc] : loc
array My[proc] : int
weak var Next : int
weak var Serving : int
init (p) { PC[p] = Out && My[p] = 0 && Next = 0 && Serving = 0 }
unsafe (p q) { PC[p] = In && PC[q] = In }
transition take ([p]) requires { PC[p] = Out } { PC[p] := Wait; My[p] := Next; Next := Next + 1 }
transition enter ([p]) requires { PC[p] = Wait && Serving = My[p] } { PC[p] := In }
transition leave ([p]) requires { PC[p] = In } { PC[p] := Out; Serving := My[p] + 1 }
";

/// Stores that wait: a view without one is reached when it drains, by one of the two or by another.
const STORES: &str = "
type loc = A | B
array PC[proc] : loc
weak var X : bool
init (p) { PC[p] = A && X = False }
unsafe (p q) { PC[p] = A && PC[q] = A && PC[p] = B }
transition put ([p]) requires { PC[p] = A } { PC[p] := B; X := True }
";

fn tickets(model: MemoryModel) -> (ArraySystem, Views) {
    proved(TICKETS, model)
}

fn proved(text: &str, model: MemoryModel) -> (ArraySystem, Views) {
    let Some(system) = wattle_syntax::cubicle::parse(text).system else {
        panic!("does not parse")
    };
    let Ok(compiled) = Compiled::new(&system, model) else {
        panic!("does not compile")
    };
    let Ok(proof) = prove(&compiled, REACH, &|| false) else {
        panic!("no proof on {model}")
    };
    let proof = wattle_params::Proof::Views(proof);
    let Certificate::Views(views) = certificate(&system, model, &proof) else {
        panic!("no views")
    };
    (system, views)
}

#[test]
fn the_auditor_misses_every_view_that_is_missing() {
    let both = [TICKETS, STORES];
    for (model, text) in MemoryModel::ALL.iter().flat_map(|m| both.map(|t| (*m, t))) {
        let (system, whole) = proved(text, model);
        let certificate = Certificate::Views(whole.clone());
        assert_eq!(
            audit(&system, &certificate, model).map(|e| e.to_string()),
            None
        );
        let json = serde_json::to_string(&certificate).unwrap_or_default();
        assert_eq!(
            serde_json::from_str::<Certificate>(&json).ok(),
            Some(certificate)
        );
        let views: Vec<Vec<u8>> = match whole.each() {
            Ok(views) => views.iter().map(|v| v.to_vec()).collect(),
            Err(e) => panic!("{e}"),
        };
        for gone in 0..views.len() {
            let mut less = whole.clone();
            (less.count, less.views) = (0, Vec::new());
            let kept = views.iter().enumerate().filter(|(i, _)| *i != gone);
            kept.for_each(|(_, v)| less.push(v));
            let wrong = audit(&system, &Certificate::Views(less), model);
            let noticed = matches!(
                wrong,
                Some(AuditError::NotClosed { .. } | AuditError::MissesInitial)
            );
            assert!(noticed, "{model} without {gone}: {wrong:?}");
        }
    }
}

/// The same views are no proof where one of them is bad.
#[test]
fn bad_views_are_noticed() {
    for model in MemoryModel::ALL {
        let (mut system, whole) = tickets(model);
        system.bad[0].body = wattle_model::array::Formula::TRUE;
        // Of two threads, or of more: one that is alone is looked at before.
        for params in ["p q", "p q r", "p q r s"] {
            system.bad[0].params = params.split(' ').map(Into::into).collect();
            let wrong = audit(&system, &Certificate::Views(whole.clone()), model);
            assert!(matches!(wrong, Some(AuditError::Bad { .. })), "{wrong:?}");
        }
    }
}

/// Three threads of which each two look like a view: none is bad, all together are.
#[test]
fn three_threads_do_what_no_two_of_them_do() {
    for model in MemoryModel::ALL {
        let (mut system, whole) = tickets(model);
        let more = TICKETS.replace(
            "unsafe (p q) { PC[p] = In && PC[q] = In }",
            "unsafe (p q r) { PC[p] = Wait && PC[q] = Wait && PC[r] = In }",
        );
        let three = wattle_syntax::cubicle::parse(&more).system;
        let Some(three) = three else {
            panic!("it parses")
        };
        assert_eq!(
            audit(&system, &Certificate::Views(whole.clone()), model).map(|e| e.to_string()),
            None
        );
        system.bad = three.bad;
        let wrong = audit(&system, &Certificate::Views(whole), model);
        assert!(matches!(wrong, Some(AuditError::Bad { .. })), "{wrong:?}");
    }
}

#[test]
fn damaged_certificates_are_refused() {
    let (system, whole) = tickets(MemoryModel::Tso);
    let refuse = |change: &dyn Fn(&mut Views)| {
        let mut views = whole.clone();
        change(&mut views);
        assert_ne!(views, whole, "the change changes nothing");
        let wrong = audit(&system, &Certificate::Views(views), MemoryModel::Tso);
        assert!(wrong.is_some());
    };
    refuse(&|v| v.model = MemoryModel::Pso);
    refuse(&|v| v.count += 1);
    refuse(&|v| v.cells.reverse());
    refuse(&|v| v.anchors = vec![5]);
    refuse(&|v| v.anchors.push(-1));
    refuse(&|v| v.views.truncate(7));
    refuse(&|v| v.views.push(0));
    refuse(&|v| v.views[2] = 255);
    refuse(&|v| v.forget.iter_mut().for_each(|f| f.cell = 99));
    // To forget where a thread is is allowed, but then a view is bad or missing.
    refuse(&|v| v.forget.iter_mut().for_each(|f| f.cell = f.when));
}
