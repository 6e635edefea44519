//! Variables of which each thread has its own (`_Thread_local`, `thread_local!`).
//!
//! They are at fixed distances below the address in `fs:[0]`, the *thread pointer*. For us they are words of
//! the thread's stack, far above everything that is pushed: nobody else sees them unless their address
//! escapes, which is refused as it is for variables on the stack.

use crate::bits::{Base, E};
use crate::world::{self, World};
use std::collections::BTreeMap;

/// Where the thread pointer points, seen from where the stack begins.
pub const POINTER: i64 = 1 << 40;
/// Where `errno` is, which is the system's.
pub const ERRNO: i64 = POINTER + 4096;
/// Threads with more variables are refused.
pub const MAX_BYTES: u64 = 4096;

/// The file's variables of threads.
#[derive(Clone, Debug, Default)]
pub struct Thread {
    pub start: u64,
    end: u64,
    align: u64,
    pub size: u64,
    /// The address, among those of the file, that the thread pointer stands for.
    pointer: u64,
    /// Where code speaks of them, and of which; not known in an executable.
    pub spoken: BTreeMap<u64, u64>,
    /// Where code speaks of variables that are defined elsewhere.
    pub elsewhere: BTreeMap<u64, String>,
}

impl Thread {
    /// A section of them.
    pub fn add(&mut self, address: u64, size: u64, align: u64) {
        self.start = match self.size {
            0 => address,
            _ => self.start.min(address),
        };
        self.end = self.end.max(address.saturating_add(size));
        self.align = self.align.max(align).clamp(1, 4096);
        self.size = self.size.saturating_add(size);
    }

    /// Says where the thread pointer is, once all are known: in an executable where the linker has it.
    pub fn settle(&mut self, relocatable: bool) {
        let align = self.align.next_power_of_two();
        let size = self.end - self.start;
        self.pointer = match relocatable {
            true => self.end.saturating_add(4096) & !4095,
            false => {
                let size = size.saturating_add(align - 1) & !(align - 1);
                self.start.saturating_add(size)
            }
        };
    }

    /// From the thread pointer to a variable.
    pub fn distance(&self, address: u64) -> u64 {
        address.wrapping_sub(self.pointer)
    }

    /// A variable as the thread's own memory.
    pub fn at(&self, address: u64) -> E {
        E::Address(
            Base::Stack,
            POINTER.wrapping_add(self.distance(address) as i64),
        )
    }
}

/// What each word of a thread's variables holds at first.
pub fn words(world: &mut World) -> Vec<(E, E)> {
    let mut all = vec![(E::Address(Base::Stack, ERRNO), E::constant(0, 64))];
    let thread = &world.image.thread;
    if thread.size == 0 || thread.size > MAX_BYTES || thread.end - thread.start > 1 << 16 {
        return all;
    }
    let named = spoken(world);
    let first = (thread.distance(thread.start) as i64) & !7;
    let last = thread.distance(thread.end) as i64;
    for distance in (first..last).step_by(8) {
        let address = (world.image.thread.pointer).wrapping_add(distance as u64);
        let is_in = |(from, to): &(u64, u64)| *from < address + 8 && address < *to;
        if named.as_ref().is_some_and(|all| !all.iter().any(is_in)) {
            continue;
        }
        let place = world.image.thread.at(address);
        let pointer = world.image.pointers.get(&address).copied();
        let value = match pointer.map(|to| world::resolve(world, to)) {
            Some(Ok(value)) => value,
            Some(Err(_)) => E::Unknown(64),
            None => {
                let byte = |k: u64| {
                    let at = address.wrapping_add(k);
                    let mut sections = world.image.sections.iter().filter(|s| s.thread);
                    let s = sections.find(|s| s.address <= at && at < s.address + s.size)?;
                    s.bytes.get((at - s.address) as usize).copied()
                };
                let number = (0..8)
                    .rev()
                    .fold(0, |v, k| v << 8 | u64::from(byte(k).unwrap_or(0)));
                E::constant(number, 64)
            }
        };
        all.push((place, value));
    }
    all
}

/// Where the variables are that the code seen so far speaks of, if that is known.
fn spoken(world: &World) -> Option<Vec<(u64, u64)>> {
    if !world.image.relocatable {
        return None;
    }
    let said = world
        .instructions()
        .flat_map(|bytes| world.image.thread.spoken.range(bytes));
    said.map(|(_, address)| {
        let symbol = world.image.symbol_at(*address)?;
        Some((
            symbol.address,
            symbol.address.saturating_add(symbol.size.max(1)),
        ))
    })
    .collect()
}
