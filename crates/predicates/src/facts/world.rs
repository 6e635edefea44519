//! The moves that facts must survive, some threads' buffers as views.
//!
//! A thread whose buffer has a static bound keeps it exact, as in `reduce`. Of one without a bound the
//! facts speak of *views*: memory as it would be after a prefix of the buffer had drained. A fact at a
//! control state holds of every two prefixes, the first no longer than the second (`Lower`, `Upper`),
//! and of the whole buffer (`Newest`). Memory itself is the shortest prefix, so
//!
//! - others load from a view of which every fact about two prefixes holds, with any later one;
//! - a drain only takes the shortest prefix away: no fact can break;
//! - a store adds one prefix, the longest: facts must hold of it beside older ones, and of it alone;
//! - where the buffer must be empty all views are one.
//!
//! A view is of the cells one buffer orders: all that the thread stores under TSO, one cell under PSO.
//! Only the thread itself may store to them, so nobody else changes a view.
//!
//! With a *focus* on some threads the others may do anything: whatever cell they may write has any value
//! of its range whenever it is read, and nothing is said about it.

use super::classes::Classes;
use super::element::Frame;
use crate::reduce::expr::Unfit;
use crate::reduce::size::may_be;
use crate::reduce::{Cause, Move, Next, Shape, Symbol, System, inside};
use std::collections::BTreeSet;
use wattle_evidence::Task;
use wattle_evidence::certificate::View;
use wattle_logic::{Formula, Term, Var, and, eq};
use wattle_memory::MemoryModel;
use wattle_model::graph::{Action, Section};
use wattle_model::instance::{Address, Fact, Instance, Question, balanced};
use wattle_model::{CellId, Expr, Fence, Op2, RegisterId, ThreadId, Type};

/// Variables of views come after all others.
const VIEWS: u32 = 1 << 24;

/// Views of more buffers than this are not read together.
const TOGETHER: usize = 3;

pub struct World<'i> {
    pub system: System<'i>,
    pub focus: Vec<ThreadId>,
    /// What must not be reached, of what the property speaks of.
    question: Option<Question>,
    pub classes: Classes,
    /// Cells that a view is of, with the thread that stores to them; the views' variables by position.
    viewed: Vec<(ThreadId, CellId)>,
    foreign: BTreeSet<CellId>,
    forms: Forms,
}

/// Which forms facts have, beside equalities and bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forms {
    /// Only bounds, from above and by cases.
    Zones,
    Plain,
    /// Also that two variables differ.
    Differences,
    /// Also what is true where two variables are equal, and of remainders that conditions take.
    Cases,
}

/// For each way facts are read, which variable stands for which.
pub type Readings = Vec<Vec<(Var, Var)>>;

/// A guarded assignment under facts.
pub struct Act {
    /// Facts hold with variables read so; each at once.
    pub under: Readings,
    pub guard: Formula,
    pub updates: Vec<(Var, Term)>,
    /// `None` is a fault.
    pub to: Option<Shape>,
    /// Only facts about these can break, if it says so.
    pub about: Option<BTreeSet<Var>>,
}

impl<'i> World<'i> {
    /// The world of these threads; `Err` says why there is none.
    pub fn new(
        task: &Task<'i>,
        focus: Vec<ThreadId>,
        targets: Vec<Expr<Fact>>,
        forms: Forms,
    ) -> Result<Self, &'static str> {
        let instance = task.instance;
        let system = System::new(instance, task.model, task.question(), 1);
        let question = task.question().map(|q| Question {
            target: any(targets),
            ..q.clone()
        });
        let others: Vec<ThreadId> = instance
            .thread_ids()
            .filter(|t| !focus.contains(t))
            .collect();
        let cells = || (0..instance.cells.len()).map(CellId::new);
        let foreign: BTreeSet<CellId> = cells()
            .filter(|c| others.iter().any(|t| writes(instance, *t, *c, true)))
            .collect();
        let mut viewed = Vec::new();
        for &t in &focus {
            if system.bounds[t.index()].1 {
                continue;
            }
            for c in cells().filter(|c| writes(instance, t, *c, false) && !foreign.contains(c)) {
                let others = focus.iter().filter(|u| **u != t);
                if others.into_iter().any(|u| writes(instance, *u, c, true)) {
                    let why =
                        "several threads store to a cell, one of them in a loop without a fence";
                    return Err(why);
                }
                viewed.push((t, c));
            }
        }
        let classes = Classes::new(&system, question.as_ref());
        Ok(World {
            system,
            focus,
            question,
            classes,
            viewed,
            foreign,
            forms,
        })
    }

    /// Whether zones can say what matters: no views, and nothing that wraps around.
    pub fn fits_zones(&self) -> bool {
        let instance = self.system.instance;
        let registers = |t: &ThreadId| instance.thread(*t).registers.iter().map(|r| r.ty);
        let types = self.focus.iter().flat_map(registers);
        let mut types = types.chain(instance.cells.iter().map(|c| c.ty));
        self.focus.iter().all(|t| !self.is_viewed(*t)) && types.all(|ty| size(ty).is_none())
    }

    /// Whether the facts speak of views of the thread's buffer.
    pub fn is_viewed(&self, t: ThreadId) -> bool {
        !self.system.bounds[t.index()].1
    }

    fn view(&self, at: usize, which: View) -> Var {
        Var(VIEWS + 3 * at as u32 + which as u32)
    }

    /// What a variable of a view stands for.
    pub fn symbol(&self, v: Var) -> Option<(ThreadId, View, CellId)> {
        let n = v.0.checked_sub(VIEWS)?;
        let (t, c) = *self.viewed.get(n as usize / 3)?;
        let which = [View::Lower, View::Upper, View::Newest];
        Some((t, which[n as usize % 3], c))
    }

    /// What facts at the shape may speak of.
    pub fn frame(&self, shape: &Shape) -> Frame {
        let system = &self.system;
        let instance = system.instance;
        let mut vars = Vec::new();
        for &t in &self.focus {
            for r in 0..instance.thread(t).registers.len() {
                vars.push(system.register(t, RegisterId::new(r)));
            }
            let entries = shape.pending[t.index()].slots.len();
            vars.extend((0..entries).map(|i| system.entry(t, i)));
        }
        let cells = (0..instance.cells.len()).map(CellId::new);
        let plain = |c: &CellId| !self.foreign.contains(c) && self.seen_as(*c).is_none();
        vars.extend(cells.filter(plain).map(|c| system.cell(c)));
        vars.retain(|v| system.matters(shape, *v));
        for n in 0..self.viewed.len() {
            vars.extend([View::Lower, View::Upper, View::Newest].map(|which| self.view(n, which)));
        }
        // What a variable is a copy of: entries and views are of cells.
        let origins: Vec<Var> = vars.iter().map(|v| self.origin(shape, *v)).collect();
        let mut remainders = Vec::new();
        for (n, origin) in origins.iter().enumerate() {
            let moduli = self
                .classes
                .remainders
                .range((*origin, 0)..=(*origin, i64::MAX));
            remainders.extend(moduli.map(|(_, m)| (n, *m)));
            if self.forms == Forms::Cases {
                let moduli = &self.classes.parities;
                let moduli = moduli.range((*origin, 0)..=(*origin, i64::MAX));
                remainders.extend(moduli.map(|(_, m)| (n, *m)));
            }
        }
        remainders.dedup();
        let mut pairs = Vec::new();
        if self.forms == Forms::Cases {
            let equal = &self.classes.equal;
            let tested = |v: &Var| equal.iter().any(|(a, b)| a == v || b == v);
            for (j, b) in origins.iter().enumerate() {
                for (i, a) in origins[..j].iter().enumerate() {
                    let both = equal.contains(&(*a.min(b), *a.max(b)));
                    if both || a == b && tested(a) {
                        pairs.push((i, j));
                    }
                }
            }
        }
        let circle = |v: &Var| match self.system.symbol(*v) {
            Symbol::Register(t, r) => size(instance.thread(t).registers[r.index()].ty),
            Symbol::Cell(c) => size(instance.cell(c).ty),
            Symbol::Choice | Symbol::Entry(..) => None,
        };
        Frame {
            vars,
            classes: origins.iter().map(|v| self.classes.of(*v)).collect(),
            circles: origins.iter().map(circle).collect(),
            remainders,
            differences: self.forms == Forms::Differences,
            pairs,
        }
    }

    /// The register or cell whose values the variable has.
    fn origin(&self, shape: &Shape, v: Var) -> Var {
        if let Some((_, _, c)) = self.symbol(v) {
            return self.system.cell(c);
        }
        match self.system.symbol(v) {
            Symbol::Entry(t, i) => self.system.cell(shape.pending[t.index()].slots[i].cell),
            Symbol::Register(..) | Symbol::Cell(_) | Symbol::Choice => v,
        }
    }

    /// What types and ranges say of the variables.
    pub fn domain(&self, shape: &Shape, vars: &BTreeSet<Var>) -> Vec<Formula> {
        let of = |v: &Var| match self.symbol(*v) {
            Some((_, _, c)) => inside(self.system.ranges.cells[c.index()], &Term::from(*v)),
            None => self.system.domain(shape, *v),
        };
        vars.iter()
            .map(of)
            .filter(|f| *f != Formula::True)
            .collect()
    }

    pub fn initial(&self) -> (Shape, Formula) {
        let (shape, start) = self.system.initial();
        let mut parts = vec![start];
        for (n, (_, c)) in self.viewed.iter().enumerate() {
            for which in [View::Lower, View::Upper, View::Newest] {
                parts.push(eq(self.view(n, which), self.system.cell(*c)));
            }
        }
        (shape, and(parts))
    }

    /// When something bad is seen in the shape, and how facts are read there.
    pub fn target(&self, shape: &Shape) -> Result<(Formula, Readings), Unfit> {
        let bad = match &self.question {
            Some(q) => self.system.target(shape, q)?,
            None => Formula::False,
        };
        let under = self.reading(&bad.vars());
        Ok((bad, under))
    }

    /// The views that are of memory where the cell is.
    fn seen_as(&self, c: CellId) -> Option<usize> {
        self.viewed.iter().position(|(_, x)| *x == c)
    }

    /// Those that the same buffer orders.
    fn together(&self, at: usize) -> Vec<usize> {
        match self.system.model {
            MemoryModel::Pso => vec![at],
            MemoryModel::Sc | MemoryModel::Tso => self.of_thread(self.viewed[at].0),
        }
    }

    fn of_thread(&self, t: ThreadId) -> Vec<usize> {
        (0..self.viewed.len())
            .filter(|n| self.viewed[*n].0 == t)
            .collect()
    }

    /// How facts are read where these variables, cells of memory among them, are used.
    fn reading(&self, used: &BTreeSet<Var>) -> Readings {
        let mut ways = vec![Vec::new()];
        let mut seen: BTreeSet<Vec<usize>> = BTreeSet::new();
        for n in 0..self.viewed.len() {
            if used.contains(&self.system.cell(self.viewed[n].1)) {
                seen.insert(self.together(n));
            }
        }
        let together = seen.len() <= TOGETHER;
        for group in seen {
            let mut more = Vec::new();
            let from = if together { ways.len() } else { 1 };
            for way in &ways[..from] {
                for upper in [View::Lower, View::Upper] {
                    let mut way: Vec<(Var, Var)> = way.clone();
                    for &n in &group {
                        let memory = self.system.cell(self.viewed[n].1);
                        way.push((self.view(n, View::Lower), memory));
                        way.push((self.view(n, View::Upper), self.view(n, upper)));
                    }
                    more.push(way);
                }
            }
            ways.extend(more);
        }
        ways
    }

    /// Every act that leaves the shape.
    pub fn acts(&self, shape: &Shape) -> Result<Vec<Act>, Unfit> {
        let mut acts = Vec::new();
        for mv in self.system.moves(shape)? {
            if !self.focus.contains(&mv.thread) {
                continue;
            }
            self.act(mv, &mut acts);
        }
        Ok(acts)
    }

    fn act(&self, mv: Move, acts: &mut Vec<Act>) {
        let t = mv.thread;
        let mine = self.of_thread(t);
        let own = |v: Var| {
            let at = mine
                .iter()
                .find(|n| self.system.cell(self.viewed[**n].1) == v)?;
            Some(Term::from(self.view(*at, View::Newest)))
        };
        let guard = mv.guard.subst(&own);
        let mut updates: Vec<(Var, Term)> = Vec::new();
        for (v, value) in &mv.updates {
            updates.push((*v, value.subst(&own)));
        }
        let mut to = match mv.next {
            Next::To(shape) => Some(shape),
            Next::Fault | Next::Overflow => None,
        };
        if !self.is_viewed(t) {
            let mut used = guard.vars();
            updates.iter().for_each(|(_, e)| e.collect_vars(&mut used));
            let under = self.reading(&used);
            acts.push(Act {
                under,
                guard,
                updates,
                to,
                about: None,
            });
            return;
        }
        let mut stored = None;
        if let Some(to) = &mut to
            && let Some(slot) = to.pending[t.index()].slots.pop()
        {
            to.pending[t.index()] = Default::default();
            let (_, value) = updates.remove(0);
            stored = self.seen_as(slot.cell).map(|at| (at, value));
        }
        let fresh = |group: &[usize], (at, value): &(usize, Term), which: &[View]| {
            let mut updates = Vec::new();
            for &n in group {
                let newest = match n == *at {
                    true => value.clone(),
                    false => Term::from(self.view(n, View::Newest)),
                };
                for w in which {
                    updates.push((self.view(n, *w), newest.clone()));
                }
            }
            updates
        };
        let same = |group: &[usize], which: &[View]| {
            let mut same = Vec::new();
            for &n in group {
                let newest = self.view(n, View::Newest);
                same.extend(which.iter().map(|w| (self.view(n, *w), newest)));
            }
            same
        };
        const LATER: [View; 1] = [View::Upper];
        const BOTH: [View; 2] = [View::Lower, View::Upper];
        const ALL: [View; 3] = [View::Lower, View::Upper, View::Newest];
        if let Some(stored) = stored {
            let group = self.together(stored.0);
            let cases: [(&[View], &[View]); 3] = [
                (&[], &[View::Newest]),
                (&LATER, &[View::Upper, View::Newest]),
                (&BOTH, &ALL),
            ];
            for (equal, changed) in cases {
                let about = match equal {
                    [] => None,
                    [one] => Some(group.iter().map(|n| self.view(*n, *one)).collect()),
                    _ => Some(group.iter().map(|n| self.view(*n, View::Lower)).collect()),
                };
                acts.push(Act {
                    under: vec![same(&group, equal)],
                    guard: guard.clone(),
                    updates: fresh(&group, &stored, changed),
                    to: to.clone(),
                    about,
                });
            }
            return;
        }
        let thread = self.system.instance.thread(t);
        let empty = match mv.cause {
            Cause::Drain(..) => false,
            Cause::Step(s, _) => {
                let step = thread.step(s);
                thread.direct[step.source.index()] || needs_empty(&step.action)
            }
        };
        let mut used = guard.vars();
        updates.iter().for_each(|(_, e)| e.collect_vars(&mut used));
        let mut under = self.reading(&used);
        if empty {
            for way in &mut under {
                way.extend(same(&mine, &BOTH));
            }
            let direct = updates.iter().position(|(v, _)| own(*v).is_some());
            let direct = direct.map(|i| updates.remove(i));
            for &n in &mine {
                let value = match &direct {
                    Some((v, value)) if *v == self.system.cell(self.viewed[n].1) => value.clone(),
                    _ => Term::from(self.view(n, View::Newest)),
                };
                updates.extend(ALL.map(|w| (self.view(n, w), value.clone())));
            }
        }
        acts.push(Act {
            under,
            guard,
            updates,
            to,
            about: None,
        });
    }
}

/// How many values the type has before it wraps around.
fn size(ty: Type) -> Option<i64> {
    match ty {
        Type::Wrap { bits, .. } => 1i64.checked_shl(bits.into()).filter(|_| bits < 62),
        Type::Int | Type::Range { .. } | Type::Thread(_) => None,
    }
}

/// One of them.
fn any(targets: Vec<Expr<Fact>>) -> Expr<Fact> {
    let all = balanced(targets, |a, b| Expr::binary(Op2::Or, a, b));
    all.unwrap_or(Expr::Const(0))
}

/// Whether the action waits until the buffer is empty.
fn needs_empty(action: &Action<RegisterId, Address>) -> bool {
    match action {
        Action::Fence(Fence::Full)
        | Action::AtomicBegin(Section::Drained)
        | Action::Lock
        | Action::Unlock => true,
        Action::Fence(Fence::Store)
        | Action::AtomicBegin(Section::Buffered)
        | Action::Skip
        | Action::Assign { .. }
        | Action::Havoc { .. }
        | Action::Assume(_)
        | Action::Assert { .. }
        | Action::Load { .. }
        | Action::Store { .. }
        | Action::AtomicEnd => false,
    }
}

/// Whether the thread may store to the cell; if not `at_all`, through its buffer.
fn writes(instance: &Instance, t: ThreadId, cell: CellId, at_all: bool) -> bool {
    let thread = instance.thread(t);
    thread.steps.iter().any(|step| match &step.action {
        Action::Store { place, .. } => {
            may_be(place, cell) && (at_all || !thread.direct[step.source.index()])
        }
        Action::Skip
        | Action::Assign { .. }
        | Action::Havoc { .. }
        | Action::Assume(_)
        | Action::Assert { .. }
        | Action::Load { .. }
        | Action::Fence(_)
        | Action::AtomicBegin(_)
        | Action::AtomicEnd
        | Action::Lock
        | Action::Unlock => false,
    })
}
