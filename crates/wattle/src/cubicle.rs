//! Array-based systems in words that Cubicle itself reads.
//!
//! Its grammar (`parser.mly`, `lexer.mll`) is narrower than what is read here. Names of cells and constructors begin with
//! a capital letter, those of types and threads with a small one and are no keywords; a number is a cell or a constant, or one
//! plus or minus the other; only a variable that is no array gets *any* value; threads have numbers only where their number is fixed.
//! Under TSO, which is all that it knows, a store fence waits for nothing.
//!
//! What can be said otherwise is: names are changed, comparisons of sums are turned round, sums of several cells are
//! counted one by one ([`sums`]), and a transition that gives a cell any of finitely many values is one for each of them.
//! What cannot is refused.

mod sums;

use std::collections::BTreeSet;
use wattle_model::array::{
    Access, ArraySystem, CellType, FenceKind, Formula, Literal, Quantified, Term, ThreadTerm,
    Transition, UpdateIndex, Value,
};

const KEYWORDS: [&str; 31] = [
    "type",
    "init",
    "transition",
    "invariant",
    "requires",
    "array",
    "var",
    "const",
    "unsafe",
    "case",
    "forall_other",
    "exists_other",
    "forall",
    "exists",
    "predicate",
    "if",
    "then",
    "else",
    "not",
    "true",
    "false",
    "number_procs",
    "let",
    "in",
    "weak",
    "fence",
    "univ_unsafe",
    "proc",
    "int",
    "bool",
    "real",
];

/// More transitions than this do not come of one.
const MOST: usize = 256;

/// The same system as Cubicle reads it, or why there is none.
pub fn readable(system: &ArraySystem) -> Result<ArraySystem, String> {
    let system = &sums::counted(system);
    let mut written = system.clone();
    names(&mut written);
    let quantified = written.assumed.iter_mut().chain(&mut written.bad);
    for q in quantified.chain([&mut written.init]) {
        q.body = formula(system, &q.body)?;
    }
    let mut transitions = Vec::new();
    for t in &written.transitions {
        transitions.extend(transition(system, t)?);
    }
    written.transitions = transitions;
    let mut known = BTreeSet::new();
    for t in &mut written.transitions {
        t.name = fresh(&t.name, false, &mut known);
    }
    Ok(written)
}

/// All names in letters that Cubicle takes, no two of a kind the same.
fn names(system: &mut ArraySystem) {
    let (mut small, mut capital) = (BTreeSet::new(), BTreeSet::new());
    for t in &mut system.types {
        t.name = fresh(&t.name, false, &mut small);
        for c in &mut t.constructors {
            *c = fresh(c, true, &mut capital);
        }
    }
    for c in &mut system.cells {
        // There is no word for an array that nobody writes.
        c.constant &= c.arity == 0;
        c.name = fresh(&c.name, true, &mut capital);
    }
    let quantified = system.assumed.iter_mut().chain(&mut system.bad);
    for q in quantified.chain([&mut system.init]) {
        let Quantified { params, body, .. } = q;
        let mut known = threads(params);
        variables(body, &mut known);
    }
    for t in &mut system.transitions {
        let mut known = threads(&mut t.params);
        variables(&mut t.guard, &mut known);
        for u in &mut t.updates {
            let mut inner = known.clone();
            for i in &mut u.index {
                if let UpdateIndex::Each(name) = i {
                    *name = fresh(name, false, &mut inner);
                }
            }
            for b in &mut u.branches {
                variables(&mut b.condition, &mut inner.clone());
            }
        }
    }
}

fn threads(params: &mut [String]) -> BTreeSet<String> {
    let mut known = BTreeSet::new();
    for p in params {
        *p = fresh(p, false, &mut known);
    }
    known
}

fn variables(f: &mut Formula, known: &mut BTreeSet<String>) {
    match f {
        Formula::And(all) | Formula::Or(all) => all.iter_mut().for_each(|f| variables(f, known)),
        Formula::Atom(_) => {}
        Formula::Others { variable, body, .. } => {
            let mut inner = known.clone();
            *variable = fresh(variable, false, &mut inner);
            variables(body, &mut inner);
        }
    }
}

/// A name like this one that is not known yet.
fn fresh(name: &str, capital: bool, known: &mut BTreeSet<String>) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let mut spelled: String = name.chars().map(letter).collect();
    let fits = |c: char| match capital {
        true => c.is_ascii_uppercase(),
        false => c.is_ascii_lowercase(),
    };
    let taken = ["True", "False"].contains(&&*spelled) || KEYWORDS.contains(&&*spelled);
    if taken || !spelled.starts_with(fits) {
        spelled.insert_str(0, if capital { "N_" } else { "n_" });
    }
    let mut chosen = spelled.clone();
    let mut n = 1;
    while !known.insert(chosen.clone()) {
        n += 1;
        chosen = format!("{spelled}_{n}");
    }
    chosen
}

fn formula(system: &ArraySystem, f: &Formula) -> Result<Formula, String> {
    let all = |list: &[Formula]| -> Result<Vec<Formula>, String> {
        list.iter().map(|f| formula(system, f)).collect()
    };
    Ok(match f {
        Formula::And(list) => Formula::And(all(list)?),
        Formula::Or(list) => Formula::Or(all(list)?),
        Formula::Atom(l) => Formula::Atom(literal(system, l)?),
        // Its guards speak of one other thread at a time.
        Formula::Others { body, .. } if body.speaks_of_others() => {
            return Err("Cubicle has no words for several other threads at once".into());
        }
        Formula::Others {
            all,
            variable,
            body,
        } => Formula::Others {
            all: *all,
            variable: variable.clone(),
            body: Box::new(formula(system, body)?),
        },
    })
}

/// A comparison of numbers with one cell at most on either side.
fn literal(system: &ArraySystem, l: &Literal) -> Result<Literal, String> {
    let sum = |parts: Vec<(i64, Access)>, constant| Term::Sum { parts, constant };
    let (
        Term::Sum {
            parts: a,
            constant: c,
        },
        Term::Sum {
            parts: b,
            constant: d,
        },
    ) = (&l.left, &l.right)
    else {
        for t in [&l.left, &l.right] {
            term(system, t)?;
        }
        return Ok(l.clone());
    };
    let mut left = a.clone();
    for (k, access) in b {
        match left.iter_mut().find(|(_, x)| x == access) {
            Some((n, _)) => *n = n.checked_sub(*k).ok_or_else(many)?,
            None => left.push((k.checked_neg().ok_or_else(many)?, access.clone())),
        }
    }
    left.retain(|(k, _)| *k != 0);
    let mut right = Vec::new();
    left.retain(|(k, access)| {
        if *k == -1 {
            right.push((1, access.clone()));
        }
        *k != -1
    });
    let constant = c.checked_sub(*d).ok_or_else(many)?;
    // A constant stands beside a cell, or alone.
    let literal = match left.is_empty() {
        true => Literal {
            left: sum(left, constant),
            op: l.op,
            right: sum(right, 0),
        },
        false if right.is_empty() => Literal {
            left: sum(left, 0),
            op: l.op,
            right: sum(right, constant.checked_neg().ok_or_else(many)?),
        },
        false => Literal {
            left: sum(left, constant),
            op: l.op,
            right: sum(right, 0),
        },
    };
    for t in [&literal.left, &literal.right] {
        term(system, t)?;
    }
    Ok(literal)
}

fn many() -> String {
    "Cubicle computes with a number and a constant only, not with several numbers or multiples"
        .into()
}

fn term(system: &ArraySystem, t: &Term) -> Result<(), String> {
    let numbered = |t: &ThreadTerm| match t {
        ThreadTerm::Constant(_) if system.threads.is_none() => Err(
            "Cubicle knows threads by their numbers only where there is a fixed number of them"
                .to_string(),
        ),
        ThreadTerm::Constant(_) | ThreadTerm::Param(_) => Ok(()),
    };
    let named = |a: &Access| a.args.iter().chain(&a.reader).try_for_each(numbered);
    match t {
        Term::Bool(_) | Term::Constructor(..) => Ok(()),
        Term::Thread(t) => numbered(t),
        Term::Read(a) => named(a),
        Term::Sum { parts, .. } => match &parts[..] {
            [] => Ok(()),
            [(1, a)] => named(a),
            _ => Err(many()),
        },
    }
}

/// One transition for each choice of values.
fn transition(system: &ArraySystem, t: &Transition) -> Result<Vec<Transition>, String> {
    let mut all = vec![Transition {
        fence: t.fence.filter(|f| *f == FenceKind::Full),
        guard: formula(system, &t.guard)?,
        ..t.clone()
    }];
    for (u, update) in t.updates.iter().enumerate() {
        for (b, branch) in update.branches.iter().enumerate() {
            if branch.condition.speaks_of_others() {
                return Err("no `case` of Cubicle speaks of other threads".into());
            }
            let condition = formula(system, &branch.condition)?;
            for t in &mut all {
                t.updates[u].branches[b].condition = condition.clone();
            }
            match &branch.value {
                Value::Term(t) => term(system, t)?,
                // A variable that is no array may get any value at once.
                Value::Any if update.index.is_empty() && branch.condition.is_true() => {}
                Value::Any => {
                    let values = values(system, update.cell)?;
                    // Elements that are all of them given any value get different ones.
                    if update
                        .index
                        .iter()
                        .any(|i| matches!(i, UpdateIndex::Each(_)))
                    {
                        return Err(
                            "any value for every thread at once has no words in Cubicle".into()
                        );
                    }
                    let longer = all.iter().flat_map(|t| {
                        values.iter().map(move |v| {
                            let mut t = t.clone();
                            t.updates[u].branches[b].value = Value::Term(v.clone());
                            t
                        })
                    });
                    all = longer.collect();
                    if all.len() > MOST {
                        return Err("one transition would become too many".into());
                    }
                }
            }
        }
    }
    Ok(all)
}

fn values(system: &ArraySystem, cell: u16) -> Result<Vec<Term>, String> {
    let declared = &system.cells[usize::from(cell)];
    match declared.ty {
        CellType::Bool => Ok(vec![Term::Bool(false), Term::Bool(true)]),
        CellType::Declared(t) if !system.types[usize::from(t)].constructors.is_empty() => {
            let count = system.types[usize::from(t)].constructors.len();
            Ok((0..count).map(|c| Term::Constructor(t, c as u16)).collect())
        }
        CellType::Declared(_) | CellType::Int | CellType::Real | CellType::Thread => Err(format!(
            "`{}` gets any value of a type without end, and Cubicle has words for that only where it is no array",
            declared.name
        )),
    }
}
