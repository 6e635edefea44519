//! Walking over the parts of formulas and transitions.

use super::{
    Access, ArraySystem, Comparison, Formula, Literal, Term, ThreadTerm, Transition, UpdateIndex,
    Value,
};

impl Term {
    pub fn for_each_access<'a>(&'a self, visit: &mut dyn FnMut(&'a Access)) {
        match self {
            Term::Read(a) => visit(a),
            Term::Sum { parts, .. } => parts.iter().for_each(|(_, a)| visit(a)),
            Term::Bool(_) | Term::Constructor(..) | Term::Thread(_) => {}
        }
    }

    pub fn for_each_thread(&self, visit: &mut dyn FnMut(&ThreadTerm)) {
        if let Term::Thread(t) = self {
            visit(t);
        }
        self.for_each_access(&mut |a| a.args.iter().chain(&a.reader).for_each(&mut *visit));
    }
}

impl Literal {
    pub fn for_each_access<'a>(&'a self, visit: &mut dyn FnMut(&'a Access)) {
        self.left.for_each_access(visit);
        self.right.for_each_access(visit);
    }
}

impl Literal {
    /// Whether it orders what cells hold that are no numbers.
    pub fn orders_held(&self) -> bool {
        let ordered = matches!(self.op, Comparison::Lt | Comparison::Le);
        let held = |t: &Term| matches!(t, Term::Read(_));
        ordered && (held(&self.left) || held(&self.right))
    }
}

impl Formula {
    /// The parts of a conjunction.
    pub fn conjuncts(&self) -> &[Formula] {
        match self {
            Formula::And(list) => list,
            Formula::Or(_) | Formula::Atom(_) | Formula::Others { .. } => {
                std::slice::from_ref(self)
            }
        }
    }

    /// Whether it speaks of threads that are no parameters.
    pub fn speaks_of_others(&self) -> bool {
        match self {
            Formula::And(list) | Formula::Or(list) => list.iter().any(Formula::speaks_of_others),
            Formula::Atom(_) => false,
            Formula::Others { .. } => true,
        }
    }

    pub fn for_each_literal<'a>(&'a self, visit: &mut dyn FnMut(&'a Literal)) {
        match self {
            Formula::And(fs) | Formula::Or(fs) => {
                fs.iter().for_each(|f| f.for_each_literal(visit));
            }
            Formula::Atom(l) => visit(l),
            Formula::Others { body, .. } => body.for_each_literal(visit),
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

impl ArraySystem {
    /// Every literal, of conditions and of guards and branches.
    pub fn for_each_literal<'a>(&'a self, visit: &mut dyn FnMut(&'a Literal)) {
        let claims = self.bad.iter().chain(&self.assumed).chain([&self.init]);
        claims.for_each(|q| q.body.for_each_literal(visit));
        for t in &self.transitions {
            t.guard.for_each_literal(visit);
            let branches = t.updates.iter().flat_map(|u| &u.branches);
            branches.for_each(|b| b.condition.for_each_literal(visit));
        }
    }

    /// The greatest `#k` that is named; 0 if none is.
    pub fn greatest_constant(&self) -> u16 {
        let mut greatest = 0;
        let mut term = |t: &Term| {
            t.for_each_thread(&mut |t| {
                if let ThreadTerm::Constant(k) = t {
                    greatest = greatest.max(*k);
                }
            });
        };
        self.for_each_literal(&mut |l| [&l.left, &l.right].into_iter().for_each(&mut term));
        for u in self.transitions.iter().flat_map(|t| &t.updates) {
            for b in &u.branches {
                if let Value::Term(t) = &b.value {
                    term(t);
                }
            }
            for i in &u.index {
                if let UpdateIndex::At(t) = i {
                    term(&Term::Thread(*t));
                }
            }
        }
        greatest
    }

    /// `init (p) { X <> p }`: a cell may hold no thread at all.
    pub fn may_be_nobody(&self) -> bool {
        let mut found = false;
        self.init.body.for_each_literal(&mut |l| {
            use Term::{Read, Thread};
            let sides = (&l.left, &l.right);
            let both = matches!(sides, (Thread(_), Read(_)) | (Read(_), Thread(_)));
            found |= both && l.op == Comparison::Ne;
        });
        found
    }
}
