//! Pre-images: all cubes from which one transition leads into a given cube.
//!
//! Local cells are substituted as usual, with case splits. Weak memory follows the event encoding:
//! going backward, instructions are met in the reverse of an order that extends program order,
//! coherence and reads-from (their union has no cycle under TSO: every program-order edge out of a
//! write that TSO does not keep leads to a read, and reads have no other way out). Hence a write met
//! now is coherence-older than all known ones, and an open read it does not serve comes before it.
//!
//! Under PSO stores of one thread to different cells may pass each other, so that no such order of
//! instructions need exist. There everything is met in the order of time: a drain that serves somebody
//! before the step that made the store ([`crate::drain`]); the step then finds it among the pending
//! ones, or is one whose drain serves nobody. Such a drain comes before the thread's next fence, and an
//! open read of the cell before it, unless the reader has a store of its own in its buffer. That store
//! is met before any older fence or atomic step of the reader.

mod order;

use crate::build::{Becomes, Builder};
use crate::compile::{Compiled, CompiledTransition, CompiledUpdate, Dnf, Universal};
use crate::cube::{Cube, THREADS};
use crate::memory::{EVENTS, Events, Part};
use crate::slot::Slot;
use crate::work;
use wattle_memory::MemoryModel;
use wattle_model::array::{ThreadTerm, UpdateIndex};

/// A predecessor and how it leads back.
#[derive(Clone, Debug)]
pub struct Predecessor {
    pub cube: Cube,
    pub transition: usize,
    /// Threads of the parameters. Threads 0.. are those of the successor cube; further ones are new.
    pub args: Vec<u8>,
    /// For each new thread the constant it is, or 0.
    pub joined: Vec<u16>,
    /// For each thread of `cube` its number before renaming.
    pub kept: Vec<u8>,
}

/// Collects predecessors; `gave_up` is set if a bound of the representation was hit.
#[derive(Clone, Debug, Default)]
pub struct Predecessors {
    pub list: Vec<Predecessor>,
    pub gave_up: bool,
    /// Ways tried for the cube at hand.
    pub work: usize,
}

/// More ways than this for one cube and the search gives up.
const WORK: usize = 20_000;

impl Predecessors {
    /// For the next cube.
    pub fn clear(&mut self) {
        self.list.clear();
        self.work = 0;
    }

    /// Counts one more way; whether it may still be tried.
    fn goes_on(&mut self) -> bool {
        self.work += 1;
        self.gave_up |= self.work > WORK;
        !self.gave_up
    }
}

/// A part of an open event that the transition writes, and what it becomes then.
type Hit = (usize, usize, Becomes);

struct Job<'c, 'a> {
    compiled: &'c Compiled<'a>,
    cube: &'c Cube,
    transition: usize,
    t: &'c CompiledTransition,
    args: Vec<u8>,
    actor: Option<u8>,
    /// PSO: cells whose stores are not those whose drains were met.
    unmatched: Vec<Slot>,
}

/// A slot or open part that an update may change.
struct Target<'c> {
    slot: Slot,
    part: Option<(usize, usize)>,
    update: &'c CompiledUpdate,
    env: Vec<u8>,
}

pub fn predecessors(
    compiled: &Compiled<'_>,
    cube: &Cube,
    transition: usize,
    out: &mut Predecessors,
) {
    let t = &compiled.transitions[transition];
    let written = |cell: u16| t.updates.iter().any(|u| u.cell == cell);
    let pending = cube.memory.pending.iter().any(|p| written(p.cell.array()));
    let mut touched = pending
        || cube
            .memory
            .events
            .iter()
            .flat_map(|e| &e.parts)
            .any(|p| written(p.cell.array()));
    cube.for_each_slot(&mut |s| touched |= s.is_cell() && written(s.array()));
    if !touched {
        return;
    }
    let mut base = cube.clone();
    base.doms.clear();
    base.rels.clear();
    base.ints.clear();
    base.reals.clear();
    assign(compiled, cube, transition, base, Vec::new(), out);
}

/// Tries every choice of different threads for the parameters: the cube's and new ones.
fn assign(
    compiled: &Compiled<'_>,
    cube: &Cube,
    transition: usize,
    base: Cube,
    args: Vec<u8>,
    out: &mut Predecessors,
) {
    let t = &compiled.transitions[transition];
    if args.len() == t.params {
        let actor = t.actor.map(|a| args[usize::from(a)]);
        let mut owed: Vec<Slot> = Vec::new();
        let mut decided: Vec<Slot> = Vec::new();
        for x in &cube.memory.pending {
            let written = t.updates.iter().any(|u| u.cell == x.cell.array());
            if Some(x.thread) == actor && written && !decided.contains(&x.cell) {
                decided.push(x.cell);
                if !x.newest {
                    owed.push(x.cell);
                }
            }
        }
        if owed.len() > 8 {
            out.gave_up = true;
            return;
        }
        let mut job = Job {
            compiled,
            cube,
            transition,
            t,
            args,
            actor,
            unmatched: Vec::new(),
        };
        for choice in 0u32..1 << owed.len() {
            let picked = owed
                .iter()
                .enumerate()
                .filter(|(i, _)| choice >> i & 1 == 1);
            job.unmatched = picked.map(|(_, c)| *c).collect();
            job.run(base.clone(), out);
        }
        return;
    }
    for thread in 0..base.threads() as u8 {
        if !args.contains(&thread) {
            let mut args = args.clone();
            args.push(thread);
            assign(compiled, cube, transition, base.clone(), args, out);
        }
    }
    for fixed in 0..=compiled.constants {
        if !may_join(compiled, &base, fixed) {
            continue;
        }
        if base.threads() >= THREADS {
            out.gave_up = true;
            return;
        }
        let mut base = base.clone();
        let mut args = args.clone();
        args.push(base.add_thread(fixed));
        assign(compiled, cube, transition, base, args, out);
    }
}

/// Whether one more thread (a constant, or 0 for any other) fits the system.
pub fn may_join(compiled: &Compiled<'_>, cube: &Cube, fixed: u16) -> bool {
    if fixed != 0 {
        return !cube.fixed.contains(&fixed);
    }
    let free = cube.fixed.iter().filter(|f| **f == 0).count();
    compiled
        .system
        .threads
        .is_none_or(|n| free + usize::from(compiled.constants) < n as usize)
}

impl<'c, 'a> Job<'c, 'a> {
    fn run(&self, base: Cube, out: &mut Predecessors) {
        work::done(work::STEP_BACK);
        let targets = self.targets(&base);
        if targets.is_empty() {
            return;
        }
        if base.memory.events.len() + 2 >= EVENTS {
            out.gave_up = true;
            return;
        }
        let Ok(builder) = Builder::new(self.compiled, base, self.actor) else {
            return;
        };
        for guard in &self.t.guard {
            let mut b = builder.clone();
            if b.conj(guard, &self.args).is_err() {
                continue;
            }
            let others: Vec<u8> = (0..b.cube.threads() as u8)
                .filter(|t| !self.args.contains(t))
                .collect();
            let each = |u: &'c Universal| {
                let mut all = vec![Vec::new()];
                for _ in 0..u.threads {
                    let longer = |some: Vec<u8>| {
                        let others = others.iter();
                        others.map(move |t| [&some[..], &[*t]].concat())
                    };
                    all = all.into_iter().flat_map(longer).collect();
                }
                all.into_iter().map(move |threads| (threads, &u.body))
            };
            let goals: Vec<(Vec<u8>, &'c Dnf)> = self.t.universals.iter().flat_map(each).collect();
            self.universals(b, &goals, &targets, out);
        }
    }

    /// What the transition may change of the cube. New threads of `base` have no constraints.
    fn targets(&self, base: &Cube) -> Vec<Target<'c>> {
        let mut slots: Vec<(Slot, Option<(usize, usize)>)> = Vec::new();
        self.cube.for_each_slot(&mut |s| {
            if s.is_cell() && !slots.contains(&(s, None)) {
                slots.push((s, None));
            }
        });
        for (e, open) in self.cube.memory.events.iter().enumerate() {
            for (p, part) in open.parts.iter().enumerate() {
                slots.push((part.cell, Some((e, p))));
            }
        }
        for (k, p) in self.cube.memory.pending.iter().enumerate() {
            if self.met(p.cell) == Some(k) {
                slots.push((p.cell, None));
            }
        }
        let mut targets = Vec::new();
        for (slot, part) in slots {
            let update = self.t.updates.iter().rev().find_map(|u| {
                (u.cell == slot.array()).then_some(())?;
                let mut env = self.args.clone();
                for (i, arg) in u.index.iter().zip(slot.args()) {
                    match i {
                        UpdateIndex::Each(_) => env.push(arg),
                        UpdateIndex::At(ThreadTerm::Param(p)) => {
                            if self.args[usize::from(*p)] != arg {
                                return None;
                            }
                        }
                        UpdateIndex::At(ThreadTerm::Constant(k)) => {
                            if base.fixed[usize::from(arg)] != *k {
                                return None;
                            }
                        }
                    }
                }
                Some((u, env))
            });
            if let Some((update, env)) = update {
                targets.push(Target {
                    slot,
                    part,
                    update,
                    env,
                });
            }
        }
        targets
    }

    /// Instantiates `forall_other` for the cube's other threads; more there may be in a state, which
    /// makes the pre-image larger than exact.
    fn universals(
        &self,
        b: Builder<'c, 'a>,
        goals: &[(Vec<u8>, &'c Dnf)],
        targets: &[Target<'c>],
        out: &mut Predecessors,
    ) {
        if !out.goes_on() {
            return;
        }
        let Some(((threads, universal), rest)) = goals.split_first() else {
            return self.branch(b, targets, Vec::new(), Vec::new(), out);
        };
        let mut env = self.args.clone();
        env.extend(threads);
        for conj in *universal {
            let mut b = b.clone();
            if b.conj(conj, &env).is_ok() {
                self.universals(b, rest, targets, out);
            }
        }
    }

    /// Chooses for each target whether and how it is written.
    fn branch(
        &self,
        b: Builder<'c, 'a>,
        targets: &[Target<'c>],
        locals: Vec<(Slot, Becomes)>,
        hits: Vec<Hit>,
        out: &mut Predecessors,
    ) {
        if !out.goes_on() {
            return;
        }
        let Some((target, rest)) = targets.split_first() else {
            if !locals.is_empty() || !hits.is_empty() {
                self.serve(b, &locals, &hits, out);
            }
            return;
        };
        for (conj, new) in &target.update.writes {
            let mut b = b.clone();
            if b.conj(conj, &target.env).is_err() {
                continue;
            }
            let becomes = b.becomes(new, &target.env);
            if self.clashes(&b, target.slot, target.part, &becomes) {
                continue;
            }
            let (mut locals, mut hits) = (locals.clone(), hits.clone());
            match target.part {
                None => locals.push((target.slot, becomes)),
                Some((e, p)) => hits.push((e, p, becomes)),
            }
            self.branch(b, rest, locals, hits, out);
        }
        for conj in &target.update.keeps {
            let mut b = b.clone();
            if b.conj(conj, &target.env).is_ok() {
                self.branch(b, rest, locals.clone(), hits.clone(), out);
            }
        }
    }

    /// A constant that contradicts the cube's set at once, the commonest case. A part that another
    /// thread reads may also stay unserved.
    fn clashes(
        &self,
        b: &Builder<'_, '_>,
        slot: Slot,
        part: Option<(usize, usize)>,
        becomes: &Becomes,
    ) -> bool {
        if let Becomes::Value(v) = becomes
            && part.is_none()
            && let Some(m) = self.cube.dom(slot)
        {
            let old_threads = self.cube.threads();
            let mut m = m;
            if m & crate::cube::OTHER != 0 {
                (old_threads..b.cube.threads()).for_each(|t| m |= 1 << t);
            }
            return m & v == 0;
        }
        false
    }

    /// PSO: the drain of a written cell that was met before, newest first.
    fn met(&self, cell: Slot) -> Option<usize> {
        let p = self.actor?;
        let pso = self.compiled.model == MemoryModel::Pso;
        if !pso || self.t.atomic || self.unmatched.contains(&cell) {
            return None;
        }
        let list = &self.cube.memory.pending;
        list.iter().position(|x| x.thread == p && x.cell == cell)
    }

    /// Chooses which open reads a write serves: the thread's own always, those of one other event
    /// all or none.
    fn serve(
        &self,
        b: Builder<'c, 'a>,
        locals: &[(Slot, Becomes)],
        hits: &[Hit],
        out: &mut Predecessors,
    ) {
        if !out.goes_on() {
            return;
        }
        let part = |h: &Hit| self.cube.memory.events[h.0].parts[h.1];
        let own = |h: &Hit| Some(part(h).reader) == self.actor;
        let pso = self.compiled.model == MemoryModel::Pso;
        let drains_later = pso && !self.t.atomic;
        // Whom a store with a known drain serves was decided there.
        let open = |h: &&Hit| !own(h) && !part(h).own && self.met(part(h).cell).is_none();
        let mut choosing: Vec<usize> = hits.iter().filter(open).map(|h| h.0).collect();
        choosing.sort_unstable();
        choosing.dedup();
        for choice in 0u32..1 << choosing.len().min(20) {
            let (mut served, mut unserved): (Events, Events) = (0, 0);
            for (i, e) in choosing.iter().enumerate() {
                match choice >> i & 1 {
                    1 => served |= 1 << e,
                    _ => unserved |= 1 << e,
                }
            }
            let mut hidden: Events = 0;
            if drains_later {
                // A drain that serves somebody is met on its own.
                hidden = std::mem::take(&mut served);
                let bound = self.actor.map_or(0, |p| {
                    let first = &self.cube.memory.write_first;
                    first.get(usize::from(p)).copied().unwrap_or(0)
                });
                if bound == 0 && hidden != 0 {
                    continue;
                }
            } else if pso {
                hidden = std::mem::take(&mut unserved);
            }
            let cells = |c: Slot| hits.iter().any(|h| part(h).cell == c) && self.met(c).is_none();
            let mut b = b.clone();
            let which = |p: &Part| Some(p.reader) != self.actor && !p.own && cells(p.cell);
            if !b.cube.memory.hide(hidden, &which) || hidden != 0 && !self.buffered(hits, hidden) {
                continue;
            }
            let taken: Vec<&Hit> = hits
                .iter()
                .filter(|h| own(h) || open(h) && served & 1 << h.0 != 0)
                .collect();
            if locals.is_empty() && taken.is_empty() {
                continue;
            }
            let result = self.complete(b, locals, hits, &taken, served, unserved);
            out.list.extend(result);
        }
    }

    /// Whether every hit of these events may come from its reader's buffer.
    fn buffered(&self, hits: &[Hit], events: Events) -> bool {
        let part = |h: &Hit| self.cube.memory.events[h.0].parts[h.1];
        let chosen = hits.iter().filter(|h| events & 1 << h.0 != 0);
        let mut foreign = chosen.map(part).filter(|p| Some(p.reader) != self.actor);
        foreign.all(|p| self.compiled.buffers(p.cell.array()))
    }

    fn complete(
        &self,
        mut b: Builder<'c, 'a>,
        locals: &[(Slot, Becomes)],
        hits: &[Hit],
        taken: &[&Hit],
        served: Events,
        unserved: Events,
    ) -> Option<Predecessor> {
        let becomes = |s: Slot| match s.as_read() {
            Some((e, p)) => taken
                .iter()
                .find(|h| h.0 == e && h.1 == p)
                .map(|h| h.2.clone()),
            None => {
                let key = match s.as_pending() {
                    Some(k) => {
                        let cell = self.cube.memory.pending[k].cell;
                        (self.met(cell) == Some(k)).then_some(cell)?
                    }
                    None => s,
                };
                locals
                    .iter()
                    .find(|(t, _)| *t == key)
                    .map(|(_, n)| n.clone())
            }
        };
        b.substitute(self.cube, &becomes).ok()?;
        if self.actor.is_some() {
            self.order(&mut b, hits, served, unserved).ok()?;
        }
        self.drop_met(&mut b, locals);
        let joined = b.cube.fixed[self.cube.threads()..].to_vec();
        let (cube, kept) = b.finish().ok()?;
        Some(Predecessor {
            cube,
            transition: self.transition,
            args: self.args.clone(),
            joined,
            kept,
        })
    }

    /// Pending drains whose step is this transition are pending no more.
    fn drop_met(&self, b: &mut Builder<'c, 'a>, locals: &[(Slot, Becomes)]) {
        if self.cube.memory.pending.is_empty() {
            return;
        }
        let list = &self.cube.memory.pending;
        let met = |k: usize| {
            self.met(list[k].cell) == Some(k) && locals.iter().any(|(s, _)| *s == list[k].cell)
        };
        let kept: Vec<usize> = (0..list.len()).filter(|k| !met(*k)).collect();
        b.cube.memory.pending = kept.iter().map(|k| b.cube.memory.pending[*k]).collect();
        let place = |k: usize| kept.iter().position(|x| *x == k).unwrap_or(0);
        b.cube
            .map_slots(&|s| s.as_pending().map_or(s, |k| Slot::pending(place(k))));
    }
}
