//! A large level of a breadth-first search, on several workers.
//!
//! Some thousands of states are taken together, in four rounds with a meeting after each:
//!
//! 1. *expand*: the states are cut into parts; whoever is free takes the next part and makes its successors;
//! 2. *find*: the index of the store is cut into shares by hash; whoever is free takes the next share and looks up, in
//!    the order of their parents, all successors that belong there. Those it does not find it puts in, numbered for
//!    the time being by themselves;
//! 3. *number*: how many are new in each batch is known now, so every new state has its final number: it is written
//!    down with its parent, and looked at;
//! 4. *correct*: the shares get the final numbers.
//!
//! Nobody writes what another one reads or writes in the same round, so there are no locks but the one that hands out
//! work. *The result is that of one worker:* equal states are of one share, which sees successors in the order in which
//! one worker would have offered them, so the same ones are new; they are numbered in that order; and all that is
//! decided afterwards (what ends the search, which states are owed) is decided by numbers.

use crate::batch::Batch;
use crate::expand::{Expand, Known};
use crate::explore::{Ended, Look, Order, Search, ended, owed};
use crate::index::{Index, Slot, Stripe, prefetch, tag};
use crate::store::{Room, Store, Stored, same};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use wattle_evidence::Control;
use wattle_memory::compiled::{Flaw, Found, Machine, Notes};

/// States that one worker takes at a time, at most.
const PART: usize = 1 << 10;
/// States expanded at once.
const BATCH: usize = 1 << 8;
/// States for each worker between meetings.
const TOGETHER: usize = 1 << 14;
/// A level with fewer states left is not worth the meetings.
pub const WORTH_IT: usize = 1 << 12;
/// Successors that wait at the same time, about.
const MOST_WAITING: usize = 1 << 21;

/// Which of so many workers.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    pub number: usize,
    pub of: usize,
}

/// Those who expand: the first one always, the others where it is worth it.
pub struct Crew<E> {
    pub first: E,
    others: Vec<E>,
    exchange: Exchange,
}

/// What they make, on its way to the store.
struct Exchange {
    workers: usize,
    parts: Vec<Part>,
    shares: Vec<Missing>,
}

/// The successors of some states next to each other.
struct Part {
    first: u32,
    count: usize,
    /// So many of them are expanded, into so many batches.
    done: usize,
    used: usize,
    batches: Vec<Batch>,
    cut: Option<Found>,
    notes: Notes,
}

/// What a share of the index had not had, batch by batch.
#[derive(Default)]
struct Missing {
    new: Vec<New>,
    ends: Vec<usize>,
}

struct New {
    batch: u32,
    at: u32,
    stripe: u32,
    slot: Slot,
}

/// What ended the search, if it did: the state, its batch and its place there.
type End = Option<(u32, usize, u32, Option<Flaw>)>;

impl<E: Expand> Crew<E> {
    pub fn new(machine: &Machine<'_>, order: Order, workers: usize) -> Self {
        let workers = workers.clamp(1, Index::MOST_SHARES);
        Crew {
            first: E::new(
                machine,
                order,
                Share {
                    number: 0,
                    of: workers,
                },
            ),
            others: Vec::new(),
            exchange: Exchange {
                workers,
                parts: Vec::new(),
                shares: Vec::new(),
            },
        }
    }

    /// Whether there is anybody to meet.
    pub fn are_several(&self) -> bool {
        self.exchange.workers > 1
    }

    pub fn bytes(&self) -> u64 {
        self.first.bytes()
            + self.others.iter().map(Expand::bytes).sum::<u64>()
            + self.exchange.bytes()
    }

    /// Makes successors of some of the states.
    fn expand(
        &mut self,
        searched: &Searched<'_, '_>,
        notes: &mut Notes,
        (states, least): (usize, usize),
        control: &Control<'_>,
    ) {
        let of = self.exchange.workers;
        while self.others.len() + 1 < of {
            let number = self.others.len() + 1;
            let share = Share { number, of };
            let other = E::new(searched.machine, Order::BreadthFirst, share);
            self.others.push(other);
        }
        self.exchange.cut(searched, states, least);
        let waiting = AtomicUsize::new(0);
        let shares = self.exchange.shares.len();
        share_out(
            std::iter::once(&mut self.first).chain(&mut self.others),
            self.exchange.parts.iter_mut(),
            |expand, part| part.expand(*expand, searched, shares, &waiting, control),
        );
        // What comes after a part that is not complete is for another time; not so what menus told, they are
        // remembered.
        let parts = &mut self.exchange.parts;
        parts.iter().for_each(|p| notes.join(&p.notes));
        let whole = parts.iter().take_while(|p| p.done == p.count).count();
        parts.truncate(whole + 1);
    }
}

impl Exchange {
    /// Cuts so many of the states to be expanded into parts.
    fn cut(&mut self, searched: &Searched<'_, '_>, states: usize, least: usize) {
        let shares = (2 * self.workers).next_power_of_two();
        let shares = shares.min(Index::MOST_SHARES);
        self.shares.resize_with(shares, Missing::default);
        let size = (states / (4 * self.workers)).clamp(least.min(BATCH), PART);
        let parts = states.div_ceil(size);
        self.parts.truncate(parts);
        self.parts.resize_with(parts, || Part {
            first: 0,
            count: 0,
            done: 0,
            used: 0,
            batches: Vec::new(),
            cut: None,
            notes: searched.machine.notes(),
        });
        for (i, part) in self.parts.iter_mut().enumerate() {
            part.first = (searched.expanded + i * size) as u32;
            part.count = size.min(states - i * size);
        }
    }

    fn bytes(&self) -> u64 {
        let batches = self.parts.iter().flat_map(|p| &p.batches);
        let new: usize = self.shares.iter().map(|s| s.new.capacity()).sum();
        batches.map(Batch::bytes).sum::<u64>() + (new * size_of::<New>()) as u64
    }

    fn batches(&self) -> Vec<&Batch> {
        let batches = self.parts.iter().flat_map(|p| &p.batches[..p.used]);
        batches.collect()
    }
}

/// Does each piece of work once, on all workers; a thread that cannot be had leaves its work to the others.
fn share_out<W: Send, T: Send>(
    workers: impl Iterator<Item = W>,
    work: impl Iterator<Item = T> + Send,
    job: impl Fn(&mut W, T) + Sync,
) {
    let work = Mutex::new(work);
    let next = || work.lock().unwrap_or_else(PoisonError::into_inner).next();
    let all = |mut worker: W| {
        while let Some(piece) = next() {
            job(&mut worker, piece);
        }
    };
    let all = &all;
    std::thread::scope(|scope| {
        let mut workers = workers;
        let first = workers.next();
        for worker in workers {
            let _ = std::thread::Builder::new().spawn_scoped(scope, move || all(worker));
        }
        first.map(all);
    });
}

impl Part {
    /// Makes the successors of all states, or of the first ones if there are too many.
    fn expand<E: Expand>(
        &mut self,
        expand: &mut E,
        search: &Searched<'_, '_>,
        shares: usize,
        waiting: &AtomicUsize,
        control: &Control<'_>,
    ) {
        (self.done, self.used, self.cut) = (0, 0, None);
        let enough = || waiting.load(Ordering::Relaxed) > MOST_WAITING || control.stop().is_some();
        while self.done < self.count && self.cut.is_none() && (self.used == 0 || !enough()) {
            let first = self.first + self.done as u32;
            let count = (self.count - self.done).min(BATCH);
            let count = count.min(search.store.together(first));
            let numbers: [u32; BATCH] = std::array::from_fn(|i| first + i as u32);
            if self.batches.len() == self.used {
                self.batches.push(Batch::new(search.machine.words));
            }
            let batch = &mut self.batches[self.used];
            self.used += 1;
            batch.clear();
            let from = first as usize - search.expanded;
            let expanded = expand.expand(
                search.machine,
                search.store.states(first, count),
                &numbers[..count],
                &search.known[from..from + count],
                &mut self.notes,
                batch,
            );
            match expanded {
                Ok(done) => self.done += done,
                Err((done, found)) => {
                    self.done += done;
                    self.cut = Some(found);
                }
            }
            batch.sort(shares);
            waiting.fetch_add(batch.waiting(), Ordering::Relaxed);
        }
    }
}

/// What those who expand read.
struct Searched<'s, 'i> {
    machine: &'s Machine<'i>,
    store: &'s Store,
    /// What is known about the states to be expanded, after so many that were.
    known: &'s [Known],
    expanded: usize,
}

impl Missing {
    /// Looks up what belongs to this share, and puts in what is not there under numbers from `first` on.
    fn find<const W: usize>(
        &mut self,
        share: usize,
        stripes: &mut [Stripe],
        stored: &Stored<'_>,
        batches: &[&Batch],
        first: u32,
    ) {
        self.new.clear();
        self.ends.clear();
        let stripe_of = |tag, stripes: &[Stripe]| Index::in_share(tag, stripes.len());
        let mut more = [0; Index::MOST_SHARES];
        for batch in batches {
            for at in batch.of_share(share) {
                more[stripe_of(tag(batch.keys[*at as usize].hash), stripes)] += 1;
            }
        }
        for (stripe, more) in stripes.iter_mut().zip(more) {
            stripe.reserve(more);
        }
        for (number, batch) in (0..).zip(batches) {
            let mine = batch.of_share(share);
            let tags = mine.iter().map(|at| tag(batch.keys[*at as usize].hash));
            for tag in tags.clone() {
                stripes[stripe_of(tag, stripes)].prefetch(tag);
            }
            for tag in tags.clone() {
                let likely = stripes[stripe_of(tag, stripes)].likely(tag);
                if let Some(number) = likely.filter(|n| *n < first) {
                    prefetch(&stored.state(number)[0]);
                }
            }
            for (at, tag) in mine.iter().zip(tags) {
                let state = exactly::<W>(batch.state(*at as usize));
                let is_it = |number: u32| {
                    let other = match number.checked_sub(first) {
                        None => stored.state(number),
                        Some(new) => {
                            let new = &self.new[new as usize];
                            batches[new.batch as usize].state(new.at as usize)
                        }
                    };
                    same(exactly::<W>(other), state)
                };
                let stripe = stripe_of(tag, stripes);
                if let Err(slot) = stripes[stripe].find(tag, is_it) {
                    stripes[stripe].set(slot, first + self.new.len() as u32, tag);
                    self.new.push(New {
                        batch: number,
                        at: *at,
                        stripe: stripe as u32,
                        slot,
                    });
                }
            }
            self.ends.push(self.new.len());
        }
    }

    /// What was new of one batch.
    fn of_batch(&self, batch: usize) -> &[New] {
        let from = if batch == 0 { 0 } else { self.ends[batch - 1] };
        &self.new[from..self.ends[batch]]
    }
}

/// The same, of a length that the compiler knows unless it is 0.
#[inline(always)]
fn exactly<const W: usize>(state: &[u64]) -> &[u64] {
    match state.first_chunk::<W>() {
        Some(state) if W > 0 => state,
        _ => state,
    }
}

/// A batch whose new states are to be numbered.
struct Numbered<'s> {
    number: usize,
    batch: &'s mut Batch,
    first: u32,
    room: Room<'s>,
    known: &'s mut [Known],
}

impl Numbered<'_> {
    /// Writes the new states down, and looks at them until one ends the search.
    fn write<L: Look>(self, machine: &Machine<'_>, shares: &[Missing], look: &mut L) -> End {
        let batch = self.batch;
        batch.new.clear();
        for share in shares {
            let new = share.of_batch(self.number);
            batch.new.extend(new.iter().map(|new| new.at));
        }
        // Some sorted rows, one after the other.
        batch.new.sort();
        let rows = batch.new.iter().map(|at| {
            let at = *at as usize;
            (batch.state(at), batch.keys[at].parent)
        });
        self.room.fill(rows);
        for ((number, at), known) in (self.first..).zip(&batch.new).zip(self.known) {
            *known = batch.known[*at as usize];
            batch.keys[*at as usize].parent = number;
        }
        for (number, at) in (self.first..).zip(&batch.new) {
            let state = batch.state(*at as usize);
            if machine.inside_atomic(state).is_some() {
                continue;
            }
            match look.look(machine, state) {
                Ok(false) => {}
                Ok(true) => return Some((number, self.number, *at, None)),
                Err(flaw) => return Some((number, self.number, *at, Some(flaw))),
            }
        }
        None
    }
}

impl Search<'_, '_> {
    /// Expands many states of the level.
    pub(crate) fn take_together<E: Expand, L: Look>(
        &mut self,
        crew: &mut Crew<E>,
        look: &mut L,
        control: &Control<'_>,
    ) -> Result<(), Ended> {
        let left = self.count.level_end - self.count.expanded;
        let states = left.min(TOGETHER * crew.exchange.workers);
        let searched = Searched {
            machine: self.machine,
            store: &self.store,
            known: &self.queue[self.taken..],
            expanded: self.count.expanded,
        };
        let states = (states, self.worth_it);
        crew.expand(&searched, &mut self.notes, states, control);
        self.store_all(&mut crew.exchange, look, control)
    }

    /// Moves what the workers made into the store.
    fn store_all<L: Look>(
        &mut self,
        exchange: &mut Exchange,
        look: &mut L,
        control: &Control<'_>,
    ) -> Result<(), Ended> {
        let first = self.store.len() as u32;
        self.find_all(exchange, first);
        let end = self.number_all(exchange, first, look);
        self.correct_all(exchange);
        let batches = exchange.batches();
        self.owe_all(exchange.workers, &batches);
        let offered = |batches: &[&Batch]| batches.iter().map(|b| b.waiting() as u64).sum::<u64>();
        let end = end.map(|(number, batch, at, flaw)| {
            let before = self.count.successors + offered(&batches[..batch]);
            (number, before + u64::from(at), flaw)
        });
        self.count.successors += offered(&batches);
        let parts = &exchange.parts;
        self.take(parts.iter().map(|p| p.done).sum());
        let cut = parts.last().and_then(|p| p.cut);
        match (end, cut) {
            (Some((number, at, flaw)), _) => Err(self.end_with(number, at, flaw, control)),
            (None, Some(found)) => Err(ended(found, self.count.expanded as u32)),
            (None, None) => Ok(()),
        }
    }

    fn find_all(&mut self, exchange: &mut Exchange, first: u32) {
        let words = self.machine.words;
        let (stripes, stored) = self.store.shared();
        let each = stripes.len() / exchange.shares.len();
        let mut shares = std::mem::take(&mut exchange.shares);
        let all = exchange.batches();
        share_out(
            0..exchange.workers,
            shares.iter_mut().zip(stripes.chunks_mut(each)).enumerate(),
            |_, (share, (missing, stripes))| match words {
                1 => missing.find::<1>(share, stripes, &stored, &all, first),
                2 => missing.find::<2>(share, stripes, &stored, &all, first),
                3 => missing.find::<3>(share, stripes, &stored, &all, first),
                4 => missing.find::<4>(share, stripes, &stored, &all, first),
                _ => missing.find::<0>(share, stripes, &stored, &all, first),
            },
        );
        exchange.shares = shares;
    }

    fn number_all<L: Look>(&mut self, exchange: &mut Exchange, first: u32, look: &mut L) -> End {
        let Exchange {
            workers,
            parts,
            shares,
        } = exchange;
        let batches = parts.iter_mut().flat_map(|p| &mut p.batches[..p.used]);
        let batches: Vec<&mut Batch> = batches.collect();
        let of_batch = |b: usize| shares.iter().map(|s| s.of_batch(b).len()).sum();
        let new: Vec<usize> = (0..batches.len()).map(of_batch).collect();
        let queued = self.queue.len();
        let total: usize = new.iter().sum();
        self.queue.resize(queued + total, Known::NOTHING);
        let mut known = &mut self.queue[queued..];
        let mut next = first;
        let rooms = self.store.make_room(&new).into_iter();
        let numbered = batches.into_iter().zip(rooms).zip(&new).enumerate();
        let numbered = numbered.map(|(number, ((batch, room), new))| {
            let (mine, rest) = std::mem::take(&mut known).split_at_mut(*new);
            known = rest;
            let first = next;
            next += *new as u32;
            Numbered {
                number,
                batch,
                first,
                room,
                known: mine,
            }
        });
        let mut looks: Vec<(L, End)> = (0..*workers).map(|_| (look.fork(), None)).collect();
        let machine = self.machine;
        share_out(looks.iter_mut(), numbered, |(look, end), n| {
            let here = n.write(machine, shares, look);
            *end = end.iter().chain(&here).min_by_key(|e| e.0).copied();
        });
        let mut first_end: End = None;
        for (other, end) in looks {
            look.join(other);
            first_end = first_end.iter().chain(&end).min_by_key(|e| e.0).copied();
        }
        first_end
    }

    fn correct_all(&mut self, exchange: &Exchange) {
        let batches = exchange.batches();
        let (stripes, _) = self.store.shared();
        let each = stripes.len() / exchange.shares.len();
        share_out(
            0..exchange.workers,
            exchange.shares.iter().zip(stripes.chunks_mut(each)),
            |_, (missing, stripes)| {
                for new in &missing.new {
                    let key = &batches[new.batch as usize].keys[new.at as usize];
                    stripes[new.stripe as usize].set(new.slot, key.parent, tag(key.hash));
                }
            },
        );
    }

    fn owe_all(&mut self, workers: usize, batches: &[&Batch]) {
        let chosen = batches.iter().map(|b| b.chosen.len()).sum::<usize>();
        self.count.left_out += chosen as u64;
        if chosen > 0 {
            let mut owing: Vec<Vec<u32>> = vec![Vec::new(); batches.len()];
            let (machine, store) = (self.machine, &self.store);
            let each = batches.iter().zip(&mut owing);
            share_out(0..workers, each, |_, (batch, owing)| {
                *owing = owed(machine, store, batch, true);
            });
            self.owed.extend(owing.iter().flatten());
        }
    }
}
