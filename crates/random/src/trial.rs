//! Many random programs, one after the other, until one of them shows something wrong.

use crate::{Shape, program, shrink};
use wattle_model::{Program, print};

/// A number from the environment, or the default.
pub fn setting(name: &str, default: u64) -> u64 {
    let given = std::env::var(name).ok().and_then(|v| v.parse().ok());
    given.unwrap_or(default)
}

/// Gives random programs to `complaint`, which says what is wrong with one, keeping a tally. The first
/// complaint ends the trial: the program is shrunk, printed as `.wtl`, and the test fails. Returns how
/// many programs were tried, and the tally. `WATTLE_SEED` tries other programs, `WATTLE_PROGRAMS`
/// another number of them.
pub fn trial<T: Default>(
    shape: &Shape,
    programs: u64,
    salt: u64,
    mut complaint: impl FnMut(&Program, u64, &mut T) -> Option<String>,
) -> (u64, T) {
    let seed = setting("WATTLE_SEED", 1);
    let programs = setting("WATTLE_PROGRAMS", programs);
    println!("seed {seed}, {programs} programs");
    let mut tally = T::default();
    for n in 0..programs {
        let candidate = program(seed.wrapping_mul(1_000_003) + salt + n, shape);
        if let Some(why) = complaint(&candidate, n, &mut tally) {
            let mut again = |p: &Program| complaint(p, n, &mut T::default());
            let small = shrink(&candidate, |p| again(p).is_some());
            let still = again(&small).unwrap_or_default();
            panic!("program {n}: {why}\n{still}\n{}", print::to_wtl(&small));
        }
    }
    (programs, tally)
}
