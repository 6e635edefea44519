//! What each register and region holds: few constants, thread identifiers, a count of threads, or
//! numbers. Found by following constants through the program until nothing changes.

use super::expr::symbolic;
use super::scan::scan;
use super::{Lowering, Refused, access, equal, refuse};
use std::collections::{BTreeMap, BTreeSet};
use wattle_model::array::{CellType, Formula, Term, ThreadTerm};
use wattle_model::graph::Action;
use wattle_model::program::Local;
use wattle_model::{Expr, FamilyId, Init, Length, Place, Program, RegionId, RegisterId, Type};

/// A counter that is neither 0 nor all; larger than any number a program compares it with.
pub const SOME: i64 = 1 << 40;
/// A counter that counts all threads.
pub const ALL: i64 = 1 << 41;

/// A register of a family or a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Variable {
    Register(FamilyId, RegisterId),
    Region(RegionId),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holds {
    Few(BTreeSet<i64>),
    Numbers,
    Threads(FamilyId),
    /// Only regions: as many threads as the array has true elements.
    Counter,
}

#[derive(Clone, Debug, Default)]
pub struct Variables {
    pub holds: BTreeMap<Variable, Holds>,
    types: BTreeMap<Variable, Type>,
    /// All constants of finite variables.
    pub values: Vec<i64>,
    /// The first cell of each variable (a thread variable has a second one for `none`).
    pub cells: BTreeMap<Variable, u16>,
}

/// More constants than this count as numbers.
const FEW: usize = 12;

impl Variables {
    pub fn infer(program: &Program) -> Result<Self, Refused> {
        let mut v = Variables::default();
        for (r, region) in program.regions.iter().enumerate() {
            let id = Variable::Region(RegionId::new(r));
            v.start(id, region.ty, &region.init, program);
            if program.families.len() > 1 && *v.of(id) == Holds::Counter {
                return Err(refuse(
                    region.span,
                    format!(
                        "`{}` counts the threads of one family among several",
                        region.name
                    ),
                    "counters are treated for programs with one family of threads",
                ));
            }
        }
        for (f, family) in program.families.iter().enumerate() {
            for (r, register) in family.registers.iter().enumerate() {
                let id = Variable::Register(FamilyId::new(f), RegisterId::new(r));
                v.start(id, register.ty, &register.init, program);
            }
        }
        loop {
            let before = v.holds.clone();
            for (f, family) in program.families.iter().enumerate() {
                let f = FamilyId::new(f);
                for s in &family.steps {
                    v.flow(f, &s.action).map_err(|message| {
                        refuse(s.span, message, "thread identifiers can be copied, compared and used as indexes, nothing else")
                    })?;
                }
            }
            if v.holds == before {
                break;
            }
        }
        let mut values: BTreeSet<i64> = [0, 1].into();
        for h in v.holds.values() {
            if let Holds::Few(set) = h {
                values.extend(set);
            }
        }
        if values.len() > 100 {
            for h in v.holds.values_mut().filter(|h| matches!(h, Holds::Few(_))) {
                *h = Holds::Numbers;
            }
            values = [0, 1].into();
        }
        v.values = values.into_iter().collect();
        Ok(v)
    }

    fn start(&mut self, id: Variable, ty: Type, init: &Init, program: &Program) {
        let holds = match (ty, init) {
            (Type::Thread(f), _) => Holds::Threads(f),
            (_, Init::Any) => match ty.bounds() {
                Some((lo, hi)) if hi - lo < FEW as i64 => Holds::Few((lo..=hi).collect()),
                _ => Holds::Numbers,
            },
            (_, Init::All(Expr::Atom(Local::SelfIndex))) => match id {
                Variable::Register(f, _) => Holds::Threads(f),
                Variable::Region(r) => match program.region(r).length {
                    Length::PerThread(f) => Holds::Threads(f),
                    _ => Holds::Numbers,
                },
            },
            (_, Init::All(Expr::Atom(Local::Count(_)))) => Holds::Counter,
            (_, Init::All(e)) => constant(e).map_or(Holds::Numbers, |c| Holds::Few([c].into())),
            (_, Init::Each(list)) => {
                let all: Option<BTreeSet<i64>> = list.iter().map(constant).collect();
                all.map_or(Holds::Numbers, Holds::Few)
            }
        };
        self.types.insert(id, ty);
        let holds = self.admitted(id, holds);
        self.holds.insert(id, holds);
    }

    pub fn type_of(&self, id: Variable) -> Type {
        self.types.get(&id).copied().unwrap_or(Type::Int)
    }

    /// Constants as the variable's type stores them; what it cannot store is a fault elsewhere.
    fn admitted(&self, id: Variable, holds: Holds) -> Holds {
        let ty = self.type_of(id);
        match holds {
            Holds::Few(set) => {
                let keep = |c: i64| if symbolic(c) { Some(c) } else { ty.admit(c) };
                Holds::Few(set.into_iter().filter_map(keep).collect())
            }
            other => other,
        }
    }

    pub fn of(&self, id: Variable) -> &Holds {
        self.holds.get(&id).unwrap_or(&Holds::Numbers)
    }

    fn flow(&mut self, f: FamilyId, action: &Action<Local, Place>) -> Result<(), String> {
        match action {
            Action::Assign { register, value } => {
                let thread = matches!(self.of(Variable::Register(f, *register)), Holds::Threads(_));
                if thread && scan(value).is_some() {
                    return Ok(());
                }
                let what = self.value(f, value)?;
                self.join(Variable::Register(f, *register), what)
            }
            Action::Havoc { register, range } => {
                let id = Variable::Register(f, *register);
                match (self.of(id), range) {
                    (Holds::Threads(_), None) => Ok(()),
                    (_, Some((lo, hi))) if hi.saturating_sub(*lo) < FEW as i64 => {
                        self.join(id, Holds::Few((*lo..=*hi).collect()))
                    }
                    _ => self.join(id, Holds::Numbers),
                }
            }
            Action::Load {
                register,
                place: Place::Region(r, _),
            } => {
                let what = match self.of(Variable::Region(*r)) {
                    Holds::Counter => Holds::Few([0, SOME, ALL].into()),
                    other => other.clone(),
                };
                self.join(Variable::Register(f, *register), what)
            }
            Action::Store {
                place: Place::Region(r, _),
                value,
            } => {
                if *self.of(Variable::Region(*r)) == Holds::Counter {
                    return Ok(());
                }
                let what = self.value(f, value)?;
                self.join(Variable::Region(*r), what)
            }
            _ => Ok(()),
        }
    }

    fn join(&mut self, id: Variable, what: Holds) -> Result<(), String> {
        let old = self.of(id).clone();
        let what = self.admitted(id, what);
        let new = match (old, what) {
            (Holds::Threads(a), Holds::Threads(b)) if a != b => {
                return Err("identifiers of two families of threads are mixed".into());
            }
            (Holds::Threads(a), Holds::Threads(_)) => Holds::Threads(a),
            // −1 is `none`; 0 is what a variable starts with when nobody says otherwise.
            (Holds::Threads(a), Holds::Few(s)) if s.iter().all(|v| *v == -1) => Holds::Threads(a),
            (Holds::Few(s), Holds::Threads(b)) if s.iter().all(|v| *v == -1) => Holds::Threads(b),
            (Holds::Threads(_), _) | (_, Holds::Threads(_)) => {
                return Err("thread identifiers and numbers are mixed".into());
            }
            (Holds::Few(mut a), Holds::Few(b)) => {
                a.extend(b);
                if a.len() > FEW {
                    Holds::Numbers
                } else {
                    Holds::Few(a)
                }
            }
            (Holds::Counter, _) => Holds::Counter,
            _ => Holds::Numbers,
        };
        self.holds.insert(id, new);
        Ok(())
    }

    /// What an expression may evaluate to.
    fn value(&self, f: FamilyId, e: &Expr<Local>) -> Result<Holds, String> {
        let mut leaves: Vec<&Local> = Vec::new();
        e.for_each_atom(&mut |a| {
            if !leaves.contains(&a) {
                leaves.push(a);
            }
        });
        let alone = matches!(e, Expr::Atom(_));
        let mut domains: Vec<Vec<i64>> = Vec::new();
        for leaf in &leaves {
            let holds = match leaf {
                Local::SelfIndex => Holds::Threads(f),
                Local::Register(r) => self.of(Variable::Register(f, *r)).clone(),
                Local::Count(_) => Holds::Few([ALL].into()),
                Local::AddressOf(_) => Holds::Numbers,
            };
            match holds {
                h if alone => return Ok(h),
                Holds::Few(s) => domains.push(s.into_iter().collect()),
                // Comparisons of identifiers are fine, arithmetic is not.
                Holds::Threads(_) => match is_truth(e) {
                    true => return Ok(Holds::Few([0, 1].into())),
                    false => return Err("arithmetic on a thread identifier".into()),
                },
                _ => match is_truth(e) {
                    true => return Ok(Holds::Few([0, 1].into())),
                    false => return Ok(Holds::Numbers),
                },
            }
        }
        if domains.iter().map(Vec::len).product::<usize>() > 512 {
            return Ok(Holds::Numbers);
        }
        // One more or less than a count is some other count.
        if !is_truth(e) && domains.iter().any(|d| d.contains(&SOME)) {
            return Ok(Holds::Few([0, SOME, ALL].into()));
        }
        let mut out = BTreeSet::new();
        let mut index = vec![0; domains.len()];
        loop {
            let env = |a: &Local| {
                leaves
                    .iter()
                    .position(|l| *l == a)
                    .map_or(0, |i| domains[i][index[i]])
            };
            match e.eval(&env) {
                Ok(v) => {
                    out.insert(v);
                }
                Err(_) => return Ok(Holds::Numbers),
            }
            let next = index.iter_mut().zip(&domains).rev().find_map(|(i, d)| {
                *i += 1;
                if *i < d.len() {
                    return Some(());
                }
                *i = 0;
                None
            });
            if next.is_none() || out.len() > FEW {
                break;
            }
        }
        Ok(if out.len() > FEW {
            Holds::Numbers
        } else {
            Holds::Few(out)
        })
    }
}

pub fn is_truth(e: &Expr<Local>) -> bool {
    e.is_logical()
}

pub fn constant<A>(e: &Expr<A>) -> Option<i64> {
    match e {
        Expr::Const(c) => Some(*c),
        Expr::Unary(op, a) => op.apply(constant(a)?).ok(),
        Expr::Binary(op, a, b) => op.apply(constant(a)?, constant(b)?).ok(),
        _ => None,
    }
}

/// One variable to be declared, with what it starts with.
struct Declared<'d> {
    id: Variable,
    first_element: bool,
    name: String,
    args: &'d [ThreadTerm],
    holds: &'d Holds,
    start: Init,
    /// The constant it starts with, if it does.
    first: Option<i64>,
    weak: bool,
    span: wattle_model::Span,
}

impl Lowering<'_> {
    /// Cells for all variables, with what `init` says of them.
    pub(super) fn declare_variables(&mut self, init: &mut Vec<Formula>) -> Result<(), Refused> {
        let p = ThreadTerm::Param(0);
        let program = self.program;
        for (r, region) in program.regions.iter().enumerate() {
            let id = Variable::Region(RegionId::new(r));
            let holds = self.variables.of(id).clone();
            self.wraps(&region.name, region.ty, &holds);
            let elements = match region.length {
                Length::Array(n) if n <= 16 => n,
                Length::Array(_) => {
                    return Err(refuse(
                        region.span,
                        format!("`{}` is a large array", region.name),
                        "arrays indexed by threads have any length: `shared x[t]`",
                    ));
                }
                _ => 1,
            };
            let per_thread = matches!(region.length, Length::PerThread(_));
            for e in 0..elements {
                let name = match region.length {
                    Length::Array(_) => format!("M_{}_{e}", region.name),
                    _ => format!("M_{}", region.name),
                };
                let first = match &region.init {
                    Init::Each(list) => list.get(e as usize).and_then(constant),
                    Init::All(x) => constant(x),
                    Init::Any => None,
                };
                let args: &[ThreadTerm] = if per_thread { &[p] } else { &[] };
                let one = Declared {
                    id,
                    first_element: e == 0,
                    name,
                    args,
                    holds: &holds,
                    start: region.init.clone(),
                    first,
                    weak: true,
                    span: region.span,
                };
                self.declare_one(one, init)?;
            }
        }
        for (f, family) in program.families.iter().enumerate() {
            for (r, register) in family.registers.iter().enumerate() {
                let id = Variable::Register(FamilyId::new(f), RegisterId::new(r));
                let holds = self.variables.of(id).clone();
                let name = format!("R_{}_{}", family.name, register.name);
                let first = match &register.init {
                    Init::All(x) => constant(x),
                    _ => None,
                };
                let one = Declared {
                    id,
                    first_element: true,
                    name,
                    args: &[p],
                    holds: &holds,
                    start: register.init.clone(),
                    first,
                    weak: false,
                    span: register.span,
                };
                self.declare_one(one, init)?;
                self.wraps(&register.name, register.ty, &holds);
            }
        }
        Ok(())
    }

    fn wraps(&mut self, name: &str, ty: Type, holds: &Holds) {
        if matches!(ty, Type::Wrap { .. }) && *holds == Holds::Numbers {
            self.may_wrap.push(name.to_string());
        }
    }

    fn declare_one(&mut self, one: Declared<'_>, init: &mut Vec<Formula>) -> Result<(), Refused> {
        let Declared {
            id,
            first_element,
            name,
            args,
            holds,
            start,
            first,
            weak,
            span,
        } = one;
        let arity = args.len() as u8;
        let name: String = name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
            .collect();
        let cell = match holds {
            Holds::Few(_) => {
                let cell = self.cell(
                    name,
                    arity,
                    CellType::Declared(self.value_type()),
                    weak,
                    span,
                );
                let ty = self.variables.type_of(id);
                let first = first.and_then(|v| ty.admit(v));
                if let Some(v) = first.and_then(|v| self.finite(v)) {
                    init.push(equal(Term::Read(access(cell, args)), v));
                } else if let Holds::Few(set) = holds {
                    let any = set
                        .iter()
                        .filter_map(|v| self.finite(*v))
                        .map(|v| equal(Term::Read(access(cell, args)), v));
                    init.push(Formula::Or(any.collect()));
                }
                cell
            }
            Holds::Numbers => {
                let cell = self.cell(name, arity, CellType::Int, weak, span);
                if let Some(v) = first {
                    init.push(equal(
                        Term::Sum {
                            parts: vec![(1, access(cell, args))],
                            constant: 0,
                        },
                        Term::Sum {
                            parts: Vec::new(),
                            constant: v,
                        },
                    ));
                }
                cell
            }
            Holds::Threads(_) => {
                let cell = self.cell(name.clone(), arity, CellType::Thread, weak, span);
                let none = self.cell(format!("{name}_none"), arity, CellType::Bool, weak, span);
                match (start, first) {
                    (_, Some(-1)) => {
                        init.push(equal(Term::Read(access(none, args)), Term::Bool(true)))
                    }
                    (Init::All(Expr::Atom(Local::SelfIndex)), _) if arity == 1 => {
                        init.push(equal(Term::Read(access(none, args)), Term::Bool(false)));
                        init.push(equal(Term::Read(access(cell, args)), Term::Thread(args[0])));
                    }
                    // A register is written before it is used; until then it may name anybody.
                    (Init::Any, _) => {}
                    _ if !weak => {}
                    _ => {
                        return Err(refuse(
                            span,
                            "this starts with the identifier of one certain thread",
                            "start with `none`, or with `self`",
                        ));
                    }
                }
                cell
            }
            Holds::Counter => {
                let cell = self.cell(name, 1, CellType::Bool, weak, span);
                let all = !matches!(first, Some(0));
                init.push(equal(
                    Term::Read(access(cell, &[ThreadTerm::Param(0)])),
                    Term::Bool(all),
                ));
                cell
            }
        };
        if first_element {
            self.variables.cells.insert(id, cell);
        }
        if let Holds::Few(set) = holds {
            self.few.insert(cell, set.iter().copied().collect());
        }
        if let Type::Range { lo, hi } = self.variables.type_of(id) {
            self.ranges.insert(cell, (lo, hi));
        }
        Ok(())
    }
}
