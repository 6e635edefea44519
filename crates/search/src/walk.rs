//! Random runs, to learn which values occur.

use wattle_memory::Start;
use wattle_memory::compiled::{Machine, Range, Ranges, Sink};

const WALKS: u64 = 24;
const STEPS: usize = 600;

/// Picks one of the successors, each with the same chance.
struct Pick {
    state: Vec<u64>,
    seen: u64,
    random: u64,
}

impl Sink for Pick {
    fn next(&mut self, state: &[u64]) {
        self.seen += 1;
        // The same walks every time: xorshift from a fixed seed.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        if self.random.is_multiple_of(self.seen) {
            self.state.copy_from_slice(state);
        }
    }
}

/// The ranges of what some random runs of an unreduced machine pass.
pub fn learn(machine: &Machine<'_>, start: &Start) -> Ranges {
    let single = |values: &[i64]| values.iter().map(|v| Range::single(*v)).collect();
    let mut ranges = Ranges {
        cells: single(&start.memory),
        registers: start.registers.iter().map(|r| single(r)).collect(),
    };
    let mut scratch = vec![0; machine.words];
    let mut current = vec![0; machine.words];
    let mut notes = machine.notes();
    let mut pick = Pick {
        state: vec![0; machine.words],
        seen: 0,
        random: 0x2545_f491_4f6c_dd1d,
    };
    for _ in 0..WALKS {
        if machine.pack_start(start, &mut current).is_err() {
            return ranges;
        }
        for _ in 0..STEPS {
            pick.seen = 0;
            let cut = machine.expand(&current, &mut scratch, &mut notes, &mut pick);
            if cut.is_err() || pick.seen == 0 {
                break;
            }
            current.copy_from_slice(&pick.state);
            machine.learn(&current, &mut ranges);
        }
    }
    ranges
}
