//! A system prepared for the search: conditions in disjunctive normal form, case updates as
//! exclusive alternatives, types as kinds of constraints.

use crate::cube::{Cube, Mask};
use crate::lin;
use crate::slot::Slot;
use wattle_memory::MemoryModel;
use wattle_model::array::{
    Access, ArrayIndex, ArraySystem, CellType, Comparison, FenceKind, Formula, Literal, Quantified,
    Term, ThreadTerm, UpdateIndex, Value,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// This many values.
    Finite(u32),
    Thread,
    /// Values that can only be compared.
    Abstract,
    Int,
    Real,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lit {
    In(Access, Mask),
    IsThread(Access, ThreadTerm, bool),
    Same(Access, Access, bool),
    Threads(ThreadTerm, ThreadTerm, Comparison),
    Number(Vec<(i64, Access)>, i64, lin::Op, bool),
}

pub type Conj = Vec<Lit>;
pub type Dnf = Vec<Conj>;

#[derive(Clone, Debug)]
pub enum New {
    Value(Mask),
    Thread(ThreadTerm),
    Cell(Access),
    Sum(Vec<(i64, Access)>, i64),
    Any,
}

#[derive(Clone, Debug)]
pub struct CompiledUpdate {
    pub cell: ArrayIndex,
    pub index: Vec<UpdateIndex>,
    /// Exclusive alternatives that write.
    pub writes: Vec<(Conj, New)>,
    /// Conditions under which nothing is written.
    pub keeps: Dnf,
}

/// What a guard says of so many threads, equal ones too, that are no parameters.
#[derive(Clone, Debug)]
pub struct Universal {
    pub threads: usize,
    pub body: Dnf,
}

#[derive(Clone, Debug)]
pub struct CompiledTransition {
    pub params: usize,
    pub actor: Option<u8>,
    pub fence: Option<FenceKind>,
    pub atomic: bool,
    pub guard: Dnf,
    pub universals: Vec<Universal>,
    pub updates: Vec<CompiledUpdate>,
}

/// Why a system cannot be searched backward under the memory model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    pub span: wattle_model::Span,
    pub message: String,
    pub hint: String,
}

#[derive(Clone, Debug)]
pub struct Compiled<'a> {
    pub system: &'a ArraySystem,
    pub model: MemoryModel,
    pub kinds: Vec<Kind>,
    pub transitions: Vec<CompiledTransition>,
    pub init: Dnf,
    /// The greatest thread constant; all smaller ones count as constants too.
    pub constants: u16,
    /// Cells of thread type may hold nobody.
    pub nobody: bool,
}

/// More conjunctions than this and we do not expand.
const DNF: usize = 4096;

impl<'a> Compiled<'a> {
    pub fn new(system: &'a ArraySystem, model: MemoryModel) -> Result<Self, Unsupported> {
        let kinds: Vec<Kind> = system
            .cells
            .iter()
            .map(|c| match c.ty {
                CellType::Int => Kind::Int,
                CellType::Real => Kind::Real,
                CellType::Thread => Kind::Thread,
                ty @ (CellType::Bool | CellType::Declared(_)) => {
                    system.values(ty).map_or(Kind::Abstract, Kind::Finite)
                }
            })
            .collect();
        let large = system
            .cells
            .iter()
            .zip(&kinds)
            .find(|(_, k)| matches!(k, Kind::Finite(n) if *n > 120));
        if let Some((c, _)) = large {
            return Err(Unsupported {
                span: c.span,
                message: format!("`{}` has more than 120 values", c.name),
                hint: "use an `int`, or split the type".into(),
            });
        }
        let model = match model {
            _ if !system.has_weak_cells() => MemoryModel::Sc,
            MemoryModel::Pso if system.stores_in_order() => MemoryModel::Tso,
            model @ (MemoryModel::Sc | MemoryModel::Tso | MemoryModel::Pso) => model,
        };
        let mut compiled = Compiled {
            system,
            model,
            kinds,
            transitions: Vec::new(),
            init: Vec::new(),
            constants: system.greatest_constant(),
            nobody: false,
        };
        if model != MemoryModel::Sc {
            compiled.check_locality()?;
        }
        compiled.init = compiled.dnf(&system.init.body, system.init.span)?;
        compiled.nobody = excludes_all_threads(&system.init);
        for t in &system.transitions {
            let mut plain = Vec::new();
            let mut universals = Vec::new();
            let parts = t.guard.conjuncts();
            for p in parts {
                match p {
                    Formula::Others {
                        all: true, body, ..
                    } => {
                        let mut threads = 1;
                        let body = flattened(body, 1, &mut threads);
                        // One that is too large is left out.
                        let body = compiled.expand(&body, true);
                        universals.extend(body.map(|body| Universal { threads, body }));
                    }
                    Formula::Others { all: false, .. } => {}
                    other @ (Formula::And(_) | Formula::Or(_) | Formula::Atom(_)) => {
                        plain.push(other.clone())
                    }
                }
            }
            let guard = compiled.dnf(&Formula::And(plain), t.span)?;
            let updates = t
                .updates
                .iter()
                .map(|u| compiled.update(u, t.params.len()))
                .collect::<Result<_, _>>()?;
            compiled.transitions.push(CompiledTransition {
                params: t.params.len(),
                actor: t.actor,
                fence: t.fence,
                atomic: system.is_atomic(t),
                guard,
                universals,
                updates,
            });
        }
        Ok(compiled)
    }

    pub fn kind(&self, cell: ArrayIndex) -> Kind {
        self.kinds[usize::from(cell)]
    }

    /// Whether some condition says more than was taken over.
    pub fn is_vague(&self) -> bool {
        let guards = self.system.transitions.iter().map(|t| &t.guard);
        let guards = guards.flat_map(|g| g.conjuncts());
        let guards = guards.map(|g| match g {
            Formula::Others {
                all: true, body, ..
            } => body,
            other @ (Formula::Others { .. }
            | Formula::And(_)
            | Formula::Or(_)
            | Formula::Atom(_)) => other,
        });
        let updates = self.system.transitions.iter().flat_map(|t| &t.updates);
        let conditions = updates.flat_map(|u| u.branches.iter().map(|b| &b.condition));
        let mut more = false;
        for f in guards.chain(conditions) {
            more |= f.speaks_of_others();
            f.for_each_literal(&mut |l| more |= l.orders_held());
        }
        more
    }

    /// Whether accesses to the cell are memory events.
    pub fn weak(&self, cell: ArrayIndex) -> bool {
        self.model != MemoryModel::Sc && self.system.cell(cell).weak
    }

    /// Whether some step puts stores of the cell into a buffer.
    pub fn buffers(&self, cell: ArrayIndex) -> bool {
        let mut steps = self.transitions.iter().filter(|t| !t.atomic);
        steps.any(|t| t.updates.iter().any(|u| u.cell == cell))
    }

    pub fn slot_kind(&self, cube: &Cube, slot: Slot) -> Option<Kind> {
        match slot.as_read() {
            Some((e, p)) => {
                let part = cube.memory.events.get(e)?.parts.get(p)?;
                Some(self.kind(part.cell.array()))
            }
            None if slot.is_cell() => Some(self.kind(slot.array())),
            None if slot.as_pending().is_some() => {
                let p = cube.memory.pending.get(slot.as_pending()?)?;
                Some(self.kind(p.cell.array()))
            }
            None => None,
        }
    }

    /// All values of a slot of finite or thread type.
    pub fn full(&self, cube: &Cube, slot: Slot) -> Option<Mask> {
        match self.slot_kind(cube, slot)? {
            Kind::Finite(n) => Some((1 << n) - 1),
            Kind::Thread => Some(cube.all_threads()),
            Kind::Abstract | Kind::Int | Kind::Real => None,
        }
    }

    pub fn is_thread(&self, cube: &Cube, slot: Slot) -> bool {
        self.slot_kind(cube, slot) == Some(Kind::Thread)
    }

    /// What buffered cells hold is in no order: an order that is left out would leave out the read as well.
    fn check_orders(&self, t: &wattle_model::array::Transition) -> Result<(), Unsupported> {
        let mut ordered = None;
        let branches = t.updates.iter().flat_map(|u| &u.branches);
        for f in branches.map(|b| &b.condition).chain([&t.guard]) {
            f.for_each_literal(&mut |l| {
                let mut weak = |a: &Access| {
                    if l.orders_held() && self.system.cell(a.cell).weak {
                        ordered = Some(a.cell);
                    }
                };
                l.for_each_access(&mut weak);
            });
        }
        ordered.map_or(Ok(()), |cell| {
            let name = &self.system.cell(cell).name;
            Err(Unsupported {
                span: t.span,
                message: format!("`{}` orders what `{name}` holds, which is weak", t.name),
                hint: format!("name the threads that `{name}` may hold, or check under SC only"),
            })
        })
    }

    /// Under TSO and PSO steps of different threads must commute except through weak memory.
    fn check_locality(&self) -> Result<(), Unsupported> {
        let system = self.system;
        for t in &system.transitions {
            self.check_orders(t)?;
            let actor = t.actor.map(ThreadTerm::Param);
            let mut broken: Option<(ArrayIndex, wattle_model::Span)> = None;
            let mut look = |cell: ArrayIndex, first: Option<ThreadTerm>, span| {
                let c = system.cell(cell);
                if !c.weak && !c.constant && (first.is_none() || first != actor) {
                    broken.get_or_insert((cell, span));
                }
            };
            t.guard
                .for_each_access(&mut |a| look(a.cell, a.args.first().copied(), t.span));
            for u in &t.updates {
                // `A[j] := case | j = p : …` that only ever changes the actor's element is local.
                let cell_local = self.local_update(t, u);
                if !cell_local {
                    look(u.cell, None, u.span);
                }
                if cell_local && u.index.iter().any(|i| matches!(i, UpdateIndex::Each(_))) {
                    continue;
                }
                for b in &u.branches {
                    b.condition
                        .for_each_access(&mut |a| look(a.cell, a.args.first().copied(), u.span));
                    if let Value::Term(term) = &b.value {
                        term.for_each_access(&mut |a| {
                            look(a.cell, a.args.first().copied(), u.span)
                        });
                    }
                }
            }
            if let Some((cell, span)) = broken {
                let name = &system.cell(cell).name;
                return Err(Unsupported {
                    span,
                    message: format!(
                        "transition `{}` touches `{name}`, which is not weak, of another thread",
                        t.name
                    ),
                    hint: format!("declare `{name}` weak, or check under SC only"),
                });
            }
        }
        Ok(())
    }

    /// Whether an update of a non-weak cell changes only elements of the acting thread.
    fn local_update(
        &self,
        t: &wattle_model::array::Transition,
        u: &wattle_model::array::Update,
    ) -> bool {
        if self.system.cell(u.cell).weak {
            return true;
        }
        let actor = t.actor.map(ThreadTerm::Param);
        match u.index.first() {
            None => false,
            Some(UpdateIndex::At(x)) => Some(*x) == actor,
            Some(UpdateIndex::Each(_)) => {
                let me = ThreadTerm::Param(t.params.len() as u8);
                u.branches.iter().all(|b| {
                    requires_equal(&b.condition, me, actor)
                        || keeps_itself(&b.value, u, t.params.len())
                })
            }
        }
    }

    pub fn dnf(&self, f: &Formula, span: wattle_model::Span) -> Result<Dnf, Unsupported> {
        let out = self.expand(f, true);
        match out {
            Some(d) => Ok(d),
            None => Err(Unsupported {
                span,
                message: "this condition has too many cases".into(),
                hint: "split the transition".into(),
            }),
        }
    }

    /// Disjunctive normal form of the formula or of its negation, or of less than it says: what it says of other threads
    /// and of the order of cells that hold threads is left out.
    fn expand(&self, f: &Formula, positive: bool) -> Option<Dnf> {
        match (f, positive) {
            (Formula::And(list), true) | (Formula::Or(list), false) => {
                let mut out: Dnf = vec![Vec::new()];
                for g in list {
                    out = both(&out, &self.expand(g, positive)?)?;
                }
                Some(out)
            }
            (Formula::Or(list), true) | (Formula::And(list), false) => {
                let mut out = Vec::new();
                for g in list {
                    out.extend(self.expand(g, positive)?);
                }
                (out.len() <= DNF).then_some(out)
            }
            (Formula::Atom(l), _) if l.orders_held() => Some(vec![Vec::new()]),
            (Formula::Atom(l), _) => Some(vec![vec![self.literal(l, positive)?]]),
            (Formula::Others { .. }, _) => Some(vec![Vec::new()]),
        }
    }

    fn literal(&self, l: &Literal, positive: bool) -> Option<Lit> {
        use Comparison::{Eq, Le, Lt, Ne};
        let (left, right, op) = match (l.op, positive) {
            (op, true) => (&l.left, &l.right, op),
            (Eq, false) => (&l.left, &l.right, Ne),
            (Ne, false) => (&l.left, &l.right, Eq),
            (Lt, false) => (&l.right, &l.left, Le),
            (Le, false) => (&l.right, &l.left, Lt),
        };
        let equal = op == Eq;
        Some(match (left, right) {
            (Term::Thread(a), Term::Thread(b)) => Lit::Threads(*a, *b, op),
            (Term::Read(a), Term::Thread(t)) | (Term::Thread(t), Term::Read(a)) => {
                Lit::IsThread(a.clone(), *t, equal)
            }
            (Term::Read(a), Term::Read(b)) => Lit::Same(a.clone(), b.clone(), equal),
            (
                Term::Sum {
                    parts: p,
                    constant: c,
                },
                Term::Sum {
                    parts: q,
                    constant: d,
                },
            ) => {
                let mut parts = p.clone();
                parts.extend(q.iter().map(|(k, a)| (-k, a.clone())));
                let op = match op {
                    Eq => lin::Op::Eq,
                    Ne => lin::Op::Ne,
                    Lt => lin::Op::Lt,
                    Le => lin::Op::Le,
                };
                let real = parts.iter().any(|(_, a)| self.kind(a.cell) == Kind::Real);
                Lit::Number(parts, c.checked_sub(*d)?, op, !real)
            }
            (Term::Read(a), v) | (v, Term::Read(a)) => {
                let Kind::Finite(n) = self.kind(a.cell) else {
                    return None;
                };
                let bit = value_bit(v)?;
                let all: Mask = (1 << n) - 1;
                Lit::In(a.clone(), if equal { bit } else { all & !bit })
            }
            // Two constants.
            (a, b) => {
                let holds = (value_bit(a)? == value_bit(b)?) == equal;
                let op = if holds { lin::Op::Le } else { lin::Op::Lt };
                Lit::Number(Vec::new(), 0, op, true)
            }
        })
    }

    fn update(
        &self,
        u: &wattle_model::array::Update,
        params: usize,
    ) -> Result<CompiledUpdate, Unsupported> {
        let too_many = || Unsupported {
            span: u.span,
            message: "this update has too many cases".into(),
            hint: "split the transition".into(),
        };
        let mut none: Dnf = vec![Vec::new()];
        let mut writes = Vec::new();
        let mut keeps = Vec::new();
        for b in &u.branches {
            let yes = self
                .expand(&b.condition, true)
                .and_then(|d| both(&none, &d))
                .ok_or_else(too_many)?;
            let new = match &b.value {
                Value::Any => New::Any,
                Value::Term(Term::Thread(t)) => New::Thread(*t),
                Value::Term(Term::Read(a)) => New::Cell(a.clone()),
                Value::Term(Term::Sum { parts, constant }) => New::Sum(parts.clone(), *constant),
                Value::Term(t) => New::Value(value_bit(t).unwrap_or(1)),
            };
            // Writing a cell's own value back is writing nothing, for a transition is atomic then.
            if keeps_itself(&b.value, u, params) {
                keeps.extend(yes);
            } else {
                writes.extend(yes.into_iter().map(|c| (c, new.clone())));
            }
            let no = self.expand(&b.condition, false).ok_or_else(too_many)?;
            none = both(&none, &no).ok_or_else(too_many)?;
        }
        keeps.extend(none);
        Ok(CompiledUpdate {
            cell: u.cell,
            index: u.index.clone(),
            writes,
            keeps,
        })
    }
}

/// The formula without its inner *for all*, whose thread is bound from outside then. Two of them beside each
/// other speak of one thread, which is less than they say.
fn flattened(f: &Formula, depth: usize, deepest: &mut usize) -> Formula {
    let mut each = |list: &[Formula]| -> Vec<Formula> {
        let list = list.iter().map(|f| flattened(f, depth, deepest));
        list.collect()
    };
    match f {
        Formula::And(list) => Formula::And(each(list)),
        Formula::Or(list) => Formula::Or(each(list)),
        Formula::Others {
            all: true, body, ..
        } => {
            *deepest = (depth + 1).max(*deepest);
            flattened(body, depth + 1, deepest)
        }
        Formula::Atom(_) | Formula::Others { all: false, .. } => f.clone(),
    }
}

fn requires_equal(f: &Formula, me: ThreadTerm, actor: Option<ThreadTerm>) -> bool {
    match f {
        Formula::And(list) => list.iter().any(|g| requires_equal(g, me, actor)),
        Formula::Or(list) => !list.is_empty() && list.iter().all(|g| requires_equal(g, me, actor)),
        Formula::Atom(l) => {
            let sides = [(&l.left, &l.right), (&l.right, &l.left)];
            l.op == Comparison::Eq
                && sides.iter().any(|(a, b)| {
                    **a == Term::Thread(me) && actor.is_some_and(|p| **b == Term::Thread(p))
                })
        }
        Formula::Others { .. } => false,
    }
}

fn keeps_itself(v: &Value, u: &wattle_model::array::Update, params: usize) -> bool {
    let own = |a: &Access| {
        let mut each = params as u8;
        a.cell == u.cell
            && a.args.len() == u.index.len()
            && a.args.iter().zip(&u.index).all(|(arg, i)| match i {
                UpdateIndex::At(t) => arg == t,
                UpdateIndex::Each(_) => {
                    each += 1;
                    *arg == ThreadTerm::Param(each - 1)
                }
            })
    };
    match v {
        Value::Term(Term::Read(a)) => own(a),
        Value::Term(Term::Sum { parts, constant: 0 }) => matches!(&parts[..], [(1, a)] if own(a)),
        Value::Term(_) | Value::Any => false,
    }
}

fn value_bit(t: &Term) -> Option<Mask> {
    match t {
        Term::Bool(b) => Some(1 << u32::from(*b)),
        Term::Constructor(_, c) => Some(1 << c),
        Term::Thread(_) | Term::Read(_) | Term::Sum { .. } => None,
    }
}

fn both(a: &Dnf, b: &Dnf) -> Option<Dnf> {
    if a.len().saturating_mul(b.len()) > DNF {
        return None;
    }
    let mut out = Vec::with_capacity(a.len() * b.len());
    for x in a {
        for y in b {
            let mut c = x.clone();
            c.extend(y.iter().filter(|l| !x.contains(l)).cloned());
            out.push(c);
        }
    }
    Some(out)
}

/// `init (p) { X <> p }`: no thread is ever in X.
fn excludes_all_threads(init: &Quantified) -> bool {
    let mut found = false;
    init.body.for_each_literal(&mut |l| {
        let cell_thread = matches!(
            (&l.left, &l.right),
            (Term::Read(_), Term::Thread(ThreadTerm::Param(_)))
                | (Term::Thread(ThreadTerm::Param(_)), Term::Read(_))
        );
        found |= l.op == Comparison::Ne && cell_thread;
    });
    found
}
