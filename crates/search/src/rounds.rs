//! Searches that begin anew: with wider fields when a value did not fit, with longer buffers when a
//! store found no room.

use crate::checkpoint::{Keeper, Turn};
use crate::explore::{Finished, Observer, Order, Search};
use wattle_evidence::{Control, Limits, Progress, Stop};
use wattle_memory::compiled::bounds::{describe_loop, pending};
use wattle_memory::compiled::{Machine, Pending, Ranges, Reductions, Slot, Watched};
use wattle_memory::reference::{self, Refusal};
use wattle_memory::{Contents, Keeps, MemoryModel};
use wattle_model::{Instance, ThreadId, Type};

/// What a search is about, without what it looks for.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a, 'i> {
    /// Who searches, for those who watch.
    pub name: &'static str,
    pub instance: &'i Instance,
    pub model: MemoryModel,
    pub contents: &'a Contents,
    pub view: &'a Watched,
    pub reductions: Reductions,
    pub order: Order,
    /// Buffers that may grow without end are followed up to this many stores.
    pub most_buffered: u32,
    /// States are compressed, breadth-first at least.
    pub compress: bool,
}

impl<'i> Subject<'_, 'i> {
    pub fn machine(&self, sizes: &Sizes) -> Result<Machine<'i>, Refusal> {
        Machine::new(
            self.instance,
            self.model,
            self.view,
            self.reductions,
            self.contents,
            &sizes.ranges,
            &sizes.slots,
        )
    }

    /// The machine to begin with.
    pub(crate) fn first_machine(&self, sizes: &mut Sizes) -> Result<Machine<'i>, Refusal> {
        let machine = self.machine(sizes)?;
        if machine.words <= ROOMY {
            return Ok(machine);
        }
        sizes.learn(self)?;
        self.machine(sizes)
    }

    /// A search that has not begun.
    fn search<'m>(&self, machine: &'m Machine<'i>) -> Result<Search<'m, 'i>, Refusal> {
        let mut search = Search::new(machine, self.order)?;
        search.impatient = self.reductions.persistent && machine.leaves_out();
        search.name = self.name;
        if self.compress && self.order == Order::BreadthFirst {
            search.compress();
        }
        Ok(search)
    }
}

/// Ranges and buffer sizes; kept from one search of an instance to the next.
#[derive(Clone, Debug)]
pub struct Sizes {
    pub ranges: Ranges,
    /// Where those are learnt from runs: what was guessed before, and how often a value did not fit.
    inferred: Option<Ranges>,
    misfits: u32,
    pub slots: Vec<u32>,
    pending: Vec<Pending>,
}

/// A buffer this long is allowed for from the start if no more stores can be pending.
const SMALL: u32 = 8;
/// Where buffers that may grow without end begin, and what they grow by.
const STRIDE: u32 = 2;

/// So often values may leave what was learnt.
const MISFITS: u32 = 8;

/// States of this many words are small enough as guessed.
const ROOMY: usize = 2;

/// Whether a search that ended saw everything there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cut {
    Nothing,
    Buffers(Limits),
}

impl Sizes {
    pub fn guess(instance: &Instance, model: MemoryModel) -> Self {
        let pending: Vec<Pending> = instance.threads.iter().map(pending).collect();
        let slots = pending.iter().map(|p| match (model, p) {
            (MemoryModel::Sc, _) => 0,
            (_, Pending::AtMost(n)) if *n <= SMALL => *n,
            _ => STRIDE,
        });
        Sizes {
            ranges: Ranges::infer(instance),
            inferred: None,
            misfits: 0,
            slots: slots.collect(),
            pending,
        }
    }

    /// Replaces guessed ranges by those that random runs show, if that makes states smaller. A value
    /// outside costs packing all states anew, nothing else.
    fn learn(&mut self, plan: &Subject<'_, '_>) -> Result<(), Refusal> {
        let exact = Subject {
            reductions: Reductions::NONE,
            ..*plan
        };
        let machine = exact.machine(self)?;
        let starts = reference::starts(plan.instance)?;
        let Some(start) = starts.first() else {
            return Ok(());
        };
        let learnt = crate::walk::learn(&machine, start);
        let guessed = std::mem::replace(&mut self.ranges, learnt);
        match exact.machine(self)?.words >= machine.words {
            true => self.ranges = guessed,
            false => self.inferred = Some(guessed),
        }
        Ok(())
    }

    /// A value did not fit. After some of these what was learnt is worth nothing: a program with hundreds of
    /// variables would be packed anew for each of them.
    pub(crate) fn widen(&mut self, slot: Slot, ty: Type, value: i64) {
        self.ranges.widen(slot, ty, value);
        self.misfits += 1;
        if self.misfits == MISFITS
            && let Some(inferred) = self.inferred.take()
        {
            self.ranges.join(&inferred);
        }
    }

    /// Longer buffers for the threads that need them; `false` if one of them is as long as allowed.
    pub fn grow(&mut self, full: &[bool], most: u32) -> bool {
        for t in (0..full.len()).filter(|t| full[*t]) {
            let slots = &mut self.slots[t];
            match self.pending[t] {
                Pending::AtMost(n) => *slots = (*slots * 2).min(n),
                Pending::Loop(_) if *slots + STRIDE > most => return false,
                Pending::Loop(_) => *slots += STRIDE,
            }
        }
        true
    }

    /// Twice the slots for a buffer of a content that has a bound of its own.
    pub fn lengthen(&mut self, thread: ThreadId) {
        let slots = &mut self.slots[thread.index()];
        *slots = (*slots * 2).max(STRIDE);
    }

    /// What these turns made of the sizes.
    pub(crate) fn turn(&mut self, turns: &[Turn], machine: &Machine<'_>, most_buffered: u32) {
        for turn in turns {
            match turn {
                Turn::Narrow(slot, value) => {
                    self.widen(*slot, machine.type_of(*slot), *value);
                }
                Turn::Short(thread) => self.lengthen(*thread),
                Turn::Grow(full) => {
                    self.grow(full, most_buffered);
                }
                Turn::Idle => {}
            }
        }
    }

    /// What the search was cut off by.
    pub fn limits(&self, plan: &Subject<'_, '_>, full: &[bool]) -> Limits {
        let threads = (0..full.len()).filter(|t| full[*t]);
        let most = |t: usize| match (plan.contents.keeps, plan.contents.bounds.get(t)) {
            (Keeps::AtMost, Some(bounds)) => bounds.extremes(plan.model).0 as u32,
            _ => self.slots[t],
        };
        let shortest = threads.min_by_key(|t| (most(*t), *t)).unwrap_or(0);
        let thread = ThreadId::new(shortest);
        Limits {
            buffered_stores: most(shortest),
            cause: match self.pending[shortest] {
                Pending::Loop(at) => describe_loop(plan.instance, thread, at),
                Pending::AtMost(n) => format!(
                    "thread {} may have {n} stores pending",
                    plan.instance.thread(thread).name
                ),
            },
        }
    }
}

/// How a series of searches went. `last` gets the last search, to read traces off.
pub struct Outcome<T> {
    pub ended: Finished,
    pub cut: Cut,
    pub overflow: Option<(ThreadId, wattle_model::StepId)>,
    pub effort: Progress,
    pub value: T,
}

/// Searches until an answer stands or the budget is used up. `look` makes an observer for every
/// buffer size; `read` reads off the last search whatever the caller wants.
///
/// A value that does not fit, or a row of slots that is too short for a content with a bound of its
/// own, only makes the states be packed anew. If the budget ends while buffers of one size are searched and
/// a smaller size has been searched to the end, the smaller one's answer stands.
pub fn run<L: Observer, T>(
    plan: &Subject<'_, '_>,
    sizes: &mut Sizes,
    control: &Control<'_>,
    look: impl FnMut() -> L,
    read: impl Fn(&Search<'_, '_>, &Finished, L) -> T,
) -> Result<Outcome<T>, Refusal> {
    run_kept(plan, sizes, control, None, look, read)
}

/// States packed anew from one poll to the next.
const PACKED: u64 = 1 << 13;

/// Polls for the states that were packed anew, as if that were search: numbers that grow make it most of the work.
fn pay(search: &Search<'_, '_>, packed: &mut u64, control: &Control<'_>) -> Result<(), Stop> {
    let progress = search.progress();
    *packed += progress.states;
    while *packed >= PACKED {
        *packed -= PACKED;
        // To whoever counts, no two are about the same.
        let frontier = progress.frontier + 1 + *packed / PACKED;
        control.poll(
            search.name,
            Progress {
                frontier,
                ..progress
            },
        )?;
    }
    Ok(())
}

/// The same, written down from time to time by someone who keeps it, and begun where he has it. Those who look must have
/// nothing to remember.
pub fn run_kept<L: Observer, T>(
    plan: &Subject<'_, '_>,
    sizes: &mut Sizes,
    control: &Control<'_>,
    mut keeper: Option<Keeper<'_>>,
    mut look: impl FnMut() -> L,
    read: impl Fn(&Search<'_, '_>, &Finished, L) -> T,
) -> Result<Outcome<T>, Refusal> {
    let mut complete: Option<Outcome<T>> = None;
    let mut plan = *plan;
    let mut machine = plan.first_machine(sizes)?;
    let mut left = keeper.as_ref().and_then(Keeper::open);
    if let (Some(left), Some(keeper)) = (&left, &mut keeper) {
        sizes.turn(&left.turns, &machine, plan.most_buffered);
        plan.reductions.persistent &= !left.turns.contains(&Turn::Idle);
        keeper.turns.clone_from(&left.turns);
        machine = plan.machine(sizes)?;
    }
    let mut packed = 0;
    loop {
        let mut observer = look();
        let mut search = plan.search(&machine)?;
        if let Some(left) = left.take()
            && left.load(&mut search).is_none()
        {
            // Nothing is lost but time.
            search = plan.search(&machine)?;
        }
        let mut ended = search.run_kept(&mut observer, control, keeper.as_mut());
        loop {
            let turn = match ended {
                Finished::Narrow(slot, value) => {
                    sizes.widen(slot, machine.type_of(slot), value);
                    Turn::Narrow(slot, value)
                }
                Finished::Short(thread) => {
                    sizes.lengthen(thread);
                    Turn::Short(thread)
                }
                Finished::Exhausted
                | Finished::Halted(_)
                | Finished::NoValue(..)
                | Finished::Fault { .. }
                | Finished::Idle
                | Finished::Stopped(_) => break,
            };
            let wider = plan.machine(sizes)?;
            turned(&mut keeper, turn);
            // Births are told by what a machine offers: with another one they are learnt again.
            let compressed = search.tree.is_some();
            let carried = search.carry();
            let old = std::mem::replace(&mut machine, wider);
            search = match compressed {
                false => Search::resume(carried, &old, &machine, plan.order),
                true => plan.search(&machine)?,
            };
            ended = match pay(&search, &mut packed, control) {
                Err(stop) => Finished::Stopped(stop),
                Ok(()) => search.run_kept(&mut observer, control, keeper.as_mut()),
            };
        }
        if ended == Finished::Idle {
            turned(&mut keeper, Turn::Idle);
            plan.reductions.persistent = false;
            machine = plan.machine(sizes)?;
            continue;
        }
        let stopped = matches!(ended, Finished::Stopped(_));
        if stopped && let Some(smaller) = complete {
            return Ok(smaller);
        }
        let full = search.notes.full.contains(&true);
        let cut = match &ended {
            Finished::Exhausted if full => Cut::Buffers(sizes.limits(&plan, &search.notes.full)),
            Finished::Exhausted
            | Finished::Halted(_)
            | Finished::NoValue(..)
            | Finished::Fault { .. }
            | Finished::Narrow(..)
            | Finished::Short(_)
            | Finished::Idle
            | Finished::Stopped(_) => Cut::Nothing,
        };
        // At most k are at most k however many slots there are.
        let again = cut != Cut::Nothing
            && plan.contents.keeps != Keeps::AtMost
            && sizes.grow(&search.notes.full, plan.most_buffered);
        let full_of = search.notes.full.clone();
        let value = read(&search, &ended, observer);
        let outcome = Outcome {
            ended,
            cut,
            overflow: search.notes.overflow,
            effort: search.progress(),
            value,
        };
        if !again {
            return Ok(outcome);
        }
        turned(&mut keeper, Turn::Grow(full_of));
        complete = Some(outcome);
        machine = plan.machine(sizes)?;
    }
}

fn turned(keeper: &mut Option<Keeper<'_>>, turn: Turn) {
    if let Some(keeper) = keeper {
        keeper.turn(turn);
    }
}
