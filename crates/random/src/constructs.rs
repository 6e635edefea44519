//! What a program is made of, by name: the rows of the adversary's table.
//!
//! Every match is complete: a new action, operator, type or form of property is a row that must be
//! named here before anything compiles.

use std::collections::BTreeSet;
use wattle_model::graph::{Action, Section};
use wattle_model::{
    Count, Expr, FamilyId, Fence, Init, Length, Local, Observation, Op1, Place, Program, Property,
    PropertyKind, ThreadIndex, Type,
};

pub type Constructs = BTreeSet<&'static str>;

/// All there are, in the order of the table. A test holds that [`constructs`] and
/// [`question_constructs`] give no others.
pub const CONSTRUCTS: &[&str] = &[
    // Steps.
    "skip",
    "assign",
    "any of a range",
    "any of a type",
    "assume",
    "assert",
    "load",
    "store",
    "fence",
    "fence store",
    "atomic",
    "atomic buffered",
    "lock",
    "unlock",
    // Operators.
    "-e",
    "!",
    "~",
    "cast to uN",
    "cast to iN",
    "+",
    "-",
    "*",
    "/",
    "%",
    "&",
    "|",
    "^",
    "<<",
    ">>",
    "==",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "&&",
    "||",
    "? :",
    // Leaves and places.
    "self",
    "count",
    "address",
    "computed index",
    "flat address",
    // Types.
    "cell: int",
    "cell: range",
    "cell: uN",
    "cell: iN",
    "cell: thread",
    "register: int",
    "register: range",
    "register: uN",
    "register: iN",
    "register: thread",
    // Initial values.
    "start: value",
    "start: self",
    "start: count",
    "start: list",
    "start: any",
    // Forms of memory and of families.
    "scalar",
    "array",
    "array per thread",
    "single thread",
    "fixed family",
    "open family",
    "several families",
    "several open families",
    // Properties.
    "never",
    "always",
    "finally",
    "reachable",
    "asserts alone",
    "deadlock",
    "property of 1 thread",
    "property of 2 threads",
    "property of 3 threads",
    "property: cell",
    "property: element",
    "property: flat address",
    "property: seen by a thread",
    "property: register",
    "property: place",
    "property: index",
    "property: count",
    "property: numbered thread",
];

/// Statements that leave no trace in the model; the text's author tells of them.
pub const SUGAR: &[&str] = &[
    "let",
    "if",
    "else",
    "while",
    "loop",
    "break",
    "continue",
    "for",
    "choose",
    "await",
    "goto",
    "stop",
    "cas",
    "swap",
    "fetch_add",
    "atomic begin, end",
    "scan over threads",
    "announced index variables",
    "predicates",
];

/// What the program itself uses, whatever is asked of it.
pub fn constructs(program: &Program) -> Constructs {
    let mut found = Constructs::new();
    for region in &program.regions {
        found.insert(match region.length {
            Length::Scalar => "scalar",
            Length::Array(_) => "array",
            Length::PerThread(_) => "array per thread",
        });
        found.insert(match region.ty {
            Type::Int => "cell: int",
            Type::Range { .. } => "cell: range",
            Type::Wrap { signed: false, .. } => "cell: uN",
            Type::Wrap { signed: true, .. } => "cell: iN",
            Type::Thread(_) => "cell: thread",
        });
        start(&region.init, &mut found);
    }
    let open = |f: &&wattle_model::Family| f.count == Count::Any;
    if program.families.len() > 1 {
        found.insert("several families");
    }
    if program.families.iter().filter(open).count() > 1 {
        found.insert("several open families");
    }
    for family in &program.families {
        found.insert(match family.count {
            Count::One => "single thread",
            Count::Fixed(_) => "fixed family",
            Count::Any => "open family",
        });
        for register in &family.registers {
            found.insert(match register.ty {
                Type::Int => "register: int",
                Type::Range { .. } => "register: range",
                Type::Wrap { signed: false, .. } => "register: uN",
                Type::Wrap { signed: true, .. } => "register: iN",
                Type::Thread(_) => "register: thread",
            });
            start(&register.init, &mut found);
        }
        for step in &family.steps {
            action(&step.action, &mut found);
        }
    }
    found
}

/// What one question uses; `None` asks for assertions and faults alone.
pub fn question_constructs(property: Option<&Property>, deadlock: bool) -> Constructs {
    let mut found = Constructs::new();
    if deadlock {
        found.insert("deadlock");
    }
    let Some(property) = property else {
        found.insert("asserts alone");
        return found;
    };
    found.insert(match property.kind {
        PropertyKind::Never => "never",
        PropertyKind::Always => "always",
        PropertyKind::Finally => "finally",
        PropertyKind::Reachable => "reachable",
    });
    match property.condition.indices.len() {
        0 => {}
        1 => {
            found.insert("property of 1 thread");
        }
        2 => {
            found.insert("property of 2 threads");
        }
        3.. => {
            found.insert("property of 3 threads");
        }
    }
    observed(&property.condition.expr, &mut found);
    found
}

fn start(init: &Init, found: &mut Constructs) {
    let mut value = |e: &Expr<Local>| {
        let mut inner = Constructs::new();
        expression(e, &mut inner, &mut local);
        match (inner.contains("self"), inner.contains("count")) {
            (true, _) => found.insert("start: self"),
            (_, true) => found.insert("start: count"),
            (false, false) => found.insert("start: value"),
        };
    };
    match init {
        Init::Any => {
            found.insert("start: any");
        }
        Init::All(e) => value(e),
        Init::Each(_) => {
            found.insert("start: list");
        }
    }
}

fn action(action: &wattle_model::program::Action, found: &mut Constructs) {
    let value = |e: &Expr<Local>, found: &mut Constructs| expression(e, found, &mut local);
    let name = match action {
        Action::Skip => "skip",
        Action::Assign { value: e, .. } => {
            value(e, found);
            "assign"
        }
        Action::Havoc { range: Some(_), .. } => "any of a range",
        Action::Havoc { range: None, .. } => "any of a type",
        Action::Assume(e) => {
            value(e, found);
            "assume"
        }
        Action::Assert { condition: e, .. } => {
            value(e, found);
            "assert"
        }
        Action::Load { place: p, .. } => {
            place(p, found);
            "load"
        }
        Action::Store { place: p, value: e } => {
            place(p, found);
            value(e, found);
            "store"
        }
        Action::Fence(Fence::Full) => "fence",
        Action::Fence(Fence::Store) => "fence store",
        Action::AtomicBegin(Section::Buffered) => "atomic buffered",
        Action::AtomicBegin(Section::Drained) | Action::AtomicEnd => "atomic",
        Action::Lock => "lock",
        Action::Unlock => "unlock",
    };
    found.insert(name);
}

fn place(place: &Place, found: &mut Constructs) {
    let index = match place {
        Place::Region(_, Expr::Const(_)) => return,
        Place::Region(_, index) => {
            found.insert("computed index");
            index
        }
        Place::Memory(index) => {
            found.insert("flat address");
            index
        }
    };
    expression(index, found, &mut local);
}

fn local(leaf: &Local, found: &mut Constructs) {
    match leaf {
        Local::Register(_) => {}
        Local::SelfIndex => {
            found.insert("self");
        }
        Local::Count(FamilyId(_)) => {
            found.insert("count");
        }
        Local::AddressOf(_) => {
            found.insert("address");
        }
    }
}

fn observed(e: &Expr<Observation>, found: &mut Constructs) {
    expression(e, found, &mut |leaf, found| {
        let thread = match leaf {
            Observation::Cell(_, index) => {
                let name = match index.as_ref() {
                    Expr::Const(_) => "property: cell",
                    Expr::Atom(_) | Expr::Unary(..) | Expr::Binary(..) | Expr::Ite(..) => {
                        "property: element"
                    }
                };
                found.insert(name);
                observed(index, found);
                return;
            }
            Observation::Seen(_, _, index) => {
                found.insert("property: seen by a thread");
                observed(index, found);
                return;
            }
            Observation::Memory(index) => {
                found.insert("property: flat address");
                observed(index, found);
                return;
            }
            Observation::AddressOf(_) => return,
            Observation::Index(_) => {
                found.insert("property: index");
                return;
            }
            Observation::Count(_) => {
                found.insert("property: count");
                return;
            }
            Observation::Register(thread, _) => {
                found.insert("property: register");
                thread
            }
            Observation::At(thread, _) => {
                found.insert("property: place");
                thread
            }
        };
        if let ThreadIndex::Number(_) = thread.index {
            found.insert("property: numbered thread");
        }
    });
}

fn expression<A>(e: &Expr<A>, found: &mut Constructs, leaf: &mut dyn FnMut(&A, &mut Constructs)) {
    match e {
        Expr::Const(_) => {}
        Expr::Atom(a) => leaf(a, found),
        Expr::Unary(op, a) => {
            found.insert(match op {
                Op1::Neg => "-e",
                Op1::Not => "!",
                Op1::BitNot => "~",
                Op1::Wrap { signed: false, .. } => "cast to uN",
                Op1::Wrap { signed: true, .. } => "cast to iN",
            });
            expression(a, found, leaf);
        }
        Expr::Binary(op, a, b) => {
            // The symbols are the names.
            found.insert(op.symbol());
            expression(a, found, leaf);
            expression(b, found, leaf);
        }
        Expr::Ite(c, a, b) => {
            found.insert("? :");
            expression(c, found, leaf);
            expression(a, found, leaf);
            expression(b, found, leaf);
        }
    }
}
