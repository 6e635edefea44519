//! The set of views: from the initial ones, closed under the steps of their own threads and of a third.

use super::assume::{Env, Rules, Truth};
use super::merge::{Seen, merge};
use super::shape::{Shape, Sort};
use super::state::{NOBODY, Packed, SPACING, State, UNKNOWN, Val};
use super::step::{Order, Who, plans};
use super::witness::Witness;
use crate::compile::{Compiled, Dnf, Lit};
use rustc_hash::FxHashMap;
use std::cell::Cell;
use wattle_model::array::UpdateIndex;

/// How the set of views came out.
pub enum Views {
    /// Closed, and no view is bad.
    Closed(Vec<Packed>),
    /// A view is bad: the abstraction is too coarse, or the system is.
    Bad(State),
    TooMany,
    /// A buffer may be too long.
    GaveUp,
    Stopped,
}

/// Limits of one run.
#[derive(Clone, Copy)]
pub struct Reach {
    pub views: usize,
    /// Triples of threads looked at.
    pub work: usize,
    /// Threads a step looks at are solid, even where it merely reads them.
    pub precise: bool,
    /// Of ghosts what others look at is known.
    pub named: bool,
    /// Somebody whose cell has one of the values is always named.
    pub witness: Option<Witness>,
}

struct Saturation<'s, 'c> {
    rules: Rules<'s>,
    plans: &'s [Order<'c>],
    bad: &'s [(usize, Dnf)],
    reach: Reach,
    solids: usize,
    views: Vec<Packed>,
    states: Vec<State>,
    known: FxHashMap<Packed, u32>,
    ones: FxHashMap<Packed, u32>,
    /// Whether a thread that looks like this may change what others see.
    active: Vec<bool>,
    /// By which plans.
    able: Vec<Vec<usize>>,
    /// For each view what its threads look like alone.
    sides: Vec<[u32; 2]>,
    by_one: Vec<Vec<(u32, u8)>>,
    by_two: FxHashMap<(u32, u32), Vec<(u32, u8)>>,
    /// For each view whether one of its threads may look at the other.
    looks: Vec<[bool; 2]>,
    found: Option<State>,
    work: usize,
}

/// The closed set of views of `solids` threads.
pub fn saturate(
    compiled: &Compiled<'_>,
    shape: &Shape,
    solids: usize,
    reach: Reach,
    stop: &dyn Fn() -> bool,
) -> Views {
    let plans = plans(compiled);
    let mut bad = Vec::new();
    for q in &compiled.system.bad {
        match compiled.dnf(&q.body, q.span) {
            Ok(dnf) => bad.push((q.params.len(), dnf)),
            Err(_) => return Views::GaveUp,
        }
    }
    let mut axioms = Vec::new();
    for q in &compiled.system.assumed {
        if compiled.system.only_constants(&q.body) {
            match compiled.dnf(&q.body, q.span) {
                Ok(dnf) => axioms.push((q.params.len(), dnf)),
                Err(_) => return Views::GaveUp,
            }
        }
    }
    let mut s = Saturation {
        rules: Rules {
            shape,
            ghosts: solids > 1,
            gave_up: Cell::new(false),
        },
        plans: &plans,
        bad: &bad,
        reach,
        solids,
        views: Vec::new(),
        states: Vec::new(),
        known: FxHashMap::default(),
        ones: FxHashMap::default(),
        active: Vec::new(),
        able: Vec::new(),
        sides: Vec::new(),
        by_one: Vec::new(),
        by_two: FxHashMap::default(),
        looks: Vec::new(),
        found: None,
        work: 0,
    };
    for state in s.initial(compiled) {
        if !axioms.iter().any(|(n, dnf)| s.surely(&state, *n, dnf)) {
            s.add(state);
        }
    }
    let mut next = 0;
    while next < s.views.len() {
        if s.found.is_some() {
            break;
        }
        if s.rules.gave_up.get() {
            return Views::GaveUp;
        }
        if s.views.len() > reach.views || s.work > reach.work {
            return Views::TooMany;
        }
        if stop() {
            return Views::Stopped;
        }
        s.expand(next);
        next += 1;
    }
    match s.found {
        Some(bad) => Views::Bad(bad),
        None if s.rules.gave_up.get() => Views::GaveUp,
        None if s.work > reach.work => Views::TooMany,
        None => Views::Closed(s.views),
    }
}

impl Saturation<'_, '_> {
    fn initial(&self, compiled: &Compiled<'_>) -> Vec<State> {
        let shape = self.rules.shape;
        let n = self.solids;
        let mut state = State {
            vals: vec![UNKNOWN; shape.sorts(n).len()],
            buffers: vec![Vec::new(); n],
            extra: Vec::new(),
        };
        for t in 0..n {
            state.vals[t] = (t as Val + 1) * SPACING;
        }
        for a in 0..shape.anchors.len() {
            state.vals[n + a] = (a as Val + 1) * SPACING;
        }
        if let Some((_, at)) = shape.witness_at(n) {
            state.vals[at..at + 2].fill(NOBODY);
        }
        let params = compiled.system.init.params.len();
        let mut states = vec![state];
        // Constants are chosen once and for all.
        for (c, cell) in compiled.system.cells.iter().enumerate() {
            if let Sort::Finite(values) = shape.cells[c].sort
                && cell.constant
                && cell.arity < 2
            {
                for t in 0..if cell.arity == 0 { 1 } else { n } {
                    let at = shape.position(n, c as u16, &[t][..usize::from(cell.arity)]);
                    let with = |(s, v): (&State, Val)| {
                        let mut s = s.clone();
                        s.vals[at] = v;
                        s
                    };
                    let all = states.iter().flat_map(|s| (0..values).map(move |v| (s, v)));
                    states = all.map(with).collect();
                }
            }
        }
        for lenient in [false, true] {
            let mut out = Vec::new();
            for mut s in states {
                let all = match lenient {
                    false => s.vals[..n].to_vec(),
                    true => s.threads(shape, &[]),
                };
                let mut now = vec![s];
                tuples(&all, params, false, &mut |args| {
                    let env = Env {
                        args,
                        actor: None,
                        lenient,
                    };
                    let mut next = Vec::new();
                    for s in &now {
                        self.rules.some(s, &compiled.init, env, &mut next);
                    }
                    now = std::mem::take(&mut next);
                });
                out.extend(now);
            }
            states = out;
        }
        if shape.kept.is_empty() && shape.witness.is_none() {
            return states;
        }
        // What ghosts are like at first.
        let mut all = Vec::new();
        states
            .into_iter()
            .for_each(|s| self.rules.complete(s, &mut all));
        if self.rules.gave_up.get() {
            return Vec::new();
        }
        all.retain(|s| {
            let mut fits = true;
            tuples(&s.clone().threads(shape, &[]), params, false, &mut |args| {
                let env = Env {
                    args,
                    actor: None,
                    lenient: true,
                };
                let mut found = Vec::new();
                self.rules.some(s, &compiled.init, env, &mut found);
                fits &= !found.is_empty();
            });
            fits
        });
        // Nobody is the witness at first.
        if !all.iter().all(|s| self.rules.consistent(s)) {
            self.rules.gave_up.set(true);
        }
        all
    }

    /// Whether some of the threads satisfy it whatever is not known.
    fn surely(&self, state: &State, params: usize, dnf: &Dnf) -> bool {
        let mut found = false;
        tuples(&state.vals[..self.solids], params, true, &mut |args| {
            let env = Env {
                args,
                actor: None,
                lenient: false,
            };
            let holds = |l: &Lit| {
                !matches!(l, Lit::Number(..))
                    && matches!(self.rules.test(state, l, env), Truth::Yes)
            };
            found |= dnf.iter().any(|conj| conj.iter().all(holds));
        });
        found
    }

    /// Whether some different threads may satisfy it, as many as can be of them solid; of the others,
    /// which cells may name and which may be anywhere in the order, nothing is known.
    fn satisfied(&self, state: &State, params: usize, dnf: &Dnf) -> bool {
        if params > self.solids && !self.rules.ghosts {
            return false;
        }
        self.some_threads(state, params, dnf, &mut Vec::new())
    }

    fn some_threads(&self, state: &State, params: usize, dnf: &Dnf, args: &mut Vec<Val>) -> bool {
        let seen = args.iter().filter(|a| state.solid(**a).is_some()).count();
        if args.len() == params {
            let env = Env {
                args,
                actor: None,
                lenient: params > self.solids,
            };
            let mut out = Vec::new();
            self.rules.some(state, dnf, env, &mut out);
            return !out.is_empty();
        }
        let mut all = state.vals[..self.solids].to_vec();
        // There must be places left for the solid ones.
        if params - args.len() > params.min(self.solids) - seen {
            all = state.clone().threads(self.rules.shape, args);
            let new = self.rules.new_ghosts(&all);
            all.extend(new);
        }
        all.retain(|v| !args.contains(v));
        all.into_iter().any(|v| {
            args.push(v);
            let found = self.some_threads(state, params, dnf, args);
            args.pop();
            found
        })
    }

    fn add(&mut self, state: State) {
        let mut all = Vec::new();
        self.rules.complete(state, &mut all);
        all.retain(|s| self.rules.consistent(s));
        all.into_iter().for_each(|s| self.add_one(s));
    }

    fn add_one(&mut self, state: State) {
        let shape = self.rules.shape;
        let packed = state.pack(shape);
        if self.known.contains_key(&packed) {
            return;
        }
        let state = State::unpack(shape, self.solids, &packed);
        if self.found.is_none() && self.bad.iter().any(|(n, d)| self.satisfied(&state, *n, d)) {
            self.found = Some(state.clone());
        }
        let number = self.views.len() as u32;
        if self.solids == 2 {
            let sides = [0, 1].map(|t| self.one(&state, t));
            for (t, one) in sides.iter().enumerate() {
                self.by_one[*one as usize].push((number, t as u8));
                let other = sides[1 - t];
                let list = self.by_two.entry((*one, other)).or_default();
                list.push((number, t as u8));
            }
            self.sides.push(sides);
        }
        self.known.insert(packed.clone(), number);
        self.views.push(packed);
        self.states.push(state);
    }

    /// What one thread looks like alone.
    fn one(&mut self, state: &State, t: usize) -> u32 {
        let shape = self.rules.shape;
        let packed = state.project(shape, &[t]).pack(shape);
        if let Some(n) = self.ones.get(&packed) {
            return *n;
        }
        let number = self.by_one.len() as u32;
        let alone = State::unpack(shape, 1, &packed);
        let able = self.seen_plans(&alone);
        self.active
            .push(self.seen_stores(&alone) || !able.is_empty());
        self.able.push(able);
        self.by_one.push(Vec::new());
        self.ones.insert(packed, number);
        number
    }

    /// Whether the only thread of the state has stores that others will see.
    fn seen_stores(&self, state: &State) -> bool {
        let shape = self.rules.shape;
        let elsewhere = |w: &super::state::Write| {
            let arity = shape.cells[usize::from(w.cell)].arity;
            let others = arity == 0 || w.args[..arity].iter().any(|a| *a != state.vals[0]);
            others || shape.watched(w.cell)
        };
        let mut entries = state.buffers[0].iter();
        entries.any(|e| e.writes.iter().any(elsewhere))
    }

    /// What the only thread of the state may do that others see at once.
    fn seen_plans(&self, state: &State) -> Vec<usize> {
        let who = Who {
            with: Some(0),
            actor: Some(0),
            strict: false,
        };
        let able = |p: &Order<'_>| {
            let mut found = false;
            self.rules.steps(state, p, who, &mut |_| found = true);
            found
        };
        let all = self.plans.iter().enumerate();
        all.filter(|(_, p)| self.visible(p) && able(p))
            .map(|(i, _)| i)
            .collect()
    }

    /// Whether others than the acting thread may see what the transition does at once.
    fn visible(&self, plan: &Order<'_>) -> bool {
        let t = plan.transition;
        let Some(actor) = t.actor else { return true };
        t.updates.iter().any(|u| {
            let delayed = self.rules.shape.cells[usize::from(u.cell)].weak && !t.atomic;
            let own = UpdateIndex::At(wattle_model::array::ThreadTerm::Param(actor));
            let others = u.index.is_empty() || u.index.iter().any(|i| *i != own);
            !delayed && (others || self.rules.shape.watched(u.cell))
        })
    }

    fn expand(&mut self, number: usize) {
        let state = self.states[number].clone();
        let mut out = Vec::new();
        for p in self.plans {
            let who = Who {
                strict: self.solids > 1 && (self.reach.precise || p.transition.actor.is_none()),
                ..Who::default()
            };
            self.rules.steps(&state, p, who, &mut |s| out.push(s));
        }
        for t in 0..self.solids {
            self.rules.drains(&state, t, &mut |s| out.push(s));
        }
        out.drain(..).for_each(|s| self.add(s));
        if self.solids < 2 {
            return;
        }
        let looks = [0, 1].map(|t| self.reach.precise && self.looks(&state, t));
        self.looks.push(looks);
        for (three, acting) in self.thirds(number as u32) {
            self.work += 1;
            if self.work > self.reach.work || self.found.is_some() {
                return;
            }
            let seen = three.map(|(v, t)| Seen {
                state: &self.states[v as usize],
                sides: [usize::from(t), 1 - usize::from(t)],
            });
            if let Some(s) = merge(self.rules.shape, seen) {
                match acting {
                    Acting::First => self.first(&s, &mut out),
                    Acting::Third => {
                        let (xz, x) = three[1];
                        let z = self.sides[xz as usize][1 - usize::from(x)];
                        self.third(&s, &self.able[z as usize], &mut out);
                    }
                }
            }
            out.drain(..).for_each(|s| self.add(s));
        }
    }

    /// Whether a thread of a view may do something in which the other takes part.
    fn looks(&self, state: &State, t: usize) -> bool {
        let who = Who {
            with: Some(1 - t),
            actor: Some(t),
            strict: false,
        };
        self.plans
            .iter()
            .filter(|p| p.transition.actor.is_some())
            .any(|p| {
                let mut found = false;
                self.rules.steps(state, p, who, &mut |_| found = true);
                found
            })
    }

    /// Views of (x, y), (x, z), (y, z) of which this is the newest, where z may be seen by others or x
    /// may look at z.
    fn thirds(&self, number: u32) -> Vec<([(u32, u8); 3], Acting)> {
        let mut out = Vec::new();
        let sides = self.sides[number as usize];
        let one = |o: u32| {
            self.by_one[o as usize]
                .iter()
                .copied()
                .filter(|v| v.0 <= number)
        };
        let two = |a: u32, b: u32| {
            let list = self.by_two.get(&(a, b)).into_iter().flatten().copied();
            list.filter(|v| v.0 <= number)
        };
        let other = |(v, t): (u32, u8)| self.sides[v as usize][1 - usize::from(t)];
        let active = |o: u32| self.active[o as usize];
        let looks = |(v, t): (u32, u8)| self.looks[v as usize][usize::from(t)];
        // More than may be looked at need not be listed.
        let room = self.reach.work.saturating_sub(self.work);
        // It is the view of x and y; once is enough if z acts.
        for t in 0..2u8 {
            let (x, y) = (sides[usize::from(t)], sides[1 - usize::from(t)]);
            for xz in one(x) {
                if out.len() > room {
                    return out;
                }
                let z = other(xz);
                let acts = t == 0 && active(z);
                if acts || looks(xz) {
                    for yz in two(y, z) {
                        let three = [(number, t), xz, yz];
                        out.extend(acts.then_some((three, Acting::Third)));
                        out.extend(looks(xz).then_some((three, Acting::First)));
                    }
                }
            }
            // It is the view of x and z.
            let (xz, z) = ((number, t), y);
            if active(z) || looks(xz) {
                for xy in one(x) {
                    if out.len() > room {
                        return out;
                    }
                    for yz in two(other(xy), z) {
                        let three = [xy, xz, yz];
                        out.extend(active(z).then_some((three, Acting::Third)));
                        out.extend(looks(xz).then_some((three, Acting::First)));
                    }
                }
            }
            // It is the view of y and z, and x looks at z.
            let (yz, y, z) = ((number, t), x, z);
            for zx in one(z).filter(|_| self.reach.precise) {
                let (xz, x) = ((zx.0, 1 - zx.1), other(zx));
                if out.len() > room {
                    return out;
                }
                if looks(xz) {
                    let all = two(x, y).map(|xy| ([xy, xz, yz], Acting::First));
                    out.extend(all);
                }
            }
        }
        out
    }

    /// What the third thread's steps leave of the first two.
    fn third(&self, state: &State, able: &[usize], out: &mut Vec<State>) {
        let shape = self.rules.shape;
        let who = Who {
            with: Some(2),
            actor: Some(2),
            strict: false,
        };
        for p in able {
            self.rules.steps(state, &self.plans[*p], who, &mut |s| {
                out.push(s.project(shape, &[0, 1]))
            });
        }
        self.rules
            .drains(state, 2, &mut |s| out.push(s.project(shape, &[0, 1])));
    }

    /// What steps of the first thread in which the third takes part leave of the first two.
    fn first(&self, state: &State, out: &mut Vec<State>) {
        let shape = self.rules.shape;
        let who = Who {
            with: Some(2),
            actor: Some(0),
            strict: false,
        };
        for p in self.plans.iter().filter(|p| p.transition.actor.is_some()) {
            self.rules
                .steps(state, p, who, &mut |s| out.push(s.project(shape, &[0, 1])));
        }
    }
}

/// Whose step is looked at with three threads.
#[derive(Clone, Copy)]
enum Acting {
    First,
    Third,
}

/// Calls for all tuples of the threads.
fn tuples(all: &[Val], length: usize, different: bool, visit: &mut dyn FnMut(&[Val])) {
    fn extend(
        all: &[Val],
        length: usize,
        different: bool,
        tuple: &mut Vec<Val>,
        visit: &mut dyn FnMut(&[Val]),
    ) {
        if tuple.len() == length {
            return visit(tuple);
        }
        for v in all {
            if !different || !tuple.contains(v) {
                tuple.push(*v);
                extend(all, length, different, tuple, visit);
                tuple.pop();
            }
        }
    }
    extend(all, length, different, &mut Vec::new(), visit);
}
