//! The engine `lazy`: TSO reachability by SC reachability of a program that buffers only where an
//! oracle says (calin-2016, Algorithm 3.1, with the robustness oracle of Section 3.1.2).
//!
//! Each round asks SC about the extended program. If the target is not reached, the oracle gives
//! sequences along which a store can be delayed to some effect, and the program is extended by them
//! ([`crate::extend`]); if it has none, the extended program reaches under TSO what it reaches under SC, and
//! with it the original one. On acyclic programs this ends (Theorem 8). Others are tried as they are
//! for some rounds, as the thesis measured it, and then unrolled further and further (Theorem 9): a
//! run is found if there is one, and otherwise it goes on.
//!
//! *Which oracle.* The attack search: without an attack the extended program is robust. Where it comes
//! to no end, sequences are enumerated: any store and any load behind it without a fence between. If
//! there are none, no load overtakes a store and nothing of TSO is left.
//!
//! *What is answered.* A run found is a run of the original program under TSO and is replayed. If the
//! program itself is robust, the certificate is that, and SC's. If only an extension of it is, the
//! argument is Lemma 6, which the auditor does not know: then all states under TSO are listed for a
//! certificate (there are finitely many in an acyclic program); if they cannot be, there is no verdict.
//! Robustness says nothing about memory while stores are pending; for such targets (the thesis has none)
//! runs are found and nothing is proved. Deviation: several sequences are taken per round.

use crate::attack::{Goal, Options, search_many};
use crate::engine::{self, Robust};
use crate::extend::Extended;
use std::collections::VecDeque;
use wattle_evidence::{
    Answer, Certificate, Control, End, Engine, Progress, Reason, Refusal, Stop, Task, Trace,
};
use wattle_memory::reference::{Machine, Outcome};
use wattle_memory::{Event, Exact, MemoryModel, Tso};
use wattle_model::graph::{Action, Fence};
use wattle_model::instance::{Address, Thread};
use wattle_model::{Instance, LocationId, StepId, ThreadId};
use wattle_search::Explicit;

/// Who says where to buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Oracle {
    /// The attack search, and the enumeration where it comes to no end.
    Robustness,
    Enumeration,
}

#[derive(Clone, Copy, Debug)]
pub struct Lazy {
    pub explicit: Explicit,
    pub oracle: Oracle,
    /// Sequences per round.
    pub sequences: usize,
    /// A program with loops is unrolled after so many rounds.
    pub most_rounds: usize,
    /// The extended program has at most this many steps.
    pub most_steps: usize,
}

impl Default for Lazy {
    fn default() -> Self {
        Lazy {
            explicit: Explicit::default(),
            oracle: Oracle::Robustness,
            sequences: 8,
            most_rounds: 60,
            most_steps: 20_000,
        }
    }
}

impl Engine for Lazy {
    fn name(&self) -> &'static str {
        "lazy"
    }

    fn accepts(&self, task: &Task<'_>) -> Result<(), Refusal> {
        if task.model != MemoryModel::Tso {
            return Err(Refusal::new("it decides TSO only"));
        }
        if task.deadlock {
            return Err(Refusal::new("it does not look for deadlocks"));
        }
        task.is_about_memory()?;
        self.explicit.accepts(&Task {
            model: MemoryModel::Sc,
            ..*task
        })
    }

    fn run(&self, task: &Task<'_>, control: &Control<'_>) -> Answer {
        let mut effort = Progress::default();
        let ends = task.instance.threads.iter().all(is_acyclic);
        let rounds = if ends { usize::MAX } else { self.most_rounds };
        let mut extended = Extended::new(task.instance);
        let mut reason = match self.decide(task, &mut extended, rounds, control, &mut effort) {
            Said::Answer(answer) => return *answer,
            Said::Robust(rounds) => {
                return match Robust::default().accepts(task) {
                    Ok(()) => self.listed(task, rounds, control, effort),
                    Err(refusal) => Answer::Undecided {
                        reason: Reason::Refused(refusal),
                        effort,
                    },
                };
            }
            Said::Nothing(reason) => reason,
        };
        let mut most = FIRST_UNROLLED;
        while !ends && !matches!(reason, Reason::Stopped { .. } | Reason::Refused(_)) {
            let mut unrolled = Extended::unrolled(task.instance, most);
            let rounds = usize::MAX;
            match self.decide(task, &mut unrolled, rounds, control, &mut effort) {
                Said::Answer(answer) => return *answer,
                Said::Robust(_) => most = most.saturating_mul(2),
                Said::Nothing(stopped) => {
                    reason = stopped;
                    if let Reason::Other(why) = &mut reason {
                        *why += &format!(" (runs of {most} steps a thread)");
                    }
                    break;
                }
            }
        }
        Answer::Undecided { reason, effort }
    }
}

/// So many steps of each thread are tried first where there are loops.
const FIRST_UNROLLED: usize = 8;

/// What Algorithm 3.1 comes to.
enum Said {
    /// A run, or a proof with a certificate.
    Answer(Box<Answer>),
    /// The target is not reached under SC, and after so many rounds there is nothing to buffer any more.
    Robust(usize),
    Nothing(Reason),
}

impl Lazy {
    /// Algorithm 3.1.
    fn decide(
        &self,
        task: &Task<'_>,
        extended: &mut Extended,
        rounds: usize,
        control: &Control<'_>,
        effort: &mut Progress,
    ) -> Said {
        for round in 0..rounds {
            let under_sc = match self.round(task, extended, control, effort) {
                Ok(certificate) => certificate,
                Err(answer) => return Said::Answer(answer),
            };
            let sequences = match self.ask(&extended.instance, control, effort) {
                Ok(sequences) => sequences,
                Err(reason) => return Said::Nothing(reason),
            };
            if sequences.is_empty() {
                // The certificate is about the program itself.
                let itself = round == 0 && extended.is_itself();
                let known = self.oracle == Oracle::Robustness;
                if itself && known && Robust::default().accepts(task).is_ok() {
                    return Said::Answer(Box::new(engine::by_sc(under_sc, *effort)));
                }
                return Said::Robust(round);
            }
            let mut any = false;
            for (thread, path) in &sequences {
                any |= extended.extend(*thread, path);
            }
            if !any {
                let why =
                    "the sequence to buffer has steps that cannot be followed with stores kept";
                return Said::Nothing(Reason::Other(why.into()));
            }
            if extended.size() > self.most_steps {
                let why = format!(
                    "the extended program became too large in {} rounds",
                    round + 1
                );
                return Said::Nothing(Reason::Other(why));
            }
        }
        let why = format!("nothing found in {rounds} rounds of buffering");
        Said::Nothing(Reason::Other(why))
    }

    /// Whether the target is reached, by Algorithm 3.1 alone and without evidence; none if it does not end.
    pub fn reaches(&self, task: &Task<'_>, control: &Control<'_>) -> Option<bool> {
        let mut extended = Extended::new(task.instance);
        let mut effort = Progress::default();
        match self.decide(task, &mut extended, self.most_rounds, control, &mut effort) {
            Said::Answer(answer) => match *answer {
                Answer::Reached { .. } => Some(true),
                Answer::Unreachable { .. } => Some(false),
                Answer::Bounded { .. } | Answer::Undecided { .. } => None,
            },
            Said::Robust(_) => Some(false),
            Said::Nothing(_) => None,
        }
    }

    /// Where to buffer.
    fn ask(
        &self,
        instance: &Instance,
        control: &Control<'_>,
        effort: &mut Progress,
    ) -> Result<Vec<Sequence>, Reason> {
        if self.oracle == Oracle::Robustness {
            let options = Options::new(Goal::Robustness, MemoryModel::Tso);
            let found = search_many(instance, options, self.sequences, control);
            effort.states += found.effort.states;
            let attacks = found.attacks.into_iter();
            let attacks: Vec<Sequence> = attacks.map(|a| (a.attacker, a.path)).collect();
            match found.unfinished {
                _ if !attacks.is_empty() => return Ok(attacks),
                None => return Ok(attacks),
                Some(reason @ (Reason::Stopped { .. } | Reason::Refused(_))) => return Err(reason),
                Some(_) => {}
            }
        }
        let stopped = |stop: Stop| Reason::stopped(stop, "lazy");
        let mut found = Vec::new();
        for t in instance.thread_ids() {
            control.go_on().map_err(stopped)?;
            found.extend(enumerate(instance.thread(t)).map(|path| (t, path)));
        }
        Ok(found)
    }

    /// It holds, by the lemma: all states, for a certificate.
    fn listed(
        &self,
        task: &Task<'_>,
        rounds: usize,
        control: &Control<'_>,
        effort: Progress,
    ) -> Answer {
        let why = |why: &str| {
            Reason::Other(format!(
                "after {rounds} rounds nothing is left to buffer, but {why}"
            ))
        };
        match self.explicit.run(task, control) {
            answer @ (Answer::Unreachable { .. } | Answer::Reached { .. }) => answer,
            Answer::Undecided {
                reason: reason @ Reason::Stopped { .. },
                ..
            } => Answer::Undecided { reason, effort },
            Answer::Bounded { .. } | Answer::Undecided { .. } => Answer::Undecided {
                reason: why("the states under TSO cannot be listed for a certificate"),
                effort,
            },
        }
    }

    /// Asks SC about the extended program: a certificate, or the answer to give.
    fn round(
        &self,
        task: &Task<'_>,
        extended: &Extended,
        control: &Control<'_>,
        effort: &mut Progress,
    ) -> Result<Certificate, Box<Answer>> {
        let mut instance = extended.instance.clone();
        for q in &mut instance.questions {
            q.target = extended.target(&q.target);
        }
        let sc = Task {
            instance: &instance,
            model: MemoryModel::Sc,
            ..*task
        };
        match self.explicit.run(&sc, control) {
            Answer::Reached { trace, effort: e } => {
                effort.states += e.states;
                let effort = *effort;
                Err(Box::new(match original(task, extended, &trace) {
                    Some(trace) => Answer::Reached { trace, effort },
                    None => Answer::Undecided {
                        reason: Reason::Other("a run of the extended program is no TSO run".into()),
                        effort,
                    },
                }))
            }
            Answer::Unreachable {
                certificate,
                effort: e,
            } => {
                effort.states += e.states;
                effort.memory = effort.memory.max(e.memory);
                Ok(certificate)
            }
            other @ (Answer::Bounded { .. } | Answer::Undecided { .. }) => Err(Box::new(other)),
        }
    }
}

/// The SC run of the extended program as a TSO run of the original: emulated steps happen, stores of
/// the extended program are drains.
fn original(task: &Task<'_>, extended: &Extended, trace: &Trace) -> Option<Trace> {
    let machine = Machine::<Tso, Exact>::new(task.instance, ()).ok()?;
    let mut start = trace.start.clone();
    for (mine, thread) in start.registers.iter_mut().zip(&task.instance.threads) {
        mine.truncate(thread.registers.len());
    }
    let mut state = machine.initial(&start);
    let mut events = Vec::new();
    let mut end = trace.end.clone();
    for event in &trace.events {
        let Event::Step {
            thread,
            step,
            value,
        } = *event
        else {
            return None;
        };
        if let Some(meant) = extended.original(thread, step) {
            let event = Event::Step {
                thread,
                step: meant,
                value,
            };
            events.push(event);
            match machine.apply(&state, &event) {
                Outcome::Next(next) => state = next,
                Outcome::Fault(fault) => {
                    end = End::Fault(fault);
                    break;
                }
                Outcome::Full(_) => return None,
            }
        }
        let action = &extended.instance.thread(thread).step(step).action;
        let drains = matches!(action, Action::Store { .. });
        if drains && let Some((cell, value)) = state.buffers[thread.index()].0.first().copied() {
            let drain = Event::Drain {
                thread,
                cell,
                value,
                keep: false,
            };
            events.push(drain);
            match machine.apply(&state, &drain) {
                Outcome::Next(next) => state = next,
                Outcome::Fault(_) | Outcome::Full(_) => return None,
            }
        }
    }
    let run = Trace {
        model: MemoryModel::Tso,
        start,
        events,
        end,
    };
    run.check(task).ok()?;
    Some(run)
}

/// A sequence of a thread's steps, from the store to delay to the load that overtakes it.
type Sequence = (ThreadId, Vec<StepId>);

/// A shortest sequence from a store to a load of what may be another cell, without a step between that
/// waits for the buffer.
fn enumerate(thread: &Thread) -> Option<Vec<StepId>> {
    let cell = |place: &Address| match place {
        Address::Cell(c) => Some(*c),
        Address::Computed { .. } => None,
    };
    let firsts = thread.steps.iter().enumerate();
    let firsts = firsts.filter_map(|(i, s)| match &s.action {
        Action::Store { place, .. } => Some((StepId::new(i), cell(place))),
        Action::Skip
        | Action::Assign { .. }
        | Action::Havoc { .. }
        | Action::Assume(_)
        | Action::Assert { .. }
        | Action::Load { .. }
        | Action::Fence(_)
        | Action::AtomicBegin(_)
        | Action::AtomicEnd
        | Action::Lock
        | Action::Unlock => None,
    });
    let mut firsts = firsts.filter(|(s, _)| !thread.direct[thread.step(*s).source.index()]);
    firsts.find_map(|(first, stored)| {
        let start = thread.step(first).target;
        let mut came: Vec<Option<StepId>> = vec![None; thread.locations.len()];
        let mut seen = vec![false; thread.locations.len()];
        let mut work = VecDeque::from([start]);
        seen[start.index()] = true;
        while let Some(at) = work.pop_front() {
            for s in thread.outgoing(at) {
                let step = thread.step(*s);
                match &step.action {
                    Action::Fence(Fence::Full)
                    | Action::AtomicBegin(_)
                    | Action::AtomicEnd
                    | Action::Lock
                    | Action::Unlock => continue,
                    Action::Assume(e) if e.as_const() == Some(0) => continue,
                    Action::Load { place, .. } if stored.is_none() || cell(place) != stored => {
                        return Some(path(thread, first, &came, *s));
                    }
                    Action::Skip
                    | Action::Assign { .. }
                    | Action::Havoc { .. }
                    | Action::Assume(_)
                    | Action::Assert { .. }
                    | Action::Load { .. }
                    | Action::Store { .. }
                    | Action::Fence(Fence::Store) => {}
                }
                if !std::mem::replace(&mut seen[step.target.index()], true) {
                    came[step.target.index()] = Some(*s);
                    work.push_back(step.target);
                }
            }
        }
        None
    })
}

/// From the first step to the last along the steps by which locations were met.
fn path(thread: &Thread, first: StepId, came: &[Option<StepId>], last: StepId) -> Vec<StepId> {
    let mut back = vec![last];
    let mut at = thread.step(last).source;
    while let Some(s) = came[at.index()] {
        back.push(s);
        at = thread.step(s).source;
    }
    back.push(first);
    back.reverse();
    back
}

/// Whether no location of the thread leads back to itself.
fn is_acyclic(thread: &Thread) -> bool {
    let mut incoming = vec![0usize; thread.locations.len()];
    for s in &thread.steps {
        incoming[s.target.index()] += 1;
    }
    let free = incoming.iter().enumerate().filter(|(_, n)| **n == 0);
    let mut work: Vec<LocationId> = free.map(|(l, _)| LocationId::new(l)).collect();
    let mut gone = 0;
    while let Some(l) = work.pop() {
        gone += 1;
        for s in thread.outgoing(l) {
            let target = thread.step(*s).target;
            incoming[target.index()] -= 1;
            if incoming[target.index()] == 0 {
                work.push(target);
            }
        }
    }
    gone == thread.locations.len()
}
