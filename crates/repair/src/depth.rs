//! How many loops a location is in: what a fence there costs each time round.
//!
//! A loop is a strongly connected part of the graph; the loops inside are those that are left when the
//! locations it is entered at are taken away.

use std::collections::BTreeSet;
use wattle_model::LocationId;
use wattle_model::program::Family;

/// Deeper nests are counted as this deep.
const DEEPEST: u32 = 16;

/// The depth of every location.
pub fn depths(family: &Family) -> Vec<u32> {
    let n = family.locations.len();
    let mut next: Vec<Vec<usize>> = vec![Vec::new(); n];
    for step in &family.steps {
        next[step.source.index()].push(step.target.index());
    }
    let mut depth = vec![0; n];
    let mut work: Vec<(Vec<usize>, u32)> = vec![((0..n).collect(), 0)];
    while let Some((part, level)) = work.pop() {
        let inside: BTreeSet<usize> = part.iter().copied().collect();
        for component in components(&part, &inside, &next) {
            let own: BTreeSet<usize> = component.iter().copied().collect();
            let circles = |l: &usize| next[*l].iter().any(|t| own.contains(t));
            if !component.iter().any(circles) {
                continue;
            }
            component.iter().for_each(|l| depth[*l] = level + 1);
            let heads = heads(family, &own, &next);
            let rest: Vec<usize> = component
                .into_iter()
                .filter(|l| !heads.contains(l))
                .collect();
            if level + 1 < DEEPEST && !rest.is_empty() {
                work.push((rest, level + 1));
            }
        }
    }
    depth
}

/// Where a component is entered from outside; its first location if nowhere.
fn heads(family: &Family, own: &BTreeSet<usize>, next: &[Vec<usize>]) -> BTreeSet<usize> {
    let outside = (0..next.len()).filter(|l| !own.contains(l));
    let entered = outside.flat_map(|l| &next[l]).filter(|t| own.contains(t));
    let mut heads: BTreeSet<usize> = entered.copied().collect();
    let entry: LocationId = family.entry;
    if own.contains(&entry.index()) {
        heads.insert(entry.index());
    }
    if heads.is_empty() {
        heads.extend(own.first());
    }
    heads
}

/// Strongly connected components (Kosaraju's, without recursion).
fn components(part: &[usize], inside: &BTreeSet<usize>, next: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut order = Vec::new();
    let mut seen: BTreeSet<usize> = BTreeSet::new();
    for &root in part {
        if !seen.insert(root) {
            continue;
        }
        let mut stack = vec![(root, 0)];
        while let Some((l, i)) = stack.pop() {
            match next[l].get(i) {
                Some(&t) => {
                    stack.push((l, i + 1));
                    if inside.contains(&t) && seen.insert(t) {
                        stack.push((t, 0));
                    }
                }
                None => order.push(l),
            }
        }
    }
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); next.len()];
    for &l in part {
        for &t in next[l].iter().filter(|t| inside.contains(t)) {
            before[t].push(l);
        }
    }
    let mut taken: BTreeSet<usize> = BTreeSet::new();
    let mut all = Vec::new();
    for &root in order.iter().rev() {
        if !taken.insert(root) {
            continue;
        }
        let (mut component, mut stack) = (Vec::new(), vec![root]);
        while let Some(l) = stack.pop() {
            component.push(l);
            stack.extend(before[l].iter().copied().filter(|b| taken.insert(*b)));
        }
        component.sort_unstable();
        all.push(component);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use wattle_syntax::Language;

    #[test]
    fn loops_in_loops() {
        let text = "shared x; thread p { x = 1; loop { x = 2; while x == 3 { x = 4; } } }";
        let program = wattle_syntax::parse(Language::Wtl, text)
            .program
            .expect("parses");
        let family = &program.families[0];
        let depth = depths(family);
        let of_store = |n: usize| {
            let stores = family.steps.iter().filter(|s| s.span.start > 0);
            let stores =
                stores.filter(|s| matches!(s.action, wattle_model::graph::Action::Store { .. }));
            let step = stores.into_iter().nth(n).expect("a store");
            depth[step.source.index()].min(depth[step.target.index()])
        };
        assert_eq!([of_store(0), of_store(1), of_store(2)], [0, 1, 2]);
    }
}
