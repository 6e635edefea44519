//! A large level of a breadth-first search, on several workers.
//!
//! Some thousands of states are taken together, in three rounds with a meeting after each:
//!
//! 1. *expand*: the states are cut into parts; whoever is free takes the next part and makes its successors;
//! 2. *find*: the index of the store is cut into shares by hash; whoever is free takes the next share and looks up, in
//!    the order of their parents, all successors that belong there. Those it does not find it puts in, numbered for
//!    the time being by themselves;
//! 3. *number*: how many are new in each batch is known now, so every new state has its final number: the index is told,
//!    the state is written down with its parent, and looked at.
//!
//! Nobody writes what another one reads or writes in the same round, so there are no locks but the one that hands out
//! work. *The result is that of one worker:* equal states are of one share, which sees successors in the order in which
//! one worker would have offered them, so the same ones are new; they are numbered in that order; and all that is
//! decided afterwards (what ends the search, which states are owed) is decided by numbers.

use crate::batch::{Batch, Waiting};
use crate::expand::{Expand, Known};
use crate::explore::{Finished, Observer, Order, Search, ended, is_mark, owed, to_mark};
use crate::index::{Index, Slot, Stripe, prefetch, tag};
use crate::pairs::Pairs;
use crate::row::Row;
use crate::store::{Key, Room, Store, Stored, same};
use crate::tree::{Parents, Tree};
use std::mem::take;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use wattle_evidence::Control;
use wattle_memory::compiled::{Flaw, Found, Machine, Notes};

/// States that one worker takes at a time, at most.
const PART: usize = 1 << 10;
/// States expanded at once, at most.
const BATCH: usize = 1 << 8;
/// States for each worker between meetings, and how many times as many in a large search, which meetings would hold up more
/// than a moment's delay at its end.
const TOGETHER: usize = 1 << 13;
const LONGER: usize = 4;
const LARGE: usize = 1 << 20;
/// A level with fewer states left is not worth the meetings.
pub const WORTH_IT: usize = 1 << 12;
/// Words of successors for each worker between meetings, about: a few polls of a search, so that one that is going
/// to lose a race does not go on for long.
const WORDS: usize = 1 << 17;
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
    /// Only the first `busy` ones have anything in them; what others hold is used again.
    parts: Vec<Part>,
    busy: usize,
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
    slot: Slot,
}

/// What ended the search, if it did: the state and its batch.
type End = Option<(u32, usize, Option<Flaw>)>;

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
                busy: 0,
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

    fn agree(&mut self) {
        let all = std::iter::once(&mut self.first).chain(&mut self.others);
        E::agree(&mut all.collect::<Vec<_>>());
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
        self.agree();
        self.exchange.cut(searched, states, least);
        let waiting = AtomicUsize::new(0);
        let shares = self.exchange.shares.len();
        share_out(
            std::iter::once(&mut self.first).chain(&mut self.others),
            self.exchange.busy().iter_mut(),
            |expand, part| part.expand(*expand, searched, shares, &waiting, control),
        );
        self.agree();
        // What comes after a part that is not complete is for another time; not so what menus told, they are
        // remembered.
        let parts = self.exchange.busy();
        parts.iter().for_each(|p| notes.join(&p.notes));
        let whole = parts.iter().take_while(|p| p.done == p.count).count();
        self.exchange.busy = parts.len().min(whole + 1);
    }
}

impl Exchange {
    /// Cuts so many of the states to be expanded into parts.
    fn cut(&mut self, searched: &Searched<'_, '_>, states: usize, least: usize) {
        let shares = (4 * self.workers).next_power_of_two();
        let shares = shares.min(Index::MOST_SHARES);
        self.shares.resize_with(shares, Missing::default);
        let size = (states / (4 * self.workers)).clamp(least.min(BATCH), PART);
        let parts = states.div_ceil(size);
        self.busy = parts;
        self.parts
            .resize_with(parts.max(self.parts.len()), || Part {
                first: 0,
                count: 0,
                done: 0,
                used: 0,
                batches: Vec::new(),
                cut: None,
                notes: searched.machine.notes(),
            });
        for (i, part) in self.busy().iter_mut().enumerate() {
            part.first = (searched.expanded + i * size) as u32;
            part.count = size.min(states - i * size);
        }
    }

    fn busy(&mut self) -> &mut [Part] {
        &mut self.parts[..self.busy]
    }

    fn bytes(&self) -> u64 {
        let batches = self.parts.iter().flat_map(|p| &p.batches);
        let new: usize = self.shares.iter().map(|s| s.new.capacity()).sum();
        batches.map(Batch::bytes).sum::<u64>() + (new * size_of::<New>()) as u64
    }

    fn batches(&self) -> Vec<&Batch> {
        let batches = self.parts[..self.busy]
            .iter()
            .flat_map(|p| &p.batches[..p.used]);
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
        let mut unfolded = Vec::new();
        let enough = || waiting.load(Ordering::Relaxed) > MOST_WAITING || control.stop().is_some();
        while self.done < self.count && self.cut.is_none() && (self.used == 0 || !enough()) {
            let first = self.first + self.done as u32;
            let count = (self.count - self.done).min(to_mark(first as usize));
            let states = match search.tree {
                None => search.store.states(first, count),
                Some(tree) => {
                    tree.states(tree.row.some(first, count), &mut unfolded);
                    &unfolded
                }
            };
            let numbers: [u32; BATCH] = std::array::from_fn(|i| first + i as u32);
            if self.batches.len() == self.used {
                self.batches.push(Batch::new(search.machine.words));
            }
            let batch = &mut self.batches[self.used];
            self.used += 1;
            let expanded = expand.expand(
                search.machine,
                states,
                &numbers[..count],
                search.known.some(first, count),
                &mut self.notes,
                batch,
            );
            let done = match expanded {
                Ok(done) => done,
                Err((done, found)) => {
                    self.cut = Some(found);
                    done
                }
            };
            batch.expanded = done;
            self.done += done;
            match search.tree {
                // It is sorted when all its pairs are known.
                Some(tree) => {
                    let parents = Parents {
                        first,
                        states,
                        pairs: tree.row.some(first, count),
                    };
                    tree.look_up(batch, Some(parents));
                }
                None => batch.sort(shares),
            }
            waiting.fetch_add(batch.waiting(), Ordering::Relaxed);
        }
    }
}

/// What those who expand read.
struct Searched<'s, 'i> {
    machine: &'s Machine<'i>,
    store: &'s Store,
    /// If states are compressed, they are here.
    tree: Option<&'s Tree>,
    /// What is known about the states to be expanded, after so many that were.
    known: &'s Row<Known>,
    expanded: usize,
}

impl Missing {
    fn begin(&mut self, batches: usize) {
        self.new.clear();
        self.ends.clear();
        self.ends.reserve(batches);
    }

    /// Looks up what belongs to this share, and puts in what is not there under numbers from `first` on.
    fn find<const W: usize>(
        &mut self,
        share: usize,
        stripes: &mut [Stripe],
        stored: &Stored<'_>,
        batches: &[&Batch],
        first: u32,
    ) {
        self.begin(batches.len());
        // Neighbours are written by others: each of them keeps what it finds to itself until it is done.
        let (mut found, mut ends) = (take(&mut self.new), take(&mut self.ends));
        let stripe_of = |tag, stripes: &[Stripe]| Index::in_share(tag, stripes.len());
        let mut more = [0; Index::MOST_SHARES];
        for waiting in batches.iter().flat_map(|b| b.of_share(share)) {
            more[stripe_of(waiting.tag, stripes)] += 1;
        }
        for (stripe, more) in stripes.iter_mut().zip(more) {
            stripe.reserve(more);
        }
        for (number, batch) in (0..).zip(batches) {
            // Another one wrote the lists, a short one in each batch.
            if let Some(next) = batches.get(number as usize + 1) {
                let lines = next.of_share(share).chunks(64 / size_of::<Waiting>());
                lines.for_each(|line| prefetch(&line[0]));
            }
            let mine = batch.of_share(share);
            for Waiting { at, tag } in mine {
                stripes[stripe_of(*tag, stripes)].prefetch(*tag);
                prefetch(&batch.state(*at as usize)[0]);
            }
            for Waiting { tag, .. } in mine {
                let likely = stripes[stripe_of(*tag, stripes)].likely(*tag);
                if let Some(number) = likely.filter(|n| *n < first) {
                    prefetch(&stored.state(number)[0]);
                }
            }
            for Waiting { at, tag } in mine {
                let state = exactly::<W>(batch.state(*at as usize));
                let is_it = |number: u32| {
                    let other = match number.checked_sub(first) {
                        None => stored.state(number),
                        Some(new) => {
                            let new = &found[new as usize];
                            batches[new.batch as usize].state(new.at as usize)
                        }
                    };
                    same(exactly::<W>(other), state)
                };
                let stripe = stripe_of(*tag, stripes);
                if let Err(slot) = stripes[stripe].find(*tag, is_it) {
                    stripes[stripe].set(slot, first + found.len() as u32, *tag);
                    found.push(New {
                        batch: number,
                        at: *at,
                        slot,
                    });
                }
            }
            ends.push(found.len());
        }
        (self.new, self.ends) = (found, ends);
    }

    /// The same where states are compressed.
    fn find_pairs(&mut self, share: usize, sets: &mut [Pairs], batches: &[&Batch]) {
        self.begin(batches.len());
        let (mut found, mut ends) = (take(&mut self.new), take(&mut self.ends));
        for (number, batch) in (0..).zip(batches) {
            let count = sets.len();
            let mine = batch.of_share(share).iter();
            let mine = mine.map(|w| (w.at, Index::in_share(w.tag, count)));
            for (at, set) in mine.clone() {
                sets[set].prefetch(batch.pairs[at as usize]);
            }
            for (at, set) in mine {
                if sets[set].insert(batch.pairs[at as usize]) {
                    found.push(New {
                        batch: number,
                        at,
                        slot: Slot::default(),
                    });
                }
            }
            ends.push(found.len());
        }
        (self.new, self.ends) = (found, ends);
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
    known: Vec<&'s mut [Known]>,
    /// Where its states were put under numbers of the share.
    index: Option<&'s Index>,
    /// Where pairs go, if states are compressed.
    pairs: Vec<&'s mut [u64]>,
}

impl Numbered<'_> {
    /// Writes the new states down, and looks at them until one ends the search.
    fn write<L: Observer>(self, machine: &Machine<'_>, shares: &[Missing], look: &mut L) -> End {
        let batch = self.batch;
        let new = shares.iter().flat_map(|s| s.of_batch(self.number));
        if let Some(index) = self.index {
            for new in new.clone() {
                index.prefetch_slot(new.slot, tag(batch.keys[new.at as usize].hash));
            }
        }
        batch.set_new(new.clone().map(|new| new.at));
        let rows = batch.new.iter().map(|at| {
            let at = *at as usize;
            (batch.state(at), batch.keys[at].parent)
        });
        self.room.fill(rows);
        for (at, known) in batch.new.iter().zip(self.known.into_iter().flatten()) {
            *known = batch.known[*at as usize];
        }
        for (at, pair) in batch.new.iter().zip(self.pairs.into_iter().flatten()) {
            *pair = batch.pairs[*at as usize];
        }
        if let Some(index) = self.index {
            // Parents are written down: their place is free for the numbers.
            for (number, at) in (self.first..).zip(&batch.new) {
                batch.keys[*at as usize].parent = number;
            }
            for new in new {
                let Key { hash, parent } = batch.keys[new.at as usize];
                index.change(new.slot, parent, tag(hash));
            }
        }
        for (number, at) in (self.first..).zip(&batch.new) {
            let state = batch.state(*at as usize);
            if machine.inside_atomic(state).is_some() {
                continue;
            }
            match look.look(machine, state) {
                Ok(false) => {}
                Ok(true) => return Some((number, self.number, None)),
                Err(flaw) => return Some((number, self.number, Some(flaw))),
            }
        }
        None
    }
}

impl Search<'_, '_> {
    /// Expands many states of the level.
    pub(crate) fn take_together<E: Expand, L: Observer>(
        &mut self,
        crew: &mut Crew<E>,
        look: &mut L,
        control: &Control<'_>,
    ) -> Result<(), Finished> {
        let left = self.count.level_end - self.count.expanded;
        let workers = crew.exchange.workers;
        let each = self.count.successors as usize / self.count.expanded.max(1) + 1;
        let most = WORDS / (each * self.machine.words.max(1));
        let longer = if self.len() < LARGE { 1 } else { LONGER };
        let states = left.min(most.clamp(BATCH, TOGETHER) * longer * workers);
        let searched = Searched {
            machine: self.machine,
            store: &self.store,
            tree: self.tree.as_ref(),
            known: &self.queue,
            expanded: self.count.expanded,
        };
        let states = (states, self.worth_it);
        crew.expand(&searched, &mut self.notes, states, control);
        if let Some(tree) = &mut self.tree {
            let shares = crew.exchange.shares.len();
            let parts = crew.exchange.busy().iter_mut();
            let batches = parts.flat_map(|p| &mut p.batches[..p.used]);
            let mut batches: Vec<&mut Batch> = batches.collect();
            batches.iter_mut().for_each(|batch| tree.add_missing(batch));
            share_out(0..workers, batches.into_iter(), |_, batch| {
                batch.sort_by(shares, |batch, at| Tree::tag(batch.pairs[at]));
            });
        }
        self.store_all(&mut crew.exchange, look, control)
    }

    /// Moves what the workers made into the store.
    fn store_all<L: Observer>(
        &mut self,
        exchange: &mut Exchange,
        look: &mut L,
        control: &Control<'_>,
    ) -> Result<(), Finished> {
        let first = self.len() as u32;
        self.find_all(exchange, first);
        let end = self.number_all(exchange, first, look);
        if let Some(tree) = &mut self.tree {
            let batches = exchange.batches();
            batches.into_iter().for_each(|b| tree.number(b));
        }
        let batches = exchange.batches();
        self.owe_all(exchange.workers, &batches);
        // One looks up as often as one worker would have: where a batch ends at a mark. After the last one there is another
        // chance.
        let (mut count, mut states) = (self.count, first as usize);
        let mut marks = Vec::new();
        for batch in &batches {
            count.expanded += batch.expanded;
            count.successors += batch.waiting() as u64;
            states += batch.new.len();
            marks.push((count, states));
        }
        let looked = match end {
            Some((_, batch, _)) => batch,
            None => marks.len().saturating_sub(1),
        };
        self.count.successors = count.successors;
        let parts = &exchange.parts[..exchange.busy];
        self.take(parts.iter().map(|p| p.done).sum());
        let cut = parts.last().and_then(|p| p.cut);
        for (count, states) in &marks[..looked] {
            if is_mark(count.expanded) {
                self.poll_at(*count, *states, control)?;
            }
        }
        match (end, cut) {
            (Some((number, _, flaw)), _) => Err(self.end_with(number, flaw)),
            (None, Some(found)) => Err(ended(found, self.count.expanded as u32)),
            (None, None) => Ok(()),
        }
    }

    fn find_all(&mut self, exchange: &mut Exchange, first: u32) {
        let words = self.machine.words;
        let mut shares = std::mem::take(&mut exchange.shares);
        let all = exchange.batches();
        if let Some(tree) = &mut self.tree {
            let sets = tree.sets();
            let each = sets.len() / shares.len();
            share_out(
                0..exchange.workers,
                shares.iter_mut().zip(sets.chunks_mut(each)).enumerate(),
                |_, (share, (missing, sets))| missing.find_pairs(share, sets, &all),
            );
            exchange.shares = shares;
            return;
        }
        let (stripes, stored) = self.store.shared();
        let each = stripes.len() / shares.len();
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

    fn number_all<L: Observer>(
        &mut self,
        exchange: &mut Exchange,
        first: u32,
        look: &mut L,
    ) -> End {
        let Exchange {
            workers,
            parts,
            busy,
            shares,
        } = exchange;
        let batches = parts[..*busy]
            .iter_mut()
            .flat_map(|p| &mut p.batches[..p.used]);
        let batches: Vec<&mut Batch> = batches.collect();
        let of_batch = |b: usize| shares.iter().map(|s| s.of_batch(b).len()).sum();
        let new: Vec<usize> = (0..batches.len()).map(of_batch).collect();
        let known = self.queue.make_room(&new);
        let mut next = first;
        let (rooms, index, pairs) = match &mut self.tree {
            None => {
                let (rooms, index) = self.store.make_room(&new);
                (rooms, Some(index), Vec::new())
            }
            Some(tree) => {
                let nowhere = new.iter().map(|_| Room::nowhere());
                (nowhere.collect(), None, tree.row.make_room(&new))
            }
        };
        let mut pairs = pairs.into_iter();
        let numbered = batches.into_iter().zip(rooms).zip(known).zip(&new);
        let numbered = numbered.enumerate();
        let numbered = numbered.map(|(number, (((batch, room), known), new))| {
            let pairs = pairs.next().unwrap_or_default();
            let first = next;
            next += *new as u32;
            Numbered {
                number,
                batch,
                first,
                room,
                known,
                index,
                pairs,
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

    fn owe_all(&mut self, workers: usize, batches: &[&Batch]) {
        let chosen = batches.iter().map(|b| b.chosen.len()).sum::<usize>();
        self.count.left_out += chosen as u64;
        if chosen > 0 {
            let mut owing: Vec<Vec<u32>> = vec![Vec::new(); batches.len()];
            let (machine, later) = (self.machine, self.later());
            let each = batches.iter().zip(&mut owing);
            share_out(0..workers, each, |_, (batch, owing)| {
                *owing = owed(machine, later, batch);
            });
            owing.iter().for_each(|owed| self.owe(owed));
        }
    }
}
