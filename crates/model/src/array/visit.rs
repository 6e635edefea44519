//! Walking over the parts of formulas and transitions.

use super::{Access, Formula, Literal, Term, Transition, Value};

impl Term {
    pub fn for_each_access<'a>(&'a self, visit: &mut dyn FnMut(&'a Access)) {
        match self {
            Term::Read(a) => visit(a),
            Term::Sum { parts, .. } => parts.iter().for_each(|(_, a)| visit(a)),
            Term::Bool(_) | Term::Constructor(..) | Term::Thread(_) => {}
        }
    }
}

impl Literal {
    pub fn for_each_access<'a>(&'a self, visit: &mut dyn FnMut(&'a Access)) {
        self.left.for_each_access(visit);
        self.right.for_each_access(visit);
    }
}

impl Formula {
    pub fn for_each_literal<'a>(&'a self, visit: &mut dyn FnMut(&'a Literal)) {
        match self {
            Formula::And(fs) | Formula::Or(fs) => {
                fs.iter().for_each(|f| f.for_each_literal(visit));
            }
            Formula::Atom(l) => visit(l),
            Formula::ForallOther { body, .. } => body.for_each_literal(visit),
        }
    }

    pub fn for_each_access<'a>(&'a self, visit: &mut dyn FnMut(&'a Access)) {
        self.for_each_literal(&mut |l| l.for_each_access(visit));
    }
}

impl Transition {
    /// Every cell the transition reads.
    pub fn for_each_access<'a>(&'a self, visit: &mut dyn FnMut(&'a Access)) {
        self.guard.for_each_access(visit);
        for branch in self.updates.iter().flat_map(|u| &u.branches) {
            branch.condition.for_each_access(visit);
            if let Value::Term(t) = &branch.value {
                t.for_each_access(visit);
            }
        }
    }
}
