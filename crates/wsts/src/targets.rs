//! Bad configurations as constraints: which local states and which memory make a condition true.

use crate::local::Local;
use wattle_evidence::{Control, Meter, Reason, Stop, Task};
use wattle_memory::FaultKind;
use wattle_memory::automaton::{Automata, LocalId};
use wattle_model::instance::Fact;
use wattle_model::{CellId, Expr, Op2, Roles, ThreadId};

/// One way to be bad: local states, and memory where it matters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    pub locals: Vec<Local>,
    pub memory: Vec<Option<i64>>,
    /// Stores may be pending in the bad state for good reason: it looks at memory, or somebody may
    /// hold the lock, which keeps the stores of others from memory.
    pub snapshot: bool,
    /// The thread whose fault this is.
    pub fault: Option<ThreadId>,
}

/// More bad configurations than this are not worth starting from.
const MAX_TARGETS: usize = 1 << 18;

/// Every way to be bad: the question's target and every fault (of one thread of each role). An error
/// says why there are too many or why one has no value.
pub fn targets(
    task: &Task<'_>,
    roles: &Roles,
    automata: &Automata,
    control: &Control<'_>,
) -> Result<Vec<Target>, Reason> {
    let threads = task.instance.threads.len();
    let cells = task.instance.cells.len();
    let mut states = automata.threads.iter().flat_map(|t| &t.states);
    let locks = states.any(|s| s.holds);
    let open = Target {
        locals: vec![Local::Any; threads],
        memory: vec![None; cells],
        snapshot: locks,
        fault: None,
    };
    let mut all = Vec::new();
    for t in roles.all() {
        let automaton = &automata.threads[t];
        for (q, state) in automaton.states.iter().enumerate() {
            if state.fault.is_some() {
                let mut target = open.clone();
                target.locals[t] = Local::At(q as LocalId);
                target.fault = Some(ThreadId::new(t));
                all.push(target);
            }
        }
    }
    let Some(question) = task.question() else {
        return Ok(all);
    };
    let mut finder = Finder {
        task,
        automata,
        only_final: question.only_final,
        all,
        meter: Meter::new(control),
    };
    for part in disjuncts(&question.target) {
        finder.find(part, &open)?;
    }
    finder.all.sort();
    finder.all.dedup();
    Ok(finder.all)
}

/// The parts of a disjunction; each speaks of fewer threads than the whole.
fn disjuncts(e: &Expr<Fact>) -> Vec<&Expr<Fact>> {
    let Expr::Binary(Op2::Or, a, b) = e else {
        return vec![e];
    };
    let mut parts = disjuncts(a);
    parts.extend(disjuncts(b));
    parts
}

struct Finder<'t> {
    task: &'t Task<'t>,
    automata: &'t Automata,
    only_final: bool,
    all: Vec<Target>,
    /// There are as many ways to choose as threads have local states together.
    meter: Meter<'t>,
}

/// What is being done when a budget ends here.
pub fn stopped(stop: Stop) -> Reason {
    Reason::stopped(stop, "listing bad configurations")
}

impl Finder<'_> {
    fn find(&mut self, e: &Expr<Fact>, open: &Target) -> Result<(), Reason> {
        let (mut threads, mut cells) = (Vec::new(), Vec::new());
        mentioned(e, &mut threads, &mut cells);
        if self.only_final {
            threads = self.task.instance.thread_ids().collect();
        }
        threads.sort_unstable();
        threads.dedup();
        cells.sort_unstable();
        cells.dedup();
        let start = Target {
            snapshot: !self.only_final && (open.snapshot || !cells.is_empty()),
            ..open.clone()
        };
        self.choose(e, &threads, &cells, start)
    }

    /// Fixes threads first, then cells, leaving a branch as soon as the condition is false there.
    fn choose(
        &mut self,
        e: &Expr<Fact>,
        threads: &[ThreadId],
        cells: &[CellId],
        target: Target,
    ) -> Result<(), Reason> {
        self.meter.spend(16).map_err(stopped)?;
        let known = self.value(e, &target)?;
        if known == Some(0) {
            return Ok(());
        }
        let settled = known.is_some() && !self.only_final;
        match (threads.split_first(), cells.split_first()) {
            _ if settled => self.add(target)?,
            (Some((t, rest)), _) => {
                let automaton = &self.automata.threads[t.index()];
                let thread = self.task.instance.thread(*t);
                for (q, state) in automaton.states.iter().enumerate() {
                    let ended = thread.ended(state.location) && state.fault.is_none();
                    if self.only_final && !ended || state.fault.is_some() {
                        continue;
                    }
                    let mut next = target.clone();
                    next.locals[t.index()] = Local::At(q as LocalId);
                    self.choose(e, rest, cells, next)?;
                }
            }
            (None, Some((c, rest))) if known.is_none() => {
                for v in &self.automata.values[c.index()] {
                    let mut next = target.clone();
                    next.memory[c.index()] = Some(*v);
                    self.choose(e, threads, rest, next)?;
                }
            }
            (None, _) => self.add(target)?,
        }
        Ok(())
    }

    fn add(&mut self, target: Target) -> Result<(), Reason> {
        self.all.push(target);
        if self.all.len() > MAX_TARGETS {
            let why = "the property is true in too many configurations to start from";
            return Err(Reason::Other(why.into()));
        }
        Ok(())
    }

    /// The condition's value, if what is fixed so far settles it. A fault in the condition itself
    /// counts as its being true nowhere, as in the reference machine's search for bad states.
    fn value(&self, e: &Expr<Fact>, at: &Target) -> Result<Option<i64>, Reason> {
        match self.partial(e, at) {
            Ok(v) => Ok(v),
            Err(kind) => Err(Reason::Other(format!(
                "the property has no value in some states: {kind}"
            ))),
        }
    }

    fn partial(&self, e: &Expr<Fact>, at: &Target) -> Result<Option<i64>, FaultKind> {
        Ok(match e {
            Expr::Const(c) => Some(*c),
            Expr::Atom(fact) => self.fact(fact, at)?,
            Expr::Unary(op, a) => match self.partial(a, at)? {
                Some(v) => Some(op.apply(v)?),
                None => None,
            },
            Expr::Binary(Op2::And, a, b) => match self.partial(a, at)? {
                Some(0) => Some(0),
                Some(_) => self.partial(b, at)?.map(|v| i64::from(v != 0)),
                None => None,
            },
            Expr::Binary(Op2::Or, a, b) => match self.partial(a, at)? {
                Some(0) => self.partial(b, at)?.map(|v| i64::from(v != 0)),
                Some(_) => Some(1),
                None => None,
            },
            Expr::Binary(op, a, b) => match (self.partial(a, at)?, self.partial(b, at)?) {
                (Some(x), Some(y)) => Some(op.apply(x, y)?),
                _ => None,
            },
            Expr::Ite(c, a, b) => match self.partial(c, at)? {
                Some(0) => self.partial(b, at)?,
                Some(_) => self.partial(a, at)?,
                None => None,
            },
        })
    }

    fn fact(&self, fact: &Fact, at: &Target) -> Result<Option<i64>, FaultKind> {
        let local = |t: &ThreadId| match at.locals[t.index()] {
            Local::At(q) => Some(&self.automata.threads[t.index()].states[q as usize]),
            Local::Free | Local::Any => None,
        };
        Ok(match fact {
            Fact::Cell(c) => at.memory[c.index()],
            Fact::CellAt {
                base,
                length,
                index,
            } => match self.partial(index, at)? {
                None => None,
                Some(index) => {
                    let length = *length;
                    match u32::try_from(index).ok().filter(|i| *i < length) {
                        Some(i) => at.memory[(base.0 + i) as usize],
                        None => return Err(FaultKind::IndexOutOfRange { index, length }),
                    }
                }
            },
            // Configurations have other buffers than states.
            Fact::Seen(..) => None,
            Fact::Register(t, r) => local(t).map(|s| s.registers[r.index()]),
            Fact::At(t, set) => local(t).map(|s| i64::from(set.contains(&s.location))),
        })
    }
}

fn mentioned(e: &Expr<Fact>, threads: &mut Vec<ThreadId>, cells: &mut Vec<CellId>) {
    e.for_each_atom(&mut |fact| match fact {
        Fact::Cell(c) => cells.push(*c),
        Fact::CellAt {
            base,
            length,
            index,
        } => {
            cells.extend((0..*length).map(|i| CellId(base.0 + i)));
            mentioned(index, threads, cells);
        }
        Fact::Seen(t, c) => {
            threads.push(*t);
            cells.push(*c);
        }
        Fact::Register(t, _) | Fact::At(t, _) => threads.push(*t),
    });
}
