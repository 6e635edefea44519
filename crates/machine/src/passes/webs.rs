//! One variable for each value: a machine register that is used for two things becomes two variables.
//!
//! Two assignments belong together if some use may read either. Uses before any assignment belong to the
//! variable as it was.

use crate::bits::{E, VarId};
use crate::graph::{Graph, Op};
use std::collections::{BTreeMap, BTreeSet};

type Definitions = BTreeMap<VarId, BTreeSet<usize>>;

pub fn split(graph: &mut Graph) {
    let order = graph.reached();
    // Number the assignments; 0 stands for what was there at first.
    let mut numbers: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for at in &order {
        for (k, e) in graph.nodes[*at].out.iter().enumerate() {
            if e.op.written().is_some() {
                let next = numbers.len() + 1;
                numbers.insert((*at, k), next);
            }
        }
    }
    let live = super::live::live(graph);
    let mut reaching: Vec<Option<Definitions>> = vec![None; graph.nodes.len()];
    let first = live[graph.entry].iter().map(|v| (*v, BTreeSet::from([0])));
    reaching[graph.entry] = Some(first.collect());
    let mut work = vec![graph.entry];
    while let Some(at) = work.pop() {
        let Some(before) = reaching[at].clone() else {
            continue;
        };
        for (k, e) in graph.nodes[at].out.iter().enumerate() {
            let mut after = before.clone();
            if let Some(v) = e.op.written() {
                after.insert(v, BTreeSet::from([numbers[&(at, k)]]));
            }
            after.retain(|v, _| live[e.to].contains(v));
            let changed = match &mut reaching[e.to] {
                Some(known) => {
                    let mut changed = false;
                    for (v, from) in after {
                        let to = known.entry(v).or_default();
                        let before = to.len();
                        to.extend(from);
                        changed |= to.len() != before;
                    }
                    changed
                }
                none => {
                    *none = Some(after);
                    true
                }
            };
            if changed {
                work.push(e.to);
            }
        }
    }
    // Assignments of a variable that meet in a use are one. (0, v) is what was there at first.
    let mut merged: BTreeMap<(usize, VarId), (usize, VarId)> = BTreeMap::new();
    fn find(
        merged: &BTreeMap<(usize, VarId), (usize, VarId)>,
        mut d: (usize, VarId),
    ) -> (usize, VarId) {
        while let Some(up) = merged.get(&d) {
            d = *up;
        }
        d
    }
    for definitions in reaching.iter().flatten() {
        for (v, all) in definitions {
            let mut all = all.iter();
            let Some(one) = all.next() else { continue };
            for other in all {
                let (a, b) = (find(&merged, (*one, *v)), find(&merged, (*other, *v)));
                if a != b {
                    merged.insert(a.max(b), a.min(b));
                }
            }
        }
    }
    let mut names: BTreeMap<(usize, VarId), VarId> = BTreeMap::new();
    let mut used: BTreeSet<VarId> = BTreeSet::new();
    let mut vars = std::mem::take(&mut graph.vars);
    let mut of = |d: (usize, VarId), vars: &mut crate::graph::Vars| {
        let d = find(&merged, d);
        *names.entry(d).or_insert_with(|| {
            // The first keeps the name.
            if used.insert(d.1) {
                return d.1;
            }
            let (width, name) = (vars.width(d.1), vars.names[d.1.0 as usize].clone());
            vars.fresh(width, &name)
        })
    };
    for at in order {
        let Some(before) = reaching[at].clone() else {
            continue;
        };
        for k in 0..graph.nodes[at].out.len() {
            let read = |v: VarId, vars: &mut crate::graph::Vars, of: &mut dyn FnMut((usize, VarId), &mut crate::graph::Vars) -> VarId| {
                let d = before.get(&v).and_then(|d| d.first().copied());
                of((d.unwrap_or(0), v), vars)
            };
            let op = &mut graph.nodes[at].out[k].op;
            for e in op.expressions_mut() {
                let mut map = BTreeMap::new();
                for v in e.vars() {
                    let new = read(v, &mut vars, &mut of);
                    map.insert(v, E::Var(new, vars.width(new)));
                }
                *e = e.replace(&|v| map.get(&v).cloned());
            }
            let number = numbers.get(&(at, k)).copied();
            if let (
                Op::Assign(v, _) | Op::Havoc(v) | Op::Load { to: v, .. } | Op::Import { to: v, .. },
                Some(d),
            ) = (op, number)
            {
                *v = of((d, *v), &mut vars);
            }
        }
    }
    graph.vars = vars;
}
