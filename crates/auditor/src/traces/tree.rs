//! The runs of a certificate as an ordered tree of moves.

use wattle_evidence::certificate::{Corrupt, Runs};

pub const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
pub struct Node {
    pub process: u32,
    pub choice: u32,
    pub first: u32,
    pub next: u32,
}

pub struct Tree {
    /// The first is the root, whose move says nothing.
    pub nodes: Vec<Node>,
    pub depth: usize,
}

struct Reader<'b>(&'b [u8]);

impl Reader<'_> {
    fn number(&mut self) -> Result<u32, Corrupt> {
        let mut n = 0u64;
        for shift in (0..35).step_by(7) {
            let (byte, rest) = self.0.split_first().ok_or(Corrupt("a run breaks off"))?;
            self.0 = rest;
            n |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return u32::try_from(n).map_err(|_| Corrupt("a number is too large"));
            }
        }
        Err(Corrupt("a number is too large"))
    }
}

impl Tree {
    pub fn read(runs: &Runs) -> Result<Tree, Corrupt> {
        let root = Node {
            process: NONE,
            choice: 0,
            first: NONE,
            next: NONE,
        };
        let mut tree = Tree {
            nodes: vec![root],
            depth: 0,
        };
        // The nodes of the last run, and the last child of each.
        let mut path: Vec<(u32, u32)> = vec![(0, NONE)];
        let mut reader = Reader(&runs.bytes);
        for _ in 0..runs.count {
            let common = reader.number()? as usize;
            let more = reader.number()?;
            if common >= path.len() {
                return Err(Corrupt(
                    "a run has more in common with another than there is",
                ));
            }
            path.truncate(common + 1);
            for _ in 0..more {
                let label = reader.number()?;
                let choice = if label & 1 == 1 { reader.number()? } else { 0 };
                let new = tree.nodes.len() as u32;
                tree.nodes.push(Node {
                    process: label >> 1,
                    choice,
                    first: NONE,
                    next: NONE,
                });
                if let Some((above, last)) = path.last_mut() {
                    match *last {
                        NONE => tree.nodes[*above as usize].first = new,
                        last => tree.nodes[last as usize].next = new,
                    }
                    *last = new;
                }
                path.push((new, NONE));
            }
            tree.depth = tree.depth.max(path.len());
        }
        match reader.0.is_empty() {
            true => Ok(tree),
            false => Err(Corrupt("there is more than the runs")),
        }
    }
}
