//! Runs written down, for a certificate.

use super::Taken;

/// Runs as bytes: for each how many moves it has in common with the one before, how many it has more, and
/// these. A move is the number of its process, doubled, one more if a choice other than the first follows.
#[derive(Default)]
pub struct Record {
    pub bytes: Vec<u8>,
    pub runs: u64,
    pub(super) common: usize,
}

impl Record {
    fn number(&mut self, mut n: u64) {
        while n >= 0x80 {
            self.bytes.push(n as u8 | 0x80);
            n >>= 7;
        }
        self.bytes.push(n as u8);
    }

    pub(super) fn run(&mut self, taken: &[Taken]) {
        self.number(self.common as u64);
        self.number((taken.len() - self.common) as u64);
        for t in &taken[self.common..] {
            let (p, choice) = (u64::from(t.of.process), u64::from(t.of.choice));
            self.number(p * 2 + u64::from(choice > 0));
            if choice > 0 {
                self.number(choice);
            }
        }
        self.runs += 1;
        self.common = taken.len();
    }
}
