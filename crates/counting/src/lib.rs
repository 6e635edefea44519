//! How many threads are where: proofs for any number of threads that nothing tells apart.
//!
//! A reader–writer lock's count is the number of readers, a semaphore's value the number of free places.
//! Such facts say how cells and the numbers of threads at places go together: equations, bounds, and which
//! places exclude each other. They are *guessed* from the states of instances with few threads ([`sample`],
//! [`split`], [`guess`]) and *judged* by the auditor, over symbols, for any number: a state that follows what
//! the facts allow and breaks one of them makes them give way, until nothing does. What is left either
//! excludes what the property forbids or says nothing.

mod guess;
mod hull;
mod sample;
mod split;

use guess::{Boldness, Guess, Point};
use sample::{Local, Samples};
use split::Split;
use std::collections::BTreeMap;
use wattle_evidence::audit::counting::{self as audit, Examination, Gap};
use wattle_evidence::certificate::Counting;
use wattle_evidence::{AuditError, Control, Solvers, Stop};
use wattle_memory::MemoryModel;
use wattle_model::{Crowd, Program};

/// What came of it.
#[derive(Clone, Debug)]
pub enum Outcome {
    Proved(Counting),
    /// The facts found do not exclude what the property forbids.
    Open(String),
    Stopped(Stop),
}

/// Places that are looked at.
const MOST_PLACES: usize = 160;
/// Pending stores at one place.
const MOST_PENDING: usize = 4;

/// Looks for facts that prove the property (without one: that there is no fault).
pub fn prove(
    program: &Program,
    crowd: &Crowd,
    model: MemoryModel,
    property: Option<usize>,
    control: &Control<'_>,
) -> Outcome {
    let run = || -> Result<Outcome, AuditError> {
        let samples = Samples::take(program, crowd, model, control)?;
        if samples.states.is_empty() {
            return Ok(Outcome::Open("no small instance could be run".into()));
        }
        let search = Search {
            program,
            model,
            property,
            samples: &samples,
            control,
        };
        let mut split = Split::new(crowd, &samples);
        let mut why = String::new();
        for boldness in [Boldness::Equations, Boldness::Exclusions] {
            match search.facts(&mut split, boldness)? {
                Ok(certificate) => return Ok(Outcome::Proved(certificate)),
                Err(open) => why = open,
            }
        }
        Ok(Outcome::Open(why))
    };
    match run() {
        Ok(outcome) => outcome,
        Err(AuditError::Stopped(stop)) => Outcome::Stopped(stop),
        Err(e) => Outcome::Open(e.to_string()),
    }
}

struct Search<'a> {
    program: &'a Program,
    model: MemoryModel,
    property: Option<usize>,
    samples: &'a Samples,
    control: &'a Control<'a>,
}

impl Search<'_> {
    /// Facts of this kind that prove the property, or what they leave open.
    fn facts(
        &self,
        split: &mut Split,
        boldness: Boldness,
    ) -> Result<Result<Counting, String>, AuditError> {
        let solvers = Solvers::own();
        'places: loop {
            let mut guess = self.guess(split, boldness);
            loop {
                if split.places.len() > MOST_PLACES {
                    return Ok(Err("there are too many places to count threads at".into()));
                }
                let places = split.certified();
                let mut examination = Examination::new(
                    &solvers,
                    self.program,
                    self.model,
                    self.property,
                    places.clone(),
                    self.control,
                )?;
                let mut facts = guess.facts();
                let nowhere = loop {
                    match examination.gap(&facts)? {
                        None => break None,
                        Some(Gap::Breaks { cells, counts, .. }) => {
                            let point: Point = [counts, cells].concat();
                            if !guess.give_way(&point) {
                                return Ok(Err("a fact does not give way".into()));
                            }
                            facts = guess.facts();
                        }
                        Some(Gap::Nowhere { local, .. }) => break Some(local),
                        Some(Gap::Allows { what }) => return Ok(Err(told(&what))),
                    }
                };
                let Some(local) = nowhere else {
                    return Ok(match examination.allows(&facts)? {
                        None => Ok(Counting {
                            model: self.model,
                            places,
                            facts,
                        }),
                        Some(Gap::Allows { what }) => Err(told(&what)),
                        Some(Gap::Breaks { .. } | Gap::Nowhere { .. }) => Err(told("a gap")),
                    });
                };
                if local.values.len() > MOST_PENDING {
                    return Ok(Err("more and more stores are pending".into()));
                }
                let local = self.local(local);
                if split.outgrown(&local) {
                    split.again(self.samples);
                    continue 'places;
                }
                split.place(&local);
                if split.places.len() == places.len() {
                    return Ok(Err("a thread is where a place already is".into()));
                }
                guess.widen(split.places.len());
            }
        }
    }

    fn local(&self, l: audit::Local) -> Local {
        let live = &self.samples.live[l.role.index()][l.location.index()];
        let registers = l.registers.iter().zip(live);
        Local {
            role: l.role.index(),
            location: l.location,
            pending: l.pending,
            registers: registers.map(|(v, live)| v * i64::from(*live)).collect(),
            values: l.values,
        }
    }

    fn guess(&self, split: &mut Split, boldness: Boldness) -> Guess {
        let of_local: BTreeMap<u32, usize> = {
            let states = self.samples.states.iter();
            let all = states.flat_map(|s| s.locals.iter().copied());
            let mut of_local = BTreeMap::new();
            for l in all {
                let local = &self.samples.locals[l as usize];
                of_local.entry(l).or_insert_with(|| split.place(local));
            }
            of_local
        };
        let places = split.places.len();
        let points: Vec<(u32, Point)> = (self.samples.states.iter())
            .map(|s| {
                let mut point = vec![0; places];
                for l in &s.locals {
                    point[of_local[l]] += 1;
                }
                point.extend(&s.cells);
                (s.threads, point)
            })
            .collect();
        let mut groups: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
        for (p, (spot, _)) in split.places.iter().enumerate() {
            let group = groups.entry((spot.role, spot.location.index()));
            group.or_default().push(p);
        }
        let groups: Vec<Vec<usize>> = groups.into_values().filter(|g| g.len() > 1).collect();
        Guess::new(&points, places, &groups, boldness)
    }
}

fn told(what: &str) -> String {
    format!("the numbers of threads at the places do not exclude {what}")
}
