//! The search loop: breadth first, so that the attack found is a short one. Some attacks are deep (a loop has to
//! be run to its end, and again), and there are far more states before them than on the way. So now and then, when
//! the states have become eight times as many, a *dive* looks depth first, from the start, for one attack: the
//! first thread first, stores delayed before they are not. It may see as many states as were seen by then and is otherwise
//! forgotten; that there is no attack only the search breadth first can say.

use super::Options;
use super::plan::AttackPlan;
use super::state::{Shape, Store, Values, Work};
use super::steps::{Kind, Label, Next, Steps};
use super::witness::{self, Attack};
use wattle_evidence::{Control, Progress, Reason};
use wattle_memory::{Exact, MemoryModel, Start, Tso, reference};
use wattle_model::Instance;
use wattle_model::instance::Thread;

/// What the search says.
#[derive(Clone, Debug)]
pub enum Finding {
    /// There is no attack.
    Free {
        effort: Progress,
    },
    /// An attack, replayed and re-checked: a shortest one, if there are not very many states before it.
    Found {
        attack: Box<Attack>,
        effort: Progress,
    },
    Undecided {
        reason: Reason,
        effort: Progress,
    },
}

const NAME: &str = "robust";

/// Looks for an attack on the goal.
pub fn search(instance: &Instance, options: Options, control: &Control<'_>) -> Finding {
    let found = search_many(instance, options, 1, control);
    let effort = found.effort;
    match (found.attacks.into_iter().next(), found.unfinished) {
        (Some(attack), _) => {
            let attack = Box::new(attack);
            Finding::Found { attack, effort }
        }
        (None, Some(reason)) => Finding::Undecided { reason, effort },
        (None, None) => Finding::Free { effort },
    }
}

/// Attacks along different sequences of steps.
#[derive(Clone, Debug)]
pub struct Attacks {
    pub attacks: Vec<Attack>,
    /// Why the search was given up before it had seen everything (none: it had, or found enough).
    pub unfinished: Option<Reason>,
    pub effort: Progress,
}

/// Looks for up to `wanted` attacks whose sequences are different.
pub fn search_many(
    instance: &Instance,
    options: Options,
    wanted: usize,
    control: &Control<'_>,
) -> Attacks {
    let mut effort = Progress::default();
    let mut attacks: Vec<Attack> = Vec::new();
    let refused = |why: String, effort| Attacks {
        attacks: Vec::new(),
        unfinished: Some(Reason::Refused(wattle_evidence::Refusal::new(why))),
        effort,
    };
    if options.model == MemoryModel::Sc {
        return Attacks {
            attacks,
            unfinished: None,
            effort,
        };
    }
    let buffered = |t: &Thread| t.buffered_section().map(|s| s.span.line);
    if let Some(line) = instance.threads.iter().find_map(buffered) {
        let why = format!(
            "the atomic section that keeps its stores buffered (line {line}) is not treated; \
             `atomic {{ … }}` would work"
        );
        return refused(why, effort);
    }
    // The machine's constructor looks for choices that are too wide to list.
    if let Err(e) = reference::Machine::<Tso, Exact>::new(instance, ()) {
        return refused(e.to_string(), effort);
    }
    let starts = match reference::starts(instance) {
        Ok(starts) => starts,
        Err(e) => return refused(e.to_string(), effort),
    };
    let plan = AttackPlan::new(instance, options);
    let shape = Shape::new(instance);
    let mut steps = Steps {
        plan: &plan,
        shape: shape.clone(),
        values: Values::default(),
        overflow: false,
    };
    let (mut store, roots) = begin(&mut steps, &shape, &starts);
    let mut unconfirmed = 0u64;
    let mut out = Vec::new();
    let mut next = 0;
    let mut dive_at = FIRST_DIVE;
    while next < store.len() {
        if next >= dive_at && wanted == 1 && attacks.is_empty() {
            dive_at = dive_at.saturating_mul(8);
            let overflow = steps.overflow;
            let found = dive(&mut steps, &shape, &starts, options, next, control);
            // What a dive met, the search may never meet.
            steps.overflow = overflow;
            if let Ok(Some((attack, states))) = found {
                effort.states = (store.len() + states) as u64;
                attacks.push(attack);
                return Attacks {
                    attacks,
                    unfinished: None,
                    effort,
                };
            }
        }
        if next % 1024 == 0 {
            effort = Progress {
                states: store.len() as u64,
                frontier: (store.len() - next) as u64,
                memory: store.bytes(),
                ..Progress::default()
            };
            if let Err(stop) = control.poll(NAME, effort) {
                let stage = NAME.to_string();
                return Attacks {
                    attacks,
                    unfinished: Some(Reason::Stopped { stop, stage }),
                    effort,
                };
            }
        }
        let state = store.get(next);
        out.clear();
        steps.successors(&state, &mut out);
        for successor in out.drain(..) {
            match successor {
                Next::Go(work, label) => {
                    store.insert(&work, Some((next as u32, label)));
                }
                Next::Success(label) => {
                    let (labels, root) = path(&store, next, label);
                    let start = start_of(&starts, &roots, root);
                    match witness::build(instance, options, start, &labels) {
                        Some(attack) => {
                            effort.states = store.len() as u64;
                            let same = |a: &Attack| {
                                (a.attacker, &a.path) == (attack.attacker, &attack.path)
                            };
                            if !attacks.iter().any(same) {
                                attacks.push(attack);
                            }
                            if attacks.len() >= wanted {
                                return Attacks {
                                    attacks,
                                    unfinished: None,
                                    effort,
                                };
                            }
                        }
                        None => unconfirmed += 1,
                    }
                }
            }
        }
        if steps.overflow || steps.values.full || store.len() >= u32::MAX as usize - 1 {
            let place = "the attack search".to_string();
            return Attacks {
                attacks,
                unfinished: Some(Reason::MachineOverflow { place }),
                effort,
            };
        }
        next += 1;
    }
    effort.states = store.len() as u64;
    effort.frontier = 0;
    effort.memory = store.bytes();
    let unfinished = (unconfirmed > 0).then(|| {
        Reason::Other(format!(
            "{unconfirmed} attacks could not be confirmed on a run"
        ))
    });
    Attacks {
        attacks,
        unfinished,
        effort,
    }
}

/// States without a parent, with the start each stands for.
type Roots<'s> = Vec<(usize, &'s Start)>;

/// A store with the initial states.
fn begin<'s>(
    steps: &mut Steps<'_, '_>,
    shape: &Shape,
    starts: &'s [Start],
) -> (Store<Label>, Roots<'s>) {
    let mut store: Store<Label> = Store::new(shape.clone());
    let mut roots = Vec::new();
    for start in starts {
        let work = initial(steps, start);
        if store.insert(&work, None) {
            roots.push((store.len() - 1, start));
        }
    }
    (store, roots)
}

fn start_of<'s>(starts: &'s [Start], roots: &Roots<'s>, root: usize) -> &'s Start {
    let start = roots.iter().rev().find(|(r, _)| *r <= root);
    start.map_or(&starts[0], |(_, s)| *s)
}

/// So many states are seen before the first dive.
const FIRST_DIVE: usize = 1 << 12;

/// Looks for an attack depth first, among at most so many states; how many there were.
fn dive(
    steps: &mut Steps<'_, '_>,
    shape: &Shape,
    starts: &[Start],
    options: Options,
    most: usize,
    control: &Control<'_>,
) -> Result<Option<(Attack, usize)>, wattle_evidence::Stop> {
    let (mut store, roots) = begin(steps, shape, starts);
    let mut stack: Vec<usize> = (0..store.len()).rev().collect();
    let mut out = Vec::new();
    let mut new = Vec::new();
    let mut seen = 0usize;
    while let Some(state) = stack.pop() {
        seen += 1;
        if seen.is_multiple_of(1024) {
            control.go_on()?;
        }
        if store.len() > most || steps.overflow || steps.values.full {
            return Ok(None);
        }
        out.clear();
        steps.successors(&store.get(state), &mut out);
        // Stable: threads stay in order.
        out.sort_by_key(|next| match next {
            Next::Success(_) => 0,
            Next::Go(_, label) if label.kind != Kind::Plain => 1,
            Next::Go(..) => 2,
        });
        for successor in out.drain(..) {
            match successor {
                Next::Go(work, label) => {
                    if store.insert(&work, Some((state as u32, label))) {
                        new.push(store.len() - 1);
                    }
                }
                Next::Success(label) => {
                    let (labels, root) = path(&store, state, label);
                    let start = start_of(starts, &roots, root);
                    let instance = steps.plan.instance;
                    if let Some(attack) = witness::build(instance, options, start, &labels) {
                        return Ok(Some((attack, store.len())));
                    }
                }
            }
        }
        stack.extend(new.drain(..).rev());
    }
    Ok(None)
}

fn initial(steps: &mut Steps<'_, '_>, start: &Start) -> Work {
    let instance = steps.plan.instance;
    let mut work = Work::new(&steps.shape);
    for (c, v) in start.memory.iter().enumerate() {
        let word = steps.values.encode(*v);
        work.set_memory(&steps.shape, c, word);
    }
    for (t, registers) in start.registers.iter().enumerate() {
        let entry = instance.threads[t].entry.index();
        work.set_location(t, entry);
        for (r, v) in registers.iter().enumerate() {
            let dead = steps.plan.threads[t].dead[entry].contains(&(r as u32));
            let word = steps.values.encode(if dead { 0 } else { *v });
            work.set_register(&steps.shape, t, r, word);
        }
    }
    work
}

/// The labels from a root to the state, and the last one.
fn path(store: &Store<Label>, state: usize, last: Label) -> (Vec<Label>, usize) {
    let mut labels = vec![last];
    let mut at = state;
    while let Some((parent, label)) = store.parents[at] {
        labels.push(label);
        at = parent as usize;
    }
    labels.reverse();
    (labels, at)
}
