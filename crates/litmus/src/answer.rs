//! Asking for a test's final states.

use crate::either::{by_traces, by_vectors, final_states};
use crate::summary::Summary;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use wattle_evidence::{Control, Limits, Progress, Reason};
use wattle_memory::MemoryModel;
use wattle_model::instance::Fact;
use wattle_model::{CellId, Expr, Instance, Observation, ThreadId};
use wattle_search::rounds::Cut;
use wattle_search::{FinalStates, NoFinals, Observed, Reduce, final_states_with};
use wattle_syntax::litmus::{LitmusTest, ParsedLitmus};

/// What a test's final states are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub summary: Summary,
    /// What the search was cut off by, if it was; states may then be missing.
    pub limits: Option<Limits>,
    pub effort: Progress,
}

impl Answer {
    /// Whether these are all final states.
    pub fn complete(&self) -> bool {
        self.limits.is_none()
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoAnswer {
    /// The test has errors; its diagnostics say which.
    NotRead,
    NoInstance(wattle_model::InstanceError),
    /// A reachable step is a fault, for instance an access outside of memory.
    Fault(wattle_memory::Fault),
    Undecided(Reason),
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoAnswer::NotRead => f.write_str("the test has errors"),
            NoAnswer::NoInstance(e) => write!(f, "{e}"),
            NoAnswer::Fault(fault) => write!(f, "a step cannot be done: {}", fault.kind),
            #[expect(
                clippy::wildcard_enum_match_arm,
                reason = "the enum is not exhaustive: new reasons have words of their own or these"
            )]
            NoAnswer::Undecided(reason) => match reason {
                Reason::Stopped { stop, stage } => write!(f, "{stop} in {stage}"),
                Reason::MachineOverflow { place } => {
                    write!(f, "an integer outgrew the machine's 64 bits ({place})")
                }
                Reason::Other(why) => f.write_str(why),
                other => write!(f, "{other:?}"),
            },
        }
    }
}

impl std::error::Error for NoAnswer {}

/// The test's final states under a memory model, summarised.
pub fn answer(
    parsed: &ParsedLitmus,
    model: MemoryModel,
    control: &Control<'_>,
) -> Result<Answer, NoAnswer> {
    answer_with(parsed, model, Reduce::default(), control)
}

/// The same by a search that leaves out these states.
pub fn answer_with(
    parsed: &ParsedLitmus,
    model: MemoryModel,
    reduce: Reduce,
    control: &Control<'_>,
) -> Result<Answer, NoAnswer> {
    summarise(parsed, |instance, observed| {
        match reduce == Reduce::default() {
            true => final_states(instance, model, observed, control),
            false => final_states_with(instance, model, observed, reduce.reductions(), control),
        }
    })
}

/// The same trace by trace, and by nobody else.
pub fn answer_by_traces(
    parsed: &ParsedLitmus,
    model: MemoryModel,
    control: &Control<'_>,
) -> Result<Answer, NoAnswer> {
    summarise(parsed, |instance, observed| {
        by_traces(instance, model, observed, control)
    })
}

/// The same by cartesian vectors.
pub fn answer_by_vectors(
    parsed: &ParsedLitmus,
    model: MemoryModel,
    control: &Control<'_>,
) -> Result<Answer, NoAnswer> {
    summarise(parsed, |instance, observed| {
        by_vectors(instance, model, observed, control)
    })
}

fn summarise(
    parsed: &ParsedLitmus,
    find: impl FnOnce(&Instance, &[Observed]) -> Result<FinalStates, NoFinals>,
) -> Result<Answer, NoAnswer> {
    let (Some(program), Some(test)) = (&parsed.program, &parsed.test) else {
        return Err(NoAnswer::NotRead);
    };
    let instance = program.instance().map_err(NoAnswer::NoInstance)?;
    let facts = observed_facts(&instance, test);
    let mut observed: BTreeMap<Observed, usize> = BTreeMap::new();
    for e in &facts {
        e.for_each_atom(&mut |fact| {
            let next = observed.len();
            if let Some(o) = seen(fact) {
                observed.entry(o).or_insert(next);
            }
        });
    }
    let mut order: Vec<(usize, Observed)> = observed.iter().map(|(o, i)| (*i, *o)).collect();
    order.sort_unstable();
    let order: Vec<Observed> = order.into_iter().map(|(_, o)| o).collect();
    let found = find(&instance, &order).map_err(|e| match e {
        NoFinals::Fault(f) => NoAnswer::Fault(f),
        NoFinals::Undecided(reason) => NoAnswer::Undecided(reason),
    })?;
    let states: BTreeSet<Vec<i64>> = found
        .states
        .iter()
        .map(|state| {
            let value = |fact: &Fact| {
                let position = seen(fact).and_then(|o| observed.get(&o));
                position.map_or(0, |i| state[*i])
            };
            let items = facts.iter().map(|e| e.eval(&value).unwrap_or(0));
            items.collect()
        })
        .collect();
    Ok(Answer {
        summary: Summary::new(&parsed.name, test, &states),
        limits: match found.cut {
            Cut::Nothing => None,
            Cut::Buffers(limits) => Some(limits),
        },
        effort: found.effort,
    })
}

fn seen(fact: &Fact) -> Option<Observed> {
    match fact {
        Fact::Cell(c) => Some(Observed::Cell(*c)),
        Fact::Register(t, r) => Some(Observed::Register(*t, *r)),
        Fact::CellAt { .. } | Fact::Seen(..) | Fact::At(..) => None,
    }
}

/// The test's items in terms of the instance. Litmus tests have single threads and constant indices
/// only; anything else would be 0.
pub fn observed_facts(instance: &Instance, test: &LitmusTest) -> Vec<Expr<Fact>> {
    let items = test.items.iter().map(|item| {
        let fact = item.value.substitute(&mut |o| {
            Ok::<_, ()>(match o {
                Observation::Register(t, r) => Expr::Atom(Fact::Register(ThreadId(t.family.0), *r)),
                Observation::Cell(r, i) => {
                    let element = i.as_const().ok_or(())?;
                    let mut cells = instance.cells.iter();
                    let at = cells.position(|c| c.region == *r && i64::from(c.element) == element);
                    Expr::Atom(Fact::Cell(CellId::new(at.ok_or(())?)))
                }
                Observation::Memory(_)
                | Observation::Seen(..)
                | Observation::AddressOf(_)
                | Observation::At(..)
                | Observation::Index(_)
                | Observation::Count(_) => return Err(()),
            })
        });
        fact.unwrap_or(Expr::Const(0))
    });
    items.collect()
}
