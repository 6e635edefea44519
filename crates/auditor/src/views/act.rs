//! What a transition or a drain makes of a world.

use super::assume::{Logic, Scope, Spot};
use super::world::{ANY, Pending, Pos, Sort, Store, World};
use crate::tuples::tuples;
use wattle_memory::MemoryModel;
use wattle_model::array::{
    Access, ArraySystem, Comparison, FenceKind, Formula, Term, ThreadTerm, Transition, Update,
    UpdateIndex, Value,
};

/// A transition with its parameters in the order in which they are chosen, whoever acts first.
pub struct Move<'a> {
    pub transition: &'a Transition,
    pub atomic: bool,
    /// Each with whether something is read of it.
    order: Vec<(usize, bool)>,
    /// The guard's parts, each with how many parameters must be chosen before.
    parts: Vec<(usize, &'a Formula)>,
}

/// Who may take part.
#[derive(Clone, Copy)]
pub struct Cast {
    /// This one does.
    pub star: Option<usize>,
    /// This one acts, if somebody does.
    pub actor: Option<usize>,
    /// Of threads that are not whole nothing is read.
    pub whole: bool,
}

impl<'a> Move<'a> {
    pub fn new(system: &'a ArraySystem, t: &'a Transition) -> Self {
        let mut order: Vec<usize> = (0..t.params.len()).collect();
        order.sort_by_key(|p| Some(*p as u8) != t.actor);
        let place = |p: u8| order.iter().position(|o| *o == usize::from(p));
        let parts = t.guard.conjuncts().iter().map(|f| {
            // Whoever acts reads. What others must satisfy is looked at when all parameters are chosen.
            let mut before = match f.speaks_of_others() {
                true => order.len(),
                false => t.actor.iter().count(),
            };
            let mut named = |t: &ThreadTerm| {
                if let ThreadTerm::Param(p) = t {
                    before = before.max(place(*p).map_or(0, |i| i + 1));
                }
            };
            f.for_each_literal(&mut |l| {
                l.left.for_each_thread(&mut named);
                l.right.for_each_thread(&mut named);
            });
            (before, f)
        });
        let mut used: Vec<ThreadTerm> = t.actor.map(ThreadTerm::Param).into_iter().collect();
        t.for_each_access(&mut |a| used.extend(a.args.iter().chain(&a.reader)));
        let used = |p: &usize| (*p, used.contains(&ThreadTerm::Param(*p as u8)));
        Move {
            transition: t,
            atomic: system.is_atomic(t),
            parts: parts.collect(),
            order: order.iter().map(used).collect(),
        }
    }
}

impl Logic<'_> {
    /// All worlds after the transition.
    pub fn moves(&self, w: &World, m: &Move<'_>, cast: Cast) -> Vec<World> {
        let mut out = Vec::new();
        let args = vec![ANY; m.transition.params.len()];
        self.cast(w, m, cast, 0, &args, &mut out);
        out
    }

    /// So many parameters are chosen: what has just become clear, then the next one, or the updates.
    fn cast(
        &self,
        w: &World,
        m: &Move<'_>,
        cast: Cast,
        depth: usize,
        args: &[Pos],
        out: &mut Vec<World>,
    ) {
        let t = m.transition;
        let actor = t.actor.map(|a| args[usize::from(a)]);
        let scope = Scope {
            args,
            reader: actor.filter(|a| *a != ANY),
            generous: false,
            params: args.len(),
        };
        let parts = m.parts.iter().filter(|p| p.0 == depth).map(|p| p.1);
        // Most transitions fail here at once.
        if parts.clone().any(|f| self.is_refuted(w, f, scope)) {
            return;
        }
        let worlds = parts.fold(vec![w.clone()], |worlds, f| {
            let step = |w| self.assume(w, f, true, scope);
            worlds.into_iter().flat_map(step).collect()
        });
        for w in worlds {
            let Some(&(param, used)) = m.order.get(depth) else {
                if cast.star.is_none_or(|s| args.contains(&w.me[s])) {
                    self.write(w, m, args, out);
                }
                continue;
            };
            let acts = t.actor == Some(param as u8);
            let candidates = match cast.actor {
                Some(s) if acts => vec![w.me[s]],
                None if acts => w.me.clone(),
                _ => self.threads(&w, args, true),
            };
            for p in candidates {
                let whole = w.me.iter().position(|x| *x == p);
                let unfit = whole.is_none() && (!self.others || cast.whole && used);
                let empty = acts && (m.atomic || t.fence == Some(FenceKind::Full));
                let waits = whole.is_some_and(|i| !w.pending[i].is_empty());
                if args.contains(&p) || unfit || empty && waits {
                    continue;
                }
                let mut args = args.to_vec();
                args[param] = p;
                self.cast(&w, m, cast, depth + 1, &args, out);
            }
        }
    }

    fn write(&self, w: World, m: &Move<'_>, args: &[Pos], out: &mut Vec<World>) {
        let t = m.transition;
        let actor = t.actor.map(|a| args[usize::from(a)]);
        let mut drafts = vec![(w, Vec::new(), Vec::new())];
        for u in &t.updates {
            let free = u.index.iter().filter(|i| matches!(i, UpdateIndex::Each(_)));
            let whole = drafts.first().map_or(Vec::new(), |d| d.0.me.clone());
            for each in tuples(&whole, free.count(), false) {
                let longer = [args, &each[..]].concat();
                let scope = Scope {
                    args: &longer,
                    reader: actor,
                    generous: false,
                    params: args.len(),
                };
                let mut each = args.len();
                let of: Vec<Pos> = u
                    .index
                    .iter()
                    .map(|i| match i {
                        UpdateIndex::At(t) => self.thread(*t, &longer),
                        UpdateIndex::Each(_) => {
                            each += 1;
                            longer[each - 1]
                        }
                    })
                    .collect();
                let mut next = Vec::new();
                for d in drafts {
                    self.update(d, u, &of, scope, &mut next);
                }
                drafts = next;
            }
        }
        for (w, stores, _) in drafts {
            if self.frame.agrees(&w) {
                out.extend(self.done(w, stores, m, actor));
            }
        }
    }

    /// One world for each way the update may go.
    fn update(
        &self,
        draft: Draft,
        u: &Update,
        of: &[Pos],
        scope: Scope<'_>,
        next: &mut Vec<Draft>,
    ) {
        let mut left = vec![draft];
        for b in &u.branches {
            let mut not = Vec::new();
            for (w, stores, sums) in left {
                for w in self.assume(w.clone(), &b.condition, true, scope) {
                    self.value(
                        (w, stores.clone(), sums.clone()),
                        u,
                        &b.value,
                        of,
                        scope,
                        next,
                    );
                }
                for w in self.assume(w, &b.condition, false, scope) {
                    not.push((w, stores.clone(), sums.clone()));
                }
            }
            left = not;
        }
        next.extend(left);
    }

    fn value(
        &self,
        draft: Draft,
        u: &Update,
        value: &Value,
        of: &[Pos],
        scope: Scope<'_>,
        next: &mut Vec<Draft>,
    ) {
        let store = |value: Pos| Store {
            cell: u.cell,
            of: of.to_vec(),
            value,
        };
        let (w, stores, sums) = draft;
        let with = |w: World, sums: Vec<(Pos, i64, Pos)>, value: Pos| {
            let mut stores = stores.clone();
            stores.push(store(value));
            (w, stores, sums)
        };
        let plain = |v: Pos| with(w.clone(), sums.clone(), v);
        match value {
            Value::Any => next.push(plain(ANY)),
            Value::Term(Term::Bool(b)) => next.push(plain(Pos::from(*b))),
            Value::Term(Term::Constructor(_, c)) => next.push(plain(Pos::from(*c))),
            Value::Term(Term::Thread(t)) => next.push(plain(self.thread(*t, scope.args))),
            Value::Term(Term::Read(a)) => self.copied(&w, a, scope, &mut |w, v| {
                next.push(with(w, sums.clone(), v));
            }),
            Value::Term(Term::Sum { parts, constant }) => match (&parts[..], *constant) {
                ([], c) => {
                    let i = self.frame.anchors.binary_search(&c);
                    next.push(plain(i.map_or(ANY, |i| w.anchors[i])));
                }
                ([(1, a)], c) => self.copied(&w, a, scope, &mut |w, v| {
                    let known = sums.iter().find(|s| (s.0, s.1) == (v, c)).map(|s| s.2);
                    match known {
                        _ if v == ANY || c == 0 => next.push(with(w, sums.clone(), v)),
                        Some(sum) => next.push(with(w, sums.clone(), sum)),
                        None => {
                            let whole = Sort::Number(true);
                            let both = [a.cell, u.cell].map(|c| self.frame.sort(c) == whole);
                            for sum in self.plus(&w, &sums, v, c, both == [true; 2]) {
                                let mut sums = sums.clone();
                                sums.push((v, c, sum));
                                next.push(with(w.clone(), sums, sum));
                            }
                        }
                    }
                }),
                _ => next.push(plain(ANY)),
            },
        }
    }

    /// A value that is copied; one that is unknown but kept is chosen, so that both are the same.
    fn copied(&self, w: &World, a: &Access, scope: Scope<'_>, each: &mut dyn FnMut(World, Pos)) {
        let (spot, value) = self.seen(w, a, scope);
        let finite = matches!(self.frame.sort(a.cell), Sort::Finite(_));
        if value != ANY || finite || matches!(spot, Spot::Elsewhere(..)) {
            return each(w.clone(), value);
        }
        for w in self.each_value(w, &spot, a.cell, scope.args) {
            let value = self.seen(&w, a, scope).1;
            each(w, value);
        }
    }

    /// Positions that `v + c` may have; `whole`: both are whole numbers.
    fn plus(&self, w: &World, sums: &[(Pos, i64, Pos)], v: Pos, c: i64, whole: bool) -> Vec<Pos> {
        let mut all = self.frame.positions(w, false);
        all.extend(sums.iter().map(|s| s.2));
        all.sort_unstable();
        all.dedup();
        all.extend(self.between(&all));
        let is = (Comparison::Eq, true, c);
        all.retain(|p| self.possible(w, &[(1, *p), (-1, v)], is, whole));
        all
    }

    fn done(
        &self,
        mut w: World,
        stores: Vec<Store>,
        m: &Move<'_>,
        actor: Option<Pos>,
    ) -> Vec<World> {
        w.looked.retain(|l| self.frame.kept.contains(&l.0));
        let late = |s: &Store| self.frame.delayed(s.cell) && !m.atomic;
        let (late, at_once): (Vec<Store>, Vec<Store>) = stores.into_iter().partition(late);
        at_once.iter().for_each(|s| self.arrive(&mut w, s));
        let Some(t) = actor.and_then(|a| w.me.iter().position(|x| *x == a)) else {
            return self.witnessed(w, &at_once);
        };
        let queue = &mut w.pending[t];
        let fence = m.transition.fence == Some(FenceKind::Store);
        if fence
            && self.frame.model == MemoryModel::Pso
            && queue.last().is_some_and(|p| !p.stores.is_empty())
        {
            queue.push(Pending {
                stores: Vec::new(),
                repeated: false,
            });
        }
        if !late.is_empty() {
            match queue.last_mut() {
                Some(p) if p.stores == late => p.repeated = true,
                _ => queue.push(Pending {
                    stores: late,
                    repeated: false,
                }),
            }
        }
        self.witnessed(w, &at_once)
    }

    fn arrive(&self, w: &mut World, s: &Store) {
        match self.spot(w, s.cell, &s.of) {
            Spot::Memory(c, i) => w.memory[c][i] = s.value,
            at @ Spot::Elsewhere(..) if self.frame.kept.contains(&s.cell) => {
                self.put(w, &at, s.value);
            }
            Spot::Elsewhere(..) | Spot::Pending(..) | Spot::Hidden => {}
        }
    }

    /// A store of the thread reaching memory.
    pub fn drain(&self, w: &World, t: usize) -> Vec<World> {
        let mut out = Vec::new();
        let queue = &w.pending[t];
        for (i, p) in queue.iter().enumerate() {
            let pass = |older: &Pending| {
                let hits = |s: &Store| p.stores.iter().any(|x| (x.cell, &x.of) == (s.cell, &s.of));
                !older.stores.is_empty() && !older.stores.iter().any(hits)
            };
            let first = i == 0 || self.frame.model == MemoryModel::Pso;
            if !first || p.stores.is_empty() || !queue[..i].iter().all(pass) {
                continue;
            }
            let mut next = w.clone();
            p.stores.iter().for_each(|s| self.arrive(&mut next, s));
            if p.repeated {
                out.extend(self.witnessed(next.clone(), &p.stores));
            }
            let queue = &mut next.pending[t];
            queue.remove(i);
            let fences = queue.iter().take_while(|p| p.stores.is_empty()).count();
            queue.drain(..fences);
            if i > 0 && i < queue.len() && !queue[i].stores.is_empty() {
                let (a, b) = (queue[i - 1].stores.clone(), &queue[i].stores);
                if a == *b {
                    queue[i - 1].repeated = true;
                    queue.remove(i);
                }
            }
            out.extend(self.witnessed(next, &p.stores));
        }
        out
    }
}

/// The world before, what is stored, and which sums stand where.
type Draft = (World, Vec<Store>, Vec<(Pos, i64, Pos)>);
