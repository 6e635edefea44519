//! Backward reachability: from the bad cubes through pre-images until nothing new appears or an
//! initial state does.

use crate::build::simplify_numbers;
use crate::compile::{Compiled, Kind, Unsupported};
use crate::cover::covers;
use crate::cube::{Consistent, Contradiction, Cube};
use crate::drain::drains;
use crate::guess::Guesser;
use crate::initial::{cubes_of, initial_part};
use crate::lin::{self, Lin};
use crate::pre::{Predecessor, Predecessors, predecessors};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use wattle_memory::MemoryModel;

/// How a cube came about.
#[derive(Clone, Debug)]
pub struct Node {
    pub cube: Cube,
    /// The cube it leads to and the step that does.
    pub step: Option<(u32, Step)>,
    pub root: Root,
    /// The larger cube that took its place.
    dropped: Option<u32>,
}

#[derive(Clone, Debug)]
pub struct Step {
    pub transition: usize,
    pub args: Vec<u8>,
    pub joined: Vec<u16>,
    pub kept: Vec<u8>,
}

/// What a backward path started from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root {
    Bad,
    /// A condition assumed in the file: to be proved like a bad one.
    Claimed(usize),
    /// A guess, by its number.
    Guess(usize),
}

/// Cubes that contain the bad states, no initial state, and every pre-image of each cube that is not
/// itself inside another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    pub cubes: Vec<Cube>,
    /// For each cube a later one that covers it, if there is one.
    pub under: Vec<Option<u32>>,
    /// Claims of the system (not about constants alone) that were proved as well.
    pub claims: Vec<usize>,
}

impl Proof {
    /// The cubes that no other cube of the proof covers.
    pub fn live(&self) -> impl Iterator<Item = &Cube> {
        let pairs = self.cubes.iter().zip(&self.under);
        pairs.filter(|(_, u)| u.is_none()).map(|(c, _)| c)
    }
}

#[derive(Clone, Debug)]
pub enum Finding {
    /// No initial state: these cubes contain the bad ones and are closed under pre-images.
    Closed(Proof),
    /// The nodes of a path from an initial cube to a root, and the initial cube's initial part.
    Path {
        nodes: Vec<Node>,
        start: Box<Cube>,
    },
    /// A bound of the representation was hit.
    GaveUp,
    Stopped,
}

/// A cube that none took the place of: what can be seen of it at a glance.
#[derive(Clone, Copy)]
struct Glance {
    signature: u128,
    threads: usize,
    node: u32,
}

impl Glance {
    /// Whether its cube may cover the other's.
    fn may_cover(&self, other: &Glance) -> bool {
        self.signature & !other.signature == 0 && self.threads <= other.threads
    }
}

/// The cubes that none took the place of, by the bits of their signatures. A cube that covers another has no
/// bit that the other has not.
struct Live {
    /// Every cube once, under one of its bits; under the last if it has none.
    under: Vec<Vec<Glance>>,
    /// For each bit all cubes that have it, and at last all cubes; also such that have gone.
    with: Vec<Vec<Glance>>,
}

impl Live {
    const BITS: usize = 128;

    fn new() -> Self {
        Live {
            under: vec![Vec::new(); Self::BITS + 1],
            with: vec![Vec::new(); Self::BITS + 1],
        }
    }

    fn bits(signature: u128) -> impl Iterator<Item = usize> {
        let mut left = signature;
        std::iter::from_fn(move || {
            let bit = left.trailing_zeros() as usize;
            left &= left.wrapping_sub(1);
            (bit < Self::BITS).then_some(bit)
        })
    }

    /// The bit of the shortest list.
    fn rarest(lists: &[Vec<Glance>], signature: u128) -> usize {
        let bits = Self::bits(signature);
        bits.min_by_key(|b| lists[*b].len()).unwrap_or(Self::BITS)
    }

    fn push(&mut self, g: Glance) {
        let rarest = Self::rarest(&self.under, g.signature);
        self.under[rarest].push(g);
        for bit in Self::bits(g.signature).chain([Self::BITS]) {
            self.with[bit].push(g);
        }
    }

    /// Whether one that may cover the cube does.
    fn some_covers(&self, cube: &Glance, covers: &mut dyn FnMut(u32) -> bool) -> bool {
        let lists = Self::bits(cube.signature).chain([Self::BITS]);
        lists
            .flat_map(|b| &self.under[b])
            .any(|n| n.may_cover(cube) && covers(n.node))
    }

    /// Removes those that the cube may cover and does.
    fn remove(&mut self, cube: &Glance, is_gone: &mut dyn FnMut(u32) -> bool) {
        let rarest = Self::rarest(&self.with, cube.signature);
        let mut gone: Vec<Glance> = Vec::new();
        self.with[rarest].retain(|n| {
            let keep = !cube.may_cover(n) || !is_gone(n.node);
            if !keep {
                gone.push(*n);
            }
            keep
        });
        for g in gone {
            for bit in Self::bits(g.signature).chain([Self::BITS]) {
                self.under[bit].retain(|n| n.node != g.node);
            }
        }
    }
}

pub struct Search<'c, 'a> {
    compiled: &'c Compiled<'a>,
    nodes: Vec<Node>,
    live: Live,
    queue: BinaryHeap<Reverse<(usize, usize, usize, u32)>>,
    /// Excluded by axioms on constants.
    axioms: Vec<Cube>,
    /// Negations of claims that are one linear constraint on scalars: every cube may assume them,
    /// for the claim itself is in the search.
    bounds: Vec<Lin>,
}

/// Counts for reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effort {
    pub cubes: usize,
    pub generated: usize,
    pub guesses: usize,
    pub restarts: usize,
}

impl<'c, 'a> Search<'c, 'a> {
    pub fn new(compiled: &'c Compiled<'a>) -> Result<Self, Unsupported> {
        let mut axioms = Vec::new();
        for q in &compiled.system.assumed {
            if compiled.system.only_constants(&q.body) {
                axioms.extend(cubes_of(compiled, q)?);
            }
        }
        Ok(Search {
            compiled,
            nodes: Vec::new(),
            live: Live::new(),
            queue: BinaryHeap::new(),
            axioms,
            bounds: Vec::new(),
        })
    }

    /// Searches from the bad cubes and the claims not in `refuted`.
    pub fn run(
        &mut self,
        refuted: &[usize],
        guesser: &mut Guesser<'_>,
        effort: &mut Effort,
        stop: &dyn Fn(usize) -> bool,
    ) -> Result<Finding, Unsupported> {
        self.nodes.clear();
        self.live = Live::new();
        self.queue.clear();
        self.bounds.clear();
        let system = self.compiled.system;
        let claims = system
            .assumed
            .iter()
            .enumerate()
            .filter(|(i, q)| !system.only_constants(&q.body) && !refuted.contains(i));
        let claimed: Vec<usize> = claims.clone().map(|(i, _)| i).collect();
        let roots: Vec<_> = claims
            .map(|(i, q)| (Root::Claimed(i), q))
            .chain(system.bad.iter().map(|q| (Root::Bad, q)))
            .collect();
        for (root, q) in roots {
            for cube in cubes_of(self.compiled, q)? {
                let bound = bound_of(&cube).filter(|_| matches!(root, Root::Claimed(_)));
                if let Some(path) = self.add(cube, None, root, guesser, effort) {
                    return Ok(path);
                }
                self.bounds.extend(bound);
            }
        }
        let mut out = Predecessors::default();
        while let Some(Reverse((_, _, _, index))) = self.queue.pop() {
            if self.nodes[index as usize].dropped.is_some() {
                continue;
            }
            if stop(self.nodes.len()) {
                return Ok(Finding::Stopped);
            }
            let (cube, root) = (
                self.nodes[index as usize].cube.clone(),
                self.nodes[index as usize].root,
            );
            effort.cubes += 1;
            out.clear();
            for t in 0..self.compiled.transitions.len() {
                predecessors(self.compiled, &cube, t, &mut out);
            }
            if self.compiled.model == MemoryModel::Pso {
                drains(self.compiled, &cube, &mut out);
            }
            if out.gave_up {
                return Ok(Finding::GaveUp);
            }
            effort.generated += out.list.len();
            for (i, p) in out.list.drain(..).enumerate() {
                if i % 512 == 511 && stop(self.nodes.len()) {
                    return Ok(Finding::Stopped);
                }
                let Predecessor {
                    cube,
                    transition,
                    args,
                    joined,
                    kept,
                } = p;
                let step = Step {
                    transition,
                    args,
                    joined,
                    kept,
                };
                if let Some(path) = self.add(cube, Some((index, step)), root, guesser, effort) {
                    return Ok(path);
                }
            }
        }
        Ok(Finding::Closed(Proof {
            cubes: self.nodes.iter().map(|n| n.cube.clone()).collect(),
            under: self.nodes.iter().map(|n| n.dropped).collect(),
            claims: claimed,
        }))
    }

    /// Takes a cube into the search unless it is covered; reports a path if it is initial.
    fn add(
        &mut self,
        cube: Cube,
        step: Option<(u32, Step)>,
        root: Root,
        guesser: &mut Guesser<'_>,
        effort: &mut Effort,
    ) -> Option<Finding> {
        let mut cube = cube;
        if !self.bounds.is_empty() && strengthen(&mut cube, &self.bounds).is_err() {
            return None;
        }
        let kinds = &self.compiled.kinds;
        let glance = self.glance(&cube);
        let mut covered = |n: u32| covers(kinds, &self.nodes[n as usize].cube, &cube);
        if self.live.some_covers(&glance, &mut covered)
            || self.axioms.iter().any(|a| covers(kinds, a, &cube))
        {
            return None;
        }
        let node = Node {
            cube,
            step,
            root,
            dropped: None,
        };
        if let Some(start) = initial_part(self.compiled, &node.cube) {
            return Some(self.path(node, start));
        }
        if let Some((number, guess)) = guesser.guess(self.compiled, &node.cube)
            && initial_part(self.compiled, &guess).is_none()
        {
            effort.guesses += 1;
            self.insert(Node {
                cube: guess,
                step: None,
                root: Root::Guess(number),
                dropped: None,
            });
            return None;
        }
        self.insert(node);
        None
    }

    fn insert(&mut self, node: Node) {
        let kinds = &self.compiled.kinds;
        let number = self.nodes.len() as u32;
        let glance = self.glance(&node.cube);
        let nodes = &mut self.nodes;
        self.live.remove(&glance, &mut |n| {
            let old = &mut nodes[n as usize];
            // What has gone before has another over it already.
            if old.dropped.is_none() && covers(kinds, &node.cube, &old.cube) {
                old.dropped = Some(number);
            }
            old.dropped.is_some()
        });
        self.live.push(glance);
        let c = &node.cube;
        let key = (
            c.threads(),
            c.memory.events.len(),
            c.size(),
            self.nodes.len() as u32,
        );
        self.queue.push(Reverse(key));
        self.nodes.push(node);
    }

    /// The cube at a glance, as the next node.
    fn glance(&self, cube: &Cube) -> Glance {
        Glance {
            signature: signature(&self.compiled.kinds, cube),
            threads: cube.threads(),
            node: self.nodes.len() as u32,
        }
    }

    fn path(&self, node: Node, start: Cube) -> Finding {
        let mut nodes = vec![node];
        while let Some((parent, _)) = &nodes[nodes.len() - 1].step {
            nodes.push(self.nodes[*parent as usize].clone());
        }
        let start = Box::new(start);
        Finding::Path { nodes, start }
    }
}

/// One bit for each array a cube constrains: a cube covers only cubes that constrain all of its. And one for
/// each array and value, where it must be this one value: then the same must be so in what it covers.
fn signature(kinds: &[Kind], cube: &Cube) -> u128 {
    let mut bits = 0;
    for (s, mask) in &cube.doms {
        let of_data = s.is_cell() && matches!(kinds[usize::from(s.array())], Kind::Finite(_));
        if of_data && mask.count_ones() == 1 {
            let value = u64::from(mask.trailing_zeros()) + 64 * u64::from(s.array());
            bits |= 1 << (64 + value.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 61);
        }
        let array = match (s.as_read(), s.as_pending()) {
            (Some((e, p)), _) => cube.memory.events[e].parts[p].cell.array(),
            (_, Some(k)) => cube.memory.pending[k].cell.array(),
            _ => s.array(),
        };
        bits |= 1 << (array % 64);
    }
    bits
}

/// The negation of a cube that is one integer constraint on scalars.
fn bound_of(cube: &Cube) -> Option<Lin> {
    let alone = cube.doms.is_empty()
        && cube.rels.is_empty()
        && cube.reals.is_empty()
        && cube.threads() == 0;
    match &cube.ints[..] {
        [l] if alone && l.terms.iter().all(|(s, _)| s.is_cell()) => match &l.negated(true)[..] {
            [not] => Some(not.clone()),
            _ => None,
        },
        _ => None,
    }
}

/// Adds the bounds on scalars that the cube speaks of.
fn strengthen(cube: &mut Cube, bounds: &[Lin]) -> Consistent {
    let before = cube.ints.len();
    for b in bounds {
        let spoken = |s| cube.ints.iter().any(|l| l.coefficient(s) != 0);
        if b.terms.iter().any(|(s, _)| spoken(*s)) && !cube.ints.contains(b) {
            cube.ints.push(b.clone());
        }
    }
    if cube.ints.len() > before {
        cube.ints.sort();
        if !lin::satisfiable(&cube.ints, true) {
            return Err(Contradiction);
        }
        simplify_numbers(&mut cube.ints, true);
    }
    Ok(())
}

/// The cube with the negations of all single bounds among the cubes; `None` if nothing is left.
pub fn bounded(cube: &Cube, cubes: &[Cube]) -> Option<Cube> {
    let bounds: Vec<Lin> = cubes.iter().filter_map(bound_of).collect();
    let mut out = cube.clone();
    if !bounds.is_empty() && !cubes.contains(cube) {
        strengthen(&mut out, &bounds).ok()?;
    }
    Some(out)
}
