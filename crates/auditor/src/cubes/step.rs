//! What must have been so before a step: the facts about all ends of runs that begin with one given
//! transition and go on as a given cube says.
//!
//! Steps are met backward in an order that extends program order. Under SC that is all. What the
//! rules of [`super::order`] add is where the reads and stores of the step are in the order of memory.
//!
//! A store's value replaces that of every open read that takes it. The acting thread's own open reads
//! of the cell always do, for they come later in the program and no later store has served them. Reads
//! of another thread at one moment do so all together or not at all.

use super::assume::{Draft, Rules};
use super::facts::{CellAt, Facts, Moments, NOBODY, OTHER, Pending, THREADS, Value};
use wattle_logic::Term as Sum;
use wattle_memory::MemoryModel;
use wattle_model::array::{self, Access, Term, ThreadTerm, Transition, Update, UpdateIndex};

/// Whether the update gives a cell the value it has. That counts as no write: under TSO and PSO the
/// step is atomic then, and who reads the cell later might as well have read the older store.
pub fn writes_back(u: &Update, value: &array::Value, params: usize) -> bool {
    let itself = |a: &Access| {
        let mut each = params as u8;
        let index = u.index.iter().map(|i| match i {
            UpdateIndex::At(t) => *t,
            UpdateIndex::Each(_) => {
                each += 1;
                ThreadTerm::Param(each - 1)
            }
        });
        a.cell == u.cell && a.reader.is_none() && index.eq(a.args.iter().copied())
    };
    match value {
        array::Value::Term(Term::Read(a)) => itself(a),
        array::Value::Term(Term::Sum { parts, constant: 0 }) => {
            matches!(&parts[..], [(1, a)] if itself(a))
        }
        array::Value::Term(_) | array::Value::Any => false,
    }
}

/// A step on its way into a cube.
pub struct Step<'r, 'a> {
    pub rules: &'r Rules<'a>,
    pub facts: &'r Facts,
    pub spoken: &'r [CellAt],
    pub transition: &'r Transition,
    pub args: Vec<u8>,
    pub actor: Option<u8>,
    pub atomic: bool,
}

/// What one way through the step writes to the places the cube speaks of, in terms of values before it.
pub type Written = Vec<(CellAt, Sum)>;

pub fn predecessors(rules: &Rules<'_>, facts: &Facts, t: &Transition, out: &mut Vec<Facts>) {
    let spoken = spoken_of(rules, facts);
    let writes = |p: &CellAt| t.updates.iter().any(|u| u.cell == p.cell);
    if !spoken.iter().any(writes) {
        // Such a step only adds facts.
        return;
    }
    let mut base = facts.without_values();
    join_constants(rules, &mut base);
    for (base, args) in castings(rules, base, t.params.len()) {
        let step = Step {
            rules,
            facts,
            spoken: &spoken,
            transition: t,
            actor: t.actor.map(|a| args[usize::from(a)]),
            args,
            atomic: rules.system.is_atomic(t),
        };
        step.run(base, out);
    }
}

/// Every constant is a thread, whether a cube speaks of it or not.
pub fn join_constants(rules: &Rules<'_>, facts: &mut Facts) {
    for k in 1..=rules.constants {
        if !facts.threads.contains(&k) {
            facts.join(k);
        }
    }
}

/// Whether there may be one more thread that is no constant.
pub fn may_join(rules: &Rules<'_>, facts: &Facts) -> bool {
    let most = rules.system.threads.map_or(usize::MAX, |n| n as usize);
    facts.threads.len() < most.min(THREADS)
}

/// The places that a cube speaks of.
fn spoken_of(rules: &Rules<'_>, facts: &Facts) -> Vec<CellAt> {
    let mut places: Vec<CellAt> = facts.pending.iter().map(|x| x.place).collect();
    let parts = facts.reads.iter().flat_map(|r| &r.parts);
    places.extend(parts.map(|p| p.place));
    facts.for_each_value(rules, &mut |v| {
        if let Value::Cell(p) = v {
            places.push(p);
        }
    });
    places.sort_unstable();
    places.dedup();
    places
}

/// Every way to give parameters different threads: those there are, or new ones.
pub fn castings(rules: &Rules<'_>, base: Facts, params: usize) -> Vec<(Facts, Vec<u8>)> {
    let mut all = vec![(base, Vec::new())];
    for _ in 0..params {
        let mut next = Vec::new();
        for (mut base, args) in all {
            let with = |t: u8| [&args[..], &[t]].concat();
            for t in (0..base.threads.len() as u8).filter(|t| !args.contains(t)) {
                next.push((base.clone(), with(t)));
            }
            if may_join(rules, &base) {
                let new = base.join(0);
                next.push((base, with(new)));
            }
        }
        all = next;
    }
    all
}

impl Step<'_, '_> {
    fn run(&self, base: Facts, out: &mut Vec<Facts>) {
        let places = self.places(&base);
        if places.is_empty() {
            return;
        }
        let params = self.args.len();
        let draft = self.rules.draft(base, self.actor);
        let guard = &self.transition.guard;
        for draft in self.rules.assume(draft, guard, true, &self.args, params) {
            self.write(draft, &places, Vec::new(), out);
        }
    }

    /// The places the cube speaks of that the step may write.
    fn places<'t>(&'t self, base: &Facts) -> Vec<(CellAt, &'t Update, Vec<u8>)> {
        let mut out = Vec::new();
        for place in self.spoken.iter().copied() {
            // Of several updates of one cell the last counts.
            for u in self.transition.updates.iter().rev() {
                if let Some(env) = self.reaches(base, u, place) {
                    out.push((place, u, env));
                    break;
                }
            }
        }
        out
    }

    /// The threads in scope if the update may write the place.
    fn reaches(&self, base: &Facts, u: &Update, place: CellAt) -> Option<Vec<u8>> {
        if u.cell != place.cell {
            return None;
        }
        let mut env = self.args.clone();
        for (index, arg) in u.index.iter().zip(place.args()) {
            match index {
                UpdateIndex::Each(_) => env.push(arg),
                UpdateIndex::At(t) => {
                    if self.rules.thread(base, *t, &self.args) != Some(arg) {
                        return None;
                    }
                }
            }
        }
        Some(env)
    }

    /// For each place in turn: which branch of its update applies, if any.
    fn write(
        &self,
        draft: Draft,
        places: &[(CellAt, &Update, Vec<u8>)],
        written: Written,
        out: &mut Vec<Facts>,
    ) {
        let Some(((place, update, env), rest)) = places.split_first() else {
            return self.finish(draft, written, out);
        };
        let mut none = vec![draft];
        for branch in &update.branches {
            let mut still = Vec::new();
            for d in none {
                let params = self.args.len();
                let rules = self.rules;
                let yes = rules.assume(d.clone(), &branch.condition, true, env, params);
                for mut d in yes {
                    if writes_back(update, &branch.value, params) {
                        self.write(d, rest, written.clone(), out);
                        continue;
                    }
                    let new = self.new_value(&mut d, update.cell, &branch.value, env);
                    let mut written = written.clone();
                    written.push((*place, new));
                    self.write(d, rest, written, out);
                }
                still.extend(rules.assume(d, &branch.condition, false, env, params));
            }
            none = still;
        }
        for d in none {
            self.write(d, rest, written.clone(), out);
        }
    }

    /// A value that this does not understand may be any.
    fn new_value(&self, d: &mut Draft, cell: u16, value: &array::Value, env: &[u8]) -> Sum {
        let known = match value {
            array::Value::Any => None,
            array::Value::Term(t) => {
                let mut cells = vec![cell];
                t.for_each_access(&mut |a| cells.push(a.cell));
                let real = self.rules.are_real(&cells);
                real.and_then(|real| self.rules.term(d, t, real, env))
            }
        };
        known.unwrap_or_else(|| self.rules.names.var(d.facts.any_value(cell)).into())
    }

    /// Places that are written whatever the state, besides those of the cube.
    pub fn certainly_written(&self, facts: &Facts) -> Vec<CellAt> {
        let mut out = Vec::new();
        let threads = facts.threads.len() as u8;
        for u in self.weak_updates() {
            let mut tuples: Vec<Vec<u8>> = vec![Vec::new()];
            for index in &u.index {
                let choices: Vec<u8> = match index {
                    UpdateIndex::Each(_) => (0..threads).collect(),
                    UpdateIndex::At(t) => {
                        let t = self.rules.thread(facts, *t, &self.args);
                        t.into_iter().collect()
                    }
                };
                tuples = tuples
                    .iter()
                    .flat_map(|t| choices.iter().map(|c| [&t[..], &[*c]].concat()))
                    .collect();
            }
            for tuple in tuples {
                let place = CellAt::new(u.cell, &tuple);
                let env = self.reaches(facts, u, place);
                if env.is_some_and(|env| self.certain(facts, u, &env)) {
                    out.push(place);
                }
            }
        }
        out
    }

    /// Weak arrays whose elements of threads outside of the cube are all written.
    pub fn written_elsewhere(&self, facts: &Facts) -> Vec<u16> {
        let outside = facts.threads.len() as u8;
        let env: Vec<u8> = self.args.iter().copied().chain([outside]).collect();
        self.weak_updates()
            .filter(|u| matches!(&u.index[..], [UpdateIndex::Each(_)]))
            .filter(|u| self.certain(facts, u, &env))
            .map(|u| u.cell)
            .collect()
    }

    fn weak_updates(&self) -> impl Iterator<Item = &Update> {
        let updates = self.transition.updates.iter();
        updates.filter(|u| self.rules.weak(u.cell))
    }

    fn certain(&self, facts: &Facts, u: &Update, env: &[u8]) -> bool {
        for b in &u.branches {
            let writes = !writes_back(u, &b.value, self.args.len());
            match self.rules.decided(facts, &b.condition, env) {
                Some(false) => {}
                Some(true) => return writes,
                None if writes => {}
                None => return false,
            }
        }
        false
    }

    fn finish(&self, draft: Draft, written: Written, out: &mut Vec<Facts>) {
        let local = |p: &CellAt| !self.rules.weak(p.cell);
        if self.rules.model == MemoryModel::Sc || written.iter().all(|(p, _)| local(p)) {
            out.extend(self.effect(draft, &written, [&[], &[]], &[]));
            return;
        }
        match (self.rules.model, self.atomic) {
            (MemoryModel::Pso, false) => self.store_pso(draft, &written, 0, Vec::new(), out),
            _ => self.serve(draft, &written, out),
        }
    }

    /// Chooses for each moment of other threads whether its reads take what was stored.
    fn serve(&self, draft: Draft, written: &Written, out: &mut Vec<Facts>) {
        let hit = |p: &CellAt| written.iter().any(|(q, _)| p == q);
        let open = self.facts.reads.iter().enumerate();
        let moments: Vec<usize> = open
            .filter(|(_, r)| {
                let mut parts = r.parts.iter();
                parts.any(|p| Some(p.reader) != self.actor && !p.own && hit(&p.place))
            })
            .map(|(i, _)| i)
            .collect();
        if moments.len() > 16 {
            // Far more than any cube has: nothing is known then.
            out.push(Facts::default());
            return;
        }
        for choice in 0u32..1 << moments.len() {
            let pick = |wanted: u32| -> Vec<usize> {
                let chosen = moments.iter().enumerate();
                let chosen = chosen.filter(|(i, _)| choice >> i & 1 == wanted);
                chosen.map(|(_, m)| *m).collect()
            };
            out.extend(self.effect(draft.clone(), written, [&pick(1), &pick(0)], &[]));
        }
    }

    /// The predecessor for one choice of moments that take what was stored, and of pending stores that
    /// are these.
    fn effect(
        &self,
        mut draft: Draft,
        written: &Written,
        [served, unserved]: [&[usize]; 2],
        matched: &[(u8, usize)],
    ) -> Option<Facts> {
        let new = |p: CellAt| {
            let found = written.iter().find(|(q, _)| p == *q);
            found.map(|(_, n)| n.clone())
        };
        let gone = |k: u8| matched.iter().find(|(m, _)| *m == k);
        let becomes = |v: Value| match v {
            Value::Cell(p) => new(p),
            Value::Read(e, i) => {
                let part = &self.facts.reads[usize::from(e)].parts[usize::from(i)];
                let mine = Some(part.reader) == self.actor;
                let takes = mine || !part.own && served.contains(&usize::from(e));
                takes.then(|| new(part.place)).flatten()
            }
            Value::Pending(k) => Some(match gone(k) {
                Some((_, i)) => written[*i].1.clone(),
                None => {
                    let before = (0..k).filter(|k| gone(*k).is_none()).count();
                    self.rules.names.var(Value::Pending(before as u8)).into()
                }
            }),
            Value::Any(..) => None,
        };
        substitute(self.facts, &mut draft.facts, self.rules, &becomes).ok()?;
        let kept = (0u8..).zip(&self.facts.pending);
        let kept = kept.filter(|(k, _)| gone(*k).is_none());
        draft.facts.pending = kept.map(|(_, p)| *p).collect();
        let set = |list: &[usize]| list.iter().fold(0, |m: Moments, e| m | 1 << e);
        let places: Vec<CellAt> = written.iter().map(|(p, _)| *p).collect();
        self.place_moments(&mut draft, &places, set(served), set(unserved))
            .ok()?;
        finished(self.rules, draft.facts)
    }

    /// PSO: each store reaches memory at a moment of its own. It is the one of a pending store, or
    /// some later moment at which nobody looks.
    fn store_pso(
        &self,
        draft: Draft,
        written: &Written,
        next: usize,
        matched: Vec<(u8, usize)>,
        out: &mut Vec<Facts>,
    ) {
        let Some((place, _)) = written.get(next) else {
            out.extend(self.effect(draft, written, [&[], &[]], &matched));
            return;
        };
        let Some(p) = self.actor.filter(|_| self.rules.weak(place.cell)) else {
            return self.store_pso(draft, written, next + 1, matched, out);
        };
        let mut pending = self.facts.pending.iter();
        let next_one = pending.position(|x| x.thread == p && x.place == *place);
        if let Some(k) = next_one {
            let matched = matched.iter().copied().chain([(k as u8, next)]).collect();
            self.store_pso(draft.clone(), written, next + 1, matched, out);
            if self.facts.pending[k].newest {
                return;
            }
        }
        for draft in self.unseen(draft, p, *place) {
            self.store_pso(draft, written, next + 1, matched.clone(), out);
        }
    }
}

/// The facts about values with others in their place. Values of threads that joined are "other" ones of the old cube.
pub fn substitute(
    from: &Facts,
    into: &mut Facts,
    rules: &Rules<'_>,
    becomes: &dyn Fn(Value) -> Option<Sum>,
) -> super::facts::Possible {
    let new = |v: Value| becomes(v).unwrap_or_else(|| rules.names.var(v).into());
    let joined = from.threads.len()..into.threads.len();
    for (v, set) in &from.among {
        let mut set = *set;
        if set & OTHER != 0 && from.holds_thread(rules.system, *v) {
            joined.clone().for_each(|t| set |= 1 << t);
        }
        let term = new(*v);
        match (term.coeffs(), term.constant_part().to_i64()) {
            ([], Some(n @ 0..127)) if set >> n & 1 == 0 => return Err(super::facts::Impossible),
            ([(w, one)], Some(0)) if one.is_one() => {
                rules
                    .value_of(*w)
                    .map_or(Ok(()), |w| into.restrict(w, set))?;
            }
            _ => {}
        }
    }
    for f in &from.known {
        into.learn(rules, rules.replaced(f, &new))?;
    }
    Ok(())
}

/// Where all threads are known, cells hold one of them.
pub fn finished(rules: &Rules<'_>, mut facts: Facts) -> Option<Facts> {
    let all = rules
        .system
        .threads
        .is_some_and(|n| facts.threads.len() >= n as usize);
    if all && !rules.nobody {
        for v in facts.among.keys().copied().collect::<Vec<_>>() {
            if facts.holds_thread(rules.system, v) {
                facts.restrict(v, !OTHER).ok()?;
            }
        }
    }
    Some(facts)
}

/// PSO: a store of some thread reaches memory; the step that made it will be met. Every open read of
/// the cell sees it, unless a store of its own hides it from the reader.
pub fn drains(rules: &Rules<'_>, facts: &Facts, out: &mut Vec<Facts>) {
    let parts = facts.reads.iter().flat_map(|r| &r.parts);
    let mut places: Vec<CellAt> = parts.filter(|p| !p.own).map(|p| p.place).collect();
    places.sort_unstable();
    places.dedup();
    let mut base = facts.without_values();
    join_constants(rules, &mut base);
    for (base, thread) in castings(rules, base, 1) {
        for place in &places {
            drain(rules, facts, &base, *place, thread[0], out);
        }
    }
}

fn drain(
    rules: &Rules<'_>,
    facts: &Facts,
    base: &Facts,
    place: CellAt,
    thread: u8,
    out: &mut Vec<Facts>,
) {
    let looks = |p: &super::facts::Part| p.place == place && p.reader != thread && !p.own;
    let open = facts.reads.iter().enumerate();
    let moments: Vec<usize> = open
        .filter(|(_, r)| r.parts.iter().any(looks))
        .map(|(i, _)| i)
        .collect();
    if moments.len() > 16 {
        out.push(Facts::default());
        return;
    }
    let number = facts.pending.len() as u8;
    for choice in 1u32..1 << moments.len() {
        let served = |e: usize| {
            let i = moments.iter().position(|m| *m == e);
            i.is_some_and(|i| choice >> i & 1 == 1)
        };
        let mut next = base.clone();
        // Older stores of the thread reach memory before these moments: had there been one of this
        // place in between, it would have been seen.
        let bound = base.after_stores_of[usize::from(thread)];
        next.pending.push(Pending {
            thread,
            place,
            newest: moments.iter().any(|e| served(*e) && bound & 1 << e != 0),
        });
        let mut hidden = true;
        for e in moments.iter().filter(|e| !served(**e)) {
            for p in next.reads[*e].parts.iter_mut().filter(|p| looks(p)) {
                hidden &= p.reader != NOBODY && rules.buffers(place.cell);
                p.own = true;
            }
        }
        let becomes = |v: Value| match v {
            Value::Read(e, i) => {
                let part = &facts.reads[usize::from(e)].parts[usize::from(i)];
                let takes = looks(part) && served(usize::from(e));
                takes.then(|| rules.names.var(Value::Pending(number)).into())
            }
            Value::Cell(_) | Value::Pending(_) | Value::Any(..) => None,
        };
        if hidden && substitute(facts, &mut next, rules, &becomes).is_ok() {
            out.extend(finished(rules, next));
        }
    }
}
