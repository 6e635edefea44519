//! Certificates about another program, another model or another question are refused for what they are.

use wattle_auditor::{AuditError, Solvers, audit, audit_open};
use wattle_evidence::certificate::{
    BagOf, ClosedStates, Coherent, Explored, LoadBufferConfig, LoadBufferMessage, LoadBufferThread,
    LoadBuffers, LocalState, MultisetConfig, Multisets, Runs, Shortened, Traces,
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

/// What an empty basis says of the program under TSO: that nothing bad can be thought of.
fn nothing_is_bad(text: &str) -> Result<(), AuditError> {
    let instance = read(text).instance().expect("an instance");
    let empty = Multisets { basis: Vec::new() };
    let said = asked(
        &instance,
        (MemoryModel::Tso, false),
        &Certificate::Multisets(empty),
    );
    let empty = Certificate::LoadBuffers(LoadBuffers { basis: Vec::new() });
    let other = asked(&instance, (MemoryModel::Tso, false), &empty);
    assert_eq!(said, other, "{text}");
    said
}

/// A part of a property that has no value is not hidden by one that is false.
#[test]
fn a_property_without_a_value_is_not_proved() {
    let of = |property: &str| {
        format!(
            "shared x[2]: 0..1; thread p {{ local r: 0..1; r = x[0]; }} thread q {{ local r: 0..1; }}
             never {property};"
        )
    };
    for property in [
        "1 / q.r == 1 && p.r == 7",
        "(1 / q.r == 1 || q.r == 1) && p.r == 7",
        "(1 == 1 / q.r) && p.r == 7",
        "x[q.r - 1] == 1 && p.r == 7",
        "!(1 % q.r == 1) && p.r == 7",
        "1 << (q.r - 1) == 1 && p.r == 7",
        "(q.r == 0 ? 1 / q.r : 0) == 1 && p.r == 7",
    ] {
        let said = nothing_is_bad(&of(property));
        assert!(
            matches!(said, Err(AuditError::NoValue { .. })),
            "{property}: {said:?}"
        );
    }
    for property in [
        "p.r == 7 && 1 / q.r == 1",
        "q.r == 1 && p.r == 0",
        "x[q.r] == 1",
    ] {
        assert_eq!(nothing_is_bad(&of(property)), Ok(()), "{property}");
    }
}

/// Whoever names a cell by a register looks at the register.
#[test]
fn a_thread_is_looked_at_in_an_index_too() {
    let text = "shared x[2]: 0..1; thread p { x[1] = 1; } thread q { local r: 0..1; r = 1; }
                never x[q.r] == 1;";
    assert_eq!(nothing_is_bad(text), Err(AuditError::MissesBad));
}

/// Where the property looks at memory, stores may be pending.
#[test]
fn what_is_bad_may_have_stores_pending() {
    let text = "shared x: 0..1; thread p { x = 1; a: skip; } never p@a && x == 0;";
    let instance = read(text).instance().expect("an instance");
    let after = |memory: Option<i64>, last: Option<i64>| {
        let others = Vec::new();
        let step = instance.threads[0].outgoing(instance.threads[0].entry)[0];
        MultisetConfig {
            locals: vec![LocalState::At {
                location: instance.threads[0].step(step).target,
                registers: Vec::new(),
                holds: false,
                fault: None,
            }],
            memory: vec![memory],
            bags: vec![vec![last.map(|last| BagOf {
                last: Some(last),
                others,
            })]],
        }
    };
    // With nothing pending it is never bad: the store has reached memory then.
    let basis = vec![after(Some(0), None), after(None, Some(0))];
    for model in [MemoryModel::Tso, MemoryModel::Pso] {
        let forged = Certificate::Multisets(Multisets {
            basis: basis.clone(),
        });
        let said = asked(&instance, (model, false), &forged);
        assert_eq!(said, Err(AuditError::MissesBad));
    }
}

/// Of threads that go round for ever the others are not forgotten.
#[test]
fn nobody_is_put_off_for_ever() {
    let round = "thread p { loop { x = 1; x = 0; } } thread r { local a: 0..1; loop { a = x; } }";
    let other = "thread q { y = 1; bad: skip; } thread s { local a: 0..1; a = y; }";
    for threads in [format!("{round} {other}"), format!("{other} {round}")] {
        let text = format!("shared x: 0..1, y: 0..1; {threads} never q@bad;");
        let instance = read(&text).instance().expect("an instance");
        for model in MemoryModel::ALL {
            let all = Certificate::Explored(Explored::new(model, 1 << 20));
            let said = asked(&instance, (model, false), &all);
            assert!(said.is_err(), "{model}: {text}");
        }
    }
}

/// What may be left out is said of each thread there is.
#[test]
fn what_is_left_out_is_said_of_every_thread() {
    let instance = read(FINE).instance().expect("an instance");
    let (local, private) = (vec![LocationId::new(0)], Vec::<CellId>::new());
    for (locals, privates) in [(1, 2), (3, 2), (2, 1), (2, 3), (0, 0), (2, 2)] {
        let mut states = ClosedStates::new(MemoryModel::Sc).finish();
        states.shortened = Shortened {
            local: vec![local.clone(); locals],
            private: vec![private.clone(); privates],
        };
        let said = asked(
            &instance,
            (MemoryModel::Sc, false),
            &Certificate::ClosedStates(states),
        );
        let of_another = matches!(&said, Err(AuditError::NotLocal(why)) if why.contains("threads"));
        // Who says nothing of anybody leaves nothing out.
        assert_eq!(
            of_another,
            (locals, privates) != (2, 2) && locals != 0,
            "{said:?}"
        );
        assert!(said.is_err());
    }
}

/// Under SC a store is everybody's business, unless nobody else looks at the cell.
#[test]
fn a_store_that_others_see_is_not_taken_at_once() {
    let instance = read(FINE).instance().expect("an instance");
    let mut states = ClosedStates::new(MemoryModel::Sc).finish();
    states.shortened = Shortened {
        local: vec![vec![instance.threads[0].entry], Vec::new()],
        private: vec![Vec::new(); 2],
    };
    let said = asked(
        &instance,
        (MemoryModel::Sc, false),
        &Certificate::ClosedStates(states),
    );
    assert!(matches!(said, Err(AuditError::NotLocal(_))), "{said:?}");
}

/// A run that stops before the program does is no run of it.
#[test]
fn runs_end_where_nothing_can_happen() {
    let runs = Runs {
        count: 1,
        bytes: Vec::new(),
    };
    for (text, ends) in [
        (FINE, false),
        ("shared x; thread p { } never x == 1;", true),
    ] {
        let instance = read(text).instance().expect("an instance");
        for count in [0, 1] {
            let starts = vec![Runs {
                count,
                ..runs.clone()
            }];
            let model = MemoryModel::Tso;
            let none = Certificate::Traces(Traces { model, starts });
            let said = asked(&instance, (model, false), &none);
            assert!(said.is_err() || ends, "{count}: {text}");
        }
    }
}
