//! Where a state is, by its hash: a table of 64-bit entries with linear probing, in stripes.
//!
//! An entry is a state's number and a tag, the upper half of its hash. The tag's first bits say which
//! stripe, the next ones which slot to begin at, so states that meet in a slot differ in the rest of it
//! and a probe rarely touches a state that is not the one. A stripe grows alone, in place, and from its entries alone:
//! slots are in the order of tags, so growing is one pass over the table and touches no state. Stripes share
//! nothing, so several workers can fill several at once. Slots are atomic, relaxed, for one reason: when all states of a
//! round are in, each worker changes the numbers of those it gives numbers to, wherever they are.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// As bits of the tag, how many stripes there are once there are many states.
const STRIPES: u32 = 6;
/// One stripe is enough up to here.
const FEW: usize = 1 << 13;
const FIRST_SLOTS: usize = 256;
/// Slots that are looked at mostly, after the first.
const USUAL: usize = 3;
/// As many slots as are near.
const NEAR_SLOTS: usize = 1 << 16;

pub struct Index {
    stripes: Vec<Stripe>,
    /// Of the tag, those that say which stripe.
    bits: u32,
}

/// The part of the index for some of the hashes.
pub struct Stripe {
    slots: Vec<AtomicU64>,
    used: usize,
    bits: u32,
}

/// Where to look, or where there was nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Slot(u32);

#[inline]
pub fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32
}

#[inline]
fn entry(number: u32, tag: u32) -> u64 {
    (u64::from(number) + 1) << 32 | u64::from(tag)
}

impl Stripe {
    fn new(slots: usize, bits: u32) -> Self {
        Stripe {
            slots: (0..slots).map(|_| AtomicU64::new(0)).collect(),
            used: 0,
            bits,
        }
    }

    /// The slot where the tag is looked for first.
    #[inline]
    fn home(&self, tag: u32) -> usize {
        let at = u64::from(tag << self.bits);
        ((at * self.slots.len() as u64) >> 32) as usize
    }

    /// Finds the number with this tag that is the one, or the slot to put it in.
    #[inline(always)]
    pub fn find(&self, tag: u32, mut is_it: impl FnMut(u32) -> bool) -> Result<u32, Slot> {
        let mut slot = self.home(tag);
        loop {
            let entry = self.slots[slot].load(Relaxed);
            if entry == 0 {
                return Err(Slot(slot as u32));
            }
            if entry as u32 == tag {
                let number = ((entry >> 32) - 1) as u32;
                if is_it(number) {
                    return Ok(number);
                }
            }
            slot += 1;
            if slot == self.slots.len() {
                slot = 0;
            }
        }
    }

    /// Puts a number into a slot that was found empty.
    #[inline]
    pub fn set(&mut self, slot: Slot, number: u32, tag: u32) {
        *self.slots[slot.0 as usize].get_mut() = entry(number, tag);
        self.used += 1;
    }

    #[inline]
    pub fn is_full(&self) -> bool {
        self.used * 10 >= self.slots.len() * 7
    }

    /// Makes room for so many more.
    pub fn reserve(&mut self, more: usize) {
        let mut size = self.slots.len();
        while (self.used + more) * 10 > size * 7 {
            size = if size < 1 << 14 {
                size * 2
            } else {
                size + size / 2
            };
        }
        if size != self.slots.len() {
            self.lengthen(size);
        }
    }

    /// Moves the entries to their new homes, in place and the last ones first. What an entry meets on its way from its new home
    /// on is where it will stay, unless that home is before the old slot or the way leads around the end: these
    /// few are put in when all others are.
    fn lengthen(&mut self, size: usize) {
        let old = self.slots.len();
        self.slots.reserve_exact(size - old);
        self.slots.resize_with(size, || AtomicU64::new(0));
        let mut late = Vec::new();
        for slot in (0..old).rev() {
            let entry = std::mem::take(self.slots[slot].get_mut());
            if entry == 0 {
                continue;
            }
            let home = self.home(entry as u32);
            let free = match home < slot {
                true => None,
                false => {
                    let mut slots = self.slots[home..].iter_mut().map(AtomicU64::get_mut);
                    slots.find(|e| **e == 0)
                }
            };
            match free {
                Some(free) => *free = entry,
                None => late.push(entry),
            }
        }
        self.used -= late.len();
        late.into_iter().for_each(|entry| self.place(entry));
    }

    /// Puts an entry known to be new into the first free slot.
    #[inline]
    fn place(&mut self, entry: u64) {
        let mut slot = self.home(entry as u32);
        while *self.slots[slot].get_mut() != 0 {
            slot += 1;
            if slot == self.slots.len() {
                slot = 0;
            }
        }
        *self.slots[slot].get_mut() = entry;
        self.used += 1;
    }

    /// Asks the processor to fetch the slot where the tag will be looked for.
    #[inline]
    pub fn prefetch(&self, tag: u32) {
        let home = self.home(tag);
        prefetch(&self.slots[home]);
        // It is seldom found much farther, but then in another line of the cache.
        prefetch(&self.slots[(home + USUAL).min(self.slots.len() - 1)]);
    }

    /// The number that is most likely the one with this tag.
    #[inline]
    pub fn likely(&self, tag: u32) -> Option<u32> {
        let entry = self.slots[self.home(tag)].load(Relaxed);
        (entry != 0 && entry as u32 == tag).then(|| ((entry >> 32) - 1) as u32)
    }
}

impl Index {
    pub fn new() -> Self {
        Index {
            stripes: vec![Stripe::new(FIRST_SLOTS, 0)],
            bits: 0,
        }
    }

    #[inline]
    fn number_of_stripe(&self, tag: u32) -> usize {
        (u64::from(tag) << self.bits >> 32) as usize
    }

    #[inline]
    pub fn stripe(&self, tag: u32) -> &Stripe {
        &self.stripes[self.number_of_stripe(tag)]
    }

    #[inline]
    pub fn stripe_mut(&mut self, tag: u32) -> &mut Stripe {
        let number = self.number_of_stripe(tag);
        &mut self.stripes[number]
    }

    /// Asks the processor to fetch a slot that was found for this tag.
    #[inline]
    pub fn prefetch_slot(&self, slot: Slot, tag: u32) {
        prefetch(&self.stripe(tag).slots[slot.0 as usize]);
    }

    /// Changes the number in a slot that was set for this tag.
    #[inline]
    pub fn change(&self, slot: Slot, number: u32, tag: u32) {
        self.stripe(tag).slots[slot.0 as usize].store(entry(number, tag), Relaxed);
    }

    /// Makes room in the stripe of this tag for one more.
    #[cold]
    #[inline(never)]
    pub fn grow(&mut self, tag: u32) {
        if self.bits == 0 && self.stripes[0].slots.len() >= FEW {
            self.split();
        } else {
            self.stripe_mut(tag).reserve(1);
        }
    }

    /// All stripes there will ever be.
    pub fn split(&mut self) -> &mut [Stripe] {
        if self.bits == 0 {
            let old = std::mem::take(&mut self.stripes);
            let slots = old.iter().map(|s| s.slots.len()).sum::<usize>();
            self.bits = STRIPES;
            let stripe = || Stripe::new((slots >> STRIPES).max(4) * 2, STRIPES);
            self.stripes = (0..1 << STRIPES).map(|_| stripe()).collect();
            let entries = old.iter().flat_map(|s| &s.slots).map(|e| e.load(Relaxed));
            for e in entries.filter(|e| *e != 0) {
                let stripe = self.stripe_mut(e as u32);
                stripe.reserve(1);
                stripe.place(e);
            }
        }
        &mut self.stripes
    }

    /// Which of so many equal shares of the stripes, a power of two, the tag is in.
    #[inline]
    pub fn share(tag: u32, shares: usize) -> usize {
        ((u64::from(tag) * shares as u64) >> 32) as usize
    }

    /// As many shares as there can be.
    pub const MOST_SHARES: usize = 1 << STRIPES;

    /// Which of the stripes of its share the tag is in.
    #[inline]
    pub fn in_share(tag: u32, stripes: usize) -> usize {
        (tag >> (32 - STRIPES)) as usize & (stripes - 1)
    }

    fn slots(&self) -> usize {
        self.stripes.iter().map(|s| s.slots.len()).sum()
    }

    pub fn bytes(&self) -> u64 {
        8 * self.slots() as u64
    }

    /// Bytes that growing will take, if it has to grow for so many entries.
    pub fn growth(&self, entries: usize) -> u64 {
        let slots = self.slots();
        // Not all stripes are full at once.
        match entries * 20 > slots * 13 {
            true => 4 * slots as u64,
            false => 0,
        }
    }

    /// The table is too large for the processor's nearer caches: slots had better be fetched early.
    #[inline]
    pub fn is_far(&self) -> bool {
        self.stripes.len() * self.stripes[0].slots.len() > NEAR_SLOTS
    }
}

#[inline]
pub fn prefetch<T>(p: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch is a hint; it reads nothing and the address comes from a reference.
        #[allow(unused_unsafe)]
        unsafe {
            _mm_prefetch(std::ptr::from_ref(p).cast::<i8>(), _MM_HINT_T0);
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = p;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries are found wherever they lie when a stripe grows: at the ends, in a crowd, around the end.
    #[test]
    fn what_was_there_is_there_when_it_has_grown() {
        for spread in [1, 1 << 9, 1 << 20, u32::MAX / 900] {
            let mut stripe = Stripe::new(16, 0);
            for number in 0..900u32 {
                let tag = u32::MAX.wrapping_sub(number.wrapping_mul(spread));
                stripe.reserve(1);
                let slot = stripe.find(tag, |n| n == number);
                stripe.set(slot.expect_err("it is new"), number, tag);
                assert_eq!(stripe.used as u32, number + 1);
                if number.is_multiple_of(61) || number > 890 {
                    for n in 0..=number {
                        let tag = u32::MAX.wrapping_sub(n.wrapping_mul(spread));
                        assert_eq!(stripe.find(tag, |other| other == n).ok(), Some(n));
                    }
                }
            }
        }
    }
}
