//! Which states a certificate for any number of threads stands for, asked of single states.
//!
//! Cubes describe what must not be reached: a state stands if no cube describes it. With empty buffers
//! an open read would see memory as it is, and no store is pending. Views describe what two threads may
//! look like: a state stands if each two of its threads do. What is not known of a state is taken to be
//! as it should; a state that this says does not stand was met though the certificate excludes it, so
//! the certificate, or its audit, is wrong.

use super::views::Looks;
use super::{AuditError, model_of};
use wattle_evidence::certificate::cubes::{CellOf, Cube, Number, OTHER, Relation, Value};
use wattle_evidence::certificate::{Certificate, Cubes};
use wattle_evidence::related::Met;
use wattle_memory::MemoryModel;
use wattle_model::array::{ArraySystem, CellType};

/// A certificate whose states can be recognised.
pub enum Meaning<'a> {
    Cubes {
        system: &'a ArraySystem,
        constants: u16,
        certificate: &'a Cubes,
    },
    Views(Box<Looks<'a>>),
}

impl<'a> Meaning<'a> {
    /// `None` for certificates of another kind.
    pub fn new(
        system: &'a ArraySystem,
        model: MemoryModel,
        certificate: &'a Certificate,
    ) -> Result<Option<Self>, AuditError> {
        match certificate {
            Certificate::Cubes(certificate) => {
                model_of(system, model, certificate.model, &certificate.cells)?;
                let constants = system.greatest_constant();
                Ok(Some(Meaning::Cubes {
                    system,
                    constants,
                    certificate,
                }))
            }
            Certificate::Views(certificate) => {
                let looks = Looks::new(system, model, certificate)?;
                Ok(Some(Meaning::Views(Box::new(looks))))
            }
            Certificate::ClosedStates(_)
            | Certificate::Explored(_)
            | Certificate::Coherent(_)
            | Certificate::Traces(_)
            | Certificate::Parts(_)
            | Certificate::LoadBuffers(_)
            | Certificate::Multisets(_)
            | Certificate::Robust(_)
            | Certificate::Counting(_)
            | Certificate::Levels(_)
            | Certificate::Readers(_)
            | Certificate::Components(_)
            | Certificate::Returning(_)
            | Certificate::Inductive(_) => Ok(None),
        }
    }

    /// What shows that the state is none the certificate stands for.
    pub fn excludes(&self, state: &Met<'_>) -> Option<String> {
        match self {
            Meaning::Cubes {
                system,
                constants,
                certificate,
            } => {
                if state.pending.iter().any(|buffer| !buffer.is_empty()) {
                    return None;
                }
                let at = certificate.cubes.iter().position(|cube| {
                    let mut told = Named {
                        system,
                        constants: *constants,
                        cube,
                        state,
                        threads: Vec::new(),
                    };
                    told.described()
                });
                at.map(|i| format!("cube {} describes it", i + 1))
            }
            Meaning::Views(looks) => looks.excludes(state),
        }
    }
}

/// A cube with threads for some of its names.
struct Named<'t> {
    system: &'t ArraySystem,
    constants: u16,
    cube: &'t Cube,
    state: &'t Met<'t>,
    threads: Vec<u8>,
}

impl Named<'_> {
    /// Whether the cube certainly describes the state, for some choice of the remaining threads.
    fn described(&mut self) -> bool {
        let own = |p: &wattle_evidence::certificate::cubes::ReadPart| p.own;
        let cube = self.cube;
        if !cube.pending.is_empty() || cube.reads.iter().any(|r| r.parts.iter().any(own)) {
            return false;
        }
        if !self.fits_so_far() {
            return false;
        }
        let Some(constant) = cube.threads.get(self.threads.len()) else {
            return self.holds();
        };
        for t in 1..=self.state.threads {
            let named = u16::from(t) <= self.constants;
            let fits = match *constant {
                0 => !named,
                k => u16::from(t) == k,
            };
            if fits && !self.threads.contains(&t) {
                self.threads.push(t);
                let found = self.described();
                self.threads.pop();
                if found {
                    return true;
                }
            }
        }
        false
    }

    /// What is said of the thread named last and those before it, or of none: it need not be looked at
    /// further if that is not so.
    fn fits_so_far(&self) -> bool {
        let newest = self.threads.len().checked_sub(1);
        self.cube.among.iter().all(|(value, set)| {
            let Value::Cell(place) = value else {
                return true;
            };
            let threads = self.system.cell(place.cell).ty == CellType::Thread;
            let last = place.of.iter().max().map(|i| usize::from(*i));
            threads
                || last != newest
                || (self.at(place)).is_some_and(|v| set.iter().any(|x| i64::from(*x) == v))
        })
    }

    fn holds(&self) -> bool {
        let thread = |i: &u8| self.threads.get(usize::from(*i)).copied();
        let cube = self.cube;
        let ordered = |(a, b): &(u8, u8)| thread(a).zip(thread(b)).is_some_and(|(a, b)| a < b);
        let among = |(value, set): &(Value, Vec<u8>)| {
            let Some((cell, v)) = self.place(value).and_then(|p| Some((p.cell, self.at(p)?)))
            else {
                return false;
            };
            if self.system.cell(cell).ty != CellType::Thread {
                return set.iter().any(|x| i64::from(*x) == v);
            }
            let named = self.threads.iter().position(|t| i64::from(*t) == v);
            match named {
                Some(i) => set.iter().any(|x| usize::from(*x) == i),
                None => set.contains(&OTHER),
            }
        };
        let same = |(a, b, equal): &(Value, Value, bool)| {
            let both = self.value(a).zip(self.value(b));
            both.is_some_and(|(a, b)| (a == b) == *equal)
        };
        cube.ordered.iter().all(ordered)
            && cube.among.iter().all(among)
            && cube.same.iter().all(same)
            && cube.numbers.iter().all(|n| self.number(n))
    }

    fn number(&self, n: &Number) -> bool {
        let terms = n
            .terms
            .iter()
            .try_fold(i128::from(n.constant), |sum, (k, v)| {
                let term = i128::from(*k).checked_mul(i128::from(self.value(v)?))?;
                sum.checked_add(term)
            });
        terms.is_some_and(|sum| match n.relation {
            Relation::AtMost => sum <= 0,
            Relation::Less => sum < 0,
            Relation::Equal => sum == 0,
            Relation::Different => sum != 0,
        })
    }

    fn place<'v>(&'v self, value: &'v Value) -> Option<&'v CellOf> {
        match value {
            Value::Cell(place) => Some(place),
            Value::Read(e, p) => {
                let reads = self.cube.reads.get(usize::from(*e))?;
                Some(&reads.parts.get(usize::from(*p))?.place)
            }
            Value::Pending(_) => None,
        }
    }

    fn at(&self, place: &CellOf) -> Option<i64> {
        // No cell has more.
        let mut of = [0; 3];
        for (slot, i) in of.iter_mut().zip(&place.of) {
            *slot = *self.threads.get(usize::from(*i))?;
        }
        (self.state.value)(place.cell, of.get(..place.of.len())?)
    }

    fn value(&self, value: &Value) -> Option<i64> {
        self.at(self.place(value)?)
    }
}
