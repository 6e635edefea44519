//! Which parts of the language a program may use.

use super::Profile;
use crate::rng::Rng;

#[derive(Clone, Debug)]
pub(super) struct Taste {
    pub profile: Profile,
    /// Values outside ranges, indices outside arrays, divisions by zero.
    pub faults: bool,
    pub asserts: bool,
    pub assumes: bool,
    pub loops: bool,
    /// Loops that store without a fence: buffers without a bound.
    pub unfenced: bool,
    pub branches: bool,
    pub jumps: bool,
    pub atomics: bool,
    pub exchanges: bool,
    pub locks: bool,
    pub fences: bool,
    pub choices: bool,
    pub arrays: bool,
    pub per_thread: bool,
    pub addresses: bool,
    /// Cells and registers that name threads.
    pub names: bool,
    pub own_number: bool,
    pub counts: bool,
    pub scans: bool,
    /// Arithmetic beyond copies, constants and comparisons.
    pub arithmetic: bool,
    pub bits: bool,
    pub division: bool,
    pub casts: bool,
    pub wraps: bool,
    pub integers: bool,
    /// Shared names inside expressions.
    pub reads: bool,
    pub starts: bool,
    pub constants: bool,
    pub hints: bool,
    pub several: bool,
}

impl Taste {
    pub fn draw(rng: &mut Rng, profile: Profile) -> Taste {
        let open = profile == Profile::Families;
        let integers = profile == Profile::Integers;
        // Every third program has nothing but the core, with one thing more now and then.
        let rare = if rng.one_in(3) { 12 } else { 3 };
        let mut sometimes = |n: usize| rng.one_in(n);
        Taste {
            profile,
            faults: sometimes(6),
            asserts: sometimes(3),
            assumes: sometimes(rare),
            loops: sometimes(rare),
            unfenced: sometimes(4),
            branches: !sometimes(3),
            jumps: sometimes(rare + 2),
            atomics: sometimes(rare),
            exchanges: sometimes(rare),
            locks: sometimes(rare + 1),
            fences: sometimes(rare),
            choices: sometimes(rare),
            arrays: sometimes(rare),
            per_thread: sometimes(if open { 3 } else { rare }),
            addresses: sometimes(if open { 12 } else { rare + 3 }),
            names: sometimes(if open { 3 } else { rare + 2 }),
            own_number: sometimes(rare),
            counts: sometimes(if open { 3 } else { rare + 2 }),
            scans: sometimes(if open { rare + 1 } else { rare + 4 }),
            arithmetic: sometimes(if integers { 2 } else { rare }),
            bits: sometimes(rare + 2),
            division: sometimes(rare + 2),
            casts: sometimes(rare + 1),
            wraps: sometimes(if integers { rare + 1 } else { rare }),
            integers: integers || sometimes(if open { 2 } else { rare + 1 }),
            reads: sometimes(rare),
            starts: sometimes(rare),
            constants: sometimes(rare + 2),
            hints: sometimes(rare + 3),
            several: sometimes(3),
        }
    }
}
