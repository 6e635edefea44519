//! One numbering for every graph.
//!
//! Front-ends number locations as they come; printing and re-parsing would number them differently.
//! The canonical form depends only on the graph: locations in depth-first order from the entry
//! (following steps in their order), steps by source, labels sorted. What cannot be reached is
//! dropped; if a property mentions a label found only there, one location without steps keeps all
//! such labels, so that the property still means "never there".

use crate::graph::Location;
use crate::ids::LocationId;
use crate::program::{Family, Program};
use crate::property::Observation;
use crate::{Expr, Span};
use std::collections::BTreeSet;

impl Program {
    /// The same program with canonical graphs. Every front-end ends with this.
    #[must_use]
    pub fn canonical(&self) -> Program {
        let mentioned = mentioned_labels(self);
        let mut program = self.clone();
        for (f, family) in program.families.iter_mut().enumerate() {
            canonicalise(family, &mentioned[f]);
        }
        program
    }
}

fn canonicalise(family: &mut Family, mentioned: &BTreeSet<&str>) {
    let old_locations = std::mem::take(&mut family.locations);
    let mut outgoing: Vec<Vec<usize>> = vec![Vec::new(); old_locations.len()];
    for (i, s) in family.steps.iter().enumerate() {
        if let Some(out) = outgoing.get_mut(s.source.index()) {
            out.push(i);
        }
    }
    let mut number: Vec<Option<LocationId>> = vec![None; old_locations.len()];
    let mut order = Vec::new();
    let mut work = vec![family.entry];
    while let Some(at) = work.pop() {
        match number.get_mut(at.index()) {
            Some(n) if n.is_none() => *n = Some(LocationId::new(order.len())),
            _ => continue,
        }
        order.push(at.index());
        let targets = outgoing[at.index()].iter().rev();
        work.extend(targets.map(|s| family.steps[*s].target));
    }
    let mut steps = Vec::with_capacity(family.steps.len());
    for at in &order {
        for s in &outgoing[*at] {
            let mut step = family.steps[*s].clone();
            if let (Some(source), Some(Some(target))) =
                (number[*at], number.get(step.target.index()))
            {
                (step.source, step.target) = (source, *target);
                steps.push(step);
            }
        }
    }
    let mut locations: Vec<Location> = order.iter().map(|l| old_locations[*l].clone()).collect();
    for l in &mut locations {
        l.labels.sort();
        l.labels.dedup();
    }
    let lost: BTreeSet<&str> = {
        let kept: BTreeSet<&str> = locations.iter().flat_map(labels).collect();
        let all: BTreeSet<&str> = old_locations.iter().flat_map(labels).collect();
        all.difference(&kept)
            .copied()
            .filter(|l| mentioned.contains(l))
            .collect()
    };
    if !lost.is_empty() {
        locations.push(Location {
            labels: lost.into_iter().map(str::to_string).collect(),
            span: Span::NONE,
        });
    }
    family.locations = locations;
    family.steps = steps;
    family.entry = LocationId(0);
}

fn labels(l: &Location) -> impl Iterator<Item = &str> {
    l.labels.iter().map(String::as_str)
}

/// Labels that properties and hints speak of, per family.
fn mentioned_labels(program: &Program) -> Vec<BTreeSet<&str>> {
    fn visit<'p>(e: &'p Expr<Observation>, found: &mut Vec<BTreeSet<&'p str>>) {
        e.for_each_atom(&mut |o| match o {
            Observation::At(t, label) => {
                if let Some(set) = found.get_mut(t.family.index()) {
                    set.insert(label);
                }
            }
            Observation::Cell(_, e) | Observation::Seen(_, _, e) | Observation::Memory(e) => {
                visit(e, found);
            }
            Observation::AddressOf(_)
            | Observation::Register(..)
            | Observation::Index(_)
            | Observation::Count(_) => {}
        });
    }
    let mut found = vec![BTreeSet::new(); program.families.len()];
    let properties = program.properties.iter().map(|p| &p.condition);
    for c in properties.chain(&program.predicates) {
        visit(&c.expr, &mut found);
    }
    for t in &program.temporal {
        t.for_each_condition(&mut |e| visit(e, &mut found));
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::graph::{Action, Location};
    use crate::program::{Count, Family, Program, Step};
    use crate::property::{Condition, Observation, Property, PropertyKind, ThreadIndex, ThreadRef};
    use crate::{Expr, FamilyId, LocationId, Span};

    fn step(source: u32, target: u32) -> Step {
        Step {
            source: LocationId(source),
            target: LocationId(target),
            action: Action::Skip,
            span: Span::NONE,
        }
    }

    fn program(labels: &[&[&str]], steps: Vec<Step>, entry: u32) -> Program {
        Program {
            families: vec![Family {
                name: "p".into(),
                count: Count::One,
                registers: vec![],
                locations: labels
                    .iter()
                    .map(|l| Location {
                        labels: l.iter().map(|s| s.to_string()).collect(),
                        span: Span::NONE,
                    })
                    .collect(),
                steps,
                entry: LocationId(entry),
                span: Span::NONE,
            }],
            ..Program::default()
        }
    }

    #[test]
    fn numbers_depth_first_and_drops_the_unreachable() {
        let p = program(
            &[&["dead"], &["b", "a"], &[], &[]],
            vec![step(0, 1), step(1, 3), step(2, 1), step(1, 2)],
            1,
        )
        .canonical();
        let f = &p.families[0];
        assert_eq!(f.locations.len(), 3);
        assert_eq!(f.locations[0].labels, ["a", "b"]);
        let edges: Vec<_> = f.steps.iter().map(|s| (s.source.0, s.target.0)).collect();
        assert_eq!(edges, [(0, 1), (0, 2), (2, 0)]);
        assert_eq!(p.canonical(), p);
    }

    #[test]
    fn keeps_unreachable_labels_that_properties_mention() {
        let mut p = program(&[&[], &["dead"], &["gone"]], vec![], 0);
        p.properties.push(Property {
            kind: PropertyKind::Never,
            condition: Condition {
                indices: vec![],
                expr: Expr::Atom(Observation::At(
                    ThreadRef {
                        family: FamilyId(0),
                        index: ThreadIndex::Number(0),
                    },
                    "dead".into(),
                )),
            },
            span: Span::NONE,
        });
        let c = p.canonical();
        assert_eq!(c.families[0].locations.len(), 2);
        assert_eq!(c.families[0].locations[1].labels, ["dead"]);
        assert_eq!(c.canonical(), c);
    }
}
