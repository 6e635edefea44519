//! Facts from above: zones at every control state, widened until they close and made smaller again.
//!
//! One zone for each way the conditions that a thread is about to test may come out: what was read of a
//! ticket is zero, or it is not, and what is known beside it differs. So a set of zones is as good as a
//! disjunction, where `search` has one element.
//!
//! It costs little where it works and not much where it does not, so it is tried first. The auditor
//! checks what comes of it like everything else.

use super::element::{Element, Frame};
use super::world::{Act, World};
use super::zone::{Numbered, OPEN, Zone, sides};
use crate::cegar::abstraction::Halt;
use crate::reduce::Shape;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wattle_evidence::{Control, Progress};
use wattle_logic::{Formula, Term, Var};

/// A zone grows freely so often; then from threshold to threshold.
const FREE: u32 = 3;
/// How often everything is made smaller again.
const DOWN: usize = 2;
/// Conditions told apart at one control state.
const MOST_CONDITIONS: usize = 6;
/// More control states and zones than this are too many.
const MOST_SPOTS: usize = 12_000;
const MOST_ZONES: usize = 20_000;
/// Polls after which it is given up.
const MOST_POLLS: u64 = 12_000;
/// Bounds looked at from one poll to the next.
const POLL: u64 = 1 << 17;

/// Which of the ways conditions come out.
type Key = Vec<u8>;

pub struct Spot {
    pub shape: Shape,
    pub frame: Frame,
    zones: BTreeMap<Key, Known>,
    conditions: Vec<Vec<Formula>>,
    acts: Vec<Made>,
    bad: Formula,
    opened: bool,
}

/// An act with what is needed to follow it.
struct Made {
    guard: Formula,
    /// What it uses beside the variables of its spot.
    more: Vec<Var>,
    domain: Vec<Formula>,
    /// Where it leads, and each variable's value there.
    to: Option<(usize, Vec<Term>)>,
}

#[derive(Clone)]
struct Known {
    /// Perhaps not closed.
    widened: Zone,
    zone: Zone,
    grown: u32,
    waits: bool,
}

impl Known {
    fn new(zone: Zone) -> Self {
        Known {
            widened: zone.clone(),
            zone,
            grown: 0,
            waits: false,
        }
    }
}

pub struct Zones<'w, 'i> {
    world: &'w World<'i>,
    pub spots: Vec<Spot>,
    numbers: FxHashMap<Shape, usize>,
    work: VecDeque<(usize, Key)>,
    zones: usize,
    /// Bytes of all zones.
    held: usize,
    done: u64,
    polls: u64,
}

impl<'w, 'i> Zones<'w, 'i> {
    pub fn new(world: &'w World<'i>) -> Self {
        Zones {
            world,
            spots: Vec::new(),
            numbers: FxHashMap::default(),
            work: VecDeque::new(),
            zones: 0,
            held: 0,
            done: 0,
            polls: 0,
        }
    }

    pub fn effort(&self) -> Progress {
        Progress {
            states: self.polls,
            memory: (8192 * self.spots.len() + self.held) as u64,
            ..Progress::default()
        }
    }

    /// Whether nothing bad is possible; not if there is too much to look at.
    pub fn run(&mut self, control: &Control<'_>) -> Result<bool, Halt> {
        let (shape, start) = self.world.initial();
        let first = self.number(&shape)?;
        let begin = self.begin(first, &start);
        for zone in &begin {
            self.put(first, zone)?;
        }
        while let Some((spot, key)) = self.work.pop_front() {
            let many = self.spots.len() > MOST_SPOTS || self.zones > MOST_ZONES;
            if many || self.polls > MOST_POLLS {
                return Ok(false);
            }
            let Some(known) = self.spots[spot].zones.get_mut(&key) else {
                continue;
            };
            known.waits = false;
            let zone = known.zone.clone();
            for (to, image) in self.after(spot, &zone, control)? {
                self.put(to, &image)?;
            }
        }
        for _ in 0..DOWN {
            let next = self.again(first, &begin, control)?;
            for (spot, zones) in self.spots.iter_mut().zip(next) {
                spot.zones = zones;
            }
        }
        if !self.is_closed(control)? {
            return Ok(false);
        }
        for spot in 0..self.spots.len() {
            self.merge(spot);
        }
        Ok(self.spots.iter().all(Spot::is_good))
    }

    fn number(&mut self, shape: &Shape) -> Result<usize, Halt> {
        if let Some(n) = self.numbers.get(shape) {
            return Ok(*n);
        }
        let n = self.spots.len();
        self.spots.push(Spot {
            shape: shape.clone(),
            frame: self.world.frame(shape),
            zones: BTreeMap::new(),
            conditions: Vec::new(),
            acts: Vec::new(),
            bad: self.world.target(shape)?.0,
            opened: false,
        });
        self.numbers.insert(shape.clone(), n);
        Ok(n)
    }

    /// What the types say of all variables of the spot, and the condition.
    fn begin(&self, spot: usize, start: &Formula) -> Vec<Zone> {
        let Spot { shape, frame, .. } = &self.spots[spot];
        let mut vars: BTreeSet<Var> = start.vars();
        frame.vars.iter().for_each(|v| {
            vars.remove(v);
        });
        let more: Vec<Var> = vars.iter().copied().collect();
        let numbered = Numbered {
            vars: &frame.vars,
            more: &more,
        };
        let terms: Vec<Term> = frame.vars.iter().map(|v| Term::from(*v)).collect();
        let mut zones = vec![Zone::any(frame.vars.len() + more.len())];
        let all: BTreeSet<Var> = frame.vars.iter().copied().collect();
        let domain = self.world.domain(shape, &all);
        for part in domain.iter().chain([start]) {
            let next = zones.into_iter().flat_map(|z| z.assume(&numbered, part));
            zones = next.collect();
        }
        let images = zones.iter().filter_map(|z| z.image(&numbered, &terms));
        images.collect()
    }

    fn open(&mut self, n: usize) -> Result<(), Halt> {
        if self.spots[n].opened {
            return Ok(());
        }
        self.spots[n].opened = true;
        let acts = self.world.acts(&self.spots[n].shape)?;
        let here: BTreeSet<Var> = self.spots[n].frame.vars.iter().copied().collect();
        let mut conditions: BTreeSet<Formula> = BTreeSet::new();
        for act in &acts {
            for atom in act.guard.atoms() {
                let atom = Formula::Atom(atom);
                if !atom.vars().is_subset(&here) {
                    continue;
                }
                // One of a condition and its negation.
                conditions.insert(atom.clone().min(atom.negated()));
            }
        }
        let conditions = conditions.iter().take(MOST_CONDITIONS);
        self.spots[n].conditions = conditions.map(sides).filter(|s| s.len() > 1).collect();
        let mut made = Vec::new();
        for act in acts {
            let act = self.made(n, act, &here)?;
            made.push(act);
        }
        self.spots[n].acts = made;
        Ok(())
    }

    fn made(&mut self, n: usize, act: Act, here: &BTreeSet<Var>) -> Result<Made, Halt> {
        let to = match &act.to {
            Some(shape) => {
                let to = self.number(shape)?;
                let value = |v: &Var| match act.updates.iter().find(|(x, _)| x == v) {
                    Some((_, e)) => e.clone(),
                    None => Term::from(*v),
                };
                let terms = self.spots[to].frame.vars.iter().map(value);
                Some((to, terms.collect::<Vec<Term>>()))
            }
            None => None,
        };
        let mut more = act.guard.vars();
        if let Some((_, terms)) = &to {
            terms.iter().for_each(|t| t.collect_vars(&mut more));
        }
        more.retain(|v| !here.contains(v));
        let domain = self.world.domain(&self.spots[n].shape, &more);
        Ok(Made {
            guard: act.guard,
            more: more.into_iter().collect(),
            domain,
            to,
        })
    }

    fn count(&mut self, work: u64, control: &Control<'_>) -> Result<(), Halt> {
        self.done += work;
        while self.polls < self.done / POLL {
            self.polls += 1;
            control.poll("facts", self.effort())?;
        }
        Ok(())
    }

    /// Where the spot's acts lead from the zone. Faults are looked for at the end.
    fn after(
        &mut self,
        spot: usize,
        zone: &Zone,
        control: &Control<'_>,
    ) -> Result<Vec<(usize, Zone)>, Halt> {
        self.open(spot)?;
        let mut all = Vec::new();
        let mut work = 0;
        let here = &self.spots[spot];
        for act in &here.acts {
            let Some((to, terms)) = &act.to else {
                continue;
            };
            for zone in here.possible(act, zone) {
                let numbered = Numbered {
                    vars: &here.frame.vars,
                    more: &act.more,
                };
                work += 24 * (zone.width * zone.width) as u64;
                all.extend(zone.image(&numbered, terms).map(|image| (*to, image)));
            }
            work += 4 * (zone.width * zone.width) as u64;
        }
        self.count(work, control)?;
        Ok(all)
    }

    /// The parts of the zone at the spot, by how conditions come out.
    fn parted(&mut self, spot: usize, zone: &Zone) -> Result<Vec<(Key, Zone)>, Halt> {
        self.open(spot)?;
        let here = &self.spots[spot];
        let numbered = here.numbered();
        let mut parts = vec![(Key::new(), zone.clone())];
        for sides in &here.conditions {
            let mut next = Vec::new();
            for (key, zone) in parts {
                for (n, side) in sides.iter().enumerate() {
                    for zone in zone.clone().assume(&numbered, side) {
                        let mut key = key.clone();
                        key.push(n as u8);
                        next.push((key, zone));
                    }
                }
            }
            parts = next;
        }
        Ok(parts)
    }

    fn put(&mut self, spot: usize, zone: &Zone) -> Result<(), Halt> {
        for (key, zone) in self.parted(spot, zone)? {
            let thresholds = &self.world.classes.thresholds;
            let zones = &mut self.spots[spot].zones;
            match zones.get_mut(&key) {
                None => {
                    self.held += 2 * size_of_val(&*zone.bounds) + 256;
                    zones.insert(key.clone(), Known::new(zone));
                    self.zones += 1;
                }
                Some(known) if known.widened.covers(&zone) => continue,
                Some(known) => {
                    known.grown += 1;
                    match known.grown <= FREE {
                        true => known.widened.join(&zone),
                        false => known.widened.widen(&zone, thresholds),
                    }
                    known.zone = known.widened.clone();
                    known.zone.close();
                }
            }
            if let Some(known) = zones.get_mut(&key)
                && !std::mem::replace(&mut known.waits, true)
            {
                self.work.push_back((spot, key));
            }
        }
        Ok(())
    }

    /// What is left of everything if it is made anew from what is known.
    fn again(
        &mut self,
        first: usize,
        begin: &[Zone],
        control: &Control<'_>,
    ) -> Result<Vec<BTreeMap<Key, Known>>, Halt> {
        let mut next: Vec<BTreeMap<Key, Known>> = vec![BTreeMap::new(); self.spots.len()];
        let mut put = |spot: usize, key: Key, zone: Zone| {
            if next.len() <= spot {
                next.resize_with(spot + 1, BTreeMap::new);
            }
            next[spot]
                .entry(key)
                .and_modify(|known| known.zone.join(&zone))
                .or_insert_with(|| Known::new(zone));
        };
        for zone in begin {
            for (key, zone) in self.parted(first, zone)? {
                put(first, key, zone);
            }
        }
        for spot in 0..self.spots.len() {
            let zones: Vec<Zone> = self.spots[spot].all().cloned().collect();
            for zone in zones {
                for (to, image) in self.after(spot, &zone, control)? {
                    for (key, zone) in self.parted(to, &image)? {
                        put(to, key, zone);
                    }
                }
            }
        }
        Ok(next)
    }

    /// Whether no act leads out of what is known.
    fn is_closed(&mut self, control: &Control<'_>) -> Result<bool, Halt> {
        for spot in 0..self.spots.len() {
            let zones: Vec<Zone> = self.spots[spot].all().cloned().collect();
            for zone in zones {
                for (to, image) in self.after(spot, &zone, control)? {
                    for (key, zone) in self.parted(to, &image)? {
                        let there = self.spots[to].zones.get(&key);
                        if !there.is_some_and(|known| known.zone.covers(&zone)) {
                            return Ok(false);
                        }
                    }
                }
            }
        }
        Ok(true)
    }

    /// Makes one zone of two that leave nothing out between them.
    fn merge(&mut self, spot: usize) {
        let here = &mut self.spots[spot];
        for c in 0..here.conditions.len() {
            let keys: Vec<Key> = here.zones.keys().cloned().collect();
            for key in keys {
                let Some(known) = here.zones.get(&key) else {
                    continue;
                };
                let sides = &here.conditions[c];
                let mut other = key.clone();
                other[c] += 1;
                while usize::from(other[c]) < sides.len() {
                    let mut both = here.zones[&key].zone.clone();
                    let Some(second) = here.zones.get(&other) else {
                        other[c] += 1;
                        continue;
                    };
                    both.join(&second.zone);
                    let numbered = here.numbered();
                    let part = |n: u8| both.clone().assume(&numbered, &sides[usize::from(n)]);
                    let fits = |n: u8, zone: &Zone| part(n).iter().all(|p| zone.covers(p));
                    let others = (0..sides.len() as u8).filter(|n| *n != key[c] && *n != other[c]);
                    let nothing = others.into_iter().all(|n| part(n).is_empty());
                    if !nothing || !fits(key[c], &known.zone) || !fits(other[c], &second.zone) {
                        other[c] += 1;
                        continue;
                    }
                    here.zones.remove(&other);
                    if let Some(known) = here.zones.get_mut(&key) {
                        known.zone = both;
                    }
                    break;
                }
            }
        }
    }
}

impl Spot {
    fn numbered(&self) -> Numbered<'_> {
        Numbered {
            vars: &self.frame.vars,
            more: &[],
        }
    }

    fn all(&self) -> impl Iterator<Item = &Zone> {
        self.zones.values().map(|known| &known.zone)
    }

    pub fn is_reached(&self) -> bool {
        !self.zones.is_empty()
    }

    /// The zone's points from which the act is possible.
    fn possible(&self, act: &Made, zone: &Zone) -> Vec<Zone> {
        let numbered = Numbered {
            vars: &self.frame.vars,
            more: &act.more,
        };
        let mut zones = vec![zone.with_more(act.more.len())];
        for part in act.domain.iter().chain([&act.guard]) {
            let next = zones.into_iter().flat_map(|z| z.assume(&numbered, part));
            zones = next.collect();
        }
        zones
    }

    /// Whether nothing bad is seen here, and no step is a fault.
    fn is_good(&self) -> bool {
        let numbered = self.numbered();
        self.all().all(|zone| {
            let faults = self.acts.iter().filter(|a| a.to.is_none());
            let bad_vars = self.bad.vars();
            let known = bad_vars.iter().all(|v| self.frame.vars.contains(v));
            let good = match self.bad == Formula::False {
                true => true,
                false => known && zone.clone().assume(&numbered, &self.bad).is_empty(),
            };
            good && faults
                .into_iter()
                .all(|a| self.possible(a, zone).is_empty())
        })
    }

    /// The facts of each zone.
    pub fn facts(&self) -> Vec<Vec<Formula>> {
        let facts = |zone: &Zone| {
            let bounds = zone.bounds.iter().map(|b| (*b < OPEN).then_some(*b));
            Element::of_bounds(bounds.collect()).facts(&self.frame)
        };
        self.all().map(facts).collect()
    }
}
