//! Any number of threads, forward: initiation, consecution and safety of a set of views of two threads.
//!
//! If every two threads of every initial state look like a view, and whenever every two threads of a
//! state do, so do every two after any step, then all two threads of all states do. A step is checked
//! for two threads x and y: where one of them acts (or nobody of whom anything is known) with the two
//! alone; where another thread z does, with all three, each two of which look like a view. Threads
//! beyond these are named at most, and what is read of them is anything. A universal guard is taken to
//! hold for them. So more is allowed than really happens, never less.
//!
//! A certificate may keep cells with few values: then a view has their elements for all threads that it
//! names, not only for the two. A store to such an element is a change of the view, whoever makes it.
//! It may have witnesses, too ([`witness`]).
//!
//! One thread alone is no state of two; its few states are gone through here.
//!
//! What is trusted is the meaning of array-based systems. Nothing is shared with the engine.

mod act;
mod assume;
mod join;
mod looks;
mod numbers;
mod read;
#[cfg(test)]
mod tests;
mod witness;
mod world;

use super::tuples::tuples;
use super::{AuditError, Audited, Solvers, model_of};
use act::{Cast, Move};
use assume::{Logic, Scope, Spot};
use join::{Tokens, join, tokens};
pub use looks::Looks;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::Cell;
use std::rc::Rc;
use wattle_evidence::certificate::Views;
use wattle_evidence::control::{Control, Progress};
use wattle_logic::Formula;
use wattle_memory::MemoryModel;
use wattle_model::array::{ArraySystem, Comparison, Quantified, Term, ThreadTerm, UpdateIndex};
use world::{ANY, Frame, NONE, Pos, Sort, World};

/// What one query may take.
const WORK: u64 = 100_000;

/// Worlds from one poll to the next.
const POLL: u64 = 32;

/// Most states of one thread that are gone through.
const ALONE: usize = 100_000;

/// Whether the certificate proves that no bad state of the system can be reached.
pub fn audit_views(
    solvers: &Solvers,
    system: &ArraySystem,
    model: MemoryModel,
    certificate: &Views,
    control: &Control<'_>,
) -> Result<Audited, AuditError> {
    let model = model_of(system, model, certificate.model, &certificate.cells)?;
    let frame = Frame::new(system, model, certificate)?;
    treated(&frame)?;
    let moves: Vec<Move<'_>> = system
        .transitions
        .iter()
        .map(|t| Move::new(system, t))
        .collect();
    let impossible =
        |query: &[Formula]| matches!(solvers.impossible(query, WORK, control), Ok(true));
    let one = Logic::new(&frame, false, &impossible);
    let checked = alone(&one, &moves, control)?;
    let logic = Logic::new(&frame, true, &impossible);
    let mut audit = Audit {
        logic: &logic,
        moves: &moves,
        precise: certificate.precise,
        control,
        views: Vec::new(),
        tokens: Vec::new(),
        known: FxHashSet::default(),
        ones: FxHashMap::default(),
        active: Vec::new(),
        able: Vec::new(),
        sides: Vec::new(),
        looks: Vec::new(),
        with: Vec::new(),
        both: FxHashMap::default(),
        checked,
        work: Cell::default(),
    };
    for bytes in certificate.each()? {
        audit.take(&frame.read(bytes)?);
    }
    for w in initial(&logic, 2) {
        // Nobody is a witness at first.
        if !frame.agrees(&w) || !audit.covers(w) {
            return Err(AuditError::MissesInitial);
        }
    }
    for i in 0..audit.views.len() {
        audit.view(i)?;
        if logic.cramped.get() {
            return Err(AuditError::Refused("positions are too many".into()));
        }
    }
    Ok(Audited {
        checked: audit.checked,
    })
}

/// Systems that views say nothing about.
fn treated(frame: &Frame<'_>) -> Result<(), AuditError> {
    let refused = |what: &str| Err(AuditError::Refused(what.into()));
    if frame.system.greatest_constant() > 0 {
        return refused("views do not treat thread constants");
    }
    for t in &frame.system.transitions {
        let every = |u: &wattle_model::array::Update| {
            frame.delayed(u.cell) && u.index.iter().any(|i| matches!(i, UpdateIndex::Each(_)))
        };
        if !frame.system.is_atomic(t) && t.updates.iter().any(every) {
            return refused("views do not treat a store to all elements at once");
        }
        let weak = frame.system.reads_weak(t) || frame.system.writes_weak(t);
        if frame.model != MemoryModel::Sc && t.actor.is_none() && (weak || t.fence.is_some()) {
            return refused("somebody must act on weak memory");
        }
    }
    Ok(())
}

/// Whether threads are compared by order somewhere.
fn orders_threads(system: &ArraySystem) -> bool {
    let mut found = false;
    system.for_each_literal(&mut |l| {
        let threads = matches!((&l.left, &l.right), (Term::Thread(_), Term::Thread(_)));
        found |= threads && matches!(l.op, Comparison::Lt | Comparison::Le);
    });
    found
}

/// What the threads may look like at first.
fn initial(logic: &Logic<'_>, threads: usize) -> Vec<World> {
    let frame = logic.frame;
    let system = &frame.system;
    let mut blank = frame.blank(threads);
    frame.set_witnesses(&mut blank, [NONE; 2]);
    let mut worlds = vec![blank];
    for (c, cell) in system.cells.iter().enumerate() {
        let few = matches!(frame.sorts[c], Sort::Finite(_)) && cell.constant && cell.arity < 2;
        for i in (0..frame.elements(c, threads)).filter(|_| few) {
            let each = |w| logic.each_value(w, &Spot::Memory(c, i), c as u16, &[]);
            worlds = worlds.iter().flat_map(each).collect();
        }
    }
    let begins = |w: World, all: &[Pos], generous: bool| {
        let mut now = vec![w];
        for args in tuples(all, system.init.params.len(), false) {
            let step = |w| logic.assume(w, &system.init.body, true, Scope::of(&args, generous));
            now = now.into_iter().flat_map(step).collect();
        }
        now
    };
    let alone = |w: World| {
        let me = w.me.clone();
        begins(w, &me, false)
    };
    worlds = worlds.into_iter().flat_map(alone).collect();
    // Conditions on constants alone that are claimed never to hold are axioms.
    let all = system.assumed.iter();
    let axioms: Vec<_> = all.filter(|q| system.only_constants(&q.body)).collect();
    worlds.retain(|w| !axioms.iter().any(|q| surely(logic, w, q)));
    if !frame.kept.is_empty() {
        let settled = |w| logic.settled(w);
        worlds = worlds.into_iter().flat_map(settled).collect();
    }
    // What is known of threads that are only named must be as it is at first, too.
    let others = |w: World| {
        let all = frame.positions(&w, true);
        begins(w, &all, true)
    };
    worlds.into_iter().flat_map(others).collect()
}

/// Whether some of the threads satisfy the condition whatever is not known.
fn surely(logic: &Logic<'_>, w: &World, q: &Quantified) -> bool {
    let mut plain = !q.body.speaks_of_others();
    q.body.for_each_literal(&mut |l| {
        let number = |t: &Term| matches!(t, Term::Sum { .. });
        plain &= !number(&l.left) && !number(&l.right) && !l.orders_held();
    });
    plain
        && tuples(&w.me, q.params.len(), true).iter().any(|args| {
            let scope = Scope::of(args, false);
            let mut unknown = false;
            q.body
                .for_each_access(&mut |a| unknown |= logic.seen(w, a, scope).1 == ANY);
            !unknown && !logic.assume(w.clone(), &q.body, true, scope).is_empty()
        })
}

/// Whether some different threads may satisfy the condition, as many as can be of them whole.
///
/// Of k ≥ 2 threads of a state that satisfy it, any two are the whole ones of some view; the rest are
/// threads that a cell of the view names, or others, anywhere in the order. Of these nothing is known.
fn may_be(logic: &Logic<'_>, w: &World, q: &Quantified) -> bool {
    let (params, whole) = (q.params.len(), w.me.len());
    if params > whole && !logic.others {
        return false;
    }
    satisfied(logic, w, q, params.min(whole), &mut Vec::new())
}

fn satisfied(
    logic: &Logic<'_>,
    w: &World,
    q: &Quantified,
    whole: usize,
    args: &mut Vec<Pos>,
) -> bool {
    let params = q.params.len();
    let seen = args.iter().filter(|a| w.me.contains(a)).count();
    if args.len() == params {
        let scope = Scope::of(args, params > whole);
        return !logic.assume(w.clone(), &q.body, true, scope).is_empty();
    }
    let mut all = w.me.clone();
    // There must be places left for the whole ones.
    if params - args.len() > whole - seen {
        all = logic.threads(w, args, true);
    }
    all.retain(|p| !args.contains(p));
    all.into_iter().any(|p| {
        args.push(p);
        let found = satisfied(logic, w, q, whole, args);
        args.pop();
        found
    })
}

/// A thread that is alone.
fn alone(logic: &Logic<'_>, moves: &[Move<'_>], control: &Control<'_>) -> Result<u64, AuditError> {
    let frame = logic.frame;
    let mut known: FxHashSet<World> = FxHashSet::default();
    let mut open = initial(logic, 1);
    if !open.iter().all(|w| frame.agrees(w)) {
        return Err(AuditError::MissesInitial);
    }
    let cast = Cast {
        star: None,
        actor: None,
        whole: true,
    };
    while let Some(w) = open.pop() {
        if !known.insert(frame.canonical(&w)) {
            continue;
        }
        control.poll("audit", Progress::of(known.len() as u64))?;
        let long = w.pending[0].len() > 40;
        if known.len() > ALONE || logic.cramped.get() || long {
            return Err(AuditError::Refused(
                "one thread alone has too many states".into(),
            ));
        }
        if frame.system.bad.iter().any(|q| may_be(logic, &w, q)) {
            return Err(AuditError::Other(
                "a thread that is alone may do wrong".into(),
            ));
        }
        for m in moves {
            open.extend(logic.moves(&w, m, cast));
        }
        open.extend(logic.drain(&w, 0));
    }
    Ok(known.len() as u64)
}

struct Audit<'a> {
    logic: &'a Logic<'a>,
    moves: &'a [Move<'a>],
    precise: bool,
    control: &'a Control<'a>,
    views: Vec<Rc<World>>,
    tokens: Vec<Tokens>,
    known: FxHashSet<Rc<World>>,
    /// What single threads look like.
    ones: FxHashMap<World, usize>,
    /// Whether such a thread may do something that two others see, and which transitions do.
    active: Vec<bool>,
    able: Vec<Vec<usize>>,
    sides: Vec<[usize; 2]>,
    /// For each view whether one of its threads may look at the other; only if `precise`.
    looks: Vec<[bool; 2]>,
    /// For each look of a thread the views with it, and at which place.
    with: Vec<Vec<(usize, usize)>>,
    both: FxHashMap<(usize, usize), Vec<(usize, usize)>>,
    checked: u64,
    /// Worlds looked at since the last poll.
    work: Cell<u64>,
}

impl Audit<'_> {
    /// One more view. What was read does not matter, only what is taken.
    fn take(&mut self, read: &World) {
        let frame = self.logic.frame;
        let w = Rc::new(frame.canonical(read));
        if !self.known.insert(w.clone()) {
            return;
        }
        let number = self.views.len();
        let mut sides = [0; 2];
        for (t, side) in sides.iter_mut().enumerate() {
            let one = frame.canonical(&frame.part(&w, &[t]));
            *side = match self.ones.get(&one) {
                Some(i) => *i,
                None => {
                    let able = self.seen_moves(&one);
                    self.active.push(self.seen_stores(&one) || !able.is_empty());
                    self.able.push(able);
                    self.with.push(Vec::new());
                    self.ones.insert(one, self.with.len() - 1);
                    self.with.len() - 1
                }
            };
        }
        for t in 0..2 {
            self.with[sides[t]].push((number, t));
            let list = self.both.entry((sides[t], sides[1 - t])).or_default();
            list.push((number, t));
        }
        self.sides.push(sides);
        self.looks.push([0, 1].map(|t| self.may_look(&w, t)));
        self.tokens.push(tokens(frame, &w));
        self.views.push(w);
    }

    fn go_on(&self) -> Result<(), AuditError> {
        if self.work.replace(self.work.get() + 1) < POLL {
            return Ok(());
        }
        self.work.set(0);
        Ok(self.control.poll("audit", Progress::of(self.checked))?)
    }

    /// Whether all that the world stands for are views.
    fn covers(&self, w: World) -> bool {
        self.work.set(self.work.get() + 1);
        let mut all = self.logic.settled(w).into_iter();
        all.all(|w| self.known.contains(&self.logic.frame.canonical(&w)))
    }

    /// Whether the only whole thread has stores that others will see.
    fn seen_stores(&self, w: &World) -> bool {
        let elsewhere = |of: &[Pos]| of.is_empty() || of.iter().any(|p| *p != w.me[0]);
        let watched = |cell: u16| self.logic.frame.watched(cell);
        let mut pending = w.pending[0].iter().flat_map(|p| &p.stores);
        pending.any(|s| elsewhere(&s.of) || watched(s.cell))
    }

    /// By which transitions the only whole thread may change what others see. What it cannot do where
    /// nothing is known of others it cannot do among them.
    fn seen_moves(&self, w: &World) -> Vec<usize> {
        let cast = Cast {
            star: Some(0),
            actor: Some(0),
            whole: false,
        };
        let able = |m: &Move<'_>| self.visible(m) && !self.logic.moves(w, m, cast).is_empty();
        let all = self.moves.iter().enumerate();
        all.filter(|(_, m)| able(m)).map(|(i, _)| i).collect()
    }

    /// Whether the transition changes at once what is not the acting thread's.
    fn visible(&self, m: &Move<'_>) -> bool {
        let Some(actor) = m.transition.actor else {
            return true;
        };
        let own = UpdateIndex::At(ThreadTerm::Param(actor));
        m.transition.updates.iter().any(|u| {
            let late = self.logic.frame.delayed(u.cell) && !m.atomic;
            let others = u.index.is_empty() || u.index.iter().any(|i| *i != own);
            !late && (others || self.logic.frame.watched(u.cell))
        })
    }

    /// Safety, and consecution for the two threads of a view.
    fn view(&mut self, i: usize) -> Result<(), AuditError> {
        let (logic, frame) = (self.logic, self.logic.frame);
        let w = self.views[i].clone();
        let state = i as u64 + 1;
        if frame.system.bad.iter().any(|q| may_be(logic, &w, q)) {
            return Err(AuditError::Bad { state });
        }
        self.checked += 1;
        self.go_on()?;
        let out = |event: &str| AuditError::NotClosed {
            state,
            event: event.to_string(),
        };
        for m in self.moves {
            let cast = Cast {
                star: None,
                actor: None,
                whole: self.precise || m.transition.actor.is_none(),
            };
            for next in logic.moves(&w, m, cast) {
                if !self.covers(next) {
                    return Err(out(&m.transition.name));
                }
            }
        }
        for t in 0..2 {
            for next in logic.drain(&w, t) {
                if !self.covers(next) {
                    return Err(out("a store reaching memory"));
                }
            }
        }
        for (first, second) in [(0, 1), (1, 0)] {
            let (x, y) = (self.sides[i][first], self.sides[i][second]);
            for (j, t) in &self.with[x] {
                let z = self.sides[*j][1 - t];
                // What z does need not be looked at twice.
                let acts = first == 0 && self.active[z];
                let looks = self.looks[*j][*t];
                if !acts && !looks {
                    continue;
                }
                for (k, u) in self.both.get(&(y, z)).into_iter().flatten() {
                    self.checked += 1;
                    self.go_on()?;
                    let view = |i: usize, at| (&*self.views[i], &self.tokens[i], at);
                    let views = [
                        view(i, [first, second]),
                        view(*j, [*t, 1 - t]),
                        view(*k, [*u, 1 - u]),
                    ];
                    let Some(three) = join(frame, views)? else {
                        continue;
                    };
                    if acts {
                        let able = self.able[z].iter().map(|i| &self.moves[*i]);
                        self.together(&three, 2, able).map_err(|e| out(&e))?;
                    }
                    if looks {
                        let acting = |m: &&Move<'_>| m.transition.actor.is_some();
                        let all = self.moves.iter().filter(acting);
                        self.together(&three, 0, all).map_err(|e| out(&e))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether a thread of a view may do something in which the other takes part.
    fn may_look(&self, w: &World, t: usize) -> bool {
        let cast = Cast {
            star: Some(1 - t),
            actor: Some(t),
            whole: false,
        };
        let mut moves = self.moves.iter().filter(|m| m.transition.actor.is_some());
        self.precise && moves.any(|m| !self.logic.moves(w, m, cast).is_empty())
    }

    /// What the third thread does, or the first with it, leaves the first two like a view.
    fn together<'m>(
        &self,
        w: &World,
        actor: usize,
        moves: impl Iterator<Item = &'m Move<'m>>,
    ) -> Result<(), String> {
        let frame = self.logic.frame;
        let cast = Cast {
            star: Some(2),
            actor: Some(actor),
            whole: false,
        };
        let fine = |next: &World| self.covers(frame.part(next, &[0, 1]));
        for m in moves {
            if !self.logic.moves(w, m, cast).iter().all(fine) {
                return Err(m.transition.name.clone());
            }
        }
        match actor == 2 && !self.logic.drain(w, 2).iter().all(fine) {
            true => Err("a store reaching memory".into()),
            false => Ok(()),
        }
    }
}
