//! Facts about how many threads are where: initiation, consecution and safety by solver queries over the
//! rules of the reference machine.
//!
//! The certificate ([`wattle_evidence::certificate::counting`]) stands for states in which every thread is at a
//! place and every fact holds of memory and of the numbers n of threads at the places.
//!
//! 1. *Initial*: all threads of a role are where its entry is, with nothing pending; any number of them, or
//!    one if the role is one thread's. Every initial value of registers fits a place, and every fact holds.
//! 2. *Closed*: a thread at place P (so n_P ≥ 1), with any registers and pending values that fit P, takes a
//!    step, goes through a whole atomic block, or has a store drained: by the rules, over symbols. Where it
//!    comes to fits a place Q; memory is what the rules say, n_P is one less and n_Q one more; every
//!    fact holds again. Other threads stay where they are: a place says nothing about memory.
//! 3. *Safe*: no such event is a fault, and no choice of places for the threads that the property names,
//!    with so many threads there, makes it true.
//!
//! ```text
//!   memory, n ──────────── facts ─────────────┐
//!   one thread at P: registers, pending       │   step, block, drain
//!   memory', n − P + Q ─── facts? ────────────┘   the thread at Q?
//! ```
//!
//! A certificate may take for granted that no number wraps around: then a step that would wrap one is not
//! looked at. Whoever tells the proof tells this too. Or it is about instances with at most so many threads:
//! no event makes threads or ends them, so the numbers at the places of open roles sum up to no more, ever.
//!
//! Inside an atomic block nobody else has an event and no property looks, so a block is one move. Types hold
//! of every value, since whatever is stored passes a type's check.

mod moves;
mod safe;

use super::inductive::machine::Pending;
use super::load_buffers::alike::{are_alike, sees_memory_only};
use super::{AuditError, Audited, Solvers};
use moves::{Landing, Move, Start, Symbolic};
use safe::Bad;
use wattle_evidence::certificate::counting::{Counted, Counting, Fact, Gap, Local, Place};
use wattle_evidence::certificate::{Comparison, Corrupt};
use wattle_evidence::control::{Control, Progress};
use wattle_evidence::{Assumption, Scope};
use wattle_logic::{Formula, Int, Model, Term, Var, and, divides, eq, ge, le, not, or};
use wattle_memory::{Layout, MemoryModel, Pso, Sc, Tso};
use wattle_model::{CountedCrowd, Program};

/// What one query may take.
const WORK: u64 = 20_000_000;

pub fn audit_counting(
    solvers: &Solvers,
    program: &Program,
    model: MemoryModel,
    property: Option<usize>,
    certificate: &Counting,
    control: &Control<'_>,
) -> Result<Audited, AuditError> {
    if certificate.model != model {
        return Err(AuditError::WrongModel(certificate.model));
    }
    let asked = Asked {
        program,
        model,
        property,
        no_wrap: certificate.no_wrap,
        at_most: certificate.at_most,
    };
    let places = certificate.places.clone();
    let mut examination = Examination::new(solvers, &asked, places, control)?;
    let gap = match examination.gap(&certificate.facts)? {
        None => examination.allows(&certificate.facts)?,
        gap => gap,
    };
    match gap {
        None => Ok(Audited {
            checked: examination.asked,
        }),
        Some(Gap::Breaks { event, .. } | Gap::Nowhere { event, .. }) => {
            Err(AuditError::NotClosed { state: 0, event })
        }
        Some(Gap::Allows { what }) => Err(AuditError::Other(format!("it does not exclude {what}"))),
    }
}

/// What the certificate itself takes for granted is told, whatever the engine says.
pub fn told(
    program: &Program,
    certificate: &Counting,
    scope: &mut Scope,
    all: &mut Vec<Assumption>,
) {
    let wraps = |a: &Assumption| matches!(a, Assumption::NoWrap { .. });
    if certificate.no_wrap && !all.iter().any(wraps) {
        let (_, variables) = program.with_wraps_as_faults();
        all.push(Assumption::NoWrap { variables });
    }
    if let Some(most) = certificate.at_most {
        scope.threads = format!("at most {most} threads");
    }
}

/// What facts are about.
#[derive(Clone, Copy)]
pub struct Asked<'p> {
    pub program: &'p Program,
    pub model: MemoryModel,
    /// Without one, that there is no fault.
    pub property: Option<usize>,
    /// Runs in which a number wraps around are not looked at.
    pub no_wrap: bool,
    /// Instances with more threads in open families are not looked at.
    pub at_most: Option<u32>,
}

/// Everything that can happen at the places, ready to be asked whether facts are kept.
pub struct Examination<'a> {
    solvers: &'a Solvers,
    control: &'a Control<'a>,
    cells: usize,
    counts: Vec<Var>,
    /// What numbers of threads are.
    numbers: Vec<Formula>,
    starts: Vec<Start>,
    moves: Vec<Move>,
    bad: Vec<Bad>,
    /// The move to look at next.
    next: usize,
    asked: u64,
    /// What one query may take.
    work: u64,
}

impl<'a> Examination<'a> {
    pub fn new(
        solvers: &'a Solvers,
        asked: &Asked<'_>,
        places: Vec<Place>,
        control: &'a Control<'a>,
    ) -> Result<Self, AuditError> {
        let Asked {
            program,
            model,
            property,
            no_wrap,
            at_most,
        } = *asked;
        let asked = property.and_then(|p| program.properties.get(p));
        let crowd = program.counted_crowd(property);
        let mut crowd = crowd.map_err(|e| AuditError::Refused(e.message))?;
        let wraps = match no_wrap {
            true => {
                let (faults, _) = program.with_wraps_as_faults();
                let with_faults = faults.counted_crowd(property);
                let with_faults = with_faults.map_err(|e| AuditError::Refused(e.message))?;
                let wraps = moves::Wraps::of(&crowd.crowd.instance);
                crowd = with_faults;
                wraps
            }
            false => moves::Wraps::default(),
        };
        let asked = asked.and(property.and_then(|p| crowd.open.properties.get(p)));
        if asked.is_none() && property.is_some() || !are_alike(&crowd.open, asked) {
            return Err(AuditError::Other(
                "the threads of a family do not stand for each other".into(),
            ));
        }
        sees_memory_only(&crowd.crowd)?;
        moves::treated(&crowd.crowd)?;
        let open = |p: &Place| crowd.crowd.roles.is_open(p.role.index());
        let open: Vec<bool> = places.iter().map(open).collect();
        let mut all = match model {
            MemoryModel::Sc => Self::with::<Sc>(solvers, &crowd, wraps, places, control),
            MemoryModel::Tso => Self::with::<Tso>(solvers, &crowd, wraps, places, control),
            MemoryModel::Pso => Self::with::<Pso>(solvers, &crowd, wraps, places, control),
        }?;
        if let Some(most) = at_most {
            let here = all.counts.iter().zip(open).filter(|(_, open)| *open);
            let sum = here.fold(Term::constant(0), |sum, (n, _)| sum + Term::from(*n));
            all.numbers.push(le(sum, i64::from(most)));
        }
        Ok(all)
    }

    fn with<L: Layout>(
        solvers: &'a Solvers,
        counted: &CountedCrowd,
        wraps: moves::Wraps,
        places: Vec<Place>,
        control: &'a Control<'a>,
    ) -> Result<Self, AuditError>
    where
        moves::Buffer<L>: Pending<Bound = ()>,
    {
        let crowd = &counted.crowd;
        let mut symbolic = Symbolic::<L>::new(counted, wraps, &places, control)?;
        let counts = symbolic.counts.clone();
        let mut numbers: Vec<Formula> = counts.iter().map(|n| ge(*n, 0)).collect();
        for role in crowd.roles.all().filter(|r| !crowd.roles.is_open(*r)) {
            let all = places.iter().zip(&counts);
            let here = all.filter(|(p, _)| p.role.index() == role);
            let sum = here.fold(Term::constant(0), |sum, (_, n)| sum + Term::from(*n));
            numbers.push(eq(sum, 1));
        }
        Ok(Examination {
            solvers,
            control,
            cells: crowd.instance.cells.len(),
            starts: symbolic.starts()?,
            moves: symbolic.moves()?,
            bad: symbolic.bad()?,
            counts,
            numbers,
            next: 0,
            asked: 0,
            work: WORK,
        })
    }

    /// For whoever has more guesses to put than time.
    pub fn with_work(mut self, work: u64) -> Self {
        self.work = work;
        self
    }

    fn model(&mut self, query: &[Formula]) -> Result<Option<Model>, AuditError> {
        if query.contains(&Formula::False) {
            return Ok(None);
        }
        self.asked += 1;
        let progress = Progress {
            states: self.asked,
            ..Progress::default()
        };
        self.control.poll("audit", progress)?;
        self.solvers.model(query, self.work, self.control)
    }

    /// Whether some initial state is outside, or some event leads out. Begins where the last gap was, and
    /// ends after one round in which there was none.
    pub fn gap(&mut self, facts: &[Fact]) -> Result<Option<Gap>, AuditError> {
        for s in 0..self.starts.len() {
            if let Some(gap) = self.start(s, facts)? {
                return Ok(Some(gap));
            }
        }
        for _ in 0..self.moves.len() {
            let m = self.next % self.moves.len();
            if let Some(gap) = self.kept(m, facts)? {
                return Ok(Some(gap));
            }
            self.next = m + 1;
        }
        Ok(None)
    }

    /// Whether a fault or what the property forbids is not excluded.
    pub fn allows(&mut self, facts: &[Fact]) -> Result<Option<Gap>, AuditError> {
        for m in 0..self.moves.len() {
            let Move { landing: None, .. } = &self.moves[m] else {
                continue;
            };
            let query = self.before(m, facts)?;
            if self.model(&query)?.is_some() {
                let what = format!("that {} is a fault", self.moves[m].what);
                return Ok(Some(Gap::Allows { what }));
            }
        }
        for b in 0..self.bad.len() {
            let bad = &self.bad[b];
            let mut query = bad.when.clone();
            query.extend(self.numbers.iter().cloned());
            query.extend(self.facts(facts, &bad.cells, &|i| Term::from(self.counts[i]))?);
            if self.model(&query)?.is_some() {
                let what = "what the property forbids".into();
                return Ok(Some(Gap::Allows { what }));
            }
        }
        Ok(None)
    }

    fn start(&mut self, s: usize, facts: &[Fact]) -> Result<Option<Gap>, AuditError> {
        let start = &self.starts[s];
        let event = "the start".to_string();
        if let Some(nowhere) = &start.nowhere {
            let (mut query, landing) = nowhere.clone();
            query.extend(self.numbers.iter().cloned());
            if let Some(model) = self.model(&query)? {
                let local = landing.local(&model)?;
                return Ok(Some(Gap::Nowhere { event, local }));
            }
        }
        let start = &self.starts[s];
        let cells = start.cells.clone();
        let occupied = start.occupied.clone();
        let number = |i: usize| match occupied[i] {
            true => Term::from(self.counts[i]),
            false => Term::constant(0),
        };
        let mut query = start.when.clone();
        for (i, n) in self.counts.iter().enumerate() {
            if !occupied[i] {
                query.push(eq(*n, 0));
            }
        }
        query.extend(self.numbers.iter().cloned());
        let after = self.facts(facts, &cells, &number)?;
        query.push(not(&and(after)));
        let counts: Vec<Term> = (0..occupied.len()).map(number).collect();
        let model = self.model(&query)?;
        model
            .map(|m| breaks(event, &cells, &counts, &m))
            .transpose()
    }

    /// The state before the move, and that it is possible.
    fn before(&self, m: usize, facts: &[Fact]) -> Result<Vec<Formula>, AuditError> {
        let mv = &self.moves[m];
        let mut query = mv.when.clone();
        query.push(ge(self.counts[mv.place], 1));
        query.extend(self.numbers.iter().cloned());
        query.extend(self.facts(facts, &mv.cells, &|i| Term::from(self.counts[i]))?);
        Ok(query)
    }

    fn kept(&mut self, m: usize, facts: &[Fact]) -> Result<Option<Gap>, AuditError> {
        let mv = &self.moves[m];
        let Some(landing) = mv.landing.clone() else {
            return Ok(None);
        };
        let (place, what, cells) = (mv.place, mv.what.clone(), mv.cells.clone());
        let known = self.before(m, facts)?;
        let fits = landing.fits.iter().map(|(_, f)| f.clone());
        let mut query = known.clone();
        query.push(not(&or(fits)));
        if let Some(model) = self.model(&query)? {
            let (event, local) = (what, landing.local(&model)?);
            return Ok(Some(Gap::Nowhere { event, local }));
        }
        for (q, fits) in &landing.fits {
            if *fits == Formula::False {
                continue;
            }
            let number = |i: usize| {
                let change = i64::from(i == *q) - i64::from(i == place);
                Term::from(self.counts[i]) + Term::constant(change)
            };
            let same = |i: usize| Term::from(self.counts[i]);
            let before = self.facts(facts, &cells, &same)?;
            let after = self.facts(facts, &landing.cells, &number)?;
            let changed = before.into_iter().zip(after).filter(|(b, a)| b != a);
            let goal = not(&and(changed.map(|(_, a)| a)));
            let mut query = known.clone();
            query.push(fits.clone());
            query.push(goal);
            let counts: Vec<Term> = (0..self.counts.len()).map(number).collect();
            if let Some(model) = self.model(&query)? {
                return Ok(Some(breaks(what, &landing.cells, &counts, &model)?));
            }
        }
        Ok(None)
    }

    fn facts(
        &self,
        facts: &[Fact],
        cells: &[Term],
        number: &dyn Fn(usize) -> Term,
    ) -> Result<Vec<Formula>, AuditError> {
        let corrupt = || AuditError::Corrupt(Corrupt("a fact about what there is not"));
        let mut all = Vec::new();
        for Fact(parts) in facts {
            let mut one_of = Vec::new();
            for part in parts {
                let mut sum = Term::constant(part.constant);
                for (k, counted) in &part.sum {
                    let term = match counted {
                        Counted::Cell(c) if c.index() < self.cells => cells[c.index()].clone(),
                        Counted::Place(p) if (*p as usize) < self.counts.len() => {
                            number(*p as usize)
                        }
                        Counted::Cell(_) | Counted::Place(_) => return Err(corrupt()),
                    };
                    sum = sum + term.scaled(&Int::from(*k));
                }
                one_of.push(match part.is {
                    Comparison::AtMostZero => le(sum, 0),
                    Comparison::Zero => eq(sum, 0),
                    Comparison::MultipleOf(m) if m > 1 => divides(m, sum),
                    Comparison::MultipleOf(_) => return Err(corrupt()),
                });
            }
            all.push(or(one_of));
        }
        Ok(all)
    }
}

fn breaks(
    event: String,
    cells: &[Term],
    counts: &[Term],
    model: &Model,
) -> Result<Gap, AuditError> {
    Ok(Gap::Breaks {
        event,
        cells: evaluated(cells, model)?,
        counts: evaluated(counts, model)?,
    })
}

fn evaluated(terms: &[Term], model: &Model) -> Result<Vec<i64>, AuditError> {
    let numbers = terms.iter().map(|t| t.eval(model).to_i64());
    let large = || AuditError::Refused("a number is too large".into());
    numbers.collect::<Option<_>>().ok_or_else(large)
}

impl Landing {
    fn local(&self, model: &Model) -> Result<Local, AuditError> {
        Ok(Local {
            role: self.role,
            location: self.location,
            pending: self.pending.clone(),
            registers: evaluated(&self.registers, model)?,
            values: evaluated(&self.values, model)?,
        })
    }
}
