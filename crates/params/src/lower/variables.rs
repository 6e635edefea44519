//! What each register and region holds: few constants, thread identifiers, a count of threads, or
//! numbers. Found by following constants through the program until nothing changes.

use super::amount::{Amount, COUNTS, LOOSE, Share, fits};
use super::ranges::Ranges;
use super::scan::scan;
use super::{Lowering, Refused, access, equal, refuse};
use std::collections::{BTreeMap, BTreeSet};
use wattle_model::array::{CellType, Formula, Term, ThreadTerm};
use wattle_model::graph::Action;
use wattle_model::program::Local;
use wattle_model::{
    Count, Expr, FamilyId, Init, Length, Place, Program, RegionId, RegisterId, Type,
};

/// A register of a family or a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Variable {
    Register(FamilyId, RegisterId),
    Region(RegionId),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holds {
    Few(BTreeSet<Amount>),
    Numbers,
    Threads(FamilyId),
    /// Only regions: as many threads as the array has true elements.
    Counter,
}

#[derive(Clone, Debug, Default)]
pub struct Variables {
    pub holds: BTreeMap<Variable, Holds>,
    types: BTreeMap<Variable, Type>,
    pub ranges: Ranges,
    /// Integers that begin with 0 and are changed in atomic steps only are known to count threads.
    counters: bool,
    /// All constants of finite variables.
    pub values: Vec<Amount>,
    /// The first cell of each variable (a thread variable has a second one for `none`).
    pub cells: BTreeMap<Variable, u16>,
}

/// More constants than this count as numbers.
const FEW: usize = 12;

/// Whether a variable that begins with 0 counts the threads of the only family: it is set to how many there are, or
/// compared with that as soon as it was read. As an ordinary number it could not be.
fn counts_threads(program: &Program, region: RegionId) -> bool {
    let [family] = &program.families[..] else {
        return false;
    };
    let speaks_of = |e: &Expr<Local>, which: &dyn Fn(&Local) -> bool| {
        let mut found = false;
        e.for_each_atom(&mut |l| found |= which(l));
        found
    };
    let counts = |l: &Local| matches!(l, Local::Count(_));
    let scalar = program.region(region).length == Length::Scalar;
    let here = |p: &Place| scalar && matches!(p, Place::Region(r, _) if *r == region);
    family.steps.iter().any(|s| match &s.action {
        Action::Load { register, place } if here(place) => {
            let read = |l: &Local| *l == Local::Register(*register);
            let compares = |e: &Expr<Local>| speaks_of(e, &counts) && speaks_of(e, &read);
            let mut next = family.steps.iter().filter(|n| n.source == s.target);
            next.any(|n| matches!(&n.action, Action::Assume(e) if compares(e)))
        }
        Action::Store { place, value } if here(place) => {
            matches!(value, Expr::Atom(l) if counts(l))
        }
        Action::Load { .. }
        | Action::Store { .. }
        | Action::Assign { .. }
        | Action::Havoc { .. }
        | Action::Skip
        | Action::Assume(_)
        | Action::Assert { .. }
        | Action::Fence(_)
        | Action::AtomicBegin(_)
        | Action::AtomicEnd
        | Action::Lock
        | Action::Unlock => false,
    })
}

/// Whether the variable counts threads and may lose count: its value is loaded in one step and stored in
/// another, perhaps after others have counted, so that it is no number of true elements.
fn loses_count(program: &Program, region: RegionId) -> bool {
    let here = |p: &Place| matches!(p, Place::Region(r, _) if *r == region);
    let known = |e: &Expr<Local>| {
        matches!(
            amount(e),
            Some(Amount::Number(0) | Amount::Threads(Share::All))
        )
    };
    let families = program.families.iter();
    let mut stores = families.flat_map(|f| f.buffered_stores());
    stores.any(|(place, value)| here(place) && !known(value))
}

impl Variables {
    pub fn infer(program: &Program, ranges: Ranges, counters: bool) -> Result<Self, Refused> {
        let mut v = Variables {
            ranges,
            counters,
            ..Variables::default()
        };
        for (r, region) in program.regions.iter().enumerate() {
            let id = Variable::Region(RegionId::new(r));
            v.start(id, region.ty, &region.init, program);
            v.starts_well(id, &region.name, &region.init, program)
                .map_err(|(what, hint)| refuse(region.span, what, hint))?;
            if let (Length::PerThread(f), Init::Each(_)) = (region.length, &region.init)
                && program.family(f).count == Count::Any
            {
                return Err(refuse(
                    region.span,
                    format!("`{}` starts with a list of values", region.name),
                    "give one value for all, or fix the number of threads",
                ));
            }
        }
        for (f, family) in program.families.iter().enumerate() {
            for (r, register) in family.registers.iter().enumerate() {
                let id = Variable::Register(FamilyId::new(f), RegisterId::new(r));
                v.start(id, register.ty, &register.init, program);
                v.starts_well(id, &register.name, &register.init, program)
                    .map_err(|(what, hint)| refuse(register.span, what, hint))?;
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
        let mut values: BTreeSet<Amount> = [0, 1].map(Amount::Number).into();
        for h in v.holds.values() {
            if let Holds::Few(set) = h {
                values.extend(set);
            }
        }
        if values.len() > 100 {
            let plain = |h: &Holds| match h {
                Holds::Few(set) => set.iter().all(|v| v.number().is_some()),
                Holds::Numbers | Holds::Threads(_) | Holds::Counter => false,
            };
            for h in v.holds.values_mut().filter(|h| plain(h)) {
                *h = Holds::Numbers;
            }
            values = [0, 1].map(Amount::Number).into();
            values.extend(LOOSE);
        }
        v.values = values.into_iter().collect();
        Ok(v)
    }

    fn start(&mut self, id: Variable, ty: Type, init: &Init, program: &Program) {
        let few = |all: Option<BTreeSet<Amount>>| all.map_or(Holds::Numbers, Holds::Few);
        let holds = match (ty, init) {
            (Type::Thread(f), _) => Holds::Threads(f),
            (_, Init::Any) => few(few_values(ty)),
            (_, Init::All(Expr::Atom(Local::SelfIndex))) => match id {
                Variable::Register(f, _) => Holds::Threads(f),
                Variable::Region(r) => match program.region(r).length {
                    Length::PerThread(f) => Holds::Threads(f),
                    Length::Scalar | Length::Array(_) => Holds::Numbers,
                },
            },
            (_, Init::All(e)) => match (amount(e), id) {
                (Some(Amount::Threads(_)), Variable::Region(r))
                    if program.region(r).length == Length::Scalar =>
                {
                    counter(program, ty, r)
                }
                (Some(Amount::Number(0)), Variable::Region(r))
                    if ty == Type::Int
                        && (counts_threads(program, r)
                            || self.counters && !loses_count(program, r)) =>
                {
                    counter(program, ty, r)
                }
                (first, _) => few(first.map(|c| [c].into())),
            },
            (_, Init::Each(list)) => few(list.iter().map(amount).collect()),
        };
        self.types.insert(id, ty);
        let holds = self.admitted(id, holds);
        self.holds.insert(id, holds);
    }

    /// What a variable starts with is a value of its type, and what is counted are all threads there
    /// are; else why not, and what to do.
    fn starts_well(
        &self,
        id: Variable,
        name: &str,
        init: &Init,
        program: &Program,
    ) -> Result<(), (String, String)> {
        let all = match init {
            Init::All(e) => std::slice::from_ref(e),
            Init::Each(list) => &list[..],
            Init::Any => &[],
        };
        let mut counts = false;
        for e in all {
            e.for_each_atom(&mut |l| counts |= matches!(l, Local::Count(_)));
        }
        if counts && program.families.len() > 1 {
            let what = format!("`{name}` counts the threads of one family among several");
            let hint = "counters are treated for programs with one family of threads";
            return Err((what, hint.into()));
        }
        let ty = self.type_of(id);
        let narrow = match ty {
            Type::Int | Type::Thread(_) => false,
            Type::Range { .. } => true,
            Type::Wrap { bits, signed } => !fits(bits, signed),
        };
        if counts && narrow {
            let what = format!("`{name}` starts with a number of threads, which may not fit");
            return Err((what, "declare the variable without a range".into()));
        }
        if *self.of(id) == Holds::Few(BTreeSet::new()) {
            let what = format!("`{name}` starts with no value of its type");
            return Err((what, "start with a value of the type".into()));
        }
        Ok(())
    }

    pub fn type_of(&self, id: Variable) -> Type {
        self.types.get(&id).copied().unwrap_or(Type::Int)
    }

    /// Constants as the variable's type stores them; what it cannot store is a fault elsewhere.
    fn admitted(&self, id: Variable, holds: Holds) -> Holds {
        let ty = self.type_of(id);
        match holds {
            Holds::Few(set) => Holds::Few(set.iter().filter_map(|c| c.admitted(ty)).collect()),
            other @ (Holds::Numbers | Holds::Threads(_) | Holds::Counter) => other,
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
                let few = match range {
                    Some((lo, hi)) if hi.saturating_sub(*lo) < FEW as i64 => {
                        Some((*lo..=*hi).map(Amount::Number).collect())
                    }
                    Some(_) => None,
                    None => few_values(self.type_of(id)),
                };
                match (self.of(id), range) {
                    (Holds::Threads(_), None) => Ok(()),
                    _ => self.join(id, few.map_or(Holds::Numbers, Holds::Few)),
                }
            }
            Action::Load {
                register,
                place: Place::Region(r, _),
            } => {
                let what = match self.of(Variable::Region(*r)) {
                    Holds::Counter => Holds::Few(COUNTS.into()),
                    other @ (Holds::Few(_) | Holds::Numbers | Holds::Threads(_)) => other.clone(),
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
            // Addresses are refused where they are met; the rest moves no values.
            Action::Load { .. }
            | Action::Store { .. }
            | Action::Skip
            | Action::Assume(_)
            | Action::Assert { .. }
            | Action::Fence(_)
            | Action::AtomicBegin(_)
            | Action::AtomicEnd
            | Action::Lock
            | Action::Unlock => Ok(()),
        }
    }

    fn join(&mut self, id: Variable, what: Holds) -> Result<(), String> {
        let old = self.of(id).clone();
        let what = self.admitted(id, what);
        self.holds.insert(id, joined(old, what)?);
        Ok(())
    }

    /// What an expression may evaluate to.
    fn value(&self, f: FamilyId, e: &Expr<Local>) -> Result<Holds, String> {
        if let Expr::Ite(_, a, b) = e
            && let (Ok(a), Ok(b)) = (self.value(f, a), self.value(f, b))
            && let Ok(threads @ Holds::Threads(_)) = joined(a, b)
        {
            return Ok(threads);
        }
        let mut leaves: Vec<&Local> = Vec::new();
        e.for_each_atom(&mut |a| {
            if !leaves.contains(&a) {
                leaves.push(a);
            }
        });
        let alone = matches!(e, Expr::Atom(_));
        let mut domains: Vec<Vec<i64>> = Vec::new();
        let (mut shares, mut loose) = (false, false);
        for leaf in &leaves {
            let holds = match leaf {
                Local::SelfIndex => Holds::Threads(f),
                Local::Register(r) => self.of(Variable::Register(f, *r)).clone(),
                Local::Count(_) => Holds::Few([Amount::Threads(Share::All)].into()),
                Local::AddressOf(_) => Holds::Numbers,
            };
            match holds {
                h if alone => return Ok(h),
                // The value is 0 or 1 whatever the leaves are.
                _ if is_truth(e) => return Ok(truth_values()),
                Holds::Few(s) => {
                    shares |= s.iter().any(|v| v.number().is_none());
                    loose |= LOOSE.iter().any(|v| s.contains(v) && !COUNTS.contains(v));
                    domains.push(s.into_iter().filter_map(Amount::number).collect());
                }
                Holds::Threads(_) => return Err("arithmetic on a thread identifier".into()),
                Holds::Numbers | Holds::Counter => return Ok(Holds::Numbers),
            }
        }
        // One more or less than a count is some other count; all else is refused where it is met.
        if shares {
            return Ok(Holds::Few(match loose {
                true => LOOSE.into(),
                false => COUNTS.into(),
            }));
        }
        if domains.iter().map(Vec::len).product::<usize>() > 512 {
            return Ok(Holds::Numbers);
        }
        if domains.iter().any(Vec::is_empty) {
            return Ok(Holds::Few(BTreeSet::new()));
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
                    out.insert(Amount::Number(v));
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

/// What counts threads. Numbers without a range have room for whatever comes of counting wrong.
fn counter(program: &Program, ty: Type, region: RegionId) -> Holds {
    match ty == Type::Int && loses_count(program, region) {
        true => Holds::Few(LOOSE.into()),
        false => Holds::Counter,
    }
}

/// What holds one thing or the other.
fn joined(old: Holds, new: Holds) -> Result<Holds, String> {
    Ok(match (old, new) {
        (Holds::Threads(a), Holds::Threads(b)) if a != b => {
            return Err("identifiers of two families of threads are mixed".into());
        }
        (Holds::Threads(a), Holds::Threads(_)) => Holds::Threads(a),
        // −1 is `none`; 0 is what a variable starts with when nobody says otherwise.
        (Holds::Threads(a), Holds::Few(s)) | (Holds::Few(s), Holds::Threads(a))
            if s.iter().all(|v| *v == Amount::Number(-1)) =>
        {
            Holds::Threads(a)
        }
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
        (Holds::Few(_) | Holds::Numbers, _) => Holds::Numbers,
    })
}

fn truth_values() -> Holds {
    Holds::Few([0, 1].map(Amount::Number).into())
}

/// The values of a type, if they are few.
fn few_values(ty: Type) -> Option<BTreeSet<Amount>> {
    let (lo, hi) = ty.bounds()?;
    let few = hi.checked_sub(lo).is_some_and(|d| d < FEW as i64);
    few.then(|| (lo..=hi).map(Amount::Number).collect())
}

pub fn is_truth(e: &Expr<Local>) -> bool {
    e.is_logical()
}

pub fn constant<A>(e: &Expr<A>) -> Option<i64> {
    match e {
        Expr::Const(c) => Some(*c),
        Expr::Unary(op, a) => op.apply(constant(a)?).ok(),
        Expr::Binary(op, a, b) => op.apply(constant(a)?, constant(b)?).ok(),
        Expr::Atom(_) | Expr::Ite(..) => None,
    }
}

/// A constant, or the number of threads.
fn amount(e: &Expr<Local>) -> Option<Amount> {
    match e {
        Expr::Atom(Local::Count(_)) => Some(Amount::Threads(Share::All)),
        e @ (Expr::Const(_)
        | Expr::Atom(_)
        | Expr::Unary(..)
        | Expr::Binary(..)
        | Expr::Ite(..)) => constant(e).map(Amount::Number),
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
    first: Option<Amount>,
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
            self.wraps(id, &region.name, &holds);
            let elements = match region.length {
                Length::Array(n) if n <= 16 => n,
                Length::Array(_) => {
                    return Err(refuse(
                        region.span,
                        format!("`{}` is a large array", region.name),
                        "arrays indexed by threads have any length: `shared x[t]`",
                    ));
                }
                Length::Scalar | Length::PerThread(_) => 1,
            };
            let per_thread = matches!(region.length, Length::PerThread(_));
            for e in 0..elements {
                let name = match region.length {
                    Length::Array(_) => format!("M_{}_{e}", region.name),
                    Length::Scalar | Length::PerThread(_) => format!("M_{}", region.name),
                };
                let first = match &region.init {
                    Init::Each(list) => list.get(e as usize).and_then(amount),
                    Init::All(x) => amount(x),
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
                    Init::All(x) => amount(x),
                    Init::Each(_) | Init::Any => None,
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
                self.wraps(id, &register.name, &holds);
            }
        }
        Ok(())
    }

    /// Notes a variable whose wrap-around is not modelled.
    fn wraps(&mut self, id: Variable, name: &str, holds: &Holds) {
        if *holds == Holds::Numbers && self.variables.ranges.may_wrap.contains(&id) {
            self.may_wrap.borrow_mut().insert(name.to_string());
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
                let first = first.and_then(|v| v.admitted(ty));
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
                if let Some(v) = first.and_then(Amount::number) {
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
                    (_, Some(Amount::Number(-1))) => {
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
                let all = first != Some(Amount::Number(0));
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
        self.bounds.insert(cell, self.variables.ranges.get(id));
        self.types.insert(cell, self.variables.type_of(id));
        if let Type::Range { lo, hi } = self.variables.type_of(id) {
            self.ranges.insert(cell, (lo, hi));
        }
        Ok(())
    }
}
