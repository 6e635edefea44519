//! Properties.

use super::{Kind, Number, Profile, Size, Writer};

impl Writer {
    pub(super) fn properties(&mut self) -> String {
        // Assertions and faults alone, now and then.
        let properties = match self.taste.asserts && self.one_in(3) {
            true => 0,
            false => 1 + self.rng.below(2),
        };
        let mut text = String::new();
        for _ in 0..properties {
            let last = self.one_in(10);
            let kinds: &[&str] = match self.taste.profile {
                Profile::Families if last => &["finally", "reachable"],
                Profile::Families | Profile::Levels => &["never", "never", "always"],
                Profile::Fixed | Profile::Integers => &[
                    "never",
                    "never",
                    "always",
                    "finally",
                    "finally",
                    "reachable",
                ],
            };
            let kind = *self.rng.pick(kinds);
            let condition = self.condition();
            text += &format!("{kind} {condition};\n");
        }
        if self.taste.hints && self.one_in(2) {
            self.note("predicates");
            let r = self.rng.below(self.regions.len());
            let cell = self.cell(r, &mut Vec::new());
            text += &format!("predicates {{ {cell} <= 1; }}\n");
        }
        text
    }

    fn condition(&mut self) -> String {
        // How many different threads of each family it names.
        let mut named = vec![0; self.families.len()];
        let mut text = self.atom(&mut named);
        for _ in 0..self.rng.below(3) {
            let more = self.atom(&mut named);
            let op = *self.rng.pick(&["&&", "&&", "&&", "||"]);
            text = format!("({text} {op} {more})");
        }
        if self.one_in(4) {
            text = format!("!({text})");
        }
        let mut all = Vec::new();
        for (f, n) in named.iter().enumerate() {
            let family = &self.families[f].name;
            all.extend((0..*n).map(|i| format!("{family}[{}]", variable(f, i))));
        }
        match all.is_empty() {
            true => text,
            // Index variables that no thread is named by have to be announced.
            false => {
                self.note("announced index variables");
                format!("for {}: {text}", all.join(", "))
            }
        }
    }

    /// A thread of the family as a condition names it.
    fn thread(&mut self, f: usize, named: &mut [usize]) -> String {
        let name = self.families[f].name.clone();
        let most = match self.families[f].number {
            Number::One => return name,
            Number::Fixed(n) => n as usize,
            Number::Open => 3,
        };
        if self.one_in(6) {
            let known = match self.families[f].number {
                Number::Fixed(n) => n as usize,
                Number::One | Number::Open => 2,
            };
            return format!("{name}[{}]", self.rng.below(known));
        }
        format!("{name}[{}]", self.index_variable(f, most, named))
    }

    fn index_variable(&mut self, f: usize, most: usize, named: &mut [usize]) -> String {
        if named[f] == 0 || named[f] < most && self.one_in(2) {
            named[f] += 1;
            return variable(f, named[f] - 1);
        }
        let known = self.rng.below(named[f]);
        variable(f, known)
    }

    fn atom(&mut self, named: &mut [usize]) -> String {
        let f = self.rng.below(self.families.len());
        match self.rng.below(8) {
            0..=2 if !self.families[f].labels.is_empty() => {
                let label = {
                    let labels = &self.families[f].labels;
                    self.rng.pick(labels).clone()
                };
                format!("{}@{label}", self.thread(f, named))
            }
            3 | 4 => {
                let registers = self.families[f].registers.clone();
                let (register, kind) = self.rng.pick(&registers).clone();
                let thread = self.thread(f, named);
                let seen = format!("{thread}.{register}");
                self.compared(seen, kind, named)
            }
            5 if self.taste.counts => {
                let (op, n) = (self.comparison(), self.rng.between(1, 3));
                format!("count({}) {op} {n}", self.families[f].name)
            }
            _ => {
                let r = self.rng.below(self.regions.len());
                let kind = self.regions[r].kind;
                let mut cell = self.cell(r, named);
                if !cell.starts_with('*') && self.one_in(3) {
                    cell = format!("{}::{cell}", self.thread(f, named));
                }
                self.compared(cell, kind, named)
            }
        }
    }

    fn cell(&mut self, r: usize, named: &mut [usize]) -> String {
        let (name, size) = (self.regions[r].name.clone(), self.regions[r].size);
        let index = match size {
            Size::Scalar => None,
            Size::Array(n) => Some(self.rng.below(n as usize).to_string()),
            Size::PerThread(f) => Some(match named.is_empty() || self.one_in(5) {
                true => "0".into(),
                false => {
                    let most = match self.families[f].number {
                        Number::Fixed(n) => n as usize,
                        Number::One => 1,
                        Number::Open => 3,
                    };
                    self.index_variable(f, most, named)
                }
            }),
        };
        let flat = self.taste.addresses && self.one_in(4);
        match (index, flat) {
            (None, false) => name,
            (None, true) => format!("*(&{name})"),
            (Some(i), false) => format!("{name}[{i}]"),
            (Some(i), true) => format!("*(&{name} + {i})"),
        }
    }

    fn comparison(&mut self) -> &'static str {
        let all: [&'static str; 7] = ["==", "==", "!=", "<", "<=", ">", ">="];
        all[self.rng.below(all.len())]
    }

    fn compared(&mut self, seen: String, kind: Kind, named: &mut [usize]) -> String {
        let (op, c) = (self.comparison(), self.rng.between(0, 2));
        if let Kind::Thread(f) = kind {
            let most = match self.families[f].number {
                Number::One => 0,
                Number::Fixed(n) => n as usize,
                Number::Open => 3,
            };
            let op = *self.rng.pick(&["==", "==", "!="]);
            return match self.rng.below(4) {
                0 => format!("{seen} {op} none"),
                1 if self.taste.own_number && self.taste.arithmetic => format!("{seen} {op} {c}"),
                _ => format!("{seen} {op} {}", self.index_variable(f, most.max(1), named)),
            };
        }
        let seen = match self.rng.below(12) {
            0 if self.taste.arithmetic => format!("({seen} + 1)"),
            1 if self.taste.division => format!("({seen} % 2)"),
            2 if self.taste.bits => format!("({seen} & 1)"),
            3 if self.taste.casts => format!("u1({seen})"),
            4 if self.taste.counts => {
                let f = self.rng.below(self.families.len());
                return format!("{seen} {op} count({})", self.families[f].name);
            }
            5 if self.taste.own_number && named.iter().any(|n| *n > 0) => {
                let f = named.iter().position(|n| *n > 0).unwrap_or(0);
                return format!("{seen} {op} {}", variable(f, 0));
            }
            6 if self.taste.reads => {
                let r = self.rng.below(self.regions.len());
                let other = self.cell(r, named);
                return format!("{seen} {op} {other}");
            }
            _ => seen,
        };
        format!("{seen} {op} {c}")
    }
}

/// `i`, `j`, `k` of the first family, `i1`, … of the next.
fn variable(f: usize, n: usize) -> String {
    let letter = ["i", "j", "k", "m"][n.min(3)];
    match f {
        0 => letter.to_string(),
        f => format!("{letter}{f}"),
    }
}
