//! Memory fairness by brute force, where states are finitely many: what happens almost surely if every way is taken with some
//! probability. Parts of the formula are taken away one by one from the inside (Courcoubetis and Yannakakis, 1995): a state
//! from which an until is neither almost sure nor impossible becomes two, one for the runs that satisfy it and one for the others.

use wattle_model::instance::Fact;
use wattle_model::{Expr, Formula};

pub struct Chain {
    pub edges: Vec<Vec<usize>>,
    pub starts: Vec<usize>,
    /// The truth of everything known so far, column by column.
    pub columns: Vec<Vec<bool>>,
}

impl Chain {
    /// Whether some run, with more than no probability, is one where the formula is false. The first columns are the
    /// truth of these conditions.
    pub fn may_break(mut self, f: &Formula<Expr<Fact>>, atoms: &[&Expr<Fact>]) -> bool {
        let column = self.column(f, atoms);
        self.starts.iter().any(|s| !self.columns[column][*s])
    }

    /// Whether some run is outside only finitely often, by the first column.
    pub fn may_stay_out(mut self) -> bool {
        let yes = self.add(|_| true);
        let reached = self.until(yes, 0);
        let never = self.not(reached);
        let lost = self.until(yes, never);
        self.starts.iter().any(|s| self.columns[lost][*s])
    }

    fn add(&mut self, value: impl Fn(usize) -> bool) -> usize {
        let column = (0..self.edges.len()).map(value).collect();
        self.columns.push(column);
        self.columns.len() - 1
    }

    fn not(&mut self, a: usize) -> usize {
        let column = self.columns[a].iter().map(|v| !v).collect();
        self.columns.push(column);
        self.columns.len() - 1
    }

    fn both(&mut self, a: usize, b: usize, op: fn(bool, bool) -> bool) -> usize {
        let pairs = self.columns[a].iter().zip(&self.columns[b]);
        let column = pairs.map(|(a, b)| op(*a, *b)).collect();
        self.columns.push(column);
        self.columns.len() - 1
    }

    fn column(&mut self, f: &Formula<Expr<Fact>>, atoms: &[&Expr<Fact>]) -> usize {
        match f {
            Formula::Now(e) => atoms.iter().position(|a| *a == e).unwrap(),
            Formula::Not(f) => {
                let f = self.column(f, atoms);
                self.not(f)
            }
            Formula::And(f, g) => {
                let (f, g) = (self.column(f, atoms), self.column(g, atoms));
                self.both(f, g, |a, b| a && b)
            }
            Formula::Or(f, g) => {
                let (f, g) = (self.column(f, atoms), self.column(g, atoms));
                self.both(f, g, |a, b| a || b)
            }
            Formula::Implies(f, g) => {
                let (f, g) = (self.column(f, atoms), self.column(g, atoms));
                self.both(f, g, |a, b| !a || b)
            }
            Formula::Finally(f) => {
                let f = self.column(f, atoms);
                let yes = self.add(|_| true);
                self.until(yes, f)
            }
            Formula::Globally(f) => {
                let f = self.column(f, atoms);
                let (yes, f) = (self.add(|_| true), self.not(f));
                let ends = self.until(yes, f);
                self.not(ends)
            }
            Formula::Until(f, g) => {
                let (f, g) = (self.column(f, atoms), self.column(g, atoms));
                self.until(f, g)
            }
            Formula::Release(f, g) => {
                let (f, g) = (self.column(f, atoms), self.column(g, atoms));
                let (f, g) = (self.not(f), self.not(g));
                let ends = self.until(f, g);
                self.not(ends)
            }
            Formula::WeakUntil(f, g) => {
                let (f, g) = (self.column(f, atoms), self.column(g, atoms));
                let (f, g) = (self.not(f), self.not(g));
                let neither = self.both(f, g, |a, b| a && b);
                let ends = self.until(g, neither);
                self.not(ends)
            }
        }
    }

    /// The states from which a way through `through` leads to one of `to`.
    fn ways(&self, through: &dyn Fn(usize) -> bool, to: &dyn Fn(usize) -> bool) -> Vec<bool> {
        let mut found: Vec<bool> = (0..self.edges.len()).map(to).collect();
        loop {
            let before = found.clone();
            for s in 0..found.len() {
                found[s] |= through(s) && self.edges[s].iter().any(|t| found[*t]);
            }
            if found == before {
                return found;
            }
        }
    }

    /// The column of f U g, after making two of each state where it is open.
    fn until(&mut self, f: usize, g: usize) -> usize {
        let (f, g) = (self.columns[f].clone(), self.columns[g].clone());
        let waits = |s: usize| f[s] && !g[s];
        let possible = self.ways(&waits, &|s| g[s]);
        let avoidable = self.ways(&waits, &|s| !possible[s]);
        let values = |s: usize| match (possible[s], avoidable[s]) {
            (true, true) => vec![true, false],
            (true, false) => vec![true],
            (false, _) => vec![false],
        };
        let mut nodes: Vec<(usize, bool)> = Vec::new();
        for s in 0..self.edges.len() {
            nodes.extend(values(s).into_iter().map(|v| (s, v)));
        }
        let place = |s: usize, v: bool| nodes.binary_search_by_key(&(s, !v), |(s, v)| (*s, !*v));
        let edges = nodes.iter().map(|(s, v)| {
            let mut out = Vec::new();
            for t in &self.edges[*s] {
                let same = values(*t).into_iter().filter(|w| !waits(*s) || w == v);
                out.extend(same.map(|w| place(*t, w).unwrap()));
            }
            assert!(!out.is_empty());
            out
        });
        let edges: Vec<Vec<usize>> = edges.collect();
        let starts = self.starts.iter().flat_map(|s| {
            let all = values(*s).into_iter();
            all.map(|v| place(*s, v).unwrap())
        });
        let starts = starts.collect();
        let columns = self.columns.iter();
        let columns = columns.map(|c| nodes.iter().map(|(s, _)| c[*s]).collect());
        let mut columns: Vec<Vec<bool>> = columns.collect();
        columns.push(nodes.iter().map(|(_, v)| *v).collect());
        (self.edges, self.starts, self.columns) = (edges, starts, columns);
        self.columns.len() - 1
    }
}
