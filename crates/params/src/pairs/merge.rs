//! Three threads from three views of two: what each two of them look like decides everything but
//! elements of two threads that are positions.

use super::shape::{Shape, Sort};
use super::state::{NOBODY, SPACING, State, UNKNOWN, Val};
use crate::work;

/// A view and which of its threads is meant first and second.
#[derive(Clone, Copy)]
pub struct Seen<'s> {
    pub state: &'s State,
    pub sides: [usize; 2],
}

/// The values of scalars (`None`) or of one solid thread, in a fixed order.
fn each_of(
    state: &mut State,
    shape: &Shape,
    of: Option<usize>,
    visit: &mut dyn FnMut(Sort, &mut Val),
) {
    let n = state.solids();
    let sorts = shape.sorts(n);
    let scalars = shape.anchors.len() + shape.scalars;
    let own = n + scalars;
    let Some(t) = of else {
        let scalars = sorts[n..own].iter().zip(&mut state.vals[n..own]);
        scalars.for_each(|(s, v)| visit(*s, v));
        return;
    };
    visit(Sort::Thread, &mut state.vals[t]);
    let mine = own + t * shape.singles..own + (t + 1) * shape.singles;
    let singles = sorts[mine.clone()].iter().zip(&mut state.vals[mine]);
    singles.for_each(|(s, v)| visit(*s, v));
    for c in 0..shape.doubles {
        let i = own + n * shape.singles + (c * n + t) * n + t;
        visit(sorts[i], &mut state.vals[i]);
    }
    for w in state.buffers[t].iter_mut().flat_map(|e| &mut e.writes) {
        let cell = &shape.cells[usize::from(w.cell)];
        for a in &mut w.args[..cell.arity] {
            visit(Sort::Thread, a);
        }
        visit(cell.sort, &mut w.value);
    }
}

/// Positions of one kind in the three views; `UNKNOWN` where a view does not have them.
type Nodes = Vec<[Val; 3]>;

/// Which views have the scalars, the first, second and third thread: with its side there.
type Parts = [[Option<Option<usize>>; 3]; 4];

fn nodes(views: &mut [State; 3], shape: &Shape, parts: &Parts, threads: bool) -> Option<Nodes> {
    let mut out = Nodes::new();
    for part in parts {
        let start = out.len();
        for (v, of) in part.iter().enumerate() {
            let Some(of) = of else { continue };
            let mut at = start;
            each_of(&mut views[v], shape, *of, &mut |sort, val| {
                if meant(sort, *val, threads) {
                    if at == out.len() {
                        out.push([UNKNOWN; 3]);
                    }
                    out[at][v] = *val;
                    at += 1;
                }
            });
            if at != out.len() {
                return None;
            }
        }
    }
    Some(out)
}

fn meant(sort: Sort, val: Val, threads: bool) -> bool {
    match sort {
        Sort::Thread => threads && val < NOBODY,
        Sort::Int | Sort::Other => !threads && val != UNKNOWN,
        Sort::Finite(_) => false,
    }
}

/// One position for each node that agrees with all views.
fn agree(nodes: &Nodes, ordered: bool) -> Option<Vec<Val>> {
    let common = |a: &[Val; 3], b: &[Val; 3]| (0..3).find(|v| a[*v] != UNKNOWN && b[*v] != UNKNOWN);
    let mut out = Vec::with_capacity(nodes.len());
    for (i, a) in nodes.iter().enumerate() {
        let value = if ordered {
            let less = |b: &&[Val; 3]| common(a, b).is_some_and(|v| b[v] < a[v]);
            nodes.iter().filter(less).count()
        } else {
            let same = |b: &[Val; 3]| common(a, b).is_some_and(|v| b[v] == a[v]);
            nodes[..i].iter().position(same).unwrap_or(i)
        };
        out.push(value as Val);
    }
    for (i, a) in nodes.iter().enumerate() {
        for (j, b) in nodes[..i].iter().enumerate() {
            for v in 0..3 {
                if a[v] == UNKNOWN || b[v] == UNKNOWN {
                    continue;
                }
                let fits = match ordered {
                    true => a[v].cmp(&b[v]) == out[i].cmp(&out[j]),
                    false => (a[v] == b[v]) == (out[i] == out[j]),
                };
                if !fits {
                    return None;
                }
            }
        }
    }
    Some(out)
}

/// The state with the threads x, y, z, if the views of (x, y), (x, z) and (y, z) fit together.
pub fn merge(shape: &Shape, [xy, xz, yz]: [Seen<'_>; 3]) -> Option<State> {
    work::done(work::MERGE);
    let mut views = [xy.state.clone(), xz.state.clone(), yz.state.clone()];
    let (a, b, c) = (xy.sides, xz.sides, yz.sides);
    let parts: Parts = [
        [Some(None), Some(None), Some(None)],
        [Some(Some(a[0])), Some(Some(b[0])), None],
        [Some(Some(a[1])), None, Some(Some(c[0]))],
        [None, Some(Some(b[1])), Some(Some(c[1]))],
    ];
    let mut found = Vec::new();
    let mut names = Vec::new();
    for threads in [true, false] {
        let nodes = nodes(&mut views, shape, &parts, threads)?;
        found.push(agree(&nodes, shape.ordered || !threads)?);
        if threads {
            names = nodes;
        }
    }
    let ghosts = named(&views, &names, &found[0]);
    let mut state = assemble(shape, xy, xz, yz);
    for (threads, found) in [true, false].into_iter().zip(found) {
        let mut values = found.into_iter();
        for of in [None, Some(0), Some(1), Some(2)] {
            each_of(&mut state, shape, of, &mut |sort, val| {
                if meant(sort, *val, threads) {
                    *val = (values.next().unwrap_or(0) + 1) * SPACING;
                }
            });
        }
    }
    for (cell, name, value) in ghosts {
        let at = (name + 1) * SPACING;
        let known = match state.solid(at) {
            Some(t) => Some(state.vals[shape.position(3, cell, &[t])]),
            None => {
                let same = |x: &&(u16, [Val; 2], Val)| (x.0, x.1) == (cell, [at, 0]);
                state.extra.iter().find(same).map(|x| x.2)
            }
        };
        match known {
            Some(v) if v != value => return None,
            Some(_) => {}
            None => state.extra.push((cell, [at, 0], value)),
        }
    }
    Some(state)
}

/// What the views know of ghosts, with the names that these have now.
fn named(views: &[State; 3], nodes: &Nodes, found: &[Val]) -> Vec<(u16, Val, Val)> {
    let mut out = Vec::new();
    for (v, view) in views.iter().enumerate() {
        for (cell, args, value) in &view.extra {
            let node = nodes.iter().position(|n| n[v] == args[0]);
            out.extend(node.map(|n| (*cell, found[n], *value)));
        }
    }
    out
}

/// The values as the views have them; positions are not yet comparable.
fn assemble(shape: &Shape, xy: Seen<'_>, xz: Seen<'_>, yz: Seen<'_>) -> State {
    let scalars = shape.anchors.len() + shape.scalars;
    let whose = [(xy, 0), (xy, 1), (xz, 1)];
    let side = |(s, i): (Seen<'_>, usize)| s.sides[i];
    let mut vals: Vec<Val> = whose.iter().map(|w| w.0.state.vals[side(*w)]).collect();
    vals.extend(&xy.state.vals[2..2 + scalars]);
    let own = 2 + scalars;
    for w in &whose {
        let at = own + side(*w) * shape.singles;
        vals.extend(&w.0.state.vals[at..at + shape.singles]);
    }
    let both = own + 2 * shape.singles;
    let sorts = shape.sorts(2);
    for c in 0..shape.doubles {
        for i in 0..3 {
            for j in 0..3 {
                let (seen, i, j) = match (i, j) {
                    (2, 2) => (xz, 1, 1),
                    (0 | 1, 0 | 1) => (xy, i, j),
                    (0 | 2, 0 | 2) => (xz, i / 2, j / 2),
                    _ => (yz, i - 1, j - 1),
                };
                let at = both + (c * 2 + seen.sides[i]) * 2 + seen.sides[j];
                let known = i == j || matches!(sorts[at], Sort::Finite(_));
                vals.push(if known { seen.state.vals[at] } else { UNKNOWN });
            }
        }
    }
    State {
        vals,
        buffers: whose
            .iter()
            .map(|w| w.0.state.buffers[side(*w)].clone())
            .collect(),
        extra: Vec::new(),
    }
}
