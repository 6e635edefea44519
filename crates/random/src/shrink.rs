//! From a program that fails a check to a small one that still does.
//!
//! Greedy: try every way of making the program a little smaller, keep the first that still fails,
//! start again; stop when none does. Only valid programs are tried.

use std::collections::BTreeSet;
use wattle_model::program::Action;
use wattle_model::{
    Condition, Count, Expr, FamilyId, Init, Length, Local, LocationId, Observation, Place, Program,
    RegionId, RegisterId, ThreadIndex, Type, validate,
};

/// Enough for programs of a few dozen steps; a shrinker must end even if the check is slow.
const MAX_TRIES: usize = 20_000;

/// A smaller program for which `fails` is still true. `fails(program)` should hold to begin with.
pub fn shrink(program: &Program, mut fails: impl FnMut(&Program) -> bool) -> Program {
    let mut best = program.canonical();
    let mut tries = 0;
    'again: loop {
        for kind in 0..KINDS {
            let mut n = 0;
            while let Some(candidate) = smaller(&best, kind, n) {
                n += 1;
                let candidate = candidate.canonical();
                if candidate == best || !validate(&candidate).is_empty() {
                    continue;
                }
                tries += 1;
                if tries > MAX_TRIES {
                    return best;
                }
                if fails(&candidate) {
                    best = candidate;
                    continue 'again;
                }
            }
        }
        return best;
    }
}

const KINDS: usize = 10;

/// The n-th candidate of a kind; `None` when there are no more.
fn smaller(p: &Program, kind: usize, n: usize) -> Option<Program> {
    match kind {
        0 => without_family(p, n),
        1 => without_step(p, n),
        2 => contracted(p, n),
        3 => without_property(p, n),
        4 => fewer_threads(p, n),
        5 => without_atomic(p, n),
        6 => without_register(p, n),
        7 => without_region(p, n),
        8 => plainer_declaration(p, n),
        _ => simpler_expression(p, n),
    }
}

/// (family, step) of the n-th step.
fn nth_step(p: &Program, mut n: usize) -> Option<(usize, usize)> {
    for (f, family) in p.families.iter().enumerate() {
        if n < family.steps.len() {
            return Some((f, n));
        }
        n -= family.steps.len();
    }
    None
}

fn without_step(p: &Program, n: usize) -> Option<Program> {
    let (f, s) = nth_step(p, n)?;
    let mut q = p.clone();
    q.families[f].steps.remove(s);
    Some(q)
}

/// Without the n-th step, its ends made one.
fn contracted(p: &Program, n: usize) -> Option<Program> {
    let (f, s) = nth_step(p, n)?;
    let mut q = p.clone();
    let family = &mut q.families[f];
    let step = family.steps.remove(s);
    let moved = |l: &mut LocationId| {
        if *l == step.source {
            *l = step.target;
        }
    };
    for s in &mut family.steps {
        moved(&mut s.source);
        moved(&mut s.target);
    }
    moved(&mut family.entry);
    let labels = std::mem::take(&mut family.locations[step.source.index()].labels);
    let kept = &mut family.locations[step.target.index()].labels;
    kept.extend(labels);
    kept.sort();
    kept.dedup();
    Some(q)
}

fn without_property(p: &Program, n: usize) -> Option<Program> {
    let mut q = p.clone();
    if n < q.properties.len() {
        q.properties.remove(n);
    } else if n < q.properties.len() + q.predicates.len() {
        q.predicates.remove(n - q.properties.len());
    } else if n == q.properties.len() + q.predicates.len() {
        let (kept, _) = mentioned(p);
        for (f, family) in q.families.iter_mut().enumerate() {
            for l in &mut family.locations {
                l.labels.retain(|x| kept.contains(&(f, x.clone())));
            }
        }
    } else {
        return None;
    }
    Some(q)
}

fn fewer_threads(p: &Program, n: usize) -> Option<Program> {
    let mut q = p.clone();
    let count = &mut q.families.get_mut(n)?.count;
    *count = match *count {
        Count::Any => Count::Fixed(2),
        Count::Fixed(k) if k > 1 => Count::Fixed(k - 1),
        same @ (Count::One | Count::Fixed(_)) => same,
    };
    Some(q)
}

fn without_atomic(p: &Program, n: usize) -> Option<Program> {
    let mut q = p.clone();
    for s in &mut q.families.get_mut(n)?.steps {
        if matches!(s.action, Action::AtomicBegin(_) | Action::AtomicEnd) {
            s.action = Action::Skip;
        }
    }
    Some(q)
}

/// Labels and families that conditions mention.
fn mentioned(p: &Program) -> (BTreeSet<(usize, String)>, BTreeSet<usize>) {
    fn visit(
        e: &Expr<Observation>,
        labels: &mut BTreeSet<(usize, String)>,
        families: &mut BTreeSet<usize>,
    ) {
        e.for_each_atom(&mut |o| match o {
            Observation::At(t, l) => {
                labels.insert((t.family.index(), l.clone()));
                families.insert(t.family.index());
            }
            Observation::Register(t, _) => drop(families.insert(t.family.index())),
            Observation::Count(f) => drop(families.insert(f.index())),
            Observation::Seen(t, _, e) => {
                families.insert(t.family.index());
                visit(e, labels, families);
            }
            Observation::Cell(_, e) | Observation::Memory(e) => visit(e, labels, families),
            Observation::AddressOf(_) | Observation::Index(_) => {}
        });
    }
    let (mut labels, mut families) = (BTreeSet::new(), BTreeSet::new());
    let conditions = p.properties.iter().map(|q| &q.condition);
    for c in conditions.chain(&p.predicates) {
        families.extend(c.indices.iter().map(|v| v.family.index()));
        visit(&c.expr, &mut labels, &mut families);
    }
    (labels, families)
}

/// Without a family nobody mentions; those after it move up.
fn without_family(p: &Program, n: usize) -> Option<Program> {
    if n >= p.families.len() {
        return None;
    }
    let (_, mut used) = mentioned(p);
    for r in &p.regions {
        used.extend(family_of_length(r.length));
        used.extend(family_of_type(r.ty));
    }
    let types = p.families.iter().flat_map(|f| &f.registers);
    used.extend(types.filter_map(|r| family_of_type(r.ty)));
    let mut q = p.clone();
    each_local(&mut q, &mut |a| {
        if let Local::Count(f) = a {
            used.insert(f.index());
        }
    });
    if used.contains(&n) {
        return Some(p.clone());
    }
    q.families.remove(n);
    let renumber = |f: &mut FamilyId| {
        if f.index() > n {
            *f = FamilyId::new(f.index() - 1);
        }
    };
    for r in &mut q.regions {
        if let Length::PerThread(f) = &mut r.length {
            renumber(f);
        }
        if let Type::Thread(f) = &mut r.ty {
            renumber(f);
        }
    }
    for r in q.families.iter_mut().flat_map(|f| &mut f.registers) {
        if let Type::Thread(f) = &mut r.ty {
            renumber(f);
        }
    }
    each_local(&mut q, &mut |a| {
        if let Local::Count(f) = a {
            renumber(f);
        }
    });
    each_condition(&mut q, &mut |c| {
        c.indices.iter_mut().for_each(|v| renumber(&mut v.family));
        observations(&mut c.expr, &mut |o| match o {
            Observation::At(t, _) | Observation::Register(t, _) | Observation::Seen(t, ..) => {
                renumber(&mut t.family);
            }
            Observation::Count(f) => renumber(f),
            Observation::Cell(..)
            | Observation::Memory(_)
            | Observation::AddressOf(_)
            | Observation::Index(_) => {}
        });
    });
    Some(q)
}

fn family_of_length(l: Length) -> Option<usize> {
    match l {
        Length::PerThread(f) => Some(f.index()),
        Length::Scalar | Length::Array(_) => None,
    }
}

fn family_of_type(t: Type) -> Option<usize> {
    match t {
        Type::Thread(f) => Some(f.index()),
        Type::Int | Type::Range { .. } | Type::Wrap { .. } => None,
    }
}

fn without_register(p: &Program, mut n: usize) -> Option<Program> {
    let mut family = 0;
    while n >= p.families.get(family)?.registers.len() {
        n -= p.families[family].registers.len();
        family += 1;
    }
    let gone = RegisterId::new(n);
    let mut q = p.clone();
    q.families[family].registers.remove(n);
    let mut used = false;
    let mut renumber = |r: &mut RegisterId| {
        used |= *r == gone;
        if r.index() > n {
            *r = RegisterId::new(r.index() - 1);
        }
    };
    for s in &mut q.families[family].steps {
        match &mut s.action {
            Action::Assign { register, .. }
            | Action::Havoc { register, .. }
            | Action::Load { register, .. } => renumber(register),
            Action::Skip
            | Action::Assume(_)
            | Action::Assert { .. }
            | Action::Store { .. }
            | Action::Fence(_)
            | Action::AtomicBegin(_)
            | Action::AtomicEnd
            | Action::Lock
            | Action::Unlock => {}
        }
        step_locals(&mut s.action, &mut |a| {
            if let Local::Register(r) = a {
                renumber(r);
            }
        });
    }
    each_condition(&mut q, &mut |c| {
        observations(&mut c.expr, &mut |o| {
            if let Observation::Register(t, r) = o
                && t.family.index() == family
            {
                renumber(r);
            }
        });
    });
    Some(if used { p.clone() } else { q })
}

fn without_region(p: &Program, n: usize) -> Option<Program> {
    if n >= p.regions.len() {
        return None;
    }
    let mut q = p.clone();
    q.regions.remove(n);
    let mut used = false;
    let mut renumber = |r: &mut RegionId| {
        used |= r.index() == n;
        if r.index() > n {
            *r = RegionId::new(r.index() - 1);
        }
    };
    for s in q.families.iter_mut().flat_map(|f| &mut f.steps) {
        if let Action::Load { place, .. } | Action::Store { place, .. } = &mut s.action
            && let Place::Region(r, _) = place
        {
            renumber(r);
        }
    }
    each_local(&mut q, &mut |a| {
        if let Local::AddressOf(r) = a {
            renumber(r);
        }
    });
    each_condition(&mut q, &mut |c| {
        observations(&mut c.expr, &mut |o| {
            if let Observation::Cell(r, _)
            | Observation::Seen(_, r, _)
            | Observation::AddressOf(r) = o
            {
                renumber(r);
            }
        });
    });
    Some(if used { p.clone() } else { q })
}

/// Regions and registers that start with 0.
fn plainer_declaration(p: &Program, n: usize) -> Option<Program> {
    let mut q = p.clone();
    let regions = q.regions.iter_mut().map(|r| &mut r.init);
    let registers = q.families.iter_mut().flat_map(|f| &mut f.registers);
    let registers = registers.map(|r| &mut r.init);
    *regions.chain(registers).nth(n)? = Init::default();
    Some(q)
}

/// The n-th expression node replaced by 0, 1 or one of its parts.
fn simpler_expression(p: &Program, n: usize) -> Option<Program> {
    const WAYS: usize = 4;
    let (target, way) = (n / WAYS, n % WAYS);
    let mut seen = 0;
    let mut q = p.clone();
    let mut found = false;
    for s in q.families.iter_mut().flat_map(|f| &mut f.steps) {
        step_exprs(&mut s.action, &mut |e| {
            found |= replace(e, target, way, &mut seen);
        });
    }
    each_condition(&mut q, &mut |c| {
        found |= replace(&mut c.expr, target, way, &mut seen);
        // Index variables that are gone would keep the condition vacuous.
        drop_unused_indices(c);
    });
    found.then_some(q)
}

fn replace<A: Clone>(e: &mut Expr<A>, target: usize, way: usize, seen: &mut usize) -> bool {
    if *seen == target {
        *seen += 1;
        let part = match (&*e, way) {
            (Expr::Const(_), _) => return true,
            (_, 0) => Some(Expr::Const(0)),
            (_, 1) => Some(Expr::Const(1)),
            (Expr::Unary(_, a), 2) | (Expr::Binary(_, a, _), 2) | (Expr::Ite(_, a, _), 2) => {
                Some((**a).clone())
            }
            (Expr::Binary(_, _, b), 3) | (Expr::Ite(_, _, b), 3) => Some((**b).clone()),
            _ => None,
        };
        if let Some(part) = part {
            *e = part;
        }
        return true;
    }
    *seen += 1;
    match e {
        Expr::Const(_) | Expr::Atom(_) => false,
        Expr::Unary(_, a) => replace(a, target, way, seen),
        Expr::Binary(_, a, b) => replace(a, target, way, seen) || replace(b, target, way, seen),
        Expr::Ite(c, a, b) => {
            replace(c, target, way, seen)
                || replace(a, target, way, seen)
                || replace(b, target, way, seen)
        }
    }
}

fn drop_unused_indices(c: &mut Condition) {
    let mut used = BTreeSet::new();
    observations(&mut c.expr, &mut |o| match o {
        Observation::At(t, _) | Observation::Register(t, _) | Observation::Seen(t, ..) => {
            if let ThreadIndex::Variable(v) = t.index {
                used.insert(v.index());
            }
        }
        Observation::Index(v) => drop(used.insert(v.index())),
        Observation::Cell(..)
        | Observation::Memory(_)
        | Observation::AddressOf(_)
        | Observation::Count(_) => {}
    });
    // Only a last one can go without renumbering.
    while c.indices.len() > used.last().map_or(0, |l| l + 1) {
        c.indices.pop();
    }
}

fn each_condition(p: &mut Program, visit: &mut dyn FnMut(&mut Condition)) {
    p.properties
        .iter_mut()
        .for_each(|q| visit(&mut q.condition));
    p.predicates.iter_mut().for_each(visit);
}

fn observations(e: &mut Expr<Observation>, visit: &mut dyn FnMut(&mut Observation)) {
    atoms(e, &mut |o| {
        visit(o);
        if let Observation::Cell(_, e) | Observation::Seen(_, _, e) | Observation::Memory(e) = o {
            observations(e, visit);
        }
    });
}

fn atoms<A>(e: &mut Expr<A>, visit: &mut dyn FnMut(&mut A)) {
    match e {
        Expr::Const(_) => {}
        Expr::Atom(a) => visit(a),
        Expr::Unary(_, a) => atoms(a, visit),
        Expr::Binary(_, a, b) => {
            atoms(a, visit);
            atoms(b, visit);
        }
        Expr::Ite(c, a, b) => {
            atoms(c, visit);
            atoms(a, visit);
            atoms(b, visit);
        }
    }
}

fn step_exprs(action: &mut Action, visit: &mut dyn FnMut(&mut Expr<Local>)) {
    let place = |p: &mut Place, visit: &mut dyn FnMut(&mut Expr<Local>)| match p {
        Place::Region(_, e) | Place::Memory(e) => visit(e),
    };
    match action {
        Action::Assign { value, .. } => visit(value),
        Action::Assume(e) | Action::Assert { condition: e, .. } => visit(e),
        Action::Load { place: p, .. } => place(p, visit),
        Action::Store { place: p, value } => {
            place(p, visit);
            visit(value);
        }
        Action::Skip
        | Action::Havoc { .. }
        | Action::Fence(_)
        | Action::AtomicBegin(_)
        | Action::AtomicEnd
        | Action::Lock
        | Action::Unlock => {}
    }
}

fn step_locals(action: &mut Action, visit: &mut dyn FnMut(&mut Local)) {
    step_exprs(action, &mut |e| atoms(e, visit));
}

/// Leaves of every register expression, initial values included.
fn each_local(p: &mut Program, visit: &mut dyn FnMut(&mut Local)) {
    let regions = p.regions.iter_mut().map(|r| &mut r.init);
    let registers = p.families.iter_mut().flat_map(|f| &mut f.registers);
    for init in regions.chain(registers.map(|r| &mut r.init)) {
        match init {
            Init::Any => {}
            Init::All(e) => atoms(e, visit),
            Init::Each(es) => es.iter_mut().for_each(|e| atoms(e, visit)),
        }
    }
    for s in p.families.iter_mut().flat_map(|f| &mut f.steps) {
        step_locals(&mut s.action, visit);
    }
}
