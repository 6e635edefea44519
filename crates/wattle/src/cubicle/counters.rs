//! Counters as S. Conchon, D. Declerck and F. Zaïdi write them (2017, section 4): an array with an element for
//! each thread.
//!
//! A number that starts at 0 and that every thread counts up and down by turns, in atomic steps, is the number of
//! threads that have counted it up. Their rules change any element; here it is the thread's own, so that an
//! element tells what its thread has done. The number is 0 if no element is true. Nobody has a store to it in a
//! buffer, so all threads see the same. This is exact; what does not fit stays a number.

use std::collections::BTreeMap;
use wattle_model::Span;
use wattle_model::array::{
    Access, ArrayIndex, ArraySystem, Branch, CellDecl, CellType, Comparison, Formula, Literal,
    Quantified, Term, ThreadTerm, Transition, Update, UpdateIndex, Value,
};

/// The system with an array for each counter that can be one.
pub fn as_elements(system: &ArraySystem) -> ArraySystem {
    let mut written = system.clone();
    for cell in 0..system.cells.len() as ArrayIndex {
        let (declared, arrays) = (system.cell(cell), 0..system.cells.len() as ArrayIndex);
        if declared.arity == 0 && declared.weak && declared.ty == CellType::Int {
            let mut ways = arrays.filter_map(|by| Counter { cell, by }.elements(&written));
            if let Some(system) = ways.next() {
                written = system;
            }
        }
    }
    written
}

/// What a comparison says of the counter.
#[derive(Clone, Copy, PartialEq)]
enum Says {
    Zero,
    More,
}

/// A counter, and the array that tells where a thread is.
#[derive(Clone, Copy)]
struct Counter {
    cell: ArrayIndex,
    by: ArrayIndex,
}

impl Counter {
    fn elements(self, system: &ArraySystem) -> Option<ArraySystem> {
        let counted = self.counted(system)?;
        let mut new = system.clone();
        let declared = &mut new.cells[usize::from(self.cell)];
        (declared.arity, declared.ty) = (1, CellType::Bool);
        new.init.body = self.starts(system)?;
        if system.assumed.iter().any(|q| self.in_formula(&q.body)) {
            return None;
        }
        new.transitions.clear();
        for t in &system.transitions {
            let unreached = self.source(t).is_some_and(|l| !counted.contains_key(&l));
            if !unreached {
                new.transitions.extend(self.steps(system, t)?);
            }
        }
        new.bad.clear();
        for q in &system.bad {
            self.bad(system, q, &mut new)?;
        }
        Some(new)
    }

    /// For each place that a thread may be at, whether it has counted up.
    fn counted(self, system: &ArraySystem) -> Option<BTreeMap<u16, bool>> {
        let by = system.cell(self.by);
        if by.arity != 1 || by.weak || !matches!(by.ty, CellType::Declared(_)) {
            return None;
        }
        let first = system.init.body.conjuncts().iter();
        let first = first.filter_map(|f| self.place(f, ThreadTerm::Param(0)));
        let mut work: Vec<(u16, bool)> = first.map(|l| (l, false)).collect();
        let mut counted = BTreeMap::new();
        while let Some((place, has)) = work.pop() {
            match counted.insert(place, has) {
                Some(before) if before != has => return None,
                Some(_) => continue,
                None => {}
            }
            for t in system
                .transitions
                .iter()
                .filter(|t| self.source(t) == Some(place))
            {
                let has = match (self.counts(t)?, has) {
                    (None, has) => has,
                    (Some(true), false) => true,
                    (Some(false), true) => false,
                    (Some(_), _) => return None,
                };
                work.push((self.target(t)?.unwrap_or(place), has));
            }
        }
        // Who does not say where it is neither goes nor counts.
        let nowhere = system
            .transitions
            .iter()
            .filter(|t| self.source(t).is_none());
        let stays = |t: &Transition| self.target(t) == Some(None) && self.counts(t) == Some(None);
        let many = counted.is_empty() || !nowhere.into_iter().all(stays);
        (!many).then_some(counted)
    }

    /// Which place the formula says that the thread is at.
    fn place(self, f: &Formula, thread: ThreadTerm) -> Option<u16> {
        match f {
            Formula::Atom(Literal {
                left: Term::Read(a),
                op: Comparison::Eq,
                right: Term::Constructor(_, l),
            }) if a.cell == self.by && a.args == [thread] => Some(*l),
            _ => None,
        }
    }

    fn source(self, t: &Transition) -> Option<u16> {
        let actor = ThreadTerm::Param(t.actor?);
        let mut parts = t.guard.conjuncts().iter();
        parts.find_map(|f| self.place(f, actor))
    }

    /// Where the transition goes, if it goes anywhere.
    fn target(self, t: &Transition) -> Option<Option<u16>> {
        let Some(value) = only(t, self.by)? else {
            return Some(None);
        };
        let update = t.updates.iter().find(|u| u.cell == self.by)?;
        let own = UpdateIndex::At(ThreadTerm::Param(t.actor?));
        match value {
            Term::Constructor(_, l) if update.index == [own] => Some(Some(*l)),
            _ => None,
        }
    }

    /// Whether the transition counts, and whether up.
    fn counts(self, t: &Transition) -> Option<Option<bool>> {
        let Some(value) = only(t, self.cell)? else {
            return Some(None);
        };
        match value {
            Term::Sum { parts, constant } if self.is_one(parts) && constant.abs() == 1 => {
                Some(Some(*constant > 0))
            }
            _ => None,
        }
    }

    fn is_one(self, parts: &[(i64, Access)]) -> bool {
        matches!(parts, [(1, a)] if a.cell == self.cell)
    }

    fn in_formula(self, f: &Formula) -> bool {
        let mut found = false;
        f.for_each_access(&mut |a| found |= a.cell == self.cell);
        found
    }

    fn in_term(self, t: &Term) -> bool {
        let mut found = false;
        t.for_each_access(&mut |a| found |= a.cell == self.cell);
        found
    }

    /// The initial states: no element is true instead of the counter being 0.
    fn starts(self, system: &ArraySystem) -> Option<Formula> {
        if system.init.params.is_empty() {
            return None;
        }
        let mut at_zero = false;
        let parts = system.init.body.conjuncts().iter().map(|f| {
            if !self.in_formula(f) {
                return Some(f.clone());
            }
            let exact = matches!(f, Formula::Atom(l) if l.op == Comparison::Eq);
            at_zero |= exact && self.says(f) == Some(Says::Zero);
            at_zero.then(|| self.element(ThreadTerm::Param(0), false))
        });
        let parts = parts.collect::<Option<Vec<_>>>()?;
        at_zero.then_some(Formula::And(parts))
    }

    /// What a comparison with a constant says: it must hold of 0 and of nothing else, or the other way round.
    fn says(self, f: &Formula) -> Option<Says> {
        let Formula::Atom(Literal { left, op, right }) = f else {
            return None;
        };
        let (
            Term::Sum { parts, constant },
            Term::Sum {
                parts: q,
                constant: d,
            },
        ) = (left, right)
        else {
            return None;
        };
        let bound = d.checked_sub(*constant)?;
        match (
            self.is_one(parts) && q.is_empty(),
            self.is_one(q) && parts.is_empty(),
        ) {
            (true, _) => match (op, bound) {
                (Comparison::Eq | Comparison::Le, 0) | (Comparison::Lt, 1) => Some(Says::Zero),
                (Comparison::Ne, 0) => Some(Says::More),
                _ => None,
            },
            (_, true) => match (op, -bound) {
                (Comparison::Eq, 0) => Some(Says::Zero),
                (Comparison::Ne | Comparison::Lt, 0) | (Comparison::Le, 1) => Some(Says::More),
                _ => None,
            },
            (false, false) => None,
        }
    }

    fn read(self, thread: ThreadTerm) -> Term {
        Term::Read(Access {
            cell: self.cell,
            args: vec![thread],
            reader: None,
        })
    }

    fn element(self, thread: ThreadTerm, value: bool) -> Formula {
        Formula::Atom(Literal {
            left: self.read(thread),
            op: Comparison::Eq,
            right: Term::Bool(value),
        })
    }

    /// The conditions with what they say of the counter told by elements, each with its parameters: one of the
    /// threads has a true one, or none has.
    fn conditions(self, f: &Formula, params: &[String]) -> Option<Vec<(Vec<String>, Formula)>> {
        let (about, mut rest): (Vec<Formula>, Vec<Formula>) =
            (f.conjuncts().iter().cloned()).partition(|f| self.in_formula(f));
        let said: Option<Vec<Says>> = about.iter().map(|f| self.says(f)).collect();
        let said = said?;
        let more = said.contains(&Says::More);
        if said.contains(&Says::Zero) {
            if more {
                return Some(Vec::new());
            }
            let named = (0..params.len()).map(|i| ThreadTerm::Param(i as u8));
            rest.extend(named.map(|t| self.element(t, false)));
            rest.push(Formula::Others {
                all: true,
                variable: "j".into(),
                body: Box::new(self.element(ThreadTerm::Param(params.len() as u8), false)),
            });
        }
        if !more {
            return Some(vec![(params.to_vec(), Formula::And(rest))]);
        }
        // A parameter more would be the number of a thread that is bound.
        if rest.iter().any(Formula::speaks_of_others) {
            return None;
        }
        let ways = (0..=params.len()).map(|i| {
            let (mut params, mut parts) = (params.to_vec(), rest.clone());
            parts.push(self.element(ThreadTerm::Param(i as u8), true));
            if i == params.len() {
                params.push(format!("q{i}"));
            }
            (params, Formula::And(parts))
        });
        Some(ways.collect())
    }

    fn steps(self, system: &ArraySystem, t: &Transition) -> Option<Vec<Transition>> {
        let up = self.counts(t)?;
        let mut t = t.clone();
        let atomic = system.is_atomic(&t);
        for u in &mut t.updates {
            if u.cell == self.cell {
                let own = ThreadTerm::Param(t.actor?);
                *u = stored(self.cell, own, u.span, up?);
            }
        }
        let mut fits = true;
        t.updates.retain(|u| {
            let about = |b: &Branch| match &b.value {
                Value::Term(v) => self.in_term(v),
                Value::Any => false,
            };
            fits &= !u.branches.iter().any(|b| self.in_formula(&b.condition));
            let goes = u.cell != self.cell && u.branches.iter().any(about);
            // Only what nobody reads can be left out.
            fits &= !goes || !is_read(system, u.cell);
            !goes
        });
        let each = |i: &UpdateIndex| matches!(i, UpdateIndex::Each(_));
        let each = t.updates.iter().any(|u| u.index.iter().any(each));
        if !fits {
            return None;
        }
        let mut all = Vec::new();
        for (params, mut guard) in self.conditions(&t.guard, &t.params)? {
            if each && params.len() > t.params.len() {
                return None;
            }
            if let (Some(up), Some(actor)) = (up, t.actor) {
                let own = self.element(ThreadTerm::Param(actor), !up);
                guard = Formula::And([guard.conjuncts(), &[own]].concat());
            }
            all.push(Transition {
                params,
                guard,
                ..t.clone()
            });
        }
        let weak = |t: &Transition| {
            let writes = t.updates.iter().any(|u| system.cell(u.cell).weak);
            let mut reads = false;
            t.for_each_access(&mut |a| reads |= system.cell(a.cell).weak);
            writes && !reads
        };
        // Whoever read the counter and stored something else did so in one step.
        if atomic && all.iter().any(weak) {
            return None;
        }
        all.retain(|t| !t.updates.is_empty());
        Some(all)
    }

    /// A bad condition. That all elements are false is no such condition: the thread itself looks, in a step of
    /// its own, and remembers.
    fn bad(self, system: &ArraySystem, q: &Quantified, new: &mut ArraySystem) -> Option<()> {
        for (params, body) in self.conditions(&q.body, &q.params)? {
            if !body.speaks_of_others() {
                let span = q.span;
                new.bad.push(Quantified { params, body, span });
                continue;
            }
            let me = ThreadTerm::Param(0);
            let mut own = params.len() == 1;
            q.body.for_each_access(&mut |a| {
                let seen = !system.cell(a.cell).weak || a.reader == Some(me);
                let local = a.args.first() == Some(&me) || system.cell(a.cell).weak;
                own &= a.cell == self.cell || seen && local;
            });
            if !own {
                return None;
            }
            let cell = new.cells.len() as ArrayIndex;
            new.cells.push(CellDecl {
                name: format!("Sees_{}", system.cell(self.cell).name),
                arity: 1,
                ty: CellType::Bool,
                weak: false,
                constant: false,
                span: q.span,
            });
            let saw = |value| Counter { cell, by: cell }.element(me, value);
            let starts = [new.init.body.conjuncts(), &[saw(false)]].concat();
            new.init.body = Formula::And(starts);
            let mut guard = body;
            unread(&mut guard);
            new.transitions.push(Transition {
                name: format!("sees_{}", new.transitions.len()),
                params: params.clone(),
                actor: Some(0),
                fence: None,
                guard,
                updates: vec![stored(cell, me, q.span, true)],
                span: q.span,
            });
            new.bad.push(Quantified {
                params,
                body: saw(true),
                span: q.span,
            });
        }
        Some(())
    }
}

/// What the transition stores in the cell, if anything; nothing if that depends on something.
fn only(t: &Transition, cell: ArrayIndex) -> Option<Option<&Term>> {
    let mut all = t.updates.iter().filter(|u| u.cell == cell);
    let Some(update) = all.next() else {
        return Some(None);
    };
    match &update.branches[..] {
        [
            Branch {
                condition,
                value: Value::Term(v),
            },
        ] if condition.is_true() && all.next().is_none() => Some(Some(v)),
        _ => None,
    }
}

fn stored(cell: ArrayIndex, thread: ThreadTerm, span: Span, value: bool) -> Update {
    Update {
        cell,
        index: vec![UpdateIndex::At(thread)],
        branches: vec![Branch {
            condition: Formula::TRUE,
            value: Value::Term(Term::Bool(value)),
        }],
        span,
    }
}

fn is_read(system: &ArraySystem, cell: ArrayIndex) -> bool {
    let mut found = false;
    let mut look = |a: &Access| found |= a.cell == cell;
    let conditions = system.bad.iter().chain(&system.assumed);
    conditions.for_each(|q| q.body.for_each_access(&mut look));
    let transitions = system.transitions.iter();
    transitions.for_each(|t| t.for_each_access(&mut look));
    found
}

/// In a transition whoever acts reads.
fn unread(f: &mut Formula) {
    match f {
        Formula::And(list) | Formula::Or(list) => list.iter_mut().for_each(unread),
        Formula::Others { body, .. } => unread(body),
        Formula::Atom(l) => {
            for side in [&mut l.left, &mut l.right] {
                match side {
                    Term::Read(a) => a.reader = None,
                    Term::Sum { parts, .. } => {
                        parts.iter_mut().for_each(|(_, a)| a.reader = None);
                    }
                    Term::Bool(_) | Term::Constructor(..) | Term::Thread(_) => {}
                }
            }
        }
    }
}
