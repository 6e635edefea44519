//! Sums that Cubicle has no words for, counted one by one.
//!
//! Its numbers are a cell, a constant, or one of them plus or minus the other. What a transition needs of `x + r` is
//! counted beforehand: numbers of the acting thread, one for each part and one for the sum, begin with 0 and go up and
//! down, a part and the sum at a time, wherever the thread may take the transition. It is taken only where the cells
//! hold just those parts. The sum is then what it has to be, and every sum can be had: what the system reaches it
//! reaches so, and nothing else.

use std::collections::BTreeMap;
use wattle_model::Span;
use wattle_model::array::{
    Access, ArrayIndex, ArraySystem, Branch, CellDecl, CellType, Comparison, Formula, Literal,
    Term, ThreadTerm, Transition, Update, UpdateIndex, Value,
};

/// The system with such sums counted.
pub fn counted(system: &ArraySystem) -> ArraySystem {
    let mut sums = Sums {
        cells: system.cells.clone(),
        counters: BTreeMap::new(),
    };
    let mut transitions = Vec::new();
    for t in &system.transitions {
        let Some(actor) = t.actor else {
            transitions.push(t.clone());
            continue;
        };
        let mut met = Met {
            sums: &mut sums,
            me: ThreadTerm::Param(actor),
            params: t.params.len(),
            counted: Vec::new(),
        };
        let t = met.transition(t);
        let counted = met.counted;
        transitions.extend(counted.iter().flat_map(|c| sums.moves(&t, actor, c)));
        transitions.push(t);
    }
    let mut written = system.clone();
    let first = written.cells.len();
    written.cells = sums.cells;
    written.transitions = transitions;
    if written.cells.len() > first {
        let init = &mut written.init;
        if init.params.is_empty() {
            init.params.push("p".into());
        }
        let zero = |cell| equal(number(cell, ThreadTerm::Param(0)), constant(0));
        let body = std::mem::replace(&mut init.body, Formula::TRUE);
        let cells = (first..written.cells.len()).map(|c| zero(c as ArrayIndex));
        init.body = Formula::And([body].into_iter().chain(cells).collect()).simplified();
    }
    written
}

/// What is counted for one sum: the number that goes with each part, and the sum.
#[derive(Clone)]
struct Counted {
    factors: Vec<i64>,
    parts: Vec<ArrayIndex>,
    sum: ArrayIndex,
}

struct Sums {
    cells: Vec<CellDecl>,
    /// Of the so manieth sum of a transition, by its factors: transitions share them.
    counters: BTreeMap<(usize, Vec<i64>), Counted>,
}

impl Sums {
    fn counter(&mut self, n: usize, factors: &[i64]) -> Counted {
        let key = (n, factors.to_vec());
        if let Some(known) = self.counters.get(&key) {
            return known.clone();
        }
        let one = self.counters.len();
        let mut cell = |name: String| {
            self.cells.push(CellDecl {
                name,
                arity: 1,
                ty: CellType::Int,
                weak: false,
                constant: false,
                span: Span::NONE,
            });
            (self.cells.len() - 1) as ArrayIndex
        };
        let counted = Counted {
            factors: factors.to_vec(),
            parts: (0..factors.len())
                .map(|i| cell(format!("Part_{one}_{i}")))
                .collect(),
            sum: cell(format!("Sum_{one}")),
        };
        self.counters.insert(key, counted.clone());
        counted
    }

    /// Each part up and down, and the sum with it, where the transition's thread is.
    fn moves(&self, t: &Transition, actor: u8, counted: &Counted) -> Vec<Transition> {
        let place = place(&self.cells, &t.guard, ThreadTerm::Param(actor));
        let parts = counted.factors.iter().zip(&counted.parts);
        let ways = parts.flat_map(|(k, part)| [(1, *k, *part), (-1, k.saturating_neg(), *part)]);
        ways.map(|(step, more, part)| Transition {
            name: format!("count_{}", t.name),
            params: vec!["p".into()],
            actor: Some(0),
            fence: None,
            guard: place.clone(),
            updates: vec![added(part, step), added(counted.sum, more)],
            span: t.span,
        })
        .collect()
    }
}

/// A transition whose sums are looked at.
struct Met<'s> {
    sums: &'s mut Sums,
    me: ThreadTerm,
    /// How many threads it names.
    params: usize,
    counted: Vec<Counted>,
}

impl Met<'_> {
    fn transition(&mut self, t: &Transition) -> Transition {
        let mut t = t.clone();
        let mut held = Vec::new();
        self.formula(&mut t.guard, &mut held);
        for u in &mut t.updates {
            for b in &mut u.branches {
                self.formula(&mut b.condition, &mut held);
                if let Value::Term(Term::Sum { parts, constant }) = &b.value
                    && !matches!(&parts[..], [] | [(1, _)])
                    && let Some(sum) = self.sum(parts, *constant, &mut held)
                {
                    b.value = Value::Term(sum);
                }
            }
        }
        if !held.is_empty() {
            t.guard = Formula::And([t.guard].into_iter().chain(held).collect()).simplified();
        }
        t
    }

    fn formula(&mut self, f: &mut Formula, held: &mut Vec<Formula>) {
        match f {
            Formula::And(all) | Formula::Or(all) => {
                all.iter_mut().for_each(|f| self.formula(f, held));
            }
            Formula::Atom(l) => self.literal(l, held),
            Formula::Others { .. } => {}
        }
    }

    fn literal(&mut self, l: &mut Literal, held: &mut Vec<Formula>) {
        let (Some((mut sum, c)), Some((right, d))) = (sum_of(&l.left), sum_of(&l.right)) else {
            return;
        };
        for (k, access) in right {
            let known = sum.iter_mut().find(|(_, a)| *a == access);
            match (k.checked_neg(), known) {
                (Some(less), None) => sum.push((less, access)),
                (Some(less), Some((n, _))) => match n.checked_add(less) {
                    Some(total) => *n = total,
                    None => return,
                },
                (None, _) => return,
            }
        }
        sum.retain(|(k, _)| *k != 0);
        let mut factors: Vec<i64> = sum.iter().map(|(k, _)| *k).collect();
        factors.sort_unstable();
        // A cell and a constant, or two cells.
        if matches!(&factors[..], [] | [-1 | 1] | [-1, 1]) {
            return;
        }
        if let Some(c) = d.checked_sub(c)
            && let Some(left) = self.sum(&sum, 0, held)
        {
            (l.left, l.right) = (left, constant(c));
        }
    }

    /// The counted sum, which must be that of these parts.
    fn sum(
        &mut self,
        parts: &[(i64, Access)],
        constant: i64,
        held: &mut Vec<Formula>,
    ) -> Option<Term> {
        let named = |t: &ThreadTerm| match t {
            ThreadTerm::Param(p) => usize::from(*p) < self.params,
            ThreadTerm::Constant(_) => true,
        };
        if parts.iter().any(|(_, a)| !a.args.iter().all(named)) {
            return None;
        }
        let factors: Vec<i64> = parts.iter().map(|(k, _)| *k).collect();
        let counted = self.sums.counter(self.counted.len(), &factors);
        for ((_, access), part) in parts.iter().zip(&counted.parts) {
            let cell = Term::Sum {
                parts: vec![(1, access.clone())],
                constant: 0,
            };
            held.push(equal(number(*part, self.me), cell));
        }
        let sum = Access {
            cell: counted.sum,
            args: vec![self.me],
            reader: None,
        };
        self.counted.push(counted);
        Some(Term::Sum {
            parts: vec![(1, sum)],
            constant,
        })
    }
}

fn sum_of(t: &Term) -> Option<(Vec<(i64, Access)>, i64)> {
    match t {
        Term::Sum { parts, constant } => Some((parts.clone(), *constant)),
        Term::Bool(_) | Term::Constructor(..) | Term::Thread(_) | Term::Read(_) => None,
    }
}

/// What the guard says of where the thread is, of a thread that is the only one.
fn place(cells: &[CellDecl], guard: &Formula, me: ThreadTerm) -> Formula {
    let said = match guard {
        Formula::And(all) => &all[..],
        one => std::slice::from_ref(one),
    };
    let of_me = |t: &Term| match t {
        Term::Read(a) => a.args == [me] && !cells[usize::from(a.cell)].weak,
        Term::Constructor(..) => true,
        Term::Bool(_) | Term::Thread(_) | Term::Sum { .. } => false,
    };
    let alone = |t: &Term| match t {
        Term::Read(a) => Term::Read(Access {
            args: vec![ThreadTerm::Param(0)],
            ..a.clone()
        }),
        other => other.clone(),
    };
    let kept = said.iter().filter_map(|f| match f {
        Formula::Atom(l) if of_me(&l.left) && of_me(&l.right) => Some(Formula::Atom(Literal {
            left: alone(&l.left),
            op: l.op,
            right: alone(&l.right),
        })),
        _ => None,
    });
    Formula::And(kept.collect()).simplified()
}

fn number(cell: ArrayIndex, thread: ThreadTerm) -> Term {
    let access = Access {
        cell,
        args: vec![thread],
        reader: None,
    };
    Term::Sum {
        parts: vec![(1, access)],
        constant: 0,
    }
}

fn constant(constant: i64) -> Term {
    Term::Sum {
        parts: Vec::new(),
        constant,
    }
}

fn equal(left: Term, right: Term) -> Formula {
    let op = Comparison::Eq;
    Formula::Atom(Literal { left, op, right })
}

/// One's own number becomes so much more.
fn added(cell: ArrayIndex, more: i64) -> Update {
    let me = ThreadTerm::Param(0);
    let access = Access {
        cell,
        args: vec![me],
        reader: None,
    };
    let value = Value::Term(Term::Sum {
        parts: vec![(1, access)],
        constant: more,
    });
    Update {
        cell,
        index: vec![UpdateIndex::At(me)],
        branches: vec![Branch {
            condition: Formula::TRUE,
            value,
        }],
        span: Span::NONE,
    }
}
