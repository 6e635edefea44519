//! Facts about how many threads are where: initiation, consecution and safety by solver queries over the
//! rules of the reference machine.
//!
//! The certificate ([`wattle_evidence::certificate::counting`]) stands for states in which every thread is at a
//! place and every fact holds of memory and of the numbers n of threads at the places.
//!
//! 1. *Initial*: all threads of a role are where its entry is, with nothing pending; any number of them, or
//!    one if the role is one thread's. Every initial value of registers fits a place, and every fact, and
//!    what is known there, holds. (Numbers of threads say nothing of whom no place is listed for.)
//! 2. *Closed*: a thread at place P (so n_P ≥ 1), with any registers and pending values that fit P, takes a
//!    step, goes through a whole atomic block, or has a store drained: by the rules, over symbols. Where it
//!    comes to fits a place Q; memory is what the rules say, n_P is one less and n_Q one more; every
//!    fact holds again. Other threads stay where they are: a place says nothing about memory.
//!
//!    What is *known* at Q holds of it; and what is known at R holds still of any other thread there (n_R ≥ 1, and
//!    n_P ≥ 2 if that is P), about which nothing is assumed but that it fits R and that what is known there was so.
//!    Its registers and pending values are its own, so they stay; memory and the numbers are what changed.
//!    What is *distinct* of the thread at Q differs from what is of any other; before the event it did, too, if that is
//!    so at P. At first nobody has any of it.
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
//! no event makes threads or ends them, so the numbers at the places of open roles sum up to no more, ever. Or it is about the
//! program with unwrapped numbers, without faults: then nothing that is bad there is possible in the program itself
//! ([`wattle_model::Program::unwrapped`] says why).
//!
//! Inside an atomic block nobody else has an event and no property looks, so a block is one move. Types hold
//! of every value, since whatever is stored passes a type's check.

mod moves;
mod safe;

use super::inductive::machine::Pending;
use super::load_buffers::alike::{are_alike, sees_memory_only};
use super::{AuditError, Audited, Solvers};
use moves::{Landing, Move, Own, Start, Symbolic};
use safe::Bad;
use wattle_evidence::certificate::counting::{
    Claims, Counted, Counting, Distinct, Fact, Gap, Known, Local, Place,
};
use wattle_evidence::certificate::{Comparison, Corrupt};
use wattle_evidence::control::{Control, Progress};
use wattle_evidence::{Assumption, Scope};
use wattle_logic::{Formula, Int, Model, Term, Var, and, divides, eq, ge, le, not, or};
use wattle_memory::{Layout, MemoryModel, Pso, Sc, Tso};
use wattle_model::{CountedCrowd, Program, RegisterId};

/// What one query may take.
const WORK: u64 = 20_000_000;

/// So many threads a machine seldom has (Linux has 32,768 unless it is told otherwise): a proof for them is one. A proof for fewer has a
/// condition.
const ENOUGH: u32 = 1 << 16;

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
        unwrapped: certificate.unwrapped,
    };
    let places = certificate.places.clone();
    let mut examination = Examination::new(solvers, &asked, places, control)?;
    let claims = certificate.claims();
    let gap = match examination.gap(claims)? {
        None => examination.allows(claims)?,
        gap => gap,
    };
    match gap {
        None => Ok(Audited {
            checked: examination.asked,
        }),
        Some(
            Gap::Breaks { event, .. }
            | Gap::Forgets { event, .. }
            | Gap::Same { event, .. }
            | Gap::Nowhere { event, .. },
        ) => Err(AuditError::NotClosed { state: 0, event }),
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
    match certificate.at_most {
        Some(threads) if threads < ENOUGH => {
            let few = Assumption::AtMost { threads };
            if !all.contains(&few) {
                all.push(few);
            }
        }
        Some(most) => scope.threads = format!("at most {most} threads"),
        None => {}
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
    /// The program with numbers that do not wrap around is looked at.
    pub unwrapped: bool,
}

/// Everything that can happen at the places, ready to be asked whether facts are kept.
pub struct Examination<'a> {
    solvers: &'a Solvers,
    control: &'a Control<'a>,
    counts: Vec<Var>,
    /// What numbers of threads are.
    numbers: Vec<Formula>,
    starts: Vec<Start>,
    moves: Vec<Move>,
    bad: Vec<Bad>,
    /// At each place any thread that looks on.
    others: Vec<(Formula, Own)>,
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
            unwrapped,
        } = *asked;
        let unwrapped = match unwrapped {
            true => Some(program.unwrapped().ok_or_else(|| {
                AuditError::Refused("the program has no numbers to unwrap".into())
            })?),
            false => None,
        };
        let program = unwrapped.as_ref().map_or(program, |(p, _)| p);
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
        let roles = crowd.crowd.instance.threads.len();
        if places.iter().any(|p| p.role.index() >= roles) {
            return Err(moves::corrupt());
        }
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
            starts: symbolic.starts()?,
            moves: symbolic.moves()?,
            bad: symbolic.bad()?,
            others: symbolic.others()?,
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
        self.control.poll("audit", Progress::of(self.asked))?;
        self.solvers.model(query, self.work, self.control)
    }

    /// Whether some initial state is outside, or some event leads out. Begins where the last gap was, and
    /// ends after one round in which there was none.
    pub fn gap(&mut self, claims: Claims<'_>) -> Result<Option<Gap>, AuditError> {
        let spoken = claims.distinct.iter().flat_map(|d| &d.0).map(|(p, _)| *p);
        let mut spoken = spoken.chain(claims.known.iter().map(|k| k.place));
        if spoken.any(|p| p as usize >= self.counts.len()) {
            return Err(corrupt());
        }
        for s in 0..self.starts.len() {
            if let Some(gap) = self.start(s, claims)? {
                return Ok(Some(gap));
            }
        }
        for _ in 0..self.moves.len() {
            let m = self.next % self.moves.len();
            if let Some(gap) = self.kept(m, claims)? {
                return Ok(Some(gap));
            }
            self.next = m + 1;
        }
        Ok(None)
    }

    /// Whether a fault or what the property forbids is not excluded.
    pub fn allows(&mut self, claims: Claims<'_>) -> Result<Option<Gap>, AuditError> {
        for m in 0..self.moves.len() {
            let Move { landing: None, .. } = &self.moves[m] else {
                continue;
            };
            let query = self.before(m, claims)?;
            if self.model(&query)?.is_some() {
                let what = format!("that {} is a fault", self.moves[m].what);
                return Ok(Some(Gap::Allows { what }));
            }
        }
        for b in 0..self.bad.len() {
            let bad = &self.bad[b];
            let now = Now::of(&bad.cells, self.counts.iter().map(|n| Term::from(*n)));
            let mut query = bad.when.clone();
            query.extend(self.numbers.iter().cloned());
            query.extend(now.all(claims.facts, None)?);
            for (n, (p, own)) in bad.threads.iter().enumerate() {
                query.extend(now.known(claims.known, *p, own)?);
                for other in &bad.threads[..n] {
                    query.extend(differ(claims.distinct, (*p, own), (other.0, &other.1))?);
                }
            }
            if self.model(&query)?.is_some() {
                let what = "what the property forbids".into();
                return Ok(Some(Gap::Allows { what }));
            }
        }
        Ok(None)
    }

    fn start(
        &mut self,
        s: usize,
        Claims {
            facts,
            known,
            distinct,
        }: Claims<'_>,
    ) -> Result<Option<Gap>, AuditError> {
        let start = &self.starts[s];
        let event = "the start".to_string();
        for (n, d) in distinct.iter().enumerate() {
            let mut at_first = d.0.iter().map(|(p, _)| *p as usize);
            if let Some(p) = at_first.find(|p| start.occupied[*p]) {
                return Ok(Some(Gap::Same {
                    event,
                    distinct: n,
                    places: [p; 2],
                }));
            }
        }
        let (mut query, landing) = start.nowhere.clone();
        let counted = !landing.fits.is_empty();
        query.extend(self.numbers.iter().filter(|_| counted).cloned());
        if let Some(model) = self.model(&query)? {
            let local = landing.local(&model)?;
            return Ok(Some(Gap::Nowhere { event, local }));
        }
        let start = &self.starts[s];
        let counts = start.occupied.iter().zip(&self.counts);
        let counts = counts.map(|(occupied, n)| match occupied {
            true => Term::from(*n),
            false => Term::constant(0),
        });
        let now = Now::of(&start.cells, counts);
        let mut first = start.when.clone();
        for (occupied, n) in start.occupied.iter().zip(&self.counts) {
            if !occupied {
                first.push(eq(*n, 0));
            }
        }
        first.extend(self.numbers.iter().cloned());
        let mut query = first.clone();
        query.push(not(&and(now.all(facts, None)?)));
        if let Some(model) = self.model(&query)? {
            return Ok(Some(now.breaks(event, &model)?));
        }
        for (p, fits) in &landing.fits {
            let mut query = first.clone();
            query.extend([fits.clone(), ge(self.counts[*p], 1)]);
            query.push(not(&and(now.known(known, *p, &landing.own)?)));
            if let Some(model) = self.model(&query)? {
                return Ok(Some(now.forgets(event, *p, &landing.own, &model)?));
            }
        }
        Ok(None)
    }

    /// The state before the move, and that it is possible.
    fn before(&self, m: usize, claims: Claims<'_>) -> Result<Vec<Formula>, AuditError> {
        let mv = &self.moves[m];
        let now = self.now(m);
        let mut query = mv.when.clone();
        query.push(ge(self.counts[mv.place], 1));
        query.extend(self.numbers.iter().cloned());
        query.extend(now.all(claims.facts, None)?);
        query.extend(now.known(claims.known, mv.place, &mv.own)?);
        Ok(query)
    }

    /// Memory and numbers before the move.
    fn now(&self, m: usize) -> Now {
        let counts = self.counts.iter().map(|n| Term::from(*n));
        Now::of(&self.moves[m].cells, counts)
    }

    fn kept(&mut self, m: usize, claims: Claims<'_>) -> Result<Option<Gap>, AuditError> {
        let Claims {
            facts,
            known,
            distinct,
        } = claims;
        let mv = &self.moves[m];
        let Some(landing) = mv.landing.clone() else {
            return Ok(None);
        };
        let (place, what, now) = (mv.place, mv.what.clone(), self.now(m));
        let was = mv.own.clone();
        let possible = self.before(m, claims)?;
        let fits = landing.fits.iter().map(|(_, f)| f.clone());
        let mut query = possible.clone();
        query.push(not(&or(fits)));
        if let Some(model) = self.model(&query)? {
            let (event, local) = (what, landing.local(&model)?);
            return Ok(Some(Gap::Nowhere { event, local }));
        }
        for (q, fits) in &landing.fits {
            if *fits == Formula::False {
                continue;
            }
            let counts = self.counts.iter().enumerate().map(|(i, n)| {
                let change = i64::from(i == *q) - i64::from(i == place);
                Term::from(*n) + Term::constant(change)
            });
            let then = Now::of(&landing.cells, counts);
            let mut possible = possible.clone();
            possible.push(fits.clone());
            let goal = unless(now.all(facts, None)?, then.all(facts, None)?);
            if let Some(model) = self.model(&[&possible[..], &[goal]].concat())? {
                return Ok(Some(then.breaks(what, &model)?));
            }
            let own = &landing.own;
            let goal = not(&and(then.known(known, *q, own)?));
            if let Some(model) = self.model(&[&possible[..], &[goal]].concat())? {
                return Ok(Some(then.forgets(what, *q, own, &model)?));
            }
            for r in 0..self.others.len() {
                let (is_there, own) = self.others[r].clone();
                let before = now.known(known, r, &own)?;
                let goal = unless(before.clone(), then.known(known, r, &own)?);
                let as_many = ge(self.counts[r], 1 + i64::from(r == place));
                let mut more = [&possible[..], &before, &[is_there, as_many]].concat();
                more.extend(differ(distinct, (place, &was), (r, &own))?);
                if goal != Formula::False
                    && let Some(model) = self.model(&[&more[..], &[goal]].concat())?
                {
                    return Ok(Some(then.forgets(what, r, &own, &model)?));
                }
                for (n, d) in distinct.iter().enumerate() {
                    let one = std::slice::from_ref(d);
                    let goal = not(&and(differ(one, (*q, &landing.own), (r, &own))?));
                    if goal != Formula::False
                        && self.model(&[&more[..], &[goal]].concat())?.is_some()
                    {
                        return Ok(Some(Gap::Same {
                            event: what,
                            distinct: n,
                            places: [*q, r],
                        }));
                    }
                }
            }
        }
        Ok(None)
    }
}

/// What is distinct of two threads, each at its place.
fn differ(
    distinct: &[Distinct],
    (p, one): (usize, &Own),
    (q, other): (usize, &Own),
) -> Result<Vec<Formula>, AuditError> {
    let own = |own: &Own, r: RegisterId| own.registers.get(r.index()).cloned().ok_or_else(corrupt);
    let mut all = Vec::new();
    for d in distinct {
        for r in d.at(p) {
            for s in d.at(q) {
                all.push(not(&eq(own(one, r)? - own(other, s)?, 0)));
            }
        }
    }
    Ok(all)
}

/// That some of these do not hold any more, which held before.
fn unless(before: Vec<Formula>, after: Vec<Formula>) -> Formula {
    let changed = before.into_iter().zip(after).filter(|(b, a)| b != a);
    not(&and(changed.map(|(_, a)| a)))
}

fn corrupt() -> AuditError {
    AuditError::Corrupt(Corrupt("a fact about what there is not"))
}

/// Memory, and how many threads are at each place.
struct Now {
    cells: Vec<Term>,
    counts: Vec<Term>,
}

impl Now {
    fn of(cells: &[Term], counts: impl Iterator<Item = Term>) -> Now {
        Now {
            cells: cells.to_vec(),
            counts: counts.collect(),
        }
    }

    /// What is known of a thread at the place.
    fn known(&self, known: &[Known], p: usize, own: &Own) -> Result<Vec<Formula>, AuditError> {
        let here = known.iter().filter(|k| k.place as usize == p);
        self.all(here.map(|k| &k.fact), Some(own))
    }

    fn all<'f>(
        &self,
        facts: impl IntoIterator<Item = &'f Fact>,
        own: Option<&Own>,
    ) -> Result<Vec<Formula>, AuditError> {
        let value = |counted: &Counted| match counted {
            Counted::Cell(c) => self.cells.get(c.index()),
            Counted::Place(p) => self.counts.get(*p as usize),
            Counted::Register(r) => own?.registers.get(r.index()),
            Counted::Entry(e) => own?.values.get(*e as usize),
        };
        let mut all = Vec::new();
        for Fact(parts) in facts {
            let mut one_of = Vec::new();
            for part in parts {
                let mut sum = Term::constant(part.constant);
                for (k, counted) in &part.sum {
                    let term = value(counted).ok_or_else(corrupt)?;
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

    fn breaks(&self, event: String, model: &Model) -> Result<Gap, AuditError> {
        Ok(Gap::Breaks {
            event,
            cells: evaluated(&self.cells, model)?,
            counts: evaluated(&self.counts, model)?,
        })
    }

    fn forgets(
        &self,
        event: String,
        place: usize,
        own: &Own,
        model: &Model,
    ) -> Result<Gap, AuditError> {
        Ok(Gap::Forgets {
            event,
            place,
            cells: evaluated(&self.cells, model)?,
            counts: evaluated(&self.counts, model)?,
            registers: evaluated(&own.registers, model)?,
            values: evaluated(&own.values, model)?,
        })
    }
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
            registers: evaluated(&self.own.registers, model)?,
            values: evaluated(&self.own.values, model)?,
        })
    }
}
