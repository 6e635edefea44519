//! Certificates about another program, another model or another question are refused for what they are.

use wattle_auditor::{AuditError, Solvers, audit, audit_open};
use wattle_evidence::certificate::{
    BagOf, Coherent, LoadBufferConfig, LoadBufferMessage, LoadBufferThread, LoadBuffers,
    LocalState, MultisetConfig, Multisets, Runs, Traces,
};
use wattle_evidence::{AnyNumber, Certificate, Control, OpenTask, Task};
use wattle_memory::{Keeps, MemoryModel};
use wattle_model::{CellId, Instance, LocationId, Program, ThreadId};

/// Nothing bad can happen here: what is refused is refused for what the certificate says.
const FINE: &str = "shared x: 0..1, y: 0..1; thread p { x = 1; } thread q { local r: 0..1; r = x; }
                    never q.r == 1 && x == 0 && y == 1;";

fn read(text: &str) -> Program {
    wattle_syntax::wtl::parse(text).program.expect("it parses")
}

fn asked(
    instance: &Instance,
    (model, deadlock): (MemoryModel, bool),
    certificate: &Certificate,
) -> Result<(), AuditError> {
    let task = Task {
        instance,
        model,
        question: Some(0),
        deadlock,
    };
    audit(&task, certificate, &Control::unlimited()).map(|_| ())
}

fn at(registers: Vec<i64>) -> LocalState {
    LocalState::At {
        location: LocationId::new(0),
        registers,
        holds: false,
        fault: None,
    }
}

#[test]
fn what_is_about_something_else_is_refused() {
    let instance = read(FINE).instance().expect("an instance");
    let (sc, tso, pso) = (MemoryModel::Sc, MemoryModel::Tso, MemoryModel::Pso);
    let coherent = |model, bounds| {
        Certificate::Coherent(Coherent {
            model,
            keeps: Keeps::Oldest,
            bounds,
        })
    };
    let fits = vec![(1, vec![1, 1]); 2];
    let fine = coherent(tso, fits.clone());
    assert_eq!(asked(&instance, (tso, false), &fine), Ok(()));
    let traces = |model| {
        let runs = Runs {
            count: 0,
            bytes: Vec::new(),
        };
        Certificate::Traces(Traces {
            model,
            starts: vec![runs],
        })
    };
    let bag = |locals: usize, memory: usize, bags: usize, cells: usize| {
        let of = BagOf {
            last: Some(1),
            others: Vec::new(),
        };
        let config = MultisetConfig {
            locals: vec![at(vec![0]); locals],
            memory: vec![Some(1); memory],
            bags: vec![vec![Some(of); cells]; bags],
        };
        Certificate::Multisets(Multisets {
            basis: vec![config],
        })
    };
    let own = LoadBufferMessage::Own {
        cell: CellId::new(0),
        value: Some(1),
    };
    let loads = |roles: &[usize], local: LocalState, memory: usize| {
        let thread = |role: &usize| LoadBufferThread {
            role: ThreadId::new(*role),
            local: local.clone(),
            buffer: vec![own],
        };
        let config = LoadBufferConfig {
            threads: roles.iter().map(thread).collect(),
            memory: vec![Some(1); memory],
            others_unlocked: false,
            after_snapshot: false,
        };
        Certificate::LoadBuffers(LoadBuffers {
            basis: vec![config],
        })
    };
    let of_model = |e: &AuditError| matches!(e, AuditError::WrongModel(_));
    let of_form = |e: &AuditError| matches!(e, AuditError::Other(_));
    type Why<'w> = &'w dyn Fn(&AuditError) -> bool;
    let forged: Vec<(&str, Certificate, (MemoryModel, bool), Why<'_>)> = vec![
        ("another model", fine.clone(), (pso, false), &of_model),
        ("deadlock", fine, (tso, true), &of_form),
        (
            "no bounds",
            coherent(tso, Vec::new()),
            (tso, false),
            &of_form,
        ),
        (
            "a thread more",
            coherent(tso, vec![(1, vec![1, 1]); 3]),
            (tso, false),
            &of_form,
        ),
        (
            "a cell more",
            coherent(tso, vec![fits[0].clone(), (1, vec![1; 3])]),
            (tso, false),
            &of_form,
        ),
        (
            "traces of another model",
            traces(sc),
            (tso, false),
            &of_model,
        ),
        ("deadlock", bag(2, 2, 2, 2), (tso, true), &of_form),
        (
            "a local state more",
            bag(3, 2, 2, 2),
            (tso, false),
            &of_form,
        ),
        ("a cell more", bag(2, 3, 2, 2), (tso, false), &of_form),
        ("a buffer less", bag(2, 2, 1, 2), (tso, false), &of_form),
        ("a bag less", bag(2, 2, 2, 1), (tso, false), &of_form),
        (
            "deadlock",
            loads(&[0], at(vec![0]), 2),
            (tso, true),
            &of_form,
        ),
        (
            "a thread that there is not",
            loads(&[7], at(vec![0]), 2),
            (tso, false),
            &of_form,
        ),
        (
            "a thread twice",
            loads(&[1, 0, 1], at(vec![0]), 2),
            (tso, false),
            &of_form,
        ),
        (
            "a state not known",
            loads(&[0], LocalState::Any, 2),
            (tso, false),
            &of_form,
        ),
        (
            "a buffer under SC",
            loads(&[0], at(vec![0]), 2),
            (sc, false),
            &of_form,
        ),
        (
            "a cell less",
            loads(&[0], at(vec![0]), 1),
            (tso, false),
            &of_form,
        ),
    ];
    for (name, certificate, question, why) in &forged {
        let said = asked(&instance, *question, certificate);
        let said = said.expect_err(name);
        assert!(why(&said), "{name}: {said:?}");
    }
}

/// Nothing about any number of threads is a proof that none of them waits for ever.
#[test]
fn no_basis_is_about_deadlock_of_any_number() {
    let program = read("shared x: 0..1; thread p[*] { x = 1; } never x == 2;");
    let empty = Certificate::LoadBuffers(LoadBuffers { basis: Vec::new() });
    for (deadlock, fine) in [(false, true), (true, false)] {
        let task = OpenTask {
            of: AnyNumber::Program(&program),
            model: MemoryModel::Tso,
            question: Some(0),
            deadlock,
        };
        let all = Control::unlimited();
        let said = audit_open(&Solvers::own(), &task, &empty, None, &all);
        assert_eq!(said.is_ok(), fine, "{said:?}");
    }
}
