//! A name for a model that two readings of the same program share: evidence kept in a file says
//! which program it is about, so that a wrong file is told before it confuses anyone.

use wattle_model::array::ArraySystem;
use wattle_model::{Instance, Span};

/// 128 bits of FNV-1a over the instance without its places in the text, in hexadecimal.
pub fn fingerprint(instance: &Instance) -> String {
    let mut bare = instance.clone();
    for thread in &mut bare.threads {
        thread
            .locations
            .iter_mut()
            .for_each(|l| l.span = Span::NONE);
        thread.steps.iter_mut().for_each(|s| s.span = Span::NONE);
        thread
            .registers
            .iter_mut()
            .for_each(|r| r.span = Span::NONE);
    }
    bare.questions.iter_mut().for_each(|q| q.span = Span::NONE);
    hash(format_args!("{bare:?}"))
}

/// The same for an array-based system, over its text.
pub fn fingerprint_of_system(system: &ArraySystem) -> String {
    hash(format_args!("{system}"))
}

fn hash(what: std::fmt::Arguments<'_>) -> String {
    let mut hash = Fnv(OFFSET);
    // Writing into the hash cannot fail.
    let _ = std::fmt::write(&mut hash, what);
    format!("{:032x}", hash.0)
}

const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

struct Fnv(u128);

impl std::fmt::Write for Fnv {
    fn write_str(&mut self, s: &str) -> std::fmt::Result {
        for byte in s.bytes() {
            self.0 = (self.0 ^ u128::from(byte)).wrapping_mul(PRIME);
        }
        Ok(())
    }
}
