//! Whether two programs are the same but for the numbers of locations.
//!
//! Two threads go through both graphs together. If every location that is reached in the one has one partner in the
//! other, with the same labels and the same steps in the same order, then each run of the one is a run of
//! the other. What nobody reaches does not matter.

use crate::LocationId;
use crate::program::{Family, Program, Step};
use std::collections::{BTreeMap, BTreeSet};

impl Program {
    /// Whether this is the other program with other numbers for locations.
    pub fn renumbers(&self, other: &Program) -> bool {
        let families = |p: &Program| -> Vec<Family> {
            let without = |f: &Family| Family {
                locations: Vec::new(),
                steps: Vec::new(),
                entry: LocationId(0),
                ..f.clone()
            };
            p.families.iter().map(without).collect()
        };
        // Every field is named: a new one is not forgotten.
        let rest = |p: &Program| {
            let Program {
                regions,
                families: _,
                properties,
                temporal,
                predicates,
            } = p.clone();
            (regions, properties, temporal, predicates)
        };
        let mut pairs = self.families.iter().zip(&other.families);
        families(self) == families(other)
            && rest(self) == rest(other)
            && pairs.all(|(a, b)| follows(a, b))
    }
}

fn follows(a: &Family, b: &Family) -> bool {
    let (from_a, from_b) = (outgoing(a), outgoing(b));
    let mut partner = BTreeMap::new();
    let mut work = vec![(a.entry, b.entry)];
    while let Some((x, y)) = work.pop() {
        match partner.insert(y, x) {
            Some(known) if known == x => continue,
            Some(_) => return false,
            None => {}
        }
        let labels = |f: &Family, l: LocationId| -> Option<BTreeSet<String>> {
            let location = f.locations.get(l.index())?;
            Some(location.labels.iter().cloned().collect())
        };
        let none = Vec::new();
        let (out_a, out_b) = (
            from_a.get(&x).unwrap_or(&none),
            from_b.get(&y).unwrap_or(&none),
        );
        let same = |(s, t): (&&Step, &&Step)| s.action == t.action;
        let here = labels(a, x);
        if here.is_none()
            || here != labels(b, y)
            || out_a.len() != out_b.len()
            || !out_a.iter().zip(out_b).all(same)
        {
            return false;
        }
        work.extend(out_a.iter().zip(out_b).map(|(s, t)| (s.target, t.target)));
    }
    true
}

fn outgoing(family: &Family) -> BTreeMap<LocationId, Vec<&Step>> {
    let mut all: BTreeMap<LocationId, Vec<&Step>> = BTreeMap::new();
    for step in &family.steps {
        all.entry(step.source).or_default().push(step);
    }
    all
}

#[cfg(test)]
mod tests {
    use crate::graph::{Action, Location};
    use crate::program::{Count, Family, Program, Step};
    use crate::{LocationId, Span};

    fn program(labels: &[&str], steps: &[(u32, u32)], entry: u32) -> Program {
        let step = |(source, target): &(u32, u32)| Step {
            source: LocationId(*source),
            target: LocationId(*target),
            action: Action::Skip,
            span: Span::NONE,
        };
        let location = |label: &&str| Location {
            labels: vec![label.to_string()],
            span: Span::NONE,
        };
        Program {
            families: vec![Family {
                name: "p".into(),
                count: Count::One,
                registers: vec![],
                locations: labels.iter().map(location).collect(),
                steps: steps.iter().map(step).collect(),
                entry: LocationId(entry),
                span: Span::NONE,
            }],
            ..Program::default()
        }
    }

    #[test]
    fn other_numbers_are_the_same_program_and_nothing_else_is() {
        let old = program(&["dead", "a", "b"], &[(0, 1), (1, 2), (1, 1), (2, 1)], 1);
        let new = program(&["a", "b"], &[(0, 1), (0, 0), (1, 0)], 0);
        assert!(new.renumbers(&old) && old.canonical().renumbers(&old));
        // A label, the order of steps, a target, a step less, the entry, a step to nowhere.
        for other in [
            program(&["a", "c"], &[(0, 1), (0, 0), (1, 0)], 0),
            program(&["a", "b"], &[(0, 0), (0, 1), (1, 0)], 0),
            program(&["a", "b"], &[(0, 1), (0, 0), (1, 1)], 0),
            program(&["a", "b"], &[(0, 1), (0, 0)], 0),
            program(&["a", "b"], &[(0, 1), (0, 0), (1, 0)], 1),
            program(&["a", "b"], &[(0, 1), (0, 0), (1, 7)], 0),
        ] {
            assert!(!other.renumbers(&old), "{other:?}");
        }
        let mut other = new.clone();
        other.families[0].name = "q".into();
        assert!(!other.renumbers(&old));
        let mut other = new.clone();
        other.families[0].steps[2].action = Action::Lock;
        assert!(!other.renumbers(&old));
        let mut other = new;
        other.regions.push(crate::Region {
            name: "x".into(),
            length: crate::Length::Scalar,
            ty: crate::Type::BOOL,
            init: crate::Init::Any,
            span: Span::NONE,
        });
        assert!(!other.renumbers(&old));
    }
}
