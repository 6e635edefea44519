//! Going through all threads of a family one by one: `q = 0`, `q == count(f) - 1`, `q = q + 1` and
//! the order of identifiers. Threads are ordered by number; the first, the last and the next one are
//! described by universal guards.

use super::expr::{Identity, Val};
use super::paths::{ME, Path};
use super::variables::{Holds, Variable};
use super::{Lowering, Refused, access, different, equal, refuse};
use wattle_model::array::{Access, Comparison, Formula, Literal, Term, ThreadTerm};
use wattle_model::program::Local;
use wattle_model::{Expr, FamilyId, Op1, Op2, RegionId, RegisterId, Span};

/// Something that holds of every thread; of the order, every thread of a family.
#[derive(Clone, Debug)]
pub enum Every {
    /// Its element of a counter.
    Element(RegionId, bool),
    Before(FamilyId, ThreadTerm),
    After(FamilyId, ThreadTerm),
    /// It is not between two threads.
    Outside(FamilyId, ThreadTerm, ThreadTerm),
}

/// The ways to name the thread in a register, and those on which there is none.
#[derive(Default)]
pub(super) struct Bound {
    pub named: Vec<(Path, ThreadTerm)>,
    pub broken: Vec<Path>,
}

/// A value of a scanning register.
pub(super) enum Scan {
    First,
    After(RegisterId),
}

/// `0` or a register plus one.
pub(super) fn scan(e: &Expr<Local>) -> Option<Scan> {
    match e {
        Expr::Const(0) => Some(Scan::First),
        Expr::Unary(Op1::Wrap { .. }, a) => scan(a),
        Expr::Binary(Op2::Add, a, b) => match (&**a, &**b) {
            (Expr::Atom(Local::Register(r)), Expr::Const(1))
            | (Expr::Const(1), Expr::Atom(Local::Register(r))) => Some(Scan::After(*r)),
            _ => None,
        },
        Expr::Const(_) | Expr::Atom(_) | Expr::Unary(..) | Expr::Binary(..) | Expr::Ite(..) => None,
    }
}

/// A register compared with the last thread of a family: which, and whether `==`.
pub(super) fn last(e: &Expr<Local>) -> Option<(RegisterId, FamilyId, bool)> {
    let count = |e: &Expr<Local>| match e {
        Expr::Binary(Op2::Sub, a, b) => match (&**a, &**b) {
            (Expr::Atom(Local::Count(f)), Expr::Const(1)) => Some(*f),
            _ => None,
        },
        Expr::Const(_) | Expr::Atom(_) | Expr::Unary(..) | Expr::Binary(..) | Expr::Ite(..) => None,
    };
    match e {
        Expr::Unary(Op1::Not, a) => last(a).map(|(r, f, is)| (r, f, !is)),
        Expr::Binary(op, a, b) => {
            let (register, other) = match (&**a, &**b) {
                (Expr::Atom(Local::Register(r)), other) => (*r, other),
                (other, Expr::Atom(Local::Register(r))) => (*r, other),
                _ => return None,
            };
            let flipped = matches!(&**b, Expr::Atom(Local::Register(_)));
            let is = match (op, flipped) {
                (Op2::Eq, _) | (Op2::Ge, false) | (Op2::Le, true) => true,
                (Op2::Ne, _) | (Op2::Lt, false) | (Op2::Gt, true) => false,
                _ => return None,
            };
            Some((register, count(other)?, is))
        }
        Expr::Const(_) | Expr::Atom(_) | Expr::Unary(..) | Expr::Ite(..) => None,
    }
}

/// Registers in comparisons by order.
pub(super) fn ordered(e: &Expr<Local>, found: &mut Vec<RegisterId>) {
    match e {
        Expr::Binary(Op2::Lt | Op2::Le | Op2::Gt | Op2::Ge, a, b) => {
            for side in [a, b] {
                side.for_each_atom(&mut |l| {
                    if let Local::Register(r) = l
                        && !found.contains(r)
                    {
                        found.push(*r);
                    }
                });
            }
        }
        Expr::Unary(_, a) => ordered(a, found),
        Expr::Binary(_, a, b) => {
            ordered(a, found);
            ordered(b, found);
        }
        Expr::Ite(c, a, b) => {
            ordered(c, found);
            ordered(a, found);
            ordered(b, found);
        }
        Expr::Const(_) | Expr::Atom(_) => {}
    }
}

pub(super) fn before(a: ThreadTerm, b: ThreadTerm) -> Formula {
    Formula::Atom(Literal {
        left: Term::Thread(a),
        op: Comparison::Lt,
        right: Term::Thread(b),
    })
}

impl Lowering<'_> {
    /// The thread in a cell, on each way to name it.
    pub(super) fn held(&self, path: Path, cell: &Access, none: &Access) -> Vec<(Path, ThreadTerm)> {
        let mut path = path;
        let somebody = equal(Term::Read(none.clone()), Term::Bool(false));
        path.guards.push(somebody);
        let named = self.pick(path, &[]).into_iter();
        named
            .map(|(mut p, t)| {
                p.guards
                    .push(equal(Term::Read(cell.clone()), Term::Thread(t)));
                (p, t)
            })
            .collect()
    }

    /// Gives the thread in a register a name. Where it holds none the path breaks: the order of
    /// nobody is not treated.
    pub(super) fn bind(&self, f: FamilyId, path: Path, r: RegisterId) -> Bound {
        let named = path.bound.iter().find(|(q, _)| *q == r);
        let held = match (path.registers.get(&r), named) {
            (Some(v), _) => v.clone(),
            (None, Some((_, t))) => Val::Thread(Identity::Is(*t)),
            (None, None) => self.register(f, r, ME),
        };
        let mut out = Bound::default();
        match held {
            Val::Thread(Identity::Is(t)) => out.named.push((path, t)),
            Val::Thread(Identity::Held { cell, none }) => {
                let mut nobody = path.clone();
                let unset = equal(Term::Read(none.clone()), Term::Bool(true));
                nobody.guards.push(unset);
                nobody.broken = true;
                out.broken.push(nobody);
                out.named = self.held(path, &cell, &none);
                for (p, t) in &mut out.named {
                    match p.registers.get_mut(&r) {
                        Some(v) => *v = Val::Thread(Identity::Is(*t)),
                        None => p.bound.push((r, *t)),
                    }
                }
            }
            Val::Thread(Identity::None) | Val::Number(_) | Val::Share(_) | Val::Counter { .. } => {
                let mut nobody = path;
                nobody.broken = true;
                out.broken.push(nobody);
            }
        }
        out
    }

    /// What a path demands of every thread, with the threads named by the end of the path.
    pub(super) fn everyone(&self, path: &Path) -> Vec<Formula> {
        let bound = ThreadTerm::Param(path.params.len() as u8);
        let mut out = Vec::new();
        for (except, what) in &path.every {
            for i in 0..path.params.len() {
                let t = ThreadTerm::Param(i as u8);
                if !except.contains(&t) {
                    out.push(self.each(what, t));
                }
            }
            out.push(Formula::Others {
                all: true,
                variable: "j".into(),
                body: Box::new(self.each(what, bound)),
            });
        }
        out
    }

    fn each(&self, what: &Every, t: ThreadTerm) -> Formula {
        let (f, order) = match what {
            Every::Element(region, value) => return self.element(*region, t, *value),
            Every::Before(f, u) => (f, before(t, *u)),
            Every::After(f, u) => (f, before(*u, t)),
            Every::Outside(f, u, v) => (f, Formula::Or(vec![before(t, *u), before(*v, t)])),
        };
        match self.family_cell() {
            None => order,
            Some(cell) => {
                let family = Term::Read(access(cell, &[t]));
                let other = different(family, self.family_value(f.index()));
                Formula::Or(vec![other, order])
            }
        }
    }

    fn of_family(&self, path: &mut Path, f: FamilyId, t: ThreadTerm) {
        if let Some(cell) = self.family_cell() {
            let family = Term::Read(access(cell, &[t]));
            path.guards
                .push(equal(family, self.family_value(f.index())));
        }
    }

    /// The first thread of a family, for a thread of the family `f`.
    pub(super) fn first(&self, f: FamilyId, path: Path, of: FamilyId) -> Vec<(Path, ThreadTerm)> {
        let except: &[ThreadTerm] = if f == of { &[] } else { &[ME] };
        let mut all = self.pick(path, except);
        for (p, t) in &mut all {
            self.of_family(p, of, *t);
            p.every.push((vec![*t], Every::After(of, *t)));
        }
        all
    }

    /// The thread after `t` in a family, for a thread of the family `f`.
    pub(super) fn next(
        &self,
        f: FamilyId,
        path: Path,
        of: FamilyId,
        t: ThreadTerm,
    ) -> Vec<(Path, ThreadTerm)> {
        if let Some((_, next)) = path.next.iter().find(|(u, _)| *u == t) {
            let next = *next;
            return vec![(path, next)];
        }
        let except: &[ThreadTerm] = if f == of { &[t] } else { &[t, ME] };
        let mut all = self.pick(path, except);
        for (p, next) in &mut all {
            self.of_family(p, of, *next);
            p.guards.push(before(t, *next));
            p.every.push((vec![t, *next], Every::Outside(of, t, *next)));
            p.next.push((t, *next));
        }
        all
    }

    /// The paths on which a register holds the family's last thread, or does not.
    pub(super) fn is_last(
        &self,
        f: FamilyId,
        path: Path,
        (register, family, is): (RegisterId, FamilyId, bool),
        span: Span,
    ) -> Result<Vec<Path>, Refused> {
        if *self.variables.of(Variable::Register(f, register)) != Holds::Threads(family) {
            return Err(refuse(
                span,
                "identifiers of two families of threads are mixed",
                "compare with the last thread of the register's own family",
            ));
        }
        let bound = self.bind(f, path, register);
        let mut out = bound.broken;
        for (mut p, t) in bound.named {
            if is {
                p.every.push((vec![t], Every::Before(family, t)));
                out.push(p);
            } else {
                out.extend(self.next(f, p, family, t).into_iter().map(|(p, _)| p));
            }
        }
        Ok(out)
    }
}

impl Lowering<'_> {
    /// Whether what a path says of its named threads contradicts itself: different names are different
    /// threads, a cell holds one of them, and their order has no circle.
    pub(super) fn contradictory(&self, path: &Path) -> bool {
        let families = self.program.families.len();
        let mut order: Vec<(ThreadTerm, ThreadTerm)> = Vec::new();
        let mut said = path.guards.clone();
        for (except, what) in &path.every {
            let params = (0..path.params.len()).map(|i| ThreadTerm::Param(i as u8));
            for t in params.filter(|t| !except.contains(t)) {
                match what {
                    // Nothing is said of the threads of other families.
                    Every::Before(_, u) if families == 1 => order.push((t, *u)),
                    Every::After(_, u) if families == 1 => order.push((*u, t)),
                    Every::Element(..) => said.push(self.each(what, t)),
                    Every::Before(..) | Every::After(..) | Every::Outside(..) => {}
                }
            }
        }
        let mut held: Vec<(&Access, &Term, Comparison)> = Vec::new();
        for g in &said {
            let Formula::Atom(Literal { left, op, right }) = g else {
                continue;
            };
            match (left, op, right) {
                (Term::Thread(a), Comparison::Lt, Term::Thread(b)) => order.push((*a, *b)),
                (Term::Thread(a), Comparison::Le, Term::Thread(b)) if a != b => {
                    order.push((*a, *b));
                }
                (Term::Thread(a), Comparison::Eq, Term::Thread(b)) if a != b => return true,
                (Term::Thread(a), Comparison::Ne, Term::Thread(b)) if a == b => return true,
                (
                    Term::Read(a),
                    op,
                    v @ (Term::Thread(_) | Term::Bool(_) | Term::Constructor(..)),
                ) => {
                    held.push((a, v, *op));
                }
                _ => {}
            }
        }
        let two = held.iter().enumerate().any(|(i, (a, v, op))| {
            held[..i].iter().any(|(b, w, other)| {
                let differ = match (op, other) {
                    (Comparison::Eq, Comparison::Eq) => v != w,
                    _ => v == w && op != other,
                };
                a == b && differ
            })
        });
        two || circle(order)
    }
}

fn circle(mut order: Vec<(ThreadTerm, ThreadTerm)>) -> bool {
    loop {
        let more: Vec<_> = order
            .iter()
            .flat_map(|(a, b)| {
                order
                    .iter()
                    .filter(move |(c, _)| c == b)
                    .map(|(_, d)| (*a, *d))
            })
            .filter(|pair| !order.contains(pair))
            .collect();
        if order.iter().chain(&more).any(|(a, b)| a == b) {
            return true;
        }
        if more.is_empty() {
            return false;
        }
        order.extend(more);
        order.sort_unstable_by_key(|(a, b)| (format!("{a:?}"), format!("{b:?}")));
        order.dedup();
    }
}
