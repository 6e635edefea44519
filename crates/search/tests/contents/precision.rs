//! The order of precision with the compiled machine: what a buffer that remembers more can reach, one
//! that remembers less can reach too.
//!
//! ```text
//! at most k ⊆ exact ⊆ oldest k+1 ⊆ oldest k ⊆ set      exact ⊆ multiset ⊆ set
//!             exact ⊆ newest k+1 ⊆ newest k ⊆ set
//! ```

use super::compiled;
use std::collections::{BTreeMap, BTreeSet};
use wattle_memory::compiled::{Machine, Reductions};
use wattle_memory::{ContentKind, Contents, Exact, MemoryModel, Sc};
use wattle_model::{Instance, Program};
use wattle_random::{Loops, Shape, trial};

/// A state without its buffers, and whether all is over.
type Seen = (wattle_memory::reference::State<()>, bool);

/// Finer and coarser.
const ORDER: [(&str, &str); 15] = [
    ("exact", "multiset"),
    ("multiset", "set"),
    ("exact", "oldest=2"),
    ("exact", "newest=2"),
    ("oldest=2", "oldest=1"),
    ("newest=2", "newest=1"),
    ("oldest=1", "set"),
    ("newest=1", "set"),
    ("set", "oldest=0"),
    ("oldest=0", "set"),
    ("set", "newest=0"),
    ("newest=0", "set"),
    ("atmost=1", "atmost=2"),
    ("atmost=1", "exact"),
    ("atmost=2", "exact"),
];

fn seen(
    instance: &Instance,
    model: MemoryModel,
    content: &str,
    reached: &mut BTreeMap<String, Option<BTreeSet<Seen>>>,
) {
    let kind: ContentKind = content.parse().expect("a content");
    let contents = Contents::uniform(kind, instance.threads.len(), instance.cells.len());
    let outline = |machine: &Machine<'_>, state: &[u64]| {
        let outline = machine.unpack::<Sc, Exact>(state);
        (outline, machine.is_final(state))
    };
    let all = || {
        let all = compiled(
            instance,
            model,
            &contents,
            Reductions::NONE,
            20_000,
            outline,
        );
        all.map(|r| r.states)
    };
    reached.entry(content.to_string()).or_insert_with(all);
}

/// Compares under both layouts; counts what could be compared.
fn complaint(program: &Program, compared: &mut u64) -> Option<String> {
    let instance = program.instance().ok()?;
    for model in [MemoryModel::Tso, MemoryModel::Pso] {
        let mut reached = BTreeMap::new();
        for (fine, coarse) in ORDER {
            seen(&instance, model, fine, &mut reached);
            seen(&instance, model, coarse, &mut reached);
            if let (Some(one), Some(other)) = (&reached[fine], &reached[coarse]) {
                *compared += 1;
                if let Some(lost) = one.difference(other).next() {
                    return Some(format!("{model}: {coarse} lacks of {fine}: {lost:?}"));
                }
            }
        }
    }
    None
}

fn ordered(shape: &Shape, programs: u64, salt: u64) {
    let (programs, compared) = trial(shape, programs, salt, |p, _, compared| {
        complaint(p, compared)
    });
    println!("{compared} comparisons");
    assert!(compared >= 16 * programs, "hardly anything was compared");
}

#[test]
fn what_remembers_more_reaches_less() {
    let shape = Shape {
        threads: 3,
        statements: 3,
        properties: false,
        ..Shape::default()
    };
    ordered(&shape, 300, 3 << 32);
}

#[test]
fn what_remembers_more_reaches_less_with_loops() {
    let shape = Shape {
        threads: 2,
        statements: 4,
        regions: 2,
        registers: 1,
        greatest: 1,
        arrays: false,
        loops: Loops::Any,
        properties: false,
        ..Shape::default()
    };
    ordered(&shape, 300, 4 << 32);
}
