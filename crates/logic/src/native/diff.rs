//! Difference constraints `x - y <= c`, `x <= c`, `x >= c` and their equalities
//! by shortest paths (Bellman–Ford): most queries of predicate abstraction.
//! Solutions are integers, and a negative cycle is a Farkas sum of ones.

use super::facts::{Conflict, Fact, Ledger, Stop};
use crate::int::Int;
use crate::proof::Sum;
use crate::term::Var;

/// Weights beyond this go to the general solver, so that no path can overflow.
const MAX_WEIGHT: u64 = 1 << 40;
/// Larger systems go to the general solver for the same reason.
const MAX_FACTS: usize = 1 << 10;

struct Edge {
    from: u32,
    to: u32,
    weight: i64,
    fact: u32,
    reversed: bool,
}

/// The graph of a system: node 0 is the number zero, the others are variables.
struct Graph {
    vars: Vec<Var>,
    edges: Vec<Edge>,
}

/// `None` if some fact is not a difference constraint, else the verdict.
pub(super) fn solve(
    facts: &[Fact<'_>],
    ledger: &mut Ledger<'_>,
) -> Option<Result<Vec<(Var, Int)>, Stop>> {
    if facts.len() > MAX_FACTS {
        return None;
    }
    let mut graph = Graph {
        vars: Vec::with_capacity(8),
        edges: Vec::with_capacity(2 * facts.len()),
    };
    for (i, fact) in facts.iter().enumerate() {
        graph.add(i as u32, fact)?;
    }
    Some(graph.run(facts, ledger))
}

impl Graph {
    fn node(&mut self, v: Var) -> u32 {
        if let Some(i) = self.vars.iter().position(|w| *w == v) {
            return i as u32 + 1;
        }
        self.vars.push(v);
        self.vars.len() as u32
    }

    fn add(&mut self, index: u32, fact: &Fact<'_>) -> Option<()> {
        let weight = fact.term.constant_part().to_i64()?;
        if weight.unsigned_abs() > MAX_WEIGHT {
            return None;
        }
        let (plus, minus) = match fact.term.coeffs() {
            [(x, a)] if a.is_one() => (Some(*x), None),
            [(x, a)] if a.is_unit() => (None, Some(*x)),
            [(x, a), (y, b)] if a.is_one() && b.is_unit() && b.is_negative() => {
                (Some(*x), Some(*y))
            }
            [(x, a), (y, b)] if b.is_one() && a.is_unit() && a.is_negative() => {
                (Some(*y), Some(*x))
            }
            _ => return None,
        };
        let to = plus.map_or(0, |v| self.node(v));
        let from = minus.map_or(0, |v| self.node(v));
        // to - from + weight <= 0
        self.edges.push(Edge {
            from,
            to,
            weight: -weight,
            fact: index,
            reversed: false,
        });
        if fact.equality {
            self.edges.push(Edge {
                from: to,
                to: from,
                weight,
                fact: index,
                reversed: true,
            });
        }
        Some(())
    }

    fn run(&self, facts: &[Fact<'_>], ledger: &mut Ledger<'_>) -> Result<Vec<(Var, Int)>, Stop> {
        let nodes = self.vars.len() + 1;
        let mut dist = vec![0i64; nodes];
        let mut via = vec![u32::MAX; nodes];
        for round in 0..=nodes {
            ledger.spend(1 + self.edges.len() as u64 / 8)?;
            let mut relaxed = None;
            for (i, e) in self.edges.iter().enumerate() {
                let through = dist[e.from as usize] + e.weight;
                if through < dist[e.to as usize] {
                    dist[e.to as usize] = through;
                    via[e.to as usize] = i as u32;
                    relaxed = Some(e.to);
                }
            }
            match relaxed {
                None => {
                    let values = self.vars.iter().zip(&dist[1..]);
                    return Ok(values.map(|(v, d)| (*v, Int::new(d - dist[0]))).collect());
                }
                Some(node) if round == nodes => {
                    if let Some(conflict) = self.cycle(node, &via, facts) {
                        return Err(conflict.into());
                    }
                }
                Some(_) => {}
            }
        }
        // Not reached: a relaxation in the last round has a cycle behind it.
        Err(Stop::GaveUp(crate::solver::Reason::Budget))
    }

    /// The negative cycle that `node`'s predecessors lead to.
    fn cycle(&self, mut node: u32, via: &[u32], facts: &[Fact<'_>]) -> Option<Conflict> {
        for _ in 0..via.len() {
            node = self.edges.get(via[node as usize] as usize)?.from;
        }
        let start = node;
        let mut sum = Sum::new();
        loop {
            let e = self.edges.get(via[node as usize] as usize)?;
            let k = if e.reversed { Int::MINUS_ONE } else { Int::ONE };
            sum.push((facts[e.fact as usize].id, k));
            node = e.from;
            if node == start {
                return Some(Conflict::farkas(sum));
            }
        }
    }
}
