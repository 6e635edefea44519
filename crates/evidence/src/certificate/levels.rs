//! Any number of threads that climb levels, on each of which somebody stays behind.
//!
//! **Which states it stands for.** Take a state of an instance with n threads, two of them, and one of the levels
//! 0..n. Keep where the two are, all registers of the first and some of the second, what both have pending, the
//! scalars, the elements of the two threads and that of the level. Of a number that says which thread or which level
//! only its position remains: before, at, between or behind the two, before, at or behind the level, or outside of
//! 0..n. The auditor closes the set of what is left then, from the initial states, with everything the two do and anything others
//! might store.
//!
//! **What follows from it.** *Reached* and *passed* say of a thread, by its location and its own level, that it has
//! reached or passed a level m. In every state so looked at, the element m of an array names a thread if somebody has
//! reached m; and if somebody else than the one it names has, then that one has reached m and not passed it. So of two or more
//! who have reached m one at least has not passed it. Who has reached m + 1 has passed m. So at most
//! max(1, n − k) have passed k levels, and of n levels so many are left as are not looked at, or one.

use serde::{Deserialize, Serialize};
use wattle_memory::MemoryModel;
use wattle_model::{LocationId, RegionId, RegisterId};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Levels {
    pub model: MemoryModel,
    /// What is kept of each register of the family.
    pub registers: Vec<Holds>,
    /// Registers of the second thread that are kept.
    pub known: Vec<bool>,
    /// What each region is indexed by, and what is kept of its elements.
    pub regions: Vec<(Holds, Holds)>,
    /// The register that says on which level a thread is.
    pub level: RegisterId,
    /// The array that names who stays behind.
    pub behind: RegionId,
    /// The first and the last level are not looked at.
    pub skips: [bool; 2],
    pub reached: Vec<(LocationId, Against)>,
    pub passed: Vec<(LocationId, Against)>,
}

/// What is kept of a number. Of one that indexes a scalar nothing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Holds {
    /// All of it.
    Data,
    /// Its position beside the two threads.
    Thread,
    /// Which of the two it names: the first, the second, another one or none.
    Name,
    /// Its position beside the level.
    Level,
    /// Now the one, now the other: what was put into it, as that is kept. Of registers only.
    Mixed,
}

/// A thread's own level against another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Against {
    Below,
    At,
    Above,
}

impl Against {
    pub const ALL: [Against; 3] = [Against::Below, Against::At, Against::Above];
}
