//! How many threads are where: proofs for any number of threads that nothing tells apart.
//!
//! A reader–writer lock's count is the number of readers, a semaphore's value the number of free places.
//! Such facts say how cells and the numbers of threads at places go together: equations, bounds, and which
//! places exclude each other. They are *guessed* from the states of instances with few threads ([`sample`],
//! [`split`], [`guess`]) and put to a [`Judge`], who says, over symbols and for any number, which state follows
//! what the facts allow and breaks one of them: they give way, until nothing does. What is left either
//! excludes what the property forbids or says nothing. This crate has no rules of its own about what a step
//! is: all that it believes it has seen or been told.

#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]
#![cfg_attr(not(test), deny(clippy::match_wildcard_for_single_variants))]

mod distinct;
mod flagged;
mod guess;
mod held;
mod hull;
mod known;
mod phases;
mod sample;
mod split;

use guess::{Boldness, Guess, Point, Text};
pub use sample::Samples;
use split::Split;
use std::collections::{BTreeMap, BTreeSet};
use wattle_evidence::certificate::Counting;
use wattle_evidence::certificate::counting::{Claims, Gap, Local, Place};
use wattle_evidence::{Control, Stop};
use wattle_memory::MemoryModel;
use wattle_model::instance::Initial;
use wattle_model::{CountedCrowd, Crowd, Expr, Op2};

/// Who knows, for given places, what the program may do there.
pub trait Judge {
    /// A way out of what the facts allow, if there is one.
    fn gap(&mut self, claims: Claims<'_>) -> Result<Option<Gap>, Trouble>;

    /// Whether the facts allow something bad.
    fn allows(&mut self, claims: Claims<'_>) -> Result<Option<Gap>, Trouble>;
}

/// Why nobody can say.
#[derive(Clone, Debug)]
pub enum Trouble {
    Stopped(Stop),
    Refused(String),
}

impl From<Stop> for Trouble {
    fn from(stop: Stop) -> Self {
        Trouble::Stopped(stop)
    }
}

/// What came of it.
#[derive(Clone, Debug)]
pub enum Outcome {
    Proved(Counting),
    /// The facts found do not exclude what the property forbids.
    Open(String),
    /// The same, but the judge could not say of all of them.
    Hard(String),
    Stopped(Stop),
}

/// Places that are looked at.
const MOST_PLACES: usize = 160;
/// Pending stores at one place.
const MOST_PENDING: usize = 4;

/// What the judge takes for granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granted {
    Nothing,
    /// There are at most so many threads in open families.
    AtMost(u32),
    /// The same, and numbers that wrap around are told from others by their low bits alone: the program is the unwrapped one.
    Unwrapped(u32),
    /// No number wraps around.
    NoWrap,
}

impl Granted {
    pub fn no_wrap(self) -> bool {
        self == Granted::NoWrap
    }

    pub fn unwrapped(self) -> bool {
        matches!(self, Granted::Unwrapped(_))
    }

    pub fn at_most(self) -> Option<u32> {
        match self {
            Granted::AtMost(n) | Granted::Unwrapped(n) => Some(n),
            Granted::Nothing | Granted::NoWrap => None,
        }
    }
}

/// Looks for facts that prove what the judge is asked about.
pub fn prove<'j>(
    counted: &CountedCrowd,
    model: MemoryModel,
    granted: Granted,
    control: &Control<'_>,
    judge: &dyn Fn(Vec<Place>) -> Result<Box<dyn Judge + 'j>, Trouble>,
) -> Outcome {
    let run = || -> Result<Outcome, Trouble> {
        let samples = Samples::take(counted, model, granted.unwrapped(), control)?;
        if samples.states.is_empty() {
            return Ok(Outcome::Open("no small instance could be run".into()));
        }
        let search = Search {
            crowd: &counted.crowd,
            text: text(&counted.crowd),
            model,
            granted,
            samples: &samples,
            judge,
        };
        let crowd = &counted.crowd;
        let mut split = Split::new(crowd, &samples);
        let (mut why, mut hard) = (String::new(), false);
        for boldness in [
            Boldness::Equations,
            Boldness::Exclusions,
            Boldness::Known,
            Boldness::Everything,
            Boldness::Phases,
        ] {
            match search.facts(&mut split, boldness) {
                Ok(Ok(certificate)) => return Ok(Outcome::Proved(certificate)),
                Ok(Err(open)) => why = open,
                // What is too hard with these facts may not be with others.
                Err(Trouble::Refused(refused)) => (why, hard) = (refused, true),
                Err(Trouble::Stopped(stop)) => return Err(stop.into()),
            }
        }
        Ok(match hard {
            true => Outcome::Hard(why),
            false => Outcome::Open(why),
        })
    };
    match run() {
        Ok(outcome) => outcome,
        Err(Trouble::Stopped(stop)) => Outcome::Stopped(stop),
        Err(Trouble::Refused(why)) => Outcome::Open(why),
    }
}

struct Search<'a, 'j> {
    crowd: &'a Crowd,
    text: Text,
    model: MemoryModel,
    granted: Granted,
    samples: &'a Samples,
    judge: &'a dyn Fn(Vec<Place>) -> Result<Box<dyn Judge + 'j>, Trouble>,
}

impl Search<'_, '_> {
    /// Facts of this kind that prove the property, or what they leave open.
    fn facts(
        &self,
        split: &mut Split,
        boldness: Boldness,
    ) -> Result<Result<Counting, String>, Trouble> {
        'places: loop {
            let mut guess = self.guess(split, boldness);
            loop {
                if split.places.len() > MOST_PLACES {
                    return Ok(Err("there are too many places to count threads at".into()));
                }
                let places = split.certified();
                let mut judge = (self.judge)(places.clone())?;
                let mut facts = guess.facts();
                let nowhere = loop {
                    match judge.gap(guess.claims(&facts))? {
                        None => break None,
                        Some(Gap::Breaks { cells, counts, .. }) => {
                            let point: Point = [counts, cells].concat();
                            if !guess.give_way(&point) {
                                return Ok(Err("a fact does not give way".into()));
                            }
                            facts = guess.facts();
                        }
                        Some(Gap::Forgets {
                            place,
                            cells,
                            counts,
                            registers,
                            values,
                            ..
                        }) => {
                            let point: Point = [counts, cells].concat();
                            if !guess.forget(place, &point, &registers, &values) {
                                return Ok(Err("a fact does not give way".into()));
                            }
                        }
                        Some(Gap::Same {
                            distinct, places, ..
                        }) => {
                            if !guess.coincide(distinct, places) {
                                return Ok(Err("a fact does not give way".into()));
                            }
                        }
                        Some(Gap::Nowhere { local, .. }) => break Some(local),
                        Some(Gap::Allows { what }) => return Ok(Err(told(&what))),
                    }
                };
                let Some(local) = nowhere else {
                    return Ok(match judge.allows(guess.claims(&facts))? {
                        None => Ok(Counting {
                            model: self.model,
                            no_wrap: self.granted.no_wrap(),
                            at_most: self.granted.at_most(),
                            unwrapped: self.granted.unwrapped(),
                            places,
                            facts,
                            known: guess.known,
                            distinct: guess.distinct,
                        }),
                        Some(Gap::Allows { what }) => Err(told(&what)),
                        Some(
                            Gap::Breaks { .. }
                            | Gap::Forgets { .. }
                            | Gap::Same { .. }
                            | Gap::Nowhere { .. },
                        ) => Err(told("a gap")),
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

    fn local(&self, l: Local) -> Local {
        let live = &self.samples.live[l.role.index()][l.location.index()];
        let registers = l.registers.iter().zip(live);
        Local {
            registers: registers.map(|(v, live)| v * i64::from(*live)).collect(),
            ..l.clone()
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
        let mut guess = Guess::new(&points, places, &groups, &self.text, boldness);
        if boldness.knows() {
            let apart = self.text.apart.as_slice();
            guess.known = known::guess(self.crowd, self.samples, split, &of_local, apart);
            if self.granted.unwrapped() {
                guess.distinct = distinct::guess(self.crowd, self.samples, &of_local);
            }
        }
        guess
    }
}

/// What the program compares with, adds or begins with, and what is next to it; bits of its masks.
fn text(crowd: &Crowd) -> Text {
    let mut text = Text::default();
    for c in &crowd.instance.cells {
        if let Initial::Value(v) = c.init {
            text.numbers.insert(v);
        }
    }
    for step in crowd.instance.threads.iter().flat_map(|t| &t.steps) {
        // How far apart numbers may be is no number of the program.
        if let Some(condition) = step.action.apart() {
            let mut of = Text::default();
            constants(condition, &mut of);
            // `d + c` is small if `d` is smaller by as much.
            if let Some(most) = of.numbers.pop_last() {
                let less = of.numbers.iter().filter(|c| (1..=2).contains(*c));
                text.apart.extend(less.map(|c| most - c).chain([most]));
            }
        } else if let Some(e) = step.action.evaluated() {
            constants(e, &mut text);
        }
    }
    text.apart.sort_unstable();
    text.apart.dedup();
    let near = |v: &i64| [v.saturating_sub(1), *v, v.saturating_add(1)];
    text.numbers = text.numbers.iter().flat_map(near).collect();
    text
}

fn constants<A>(e: &Expr<A>, into: &mut Text) {
    match e {
        Expr::Const(c) => {
            into.numbers.insert(*c);
        }
        Expr::Atom(_) => {}
        Expr::Unary(_, a) => constants(a, into),
        Expr::Binary(op, a, b) => {
            if matches!(op, Op2::BitAnd | Op2::BitOr | Op2::BitXor) {
                let masks = [a, b].into_iter().filter_map(|e| e.as_const());
                masks.for_each(|m| flags(m, &mut into.flags));
            }
            if *op == Op2::Rem && b.as_const() == Some(2) {
                into.flags.insert(0);
            }
            [a, b].iter().for_each(|e| constants(e, into));
        }
        Expr::Ite(c, a, b) => [c, a, b].iter().for_each(|e| constants(e, into)),
    }
}

/// Bits that a mask has, or leaves out, with at most one other.
fn flags(mask: i64, into: &mut BTreeSet<u32>) {
    for of in [mask, !mask, !mask & i64::from(u32::MAX)] {
        if of.count_ones() <= 2 {
            into.extend((0..i64::BITS).filter(|k| (of >> k) & 1 == 1));
        }
    }
}

fn told(what: &str) -> String {
    format!("the numbers of threads at the places do not exclude {what}")
}
