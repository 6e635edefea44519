//! Contents by name, for those who choose one at run time: the command line, certificates and the
//! compiled machine.

use super::Keeps;
use crate::layout::Bounds;
use std::fmt;
use std::str::FromStr;

/// A content with one k for every buffer. With k = 0 nothing is in order: that is the set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContentKind {
    pub keeps: Keeps,
    pub k: usize,
}

/// What every thread's buffers remember.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    pub keeps: Keeps,
    /// Per thread. Contents without a k need none.
    pub bounds: Vec<Bounds<usize>>,
}

/// Everything in order, whatever the program.
pub static EXACT: Contents = Contents {
    keeps: Keeps::Exact,
    bounds: Vec::new(),
};

impl Contents {
    pub fn uniform(kind: ContentKind, threads: usize, cells: usize) -> Self {
        Contents {
            keeps: kind.keeps,
            bounds: vec![Bounds::uniform(kind.k, cells); threads],
        }
    }
}

/// The largest k: more is no different, and would only be arithmetic to get wrong.
const MOST: usize = 1 << 16;

impl FromStr for ContentKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let kind = |keeps, k| Ok(ContentKind { keeps, k });
        let (name, k) = match text.split_once('=') {
            Some((name, k)) => (name, Some(k)),
            None => (text, None),
        };
        match (name, k) {
            ("exact", None) => return kind(Keeps::Exact, 0),
            ("set", None) => return kind(Keeps::Oldest, 0),
            ("multiset", None) => return kind(Keeps::Multiset, 0),
            _ => {}
        }
        let keeps = match name {
            "oldest" => Keeps::Oldest,
            "newest" => Keeps::Newest,
            "atmost" => Keeps::AtMost,
            _ => {
                return Err(format!(
                    "`{text}` is no content; there are exact, set, multiset, oldest=K, newest=K and \
                     atmost=K"
                ));
            }
        };
        let k = k.ok_or(format!("how many? For instance `{name}=2`"))?;
        match k.parse() {
            Ok(k) if k <= MOST => kind(keeps, k),
            _ => Err(format!("`{k}` is no number from 0 to {MOST}")),
        }
    }
}

impl fmt::Display for ContentKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let k = self.k;
        match self.keeps {
            Keeps::Exact => write!(f, "exact"),
            Keeps::Multiset => write!(f, "multiset"),
            Keeps::Oldest if k == 0 => write!(f, "set"),
            Keeps::Oldest => write!(f, "oldest={k}"),
            Keeps::Newest => write!(f, "newest={k}"),
            Keeps::AtMost => write!(f, "atmost={k}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for name in [
            "exact", "set", "multiset", "oldest=3", "newest=0", "atmost=2",
        ] {
            let kind: ContentKind = name.parse().expect(name);
            assert_eq!(kind.to_string(), name);
        }
        for name in [
            "",
            "oldest",
            "oldest=",
            "oldest=-1",
            "set=2",
            "newest=99999999",
        ] {
            assert!(name.parse::<ContentKind>().is_err(), "{name}");
        }
    }
}
