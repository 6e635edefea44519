//! Runs that stand for all: closed under reversing every race.
//!
//! The runs are a tree whose branches have an order. A move is *asleep* at a node if it is an earlier
//! branch there, or was asleep above and is independent of all moves since. A move *may begin* a sequence
//! v if it is a move of v that nothing in v happens before, or independent of all of v. Checked is:
//!
//! 1. every run is one of the reference machine's rules, and maximal: no process can move at its end;
//! 2. no branch is asleep at its node;
//! 3. for every run, every race (e, f) in it — dependent moves of different processes with nothing between
//!    them, where f did not need e — let v be the moves after e's node that do not happen after e, then f.
//!    Some move asleep at the node when e was chosen may begin v; or the walk from the node that follows the
//!    first branch that may begin what is left of v, and takes it away, gets to the end of v. The same for
//!    every other way of a choice e;
//! 4. the same for a move that may have to wait (for the lock, at the door of an atomic block, or in a loop that only
//!    loads a cell) and every e that writes the cell it waits for, however far before, if it can be made after v: also if it still
//!    waits when the run ends;
//! 5. no run shows what was asked for.
//!
//! **Theorem.** Every maximal trace of the program is the trace of a run.
//!
//! *Proof.* Claim: at each node N, every maximal trace w from N, that no move asleep at N may begin, is a
//! run below N. Take the first N, in the order in which a walk leaves the nodes, for which it fails, and
//! such a w. No branch c of N may begin w: the first that did would lead to a node left earlier, where
//! nothing asleep may begin the rest (it would have been able to begin w). Let K be the branches and what
//! is asleep at N. Each k in K depends on some move of w; let q be one for which the part x of w before the
//! first such move f is longest. If q is a branch, a maximal trace from N·q that begins with x·f is a run
//! R, since whatever asleep there could begin it would have a longer x or begin w. In R, q and f race, and
//! v begins with x·f. By 3 something in K may begin v: it begins w, or has a longer x. Contradiction. If q
//! is asleep, it was an earlier branch at some A above, N = A·b·t, independent of b·t. A·q was left earlier,
//! so a trace that begins with b·t·x·f is a run there: what is asleep at A·q and could begin it is not in
//! b·t (by 2), so it is asleep at N too, and has a longer x or begins w. In that run q and f race; by 3
//! either something asleep at A when q was chosen may begin v, which is impossible for the same reasons, or
//! the walk leads from A along b·t (an earlier branch that may begin v would be asleep at N) to N, where
//! some branch may begin the rest, x·f and more: it begins w or has a longer x. Contradiction. ∎
//! Where f may have to wait, q may shut it out instead of racing with it; then q writes f's guard, all other
//! writes of it depend on q, and f can be made after v as after x: that is 4. The guard is one cell, or the
//! certificate is refused.
//!
//! Runs of one trace end in one state, and everything the question can see on the way is changed by moves
//! that depend on each other, so 5 is enough for all runs.
//!
//! What moves are, and which of them are independent, is in `player` and `Use::matters`; of two enabled
//! moves that are independent neither changes what the other does or whether it can be made.

mod player;
mod tree;

use crate::{AuditError, Audited};
use player::{Done, Move, Player, Use};
use rustc_hash::FxHashMap;
use tree::{NONE, Tree};
use wattle_evidence::certificate::{Corrupt, Traces};
use wattle_evidence::{Control, Progress, Task};
use wattle_memory::reference::{self, Machine, State};
use wattle_memory::{Exact, Sc, Start};
use wattle_model::RegisterId;

pub fn audit(
    task: &Task<'_>,
    certificate: &Traces,
    control: &Control<'_>,
) -> Result<Audited, AuditError> {
    if certificate.model != task.model {
        return Err(AuditError::WrongModel(certificate.model));
    }
    // Lock regions are atomic blocks, where that is the same: a deadlock may be inside one.
    let blocks = match task.deadlock {
        true => None,
        false => task.instance.with_regions_as_blocks(task.question()),
    };
    let task = &Task {
        instance: blocks.as_ref().unwrap_or(task.instance),
        ..*task
    };
    let refused = |r: reference::Refusal| AuditError::Refused(r.to_string());
    Machine::<Sc, Exact>::new(task.instance, ()).map_err(refused)?;
    let starts = reference::starts(task.instance).map_err(refused)?;
    if starts.len() != certificate.starts.len() {
        return Err(Corrupt("it is about another number of initial states").into());
    }
    let mut checked = 0;
    for (start, runs) in starts.iter().zip(&certificate.starts) {
        let tree = Tree::read(runs)?;
        checked += Check::new(task, start, &tree, control)?.run()?;
    }
    Ok(Audited { checked })
}

/// What is known of a move, small enough to keep for every node.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    process: u32,
    choice: u32,
    uses: u32,
    ways: u32,
    waited: bool,
    block: bool,
    guard: Option<u32>,
    drained: Option<(u32, u32)>,
    stores: (u32, u32),
}

struct Check<'t, 'i, 'c> {
    task: &'t Task<'i>,
    control: &'c Control<'c>,
    tree: &'t Tree,
    player: Player<'t, 'i>,
    numbers: FxHashMap<Vec<Use>, u32>,
    uses: Vec<Vec<Use>>,
    known: Vec<Known>,
    runs: u64,
    closed: u64,
    /// The run at hand, with room for one move that is only thought of; and its nodes.
    run: Vec<Known>,
    path: Vec<u32>,
    words: usize,
    before: Vec<Vec<u64>>,
    races: Vec<Vec<usize>>,
    /// Per node of the run, what was asleep when its move was chosen.
    asleep: Vec<Vec<u32>>,
}

/// How one move depends on an earlier one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bond {
    None,
    /// They cannot change places.
    Firm,
    /// They use the same cell.
    Conflict,
}

fn has(row: &[u64], bit: usize) -> bool {
    row[bit / 64] >> (bit % 64) & 1 == 1
}

fn put(row: &mut [u64], bit: usize) {
    row[bit / 64] |= 1 << (bit % 64);
}

fn bits(row: &[u64]) -> impl Iterator<Item = usize> + '_ {
    row.iter().enumerate().flat_map(|(w, word)| {
        let mut rest = *word;
        std::iter::from_fn(move || {
            let bit = (rest != 0).then(|| rest.trailing_zeros() as usize)?;
            rest &= rest - 1;
            Some(w * 64 + bit)
        })
    })
}

impl<'t, 'i, 'c> Check<'t, 'i, 'c> {
    fn new(
        task: &'t Task<'i>,
        start: &Start,
        tree: &'t Tree,
        control: &'c Control<'c>,
    ) -> Result<Self, AuditError> {
        Ok(Check {
            task,
            control,
            tree,
            player: Player::new(task, start)?,
            numbers: FxHashMap::default(),
            uses: Vec::new(),
            known: vec![Known::default(); tree.nodes.len()],
            runs: 0,
            closed: 0,
            run: Vec::new(),
            path: Vec::new(),
            words: (tree.depth + 2) / 64 + 1,
            before: Vec::new(),
            races: Vec::new(),
            asleep: Vec::new(),
        })
    }

    fn run(mut self) -> Result<u64, AuditError> {
        let nothing = self.number(Vec::new());
        debug_assert_eq!(nothing, 0);
        if let Some(fault) = self.player.begin()?
            && self.task.minds_faults()
        {
            return Err(AuditError::Fault { state: 0, fault });
        }
        self.look(0)?;
        self.play_all()?;
        self.close_all()?;
        Ok(self.runs)
    }

    fn number(&mut self, uses: Vec<Use>) -> u32 {
        if let Some(n) = self.numbers.get(&uses) {
            return *n;
        }
        let n = self.uses.len() as u32;
        self.uses.push(uses.clone());
        self.numbers.insert(uses, n);
        n
    }

    fn know(&mut self, process: u32, choice: u32, done: Done) -> Known {
        Known {
            process,
            choice,
            uses: self.number(done.uses),
            ways: done.ways,
            waited: done.waited,
            block: done.block,
            guard: done.guard,
            drained: done.drained,
            stores: done.stores,
        }
    }

    /// 1 and 5: every run by the rules, and what it shows.
    fn play_all(&mut self) -> Result<(), AuditError> {
        let mut path = Vec::new();
        let mut node = self.tree.nodes[0].first;
        if node == NONE {
            self.leaf(0)?;
        }
        while node != NONE {
            let mark = self.player.mark();
            let tree::Node {
                process, choice, ..
            } = self.tree.nodes[node as usize];
            let done = match self.player.play(process, choice)? {
                Move::Done(done) => done,
                Move::Waits(_) => {
                    return Err(AuditError::Other(format!(
                        "move {node} of the runs is not possible there"
                    )));
                }
            };
            if let Some(fault) = &done.fault
                && self.task.minds_faults()
            {
                let (state, fault) = (u64::from(node), fault.clone());
                return Err(AuditError::Fault { state, fault });
            }
            let visible = done.visible;
            self.known[node as usize] = self.know(process, choice, done);
            if visible {
                self.look(node)?;
            }
            path.push((node, mark));
            let first = self.tree.nodes[node as usize].first;
            if first != NONE {
                node = first;
                continue;
            }
            self.leaf(node)?;
            node = NONE;
            while let Some((left, mark)) = path.pop() {
                self.player.back_to(&mark);
                let next = self.tree.nodes[left as usize].next;
                if next != NONE {
                    node = next;
                    break;
                }
            }
        }
        Ok(())
    }

    fn look(&self, node: u32) -> Result<(), AuditError> {
        match self.task.question() {
            Some(q) if !q.only_final => self.is_not(node, &q.target),
            Some(_) | None => Ok(()),
        }
    }

    fn is_not(
        &self,
        node: u32,
        target: &wattle_model::Expr<wattle_model::instance::Fact>,
    ) -> Result<(), AuditError> {
        let state = u64::from(node);
        match self.player.machine.evaluate(target) {
            Ok(0) => Ok(()),
            Ok(_) => Err(AuditError::Bad { state }),
            Err(kind) => {
                let why = kind.to_string();
                Err(AuditError::NoValue { state, why })
            }
        }
    }

    /// The end of a run.
    fn leaf(&mut self, node: u32) -> Result<(), AuditError> {
        self.runs += 1;
        if self.runs.is_multiple_of(64) {
            self.control.poll("audit", Progress::default())?;
        }
        for p in 0..self.player.processes.len() as u32 {
            if let Move::Done(_) = self.player.play(p, 0)? {
                return Err(AuditError::NotClosed {
                    state: u64::from(node),
                    event: "a move after the end of a run".into(),
                });
            }
        }
        let machine = &self.player.machine;
        if machine.is_final() {
            return match self.task.question() {
                Some(q) if q.only_final => self.is_not(node, &q.target),
                Some(_) | None => Ok(()),
            };
        }
        if self.task.deadlock && !self.player.has_faulted() {
            let instance = self.task.instance;
            let registers = instance.thread_ids().map(|t| {
                let all = 0..instance.thread(t).registers.len();
                all.map(|r| machine.register(t, RegisterId::new(r)))
                    .collect()
            });
            let state = State::<()> {
                locations: machine.locations.clone(),
                registers: registers.collect(),
                memory: Vec::new(),
                buffers: Vec::new(),
                holder: None,
            };
            if !wattle_evidence::deadlock::is_discarded(instance, &state) {
                let state = u64::from(node);
                return Err(AuditError::Deadlock { state });
            }
        }
        Ok(())
    }

    fn independent(&self, a: &Known, b: &Known) -> bool {
        a.process != b.process && !self.conflict(a.uses, b.uses)
    }

    fn conflict(&self, a: u32, b: u32) -> bool {
        let (a, b) = (&self.uses[a as usize], &self.uses[b as usize]);
        a.iter().any(|a| b.iter().any(|b| a.matters(*b)))
    }

    /// 2, 3 and 4.
    fn close_all(&mut self) -> Result<(), AuditError> {
        let mut node = self.tree.nodes[0].first;
        let mut asleep: Vec<u32> = Vec::new();
        while node != NONE {
            let known = self.known[node as usize];
            let same = |z: &&u32| {
                let z = &self.known[**z as usize];
                z.process == known.process && z.choice == known.choice
            };
            if asleep.iter().any(|z| same(&z)) {
                return Err(AuditError::Other(format!(
                    "move {node} begins runs that were begun before"
                )));
            }
            self.push(node, known);
            let below = asleep.iter().copied();
            let below = below.filter(|z| self.independent(&self.known[*z as usize], &known));
            let below: Vec<u32> = below.collect();
            self.asleep.push(std::mem::replace(&mut asleep, below));
            let first = self.tree.nodes[node as usize].first;
            if first != NONE {
                node = first;
                continue;
            }
            self.close()?;
            node = NONE;
            while let Some(left) = self.path.pop() {
                self.run.pop();
                self.races.pop();
                asleep = self.asleep.pop().unwrap_or_default();
                let next = self.tree.nodes[left as usize].next;
                if next != NONE {
                    asleep.push(left);
                    node = next;
                    break;
                }
            }
        }
        Ok(())
    }

    /// How a move depends on an earlier one of the run.
    fn bond(&self, earlier: &Known, later: &Known) -> Bond {
        if earlier.process == later.process {
            return Bond::Firm;
        }
        let of = |k: &Known| self.player.processes[k.process as usize];
        let ((t, first_cell), (u, _)) = (of(earlier), of(later));
        let is_drain = first_cell.is_some();
        if t == u {
            if later.waited && is_drain {
                return Bond::Firm;
            }
            if let Some((serial, epoch)) = later.drained {
                let put = !is_drain && (earlier.stores.0..earlier.stores.1).contains(&serial);
                if put || earlier.drained.is_some_and(|(_, e)| e < epoch) {
                    return Bond::Firm;
                }
            }
        }
        match self.conflict(earlier.uses, later.uses) {
            true => Bond::Conflict,
            false => Bond::None,
        }
    }

    fn push(&mut self, node: u32, known: Known) {
        let i = self.run.len();
        while self.before.len() <= i + 1 {
            self.before.push(vec![0; self.words]);
        }
        let mut row = std::mem::take(&mut self.before[i]);
        let mut strict = vec![0; self.words];
        row.fill(0);
        let mut conflicts = Vec::new();
        let mut previous = None;
        for k in 0..i {
            let bond = self.bond(&self.run[k], &known);
            if bond == Bond::None {
                continue;
            }
            put(&mut row, k);
            for (s, b) in strict.iter_mut().zip(&self.before[k]) {
                *s |= b;
            }
            if self.run[k].process == known.process {
                previous = Some(k);
            }
            if bond == Bond::Conflict {
                conflicts.push(k);
            }
        }
        for (r, s) in row.iter_mut().zip(&strict) {
            *r |= s;
        }
        self.before[i] = row;
        let writes = |k: &usize, g: u32| {
            let uses = &self.uses[self.run[*k].uses as usize];
            uses.iter().any(|u| u.writes(g))
        };
        let old = |k: &usize| previous.is_some_and(|p| has(&self.before[p], *k));
        conflicts.retain(|k| {
            let shut = known.guard.is_some_and(|g| writes(k, g) && !old(k));
            shut || !has(&strict, *k)
        });
        self.races.push(conflicts);
        self.run.push(known);
        self.path.push(node);
    }

    /// The moves after `e` that do not happen after it.
    fn without(&self, e: usize) -> Vec<u64> {
        let mut rest = vec![0; self.words];
        for k in e + 1..self.run.len() {
            if !has(&self.before[k], e) {
                put(&mut rest, k);
            }
        }
        rest
    }

    /// A complete run: what its races ask for is there.
    fn close(&mut self) -> Result<(), AuditError> {
        self.closed += 1;
        if self.closed.is_multiple_of(64) {
            self.control.poll("audit", Progress::default())?;
        }
        for f in 0..self.run.len() {
            for r in 0..self.races[f].len() {
                let e = self.races[f][r];
                let (first, second) = (self.run[e], self.run[f]);
                let of = |k: &Known| self.player.processes[k.process as usize];
                let ((t, drain), (u, step)) = (of(&first), of(&second));
                let own = t == u && drain.is_some() && step.is_none();
                let mut v = self.without(e);
                if own || second.block || second.guard.is_some() {
                    self.ask(e, second.process, v)?;
                } else {
                    put(&mut v, f);
                    self.is_covered(e, v)?;
                }
            }
            let chosen = self.run[f];
            for choice in (0..chosen.ways).filter(|c| *c != chosen.choice) {
                let v = self.without(f);
                let other = Known {
                    process: chosen.process,
                    choice,
                    ..Known::default()
                };
                self.with(f, other, v)?;
            }
        }
        match self.player.waits {
            true => self.still_waiting(),
            false => Ok(()),
        }
    }

    /// 4, for who waits when the run has ended.
    fn still_waiting(&mut self) -> Result<(), AuditError> {
        let start = self.player.mark();
        for k in 0..self.run.len() {
            let known = self.run[k];
            self.player.play(known.process, known.choice)?;
        }
        let mut asks = Vec::new();
        for p in 0..self.player.processes.len() as u32 {
            let Move::Waits(Some(guard)) = self.player.play(p, 0)? else {
                continue;
            };
            let previous = self.run.iter().rposition(|k| k.process == p);
            for (e, known) in self.run.iter().enumerate() {
                let uses = &self.uses[known.uses as usize];
                let earlier = previous.is_some_and(|q| q == e || has(&self.before[q], e));
                if known.process != p && !earlier && uses.iter().any(|u| u.writes(guard)) {
                    asks.push((e, p));
                }
            }
        }
        self.player.back_to(&start);
        for (e, p) in asks {
            let v = self.without(e);
            self.ask(e, p, v)?;
        }
        Ok(())
    }

    /// If the process can move after the run without `e` and what is after it, runs with that are there.
    fn ask(&mut self, e: usize, process: u32, v: Vec<u64>) -> Result<(), AuditError> {
        let start = self.player.mark();
        for k in 0..self.run.len() {
            if k < e || has(&v, k) {
                let known = self.run[k];
                if let Move::Waits(_) = self.player.play(known.process, known.choice)? {
                    return Err(AuditError::Other(
                        "moves that were called independent are not".into(),
                    ));
                }
            }
        }
        let moved = self.player.play(process, 0)?;
        self.player.back_to(&start);
        match moved {
            Move::Waits(_) => Ok(()),
            Move::Done(done) => {
                let other = self.know(process, 0, done);
                self.with(e, other, v)
            }
        }
    }

    /// The sequence, with a move that is only thought of at its end, is covered.
    fn with(&mut self, e: usize, other: Known, mut v: Vec<u64>) -> Result<(), AuditError> {
        let n = self.run.len();
        let mut row = std::mem::take(&mut self.before[n]);
        row.fill(0);
        for k in bits(&v) {
            if self.bond(&self.run[k], &other) != Bond::None {
                put(&mut row, k);
                for (r, b) in row.iter_mut().zip(&self.before[k]) {
                    *r |= b;
                }
            }
        }
        self.before[n] = row;
        put(&mut v, n);
        self.run.push(other);
        let covered = self.is_covered(e, v);
        self.run.pop();
        covered
    }

    /// Whether the move may begin the sequence; which move of it it is, if it is one.
    fn may_begin(&self, z: &Known, v: &[u64]) -> Option<Option<usize>> {
        for k in bits(v) {
            let known = &self.run[k];
            if known.process == z.process {
                let first = known.choice == z.choice
                    && !self.before[k].iter().zip(v).any(|(a, b)| a & b != 0);
                return first.then_some(Some(k));
            }
            if self.conflict(z.uses, known.uses) {
                return None;
            }
        }
        Some(None)
    }

    fn is_covered(&self, e: usize, mut v: Vec<u64>) -> Result<(), AuditError> {
        let asleep = &self.asleep[e];
        let begins = |z: &u32| self.may_begin(&self.known[*z as usize], &v).is_some();
        if asleep.iter().any(begins) {
            return Ok(());
        }
        let above = if e == 0 { 0 } else { self.path[e - 1] };
        let mut branch = self.tree.nodes[above as usize].first;
        while v.iter().any(|w| *w != 0) {
            let mut taken = None;
            while branch != NONE && taken.is_none() {
                taken = self.may_begin(&self.known[branch as usize], &v);
                if taken.is_none() {
                    branch = self.tree.nodes[branch as usize].next;
                }
            }
            let Some(first) = taken else {
                return Err(AuditError::NotClosed {
                    state: u64::from(self.path[e]),
                    event: format!(
                        "move {} of run {} and one after it in the other order",
                        e + 1,
                        self.closed
                    ),
                });
            };
            if let Some(k) = first {
                v[k / 64] &= !(1 << (k % 64));
            }
            branch = self.tree.nodes[branch as usize].first;
        }
        Ok(())
    }
}
