//! Any number of threads: initiation, consecution and safety of a set of cubes, from the system alone.
//!
//! The cubes describe ends of runs. If every bad state is described, no initial state is, and whatever
//! step may come before what is described leads to something described, then no run from an initial
//! state ends in a bad one, for any number of threads: going back from its end one would always be at
//! something described. Steps are those of a thread the cube speaks of or of any other.
//!
//! What is trusted here is the meaning of array-based systems, the two ways of telling runs that
//! [`order`] explains, and the solver's proof checker. Nothing is shared with the engine.

mod assume;
mod facts;
mod guess;
mod inside;
mod local;
mod order;
mod query;
mod read;
mod sound;
mod step;
#[cfg(test)]
mod tests;

use super::tuples::tuples;
use super::{AuditError, Audited, Solvers, model_of};
use assume::{Draft, Rules};
use facts::{Facts, THREADS, Value};
use guess::Known;
use inside::inside;
use query::Query;
use step::{castings, drains, finished, join_constants, predecessors};
use wattle_evidence::certificate::{Corrupt, Cubes};
use wattle_evidence::control::Control;
use wattle_memory::MemoryModel;
use wattle_model::array::{ArraySystem, Quantified};

/// Whether the certificate proves that no bad state of the system can be reached.
pub fn audit_cubes(
    solvers: &Solvers,
    system: &ArraySystem,
    model: MemoryModel,
    certificate: &Cubes,
    control: &Control<'_>,
) -> Result<Audited, AuditError> {
    let model = model_of(system, model, certificate.model, &certificate.cells)?;
    let rules = Rules::new(system, model);
    if rules.more() > THREADS {
        return Err(AuditError::Refused("it names too many threads".into()));
    }
    local::check(&rules)?;
    let mut known = Vec::new();
    for cube in &certificate.cubes {
        let facts = read::facts(&rules, cube)?;
        if !facts.is_sound(&rules) {
            return Err(Corrupt("a cube names something that is not there").into());
        }
        let mut memory = false;
        facts.for_each_value(&rules, &mut |v| {
            memory |= matches!(v, Value::Cell(p) if rules.weak(p.cell))
        });
        if memory {
            return Err(Corrupt("a cube speaks of weak memory without a read").into());
        }
        known.push(Known::new(&rules, facts));
    }
    let cubes = known.len();
    let mut auditor = Auditor {
        rules: &rules,
        known,
        query: Query {
            solvers,
            control,
            checked: 0,
            steps: Default::default(),
        },
    };
    auditor.axioms();
    auditor.safety()?;
    for i in 0..cubes {
        auditor.initiation(i)?;
        auditor.consecution(i)?;
        auditor.query.checked += 1;
        auditor.query.step()?;
    }
    Ok(Audited {
        checked: auditor.query.checked,
    })
}

struct Auditor<'a> {
    rules: &'a Rules<'a>,
    /// The certificate's cubes, then what axioms exclude.
    known: Vec<Known>,
    query: Query<'a>,
}

impl Auditor<'_> {
    /// A condition on constants alone that is claimed never to hold is an axiom of the system.
    fn axioms(&mut self) {
        let system = self.rules.system;
        let axioms = system
            .assumed
            .iter()
            .filter(|q| system.only_constants(&q.body));
        let cubes: Vec<Facts> = axioms.flat_map(|q| self.conditions(q)).collect();
        let rules = self.rules;
        self.known
            .extend(cubes.into_iter().map(|f| Known::new(rules, f)));
    }

    /// The ways in which different threads satisfy a condition; what it reads is read at the very end.
    fn conditions(&self, q: &Quantified) -> Vec<Facts> {
        let mut base = Facts::default();
        join_constants(self.rules, &mut base);
        let mut out = Vec::new();
        for (base, args) in castings(self.rules, base, q.params.len()) {
            let draft = self.rules.draft(base, None);
            for mut d in self.rules.assume(draft, &q.body, true, &args, args.len()) {
                match d.facts.reads[0].parts.is_empty() {
                    true => d.facts.reads.clear(),
                    false => {
                        d.facts.last = 1;
                        d.facts.after_reads_of.iter_mut().for_each(|s| *s = 1);
                    }
                }
                out.extend(finished(self.rules, d.facts));
            }
        }
        out
    }

    /// Every bad state is described.
    fn safety(&mut self) -> Result<(), AuditError> {
        for q in &self.rules.system.bad {
            for facts in self.conditions(q) {
                if !inside(self.rules, &self.known, &facts, &mut self.query)? {
                    return Err(AuditError::MissesBad);
                }
            }
        }
        Ok(())
    }

    /// No initial state is described by cube `i`: open reads would take initial values.
    fn initiation(&mut self, i: usize) -> Result<(), AuditError> {
        let facts = &self.known[i].facts;
        let own = |r: &facts::Open| r.parts.iter().any(|p| p.own);
        if !facts.pending.is_empty() || facts.reads.iter().any(own) {
            return Ok(());
        }
        let mut start = Facts::default();
        facts.threads.iter().for_each(|t| {
            start.join(*t);
        });
        start.later.clone_from(&facts.later);
        let becomes = |v: Value| match v {
            Value::Read(e, p) => {
                let part = &facts.reads[usize::from(e)].parts[usize::from(p)];
                Some(self.rules.names.var(Value::Cell(part.place)).into())
            }
            Value::Cell(_) | Value::Pending(_) | Value::Any(..) => None,
        };
        if step::substitute(facts, &mut start, self.rules, &becomes).is_err() {
            return Ok(());
        }
        join_constants(self.rules, &mut start);
        let init = &self.rules.system.init;
        if start.threads.is_empty() && !init.params.is_empty() {
            start.join(0);
        }
        let threads: Vec<u8> = (0..start.threads.len() as u8).collect();
        let mut drafts = vec![Draft {
            facts: start,
            moment: None,
            actor: None,
        }];
        for tuple in &tuples(&threads, init.params.len(), false) {
            let more = drafts.into_iter();
            drafts = more
                .flat_map(|d| self.rules.assume(d, &init.body, true, tuple, tuple.len()))
                .filter_map(|d| {
                    let facts = finished(self.rules, d.facts)?;
                    Some(Draft { facts, ..d })
                })
                .collect();
        }
        for d in &drafts {
            if !self.query.covered(self.rules, &d.facts, &[])? {
                let part = i as u64 + 1;
                return Err(AuditError::HasInitial { part });
            }
        }
        Ok(())
    }

    /// Whatever may come before cube `i` is described.
    fn consecution(&mut self, i: usize) -> Result<(), AuditError> {
        let system = self.rules.system;
        let steps = system.transitions.iter().map(Some);
        let drain = (self.rules.model == MemoryModel::Pso).then_some(None);
        for step in steps.chain(drain) {
            let mut before = Vec::new();
            match step {
                Some(t) => predecessors(self.rules, &self.known[i].facts, t, &mut before),
                None => drains(self.rules, &self.known[i].facts, &mut before),
            }
            self.query.step()?;
            for facts in before {
                if !inside(self.rules, &self.known, &facts, &mut self.query)? {
                    return Err(AuditError::NotClosed {
                        state: i as u64 + 1,
                        event: step.map_or("a store reaching memory".into(), |t| t.name.clone()),
                    });
                }
            }
        }
        Ok(())
    }
}
