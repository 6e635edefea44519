//! Certificates in words.

use super::Certificate;
use wattle_memory::Keeps;

impl Certificate {
    /// What it is, for a person.
    pub fn describe(&self) -> String {
        match self {
            Certificate::Robust(r) => {
                format!("robustness, and {} under SC", r.under_sc.describe())
            }
            Certificate::Cubes(c) => format!("{} cubes over threads", c.cubes.len()),
            Certificate::Views(c) => format!("{} views of two threads", c.count),
            Certificate::Counting(c) => format!(
                "{} facts about how many threads{} are at each of {} places",
                c.facts.len() + c.known.len(),
                c.at_most
                    .map_or(String::new(), |n| format!(" of at most {n}")),
                c.places.len()
            ),
            Certificate::Levels(c) => format!(
                "levels on each of which a thread stays behind, {} places beyond one",
                c.passed.len()
            ),
            Certificate::Readers(c) => format!(
                "readers, of which a few stand for all: {}",
                c.proof.describe()
            ),
            Certificate::ClosedStates(c) => format!("a closed set of {} states", c.len()),
            Certificate::Components(c) => {
                format!("{} components of {} states", c.count, c.states.len())
            }
            Certificate::Returning(c) => {
                let states: u64 = c.parts.iter().map(|p| p.states.len()).sum();
                let forgets = c.parts.iter().any(|p| p.keeps.is_abstract());
                let buffers = if forgets {
                    ", with buffers that forget"
                } else {
                    ""
                };
                format!("ways to return from {states} states{buffers}")
            }
            Certificate::Explored(c) => format!("all {} states", c.states),
            Certificate::Traces(c) => match c.len() {
                1 => "the one trace there is".into(),
                n => format!("all {n} traces"),
            },
            Certificate::Parts(c) => {
                let proofs = c.parts.iter().filter_map(|p| p.proof.as_ref());
                let proofs: Vec<String> = proofs.map(|p| p.describe()).collect();
                let parts = c.parts.len();
                format!(
                    "{parts} independent parts, each alone: {}",
                    proofs.join("; ")
                )
            }
            Certificate::Inductive(c) => {
                format!(
                    "an inductive formula of {} predicates for each of {} control states",
                    c.predicates.len(),
                    c.control_states()
                )
            }
            Certificate::Coherent(c) => {
                let kept = match c.keeps {
                    Keeps::Multiset => "counts",
                    Keeps::Newest => "keeps the newest of",
                    Keeps::Exact | Keeps::Oldest | Keeps::AtMost => "keeps the oldest of",
                };
                format!("a closed abstraction that {kept} the stores of each buffer")
            }
            Certificate::Multisets(c) => {
                format!(
                    "a basis of {} configurations with multiset buffers",
                    c.basis.len()
                )
            }
            Certificate::LoadBuffers(c) => {
                format!(
                    "a basis of {} configurations with load buffers",
                    c.basis.len()
                )
            }
        }
    }
}
