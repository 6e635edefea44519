//! A closed set of states, packed.
//!
//! A row of numbers (see [`super::encoding`]) is written as: how many numbers it shares with the
//! row before it, how many follow, and those, each a variable-length integer (seven bits a byte,
//! least first; signs folded into the lowest bit). Sorted rows share long prefixes, so a state costs
//! a few bytes.
//!
//! What is taken at once ([`Shortened`]) is claimed in the same place, for the auditor to check: the
//! set then need not have the states before it.

use super::as_base64;
use serde::{Deserialize, Serialize};
use wattle_memory::MemoryModel;
use wattle_model::{CellId, LocationId};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClosedStates {
    pub model: MemoryModel,
    #[serde(default)]
    pub shortened: Shortened,
    count: u64,
    #[serde(with = "as_base64")]
    rows: Vec<u8>,
    /// The row pushed last; only needed while writing.
    #[serde(skip)]
    last: Vec<i64>,
}

/// Events that are taken at once after the one before them. Nothing if the lists are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shortened {
    /// Per thread: locations whose step is.
    pub local: Vec<Vec<LocationId>>,
    /// Per thread: cells whose pending stores reach memory so.
    pub private: Vec<Vec<CellId>>,
}

/// Why a certificate cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrupt(pub &'static str);

impl std::fmt::Display for Corrupt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

/// Longer rows belong to no program that has an instance.
const MAX_ROW: u64 = 1 << 26;

impl ClosedStates {
    pub fn new(model: MemoryModel) -> Self {
        ClosedStates {
            model,
            shortened: Shortened::default(),
            count: 0,
            rows: Vec::new(),
            last: Vec::new(),
        }
    }

    /// Adds a state. Push them in sorted order: it is much smaller and it is deterministic.
    pub fn push(&mut self, row: &[i64]) {
        let same = row.iter().zip(&self.last).take_while(|(a, b)| a == b);
        let shared = same.count();
        put(&mut self.rows, shared as u64);
        put(&mut self.rows, (row.len() - shared) as u64);
        for n in &row[shared..] {
            put(&mut self.rows, fold(*n));
        }
        self.last.truncate(shared);
        self.last.extend_from_slice(&row[shared..]);
        self.count += 1;
    }

    /// To be called when all states are in.
    pub fn finish(mut self) -> Self {
        self.last = Vec::new();
        self.rows.shrink_to_fit();
        self
    }

    /// The number of states.
    pub fn len(&self) -> u64 {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Size in bytes of the packed rows.
    pub fn bytes(&self) -> u64 {
        self.rows.len() as u64
    }

    /// Calls `visit` with every row, in order, until it fails.
    pub fn for_each_row<E: From<Corrupt>>(
        &self,
        mut visit: impl FnMut(&[i64]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = self.rows.as_slice();
        let mut row: Vec<i64> = Vec::new();
        let mut count = 0u64;
        while !rest.is_empty() {
            let shared = take(&mut rest)?;
            let fresh = take(&mut rest)?;
            if shared > row.len() as u64 || fresh > MAX_ROW || fresh > rest.len() as u64 {
                return Err(Corrupt("a state's length is impossible").into());
            }
            row.truncate(shared as usize);
            for _ in 0..fresh {
                row.push(unfold(take(&mut rest)?));
            }
            visit(&row)?;
            count += 1;
        }
        if count != self.count {
            return Err(Corrupt("the number of states is not the one announced").into());
        }
        Ok(())
    }
}

fn fold(n: i64) -> u64 {
    ((n << 1) ^ (n >> 63)) as u64
}

fn unfold(n: u64) -> i64 {
    (n >> 1) as i64 ^ -((n & 1) as i64)
}

fn put(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

fn take(rest: &mut &[u8]) -> Result<u64, Corrupt> {
    let mut n = 0u64;
    for shift in (0..70).step_by(7) {
        let (byte, tail) = rest.split_first().ok_or(Corrupt("the file ends early"))?;
        *rest = tail;
        if shift == 63 && *byte > 1 {
            return Err(Corrupt("a number is too long"));
        }
        n |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(n);
        }
    }
    Err(Corrupt("a number is too long"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back() {
        let rows: [&[i64]; 4] = [&[0, 1, -1], &[0, 1, 300], &[i64::MIN, i64::MAX], &[]];
        let mut set = ClosedStates::new(MemoryModel::Tso);
        rows.iter().for_each(|r| set.push(r));
        let set = set.finish();
        let text = serde_json::to_string(&set).unwrap();
        let back: ClosedStates = serde_json::from_str(&text).unwrap();
        assert_eq!(back, set);
        let mut seen = Vec::new();
        let all: Result<(), Corrupt> = back.for_each_row(|r| {
            seen.push(r.to_vec());
            Ok(())
        });
        assert_eq!(all, Ok(()));
        assert_eq!(seen, rows);
    }

    #[test]
    fn damage_is_noticed() {
        let mut set = ClosedStates::new(MemoryModel::Sc);
        set.push(&[1, 2, 3]);
        for rows in [
            vec![0x80],
            vec![9, 0],
            vec![0, 0xff, 0xff, 3],
            vec![0, 1, 0xff],
        ] {
            let broken = ClosedStates {
                rows,
                ..set.clone()
            };
            assert!(broken.for_each_row(|_| Ok::<(), Corrupt>(())).is_err());
        }
    }
}
