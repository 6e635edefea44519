//! Any number of threads that nothing tells apart: the same search with open roles.
//!
//! Configurations list threads of a family as a multiset; a run that is found is shown on an instance
//! with as many threads as it lists (and as the property speaks of). TSO, and SC, where there are no
//! buffers. Not PSO in general: there a thread's stores to different cells reach memory in any order,
//! so a store cannot be taken to happen when it reaches memory, which is what load buffers rest on. But
//! where no thread ever has stores to two cells pending, PSO is TSO.

use super::trace::{self, Stage};
use super::{Outcome, decide_roles, no_overflow, out_of};
use crate::backward::Search;
use crate::dual::config::Listed;
use crate::dual::predecessors::LoadBuffers;
use std::collections::BTreeMap;
use wattle_evidence::{Control, OpenAnswer, OpenProof, Progress, Reason, Task, Trace};
use wattle_memory::MemoryModel;
use wattle_memory::automaton::Automata;
use wattle_model::{Count, Counts, Crowd, Instance, Program, ThreadId};

/// Decides one property of a program (or its assertions alone) for any number of threads in its open
/// families.
pub fn decide(
    program: &Program,
    crowd: &Crowd,
    model: MemoryModel,
    question: Option<usize>,
    control: &Control<'_>,
) -> OpenAnswer {
    let task = Task {
        instance: &crowd.instance,
        model,
        question: (!crowd.instance.questions.is_empty()).then_some(0),
        deadlock: false,
    };
    let found = decide_roles(&task, &crowd.roles, control, |automata, search, first| {
        show(program, crowd, (model, question), automata, search, first)
    });
    match found {
        Ok(Outcome::Reached((instance, trace), effort)) => OpenAnswer::Reached {
            instance: Box::new(instance),
            trace,
            effort,
        },
        Ok(Outcome::Unreachable(certificate, effort)) => OpenAnswer::Unreachable {
            proof: OpenProof {
                certificate,
                assumptions: Vec::new(),
                translated: None,
                claims: Vec::new(),
            },
            effort,
        },
        Ok(Outcome::Stopped(stop, effort)) => OpenAnswer::Undecided {
            reason: out_of(stop, &effort),
            effort,
        },
        Err(reason) => OpenAnswer::Undecided {
            reason,
            effort: Progress::default(),
        },
    }
}

/// The run on an instance that has all threads it lists.
fn show(
    program: &Program,
    crowd: &Crowd,
    (model, question): (MemoryModel, Option<usize>),
    automata: &Automata,
    search: &Search<'_, LoadBuffers<'_>>,
    first: u32,
) -> Result<(Instance, Trace), Reason> {
    let listed = &search.nodes[first as usize].config.threads;
    let instance = instance_for(program, crowd, listed)
        .map_err(|e| Reason::Other(format!("no instance shows the run: {e}")))?;
    // Threads of the instance that play each role, in order.
    let mut free: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut real = Automata {
        threads: Vec::new(),
        ..automata.clone()
    };
    for (t, thread) in instance.threads.iter().enumerate() {
        let plays = |r: &usize| {
            let played = &crowd.instance.threads[*r];
            played.family == thread.family
                && (crowd.roles.is_open(*r) || played.index == thread.index)
        };
        let role = crowd.roles.all().find(plays);
        let role = role.ok_or_else(|| Reason::Other(format!("`{}` has no role", thread.name)))?;
        free.entry(role).or_default().insert(0, t);
        let mut automaton = automata.threads[role].clone();
        for state in &mut automaton.states {
            if let Some(fault) = &mut state.fault {
                fault.thread = ThreadId::new(t);
            }
        }
        real.threads.push(automaton);
    }
    let seat = |t: &Listed| free.get_mut(&t.role).and_then(Vec::pop);
    let seats: Option<Vec<usize>> = listed.iter().map(seat).collect();
    let seats = seats.ok_or_else(|| Reason::Other("too few threads for the run".into()))?;
    let task = Task {
        instance: &instance,
        model,
        question,
        deadlock: false,
    };
    let stage = Stage {
        task,
        automata: &real,
        seats: &seats,
    };
    let trace = trace::concrete(&stage, search, first).map_err(Reason::Other)?;
    let trace = no_overflow(&task, trace)?;
    Ok((instance, trace))
}

/// As many threads in each open family as are listed, and as the property speaks of.
fn instance_for(
    program: &Program,
    crowd: &Crowd,
    listed: &[Listed],
) -> Result<Instance, wattle_model::InstanceError> {
    let mut counts = Counts::default();
    for (f, family) in program.families.iter().enumerate() {
        if family.count != Count::Any {
            continue;
        }
        let of_family = |t: &usize| crowd.instance.threads[*t].family.index() == f;
        let spoken_of = (0..crowd.instance.threads.len()).filter(of_family).count();
        let needed = listed.iter().filter(|t| of_family(&t.role)).count();
        let n = u32::try_from(needed.max(spoken_of)).unwrap_or(u32::MAX);
        counts.0.insert(family.name.clone(), n);
    }
    program.instantiate(&counts)
}
