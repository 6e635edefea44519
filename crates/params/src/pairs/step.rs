//! Steps of a state: a transition with threads for its parameters, or a store reaching memory.

use super::assume::{Env, Rules};
use super::forget::visit_reads;
use super::shape::Sort;
use super::state::{Entry, Home, State, UNKNOWN, Val, Write};
use crate::compile::{Compiled, CompiledTransition, Conj, Lit, New};
use crate::work;
use wattle_model::array::{Access, FenceKind, ThreadTerm, UpdateIndex};

/// Longest buffer that is followed.
const LONGEST: usize = 5;

/// A transition with one of its guard's alternatives, by the parameter that completes each condition.
pub struct Order<'c> {
    pub transition: &'c CompiledTransition,
    /// In which order parameters are chosen: the acting one first.
    order: Vec<usize>,
    /// For each place in that order what can be tested then; first what needs no parameter.
    tests: Vec<Conj>,
    /// Parameters whose elements are read or written.
    pub touched: Vec<bool>,
}

pub fn plans<'c>(compiled: &'c Compiled<'_>) -> Vec<Order<'c>> {
    let mut out = Vec::new();
    for t in &compiled.transitions {
        let first = usize::from(t.actor.unwrap_or(0));
        let mut order: Vec<usize> = (0..t.params).collect();
        if first < t.params {
            order.retain(|p| *p != first);
            order.insert(0, first);
        }
        for conj in &t.guard {
            let mut tests = vec![Vec::new(); t.params + 1];
            for l in conj {
                // Whoever acts reads.
                let mut level = usize::from(t.actor.is_some());
                each_param(l, &mut |p| {
                    let at = order.iter().position(|o| *o == usize::from(p));
                    level = level.max(at.map_or(0, |i| i + 1));
                });
                tests[level].push(l.clone());
            }
            // Cheap ones first.
            for list in &mut tests {
                list.sort_by_key(|l| matches!(l, Lit::Number(..)));
            }
            out.push(Order {
                transition: t,
                touched: touched(t, conj),
                order: order.clone(),
                tests,
            });
        }
    }
    out
}

fn each_param(l: &Lit, visit: &mut dyn FnMut(u8)) {
    let mut term = |t: &ThreadTerm| {
        if let ThreadTerm::Param(p) = t {
            visit(*p);
        }
    };
    let access = |a: &Access, term: &mut dyn FnMut(&ThreadTerm)| {
        a.args.iter().chain(&a.reader).for_each(term);
    };
    match l {
        Lit::In(a, _) => access(a, &mut term),
        Lit::IsThread(a, t, _) => {
            access(a, &mut term);
            term(t);
        }
        Lit::Same(a, b, _) => {
            access(a, &mut term);
            access(b, &mut term);
        }
        Lit::Threads(a, b, _) => {
            term(a);
            term(b);
        }
        Lit::Number(parts, ..) => parts.iter().for_each(|(_, a)| access(a, &mut term)),
    }
}

fn touched(t: &CompiledTransition, guard: &Conj) -> Vec<bool> {
    let mut out = vec![false; t.params];
    let mut access = |a: &Access| {
        for x in a.args.iter().chain(&a.reader) {
            if let ThreadTerm::Param(p) = x
                && usize::from(*p) < t.params
            {
                out[usize::from(*p)] = true;
            }
        }
    };
    visit_reads(t, std::slice::from_ref(guard), &mut access);
    if let Some(a) = t.actor {
        out[usize::from(a)] = true;
    }
    out
}

/// Which threads may be the parameters.
#[derive(Clone, Copy, Default)]
pub struct Who {
    /// This solid thread is one of them.
    pub with: Option<usize>,
    /// This one acts, if somebody does.
    pub actor: Option<usize>,
    /// Of ghosts among them nothing may be read.
    pub strict: bool,
}

/// A step at work: what was assumed of the state before, and what is written.
#[derive(Clone)]
struct Draft {
    state: State,
    writes: Vec<Write>,
    /// Sums made so far.
    sums: Vec<(Val, i64, Val)>,
}

impl Rules<'_> {
    /// All states after the transition.
    pub fn steps(&self, state: &State, plan: &Order<'_>, who: Who, emit: &mut dyn FnMut(State)) {
        let args = vec![UNKNOWN; plan.transition.params];
        let mut out = Vec::new();
        let env = Env {
            args: &args,
            actor: None,
            lenient: false,
        };
        self.assume(state.clone(), &plan.tests[0], env, &mut out);
        for s in out {
            self.bind(s, plan, who, 0, &args, emit);
        }
    }

    fn bind(
        &self,
        mut state: State,
        plan: &Order<'_>,
        who: Who,
        level: usize,
        args: &[Val],
        emit: &mut dyn FnMut(State),
    ) {
        work::done(work::BIND);
        let t = plan.transition;
        let Some(param) = plan.order.get(level).copied() else {
            let with = who.with.map(|w| state.vals[w]);
            if with.is_none_or(|w| args.contains(&w)) {
                self.others(state, plan, args, emit);
            }
            return;
        };
        let actor = t
            .actor
            .map(|a| args[usize::from(a)])
            .filter(|a| *a != UNKNOWN);
        let tests = &plan.tests[level + 1];
        let known: Vec<Val> = args.iter().copied().filter(|a| *a != UNKNOWN).collect();
        // A condition may name the thread, but nobody reads before it is known who acts.
        let acts = t.actor == Some(param as u8);
        let named = tests.iter().find_map(|l| match l {
            Lit::IsThread(a, ThreadTerm::Param(p), true)
                if usize::from(*p) == param
                    && !acts
                    && !a.args.contains(&ThreadTerm::Param(*p))
                    && a.reader != Some(ThreadTerm::Param(*p)) =>
            {
                let env = Env {
                    args,
                    actor,
                    lenient: false,
                };
                let (_, v) = self.read(&state, a, env);
                (v != UNKNOWN).then_some(v)
            }
            Lit::In(..)
            | Lit::IsThread(..)
            | Lit::Same(..)
            | Lit::Threads(..)
            | Lit::Number(..) => None,
        });
        let candidates = match named {
            Some(v) => vec![v],
            None if acts => match who.actor {
                Some(w) => vec![state.vals[w]],
                None => state.vals[..state.solids()].to_vec(),
            },
            None => {
                let mut all = state.threads(self.shape, &known);
                let new = self.new_ghosts(&all);
                all.extend(new);
                all
            }
        };
        for v in candidates {
            let ghost = state.solid(v).is_none();
            let allowed = !ghost || (self.ghosts && !(who.strict && plan.touched[param]));
            if known.contains(&v) || v == super::state::NOBODY || !allowed {
                continue;
            }
            let mut args = args.to_vec();
            args[param] = v;
            if acts {
                let Some(i) = state.solid(v) else { continue };
                let empty = t.atomic || t.fence == Some(FenceKind::Full);
                if empty && !state.buffers[i].is_empty() {
                    continue;
                }
            }
            let env = Env {
                args: &args,
                actor: t
                    .actor
                    .map(|a| args[usize::from(a)])
                    .filter(|a| *a != UNKNOWN),
                lenient: false,
            };
            let mut out = Vec::new();
            self.assume(state.clone(), tests, env, &mut out);
            for s in out {
                self.bind(s, plan, who, level + 1, &args, emit);
            }
        }
    }

    /// Universal guards, for the threads there are.
    fn others(
        &self,
        mut state: State,
        plan: &Order<'_>,
        args: &[Val],
        emit: &mut dyn FnMut(State),
    ) {
        let t = plan.transition;
        let actor = t.actor.map(|a| args[usize::from(a)]);
        let all = state.threads(self.shape, args);
        let mut states = vec![state];
        for universal in &t.universals {
            for other in all.iter().filter(|v| !args.contains(v)) {
                let mut longer = args.to_vec();
                longer.push(*other);
                let mut next = Vec::new();
                for s in &states {
                    let env = Env {
                        args: &longer,
                        actor,
                        lenient: s.solid(*other).is_none(),
                    };
                    self.some(s, &universal.body, env, &mut next);
                }
                states = next;
            }
        }
        for s in states {
            self.update(s, t, args, emit);
        }
    }

    fn update(
        &self,
        state: State,
        t: &CompiledTransition,
        args: &[Val],
        emit: &mut dyn FnMut(State),
    ) {
        let solids = state.vals[..state.solids()].to_vec();
        let actor = t.actor.map(|a| args[usize::from(a)]);
        let mut drafts = vec![Draft {
            state,
            writes: Vec::new(),
            sums: Vec::new(),
        }];
        for u in &t.updates {
            let each = u
                .index
                .iter()
                .filter(|i| matches!(i, UpdateIndex::Each(_)))
                .count();
            for n in 0..solids.len().pow(each as u32) {
                let mut env = args.to_vec();
                let mut rest = n;
                for _ in 0..each {
                    env.push(solids[rest % solids.len()]);
                    rest /= solids.len();
                }
                let mut index = [0; 2];
                let mut next_each = args.len();
                for (o, i) in index.iter_mut().zip(&u.index) {
                    *o = match i {
                        UpdateIndex::At(t) => self.thread(*t, &env),
                        UpdateIndex::Each(_) => {
                            next_each += 1;
                            env[next_each - 1]
                        }
                    };
                }
                let env = Env {
                    args: &env,
                    actor,
                    lenient: false,
                };
                let mut next = Vec::new();
                for d in drafts {
                    self.alternatives(d, u, index, env, &mut next);
                }
                drafts = next;
            }
        }
        for d in drafts {
            if self.consistent(&d.state) {
                let (state, at_once) = self.written(d, t, actor);
                self.witnessed(state, &at_once, emit);
            }
        }
    }

    fn alternatives(
        &self,
        draft: Draft,
        u: &crate::compile::CompiledUpdate,
        args: [Val; 2],
        env: Env<'_>,
        next: &mut Vec<Draft>,
    ) {
        let mut states = Vec::new();
        for conj in &u.keeps {
            self.assume(draft.state.clone(), conj, env, &mut states);
        }
        let with = |state: State| Draft {
            state,
            ..draft.clone()
        };
        next.extend(states.drain(..).map(with));
        for (conj, new) in &u.writes {
            self.assume(draft.state.clone(), conj, env, &mut states);
            let mut known = Vec::new();
            for s in states.drain(..) {
                self.copied(s, new, env, &mut known);
            }
            for s in known {
                let mut d = Draft {
                    state: s,
                    ..draft.clone()
                };
                let mut write = |mut d: Draft, value| {
                    d.writes.push(Write {
                        cell: u.cell,
                        args,
                        value,
                    });
                    next.push(d);
                };
                let value = match new {
                    New::Value(m) => m.trailing_zeros(),
                    New::Thread(t) => self.thread(*t, env.args),
                    New::Cell(a) => self.read(&d.state, a, env).1,
                    New::Any => UNKNOWN,
                    New::Sum(parts, c) => match &parts[..] {
                        [] => self.shape.anchor(&d.state, *c).unwrap_or(UNKNOWN),
                        [(1, a)] => {
                            let v = self.read(&d.state, a, env).1;
                            let made = d.sums.iter().find(|s| (s.0, s.1) == (v, *c));
                            match (v, c, made) {
                                (UNKNOWN, ..) => UNKNOWN,
                                (_, 0, _) => v,
                                (_, _, Some(s)) => s.2,
                                _ => {
                                    let whole = |cell: u16| {
                                        self.shape.cells[usize::from(cell)].sort == Sort::Int
                                    };
                                    let integer = whole(u.cell) && whole(a.cell);
                                    for sum in self.sums(&mut d, v, *c, integer) {
                                        let mut d = d.clone();
                                        d.sums.push((v, *c, sum));
                                        write(d, sum);
                                    }
                                    continue;
                                }
                            }
                        }
                        _ => UNKNOWN,
                    },
                };
                write(d, value);
            }
        }
    }

    /// What is copied is chosen first if it is kept and not known, so that both are the same.
    fn copied(&self, state: State, new: &New, env: Env<'_>, out: &mut Vec<State>) {
        let access = match new {
            New::Cell(a) => Some(a),
            New::Sum(parts, _) => match &parts[..] {
                [(1, a)] => Some(a),
                _ => None,
            },
            New::Value(_) | New::Thread(_) | New::Any => None,
        };
        if let Some(a) = access {
            let sort = self.shape.cells[usize::from(a.cell)].sort;
            let (place, v) = self.read(&state, a, env);
            let kept = !matches!(place, Home::Extra(..) | Home::Hidden)
                && !matches!(sort, Sort::Finite(_));
            if v == UNKNOWN && kept {
                for v in self.choices(&state, sort, env.args) {
                    let mut s = state.clone();
                    s.set(place, v);
                    out.push(s);
                }
                return;
            }
        }
        out.push(state);
    }

    /// Where `v + c` may stand.
    fn sums(&self, draft: &mut Draft, v: Val, c: i64, integer: bool) -> Vec<Val> {
        let constant = self.shape.constant(&draft.state, v);
        let exact = constant.and_then(|k| k.checked_add(c));
        if let Some(at) = exact.and_then(|k| self.shape.anchor(&draft.state, k)) {
            return vec![at];
        }
        let mut all = draft.state.numbers(self.shape);
        all.extend(draft.sums.iter().map(|s| s.2));
        all.sort_unstable();
        all.dedup();
        let gaps = self.gaps(&all);
        let up = c > 0;
        let mut out: Vec<Val> = all.iter().chain(&gaps).copied().collect();
        out.retain(|x| if up { *x > v } else { *x < v });
        out.sort_unstable();
        if !up {
            out.reverse();
        }
        // The next whole number is not past the next one known.
        if integer && c.abs() == 1 {
            let known = draft.state.integers(self.shape);
            let next = out.iter().position(|x| known.contains(x));
            out.truncate(next.map_or(usize::MAX, |i| i + 1));
        }
        out
    }

    /// The state after the writes, and those that have reached memory.
    fn written(
        &self,
        draft: Draft,
        t: &CompiledTransition,
        actor: Option<Val>,
    ) -> (State, Vec<Write>) {
        let Draft {
            mut state, writes, ..
        } = draft;
        state.extra.retain(|x| self.shape.kept.contains(&x.0));
        let buffered = |w: &Write| self.shape.cells[usize::from(w.cell)].weak && !t.atomic;
        let (delayed, direct): (Vec<Write>, Vec<Write>) = writes.into_iter().partition(buffered);
        direct.iter().for_each(|w| self.store(&mut state, w));
        if let Some(i) = actor.and_then(|a| state.solid(a)) {
            let buffer = &mut state.buffers[i];
            if self.shape.pso
                && t.fence == Some(FenceKind::Store)
                && buffer.last().is_some_and(|e| !e.writes.is_empty())
            {
                buffer.push(Entry {
                    writes: Vec::new(),
                    many: false,
                });
            }
            if !delayed.is_empty() {
                match buffer.last_mut() {
                    Some(e) if e.writes == delayed => e.many = true,
                    _ => buffer.push(Entry {
                        writes: delayed,
                        many: false,
                    }),
                }
            }
            if buffer.len() > LONGEST {
                self.gave_up.set(true);
            }
        }
        (state, direct)
    }

    fn store(&self, state: &mut State, w: &Write) {
        match self.place(state, w.cell, w.args) {
            Home::Value(i) => state.vals[i] = w.value,
            at @ Home::Extra(cell, _) if self.shape.kept.contains(&cell) => state.set(at, w.value),
            Home::Extra(..) | Home::Buffered(..) | Home::Hidden => {}
        }
    }

    /// Stores of a solid thread reaching memory.
    pub fn drains(&self, state: &State, thread: usize, emit: &mut dyn FnMut(State)) {
        let buffer = &state.buffers[thread];
        for (i, entry) in buffer.iter().enumerate() {
            let apart = |e: &Entry| {
                let same = |w: &Write| {
                    entry
                        .writes
                        .iter()
                        .any(|v| v.cell == w.cell && v.args == w.args)
                };
                !e.writes.is_empty() && !e.writes.iter().any(same)
            };
            let may = match self.shape.pso {
                false => i == 0,
                true => !entry.writes.is_empty() && buffer[..i].iter().all(apart),
            };
            if !may {
                continue;
            }
            let mut next = state.clone();
            entry.writes.iter().for_each(|w| self.store(&mut next, w));
            if entry.many {
                self.witnessed(next.clone(), &entry.writes, emit);
            }
            next.buffers[thread].remove(i);
            while next.buffers[thread]
                .first()
                .is_some_and(|e| e.writes.is_empty())
            {
                next.buffers[thread].remove(0);
            }
            // Neighbours that have become equal.
            let b = &mut next.buffers[thread];
            if i > 0 && i < b.len() && b[i - 1].writes == b[i].writes && !b[i].writes.is_empty() {
                b[i - 1].many = true;
                b.remove(i);
            }
            self.witnessed(next, &entry.writes, emit);
        }
    }
}
