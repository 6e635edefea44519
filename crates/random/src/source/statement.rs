//! Statements.

use super::{Kind, Number, Size, Writer};

/// Blocks are nested so deep.
const DEEPEST: usize = 2;

impl Writer {
    pub(super) fn label(&mut self) -> String {
        let label = format!("l{}", self.labels);
        self.labels += 1;
        self.families[self.own].labels.push(label.clone());
        label
    }

    pub(super) fn statement(&mut self, depth: usize) -> String {
        let statement = self.unlabelled(depth);
        if self.one_in(8) && !self.atomic {
            let label = self.label();
            return format!("{label}: {statement}");
        }
        statement
    }

    fn block(&mut self, depth: usize) -> String {
        let n = 1 + self.rng.below(2);
        let all: Vec<String> = (0..n).map(|_| self.statement(depth + 1)).collect();
        all.join(" ")
    }

    fn unlabelled(&mut self, depth: usize) -> String {
        let nested = depth < DEEPEST;
        match self.rng.below(32) {
            0..=6 => self.store(),
            7..=12 => self.load(),
            13 | 14 => self.assign(),
            15 if self.taste.choices => self.choice(),
            16 if self.taste.fences && !self.atomic => match self.one_in(3) {
                true => "fence store;".into(),
                false => "fence;".into(),
            },
            17 | 18 if self.taste.atomics && !self.guarded && nested => self.atomic_block(depth),
            19 if self.taste.locks && !self.guarded && nested => self.lock_region(depth),
            20 | 21 if self.taste.exchanges => match self.one_in(3) {
                true => format!("{};", self.exchange()),
                false => self.exchanged(),
            },
            22 if self.taste.asserts => {
                let c = self.test(1);
                match self.one_in(3) {
                    true => format!("assert {c}, \"why\";"),
                    false => format!("assert {c};"),
                }
            }
            23 if self.taste.assumes => format!("assume {};", self.test(1)),
            24 if self.taste.assumes && !self.atomic && self.taste.loops => {
                self.note("await");
                let r = self.region();
                let place = self.place_of(r);
                let kind = self.regions[r].kind;
                let value = self.value(kind);
                format!("await {place} == {value};")
            }
            25 | 26 if self.taste.branches && nested => self.branch(depth),
            27 if self.taste.loops && nested && !self.atomic => self.repeat(depth),
            28 if self.taste.choices && nested => {
                self.note("choose");
                let (a, b) = (self.block(depth), self.block(depth));
                format!("choose {{ {a} }} or {{ {b} }}")
            }
            29 if self.taste.jumps && nested && !self.atomic => self.jump(depth),
            30 if self.one_in(3) => "skip;".into(),
            31 if self.taste.constants && nested => self.unrolled(depth),
            _ => match self.one_in(2) {
                true => self.store(),
                false => self.load(),
            },
        }
    }

    fn store(&mut self) -> String {
        let r = self.region();
        let place = self.place_of(r);
        let kind = self.regions[r].kind;
        let value = self.value(kind);
        format!("{place} = {value};")
    }

    /// From a cell into a register that can hold what is read.
    fn load(&mut self) -> String {
        let pairs: Vec<(usize, usize)> = (0..self.regions.len())
            .flat_map(|r| (0..self.families[self.own].registers.len()).map(move |g| (r, g)))
            .filter(|(r, _)| match self.regions[*r].size {
                Size::PerThread(f) => f == self.own || self.families[f].number != Number::Open,
                Size::Scalar | Size::Array(_) => true,
            })
            .filter(|(r, g)| {
                let (name, kind) = &self.families[self.own].registers[*g];
                name != "c" && (self.taste.faults || holds(*kind, self.regions[*r].kind))
            })
            .collect();
        if pairs.is_empty() {
            return self.store();
        }
        let (r, g) = *self.rng.pick(&pairs);
        let place = self.place_of(r);
        let register = &self.families[self.own].registers[g].0;
        format!("{register} = {place};")
    }

    fn register(&mut self) -> (String, Kind) {
        let registers = &self.families[self.own].registers;
        let all: Vec<(String, Kind)> = registers
            .iter()
            .filter(|(n, _)| n != "c")
            .cloned()
            .collect();
        self.rng.pick(&all).clone()
    }

    fn assign(&mut self) -> String {
        let (register, kind) = self.register();
        let value = self.value(kind);
        format!("{register} = {value};")
    }

    /// The result of an exchange, if it fits.
    fn exchanged(&mut self) -> String {
        let r = self.region();
        let (kind, exchange) = (self.regions[r].kind, self.exchange_of(r));
        let named = matches!(kind, Kind::Thread(_)) && !exchange.starts_with("cas");
        let registers = &self.families[self.own].registers;
        let fits = |(name, k): &&(String, Kind)| {
            let number = matches!(k, Kind::Int | Kind::Wrap { .. }) || self.taste.faults;
            name != "c" && if named { *k == kind } else { number }
        };
        match registers.iter().find(fits) {
            Some((register, _)) => format!("{register} = {exchange};"),
            None => {
                let nothing = if named { "none" } else { "0" };
                let then = self.store();
                format!("if {exchange} == {nothing} {{ {then} }}")
            }
        }
    }

    fn choice(&mut self) -> String {
        let (register, kind) = self.register();
        match kind {
            Kind::Range(lo, hi) if self.one_in(2) => {
                let from = self.rng.between(lo, hi);
                format!("{register} = any {from}..{hi};")
            }
            Kind::Range(..) | Kind::Thread(_) => format!("{register} = any;"),
            Kind::Wrap { bits, .. } if bits <= 2 => format!("{register} = any;"),
            Kind::Int | Kind::Wrap { .. } => format!("{register} = any 0..1;"),
        }
    }

    fn atomic_block(&mut self, depth: usize) -> String {
        (self.guarded, self.atomic) = (true, true);
        let body = self.block(depth);
        (self.guarded, self.atomic) = (false, false);
        // In this form no other block may be inside, and exchanges are blocks.
        let plain = ["cas(", "swap(", "fetch_add("]
            .iter()
            .all(|x| !body.contains(x));
        // An exchange wants to write memory at once.
        let section = match plain && self.one_in(3) {
            true => "atomic buffered",
            false => "atomic",
        };
        match plain && self.one_in(4) {
            true => {
                self.note("atomic begin, end");
                format!("{section} begin; {body} atomic end;")
            }
            false => format!("{section} {{ {body} }}"),
        }
    }

    fn lock_region(&mut self, depth: usize) -> String {
        let labels = self.families[self.own].labels.len();
        self.guarded = true;
        let body = self.block(depth);
        self.guarded = false;
        match self.one_in(12) {
            // Never freed, or freed by who has it not.
            true if self.one_in(2) => format!("lock; {body}"),
            true => {
                self.families[self.own].labels.truncate(labels);
                "unlock;".into()
            }
            false => format!("lock; {body} unlock;"),
        }
    }

    fn branch(&mut self, depth: usize) -> String {
        self.note("if");
        let c = self.test(1);
        let then = self.block(depth);
        match self.rng.below(4) {
            0 => {
                self.note("else");
                let other = self.block(depth);
                format!("if {c} {{ {then} }} else {{ {other} }}")
            }
            1 if !self.atomic => {
                self.note("stop");
                format!("if {c} {{ {then} stop; }}")
            }
            _ => format!("if {c} {{ {then} }}"),
        }
    }

    fn repeat(&mut self, depth: usize) -> String {
        let load = self.load();
        let c = self.test(1);
        let body = self.block(depth);
        let fence = match self.taste.unfenced || self.guarded {
            true => "",
            false => " fence;",
        };
        match self.rng.below(4) {
            0 => {
                self.note("while");
                format!("while {c} {{ {load} {body}{fence} }}")
            }
            1 => {
                self.note("loop");
                self.note("break");
                format!("loop {{ {load} if {c} {{ break; }} {body}{fence} }}")
            }
            2 => {
                self.note("loop");
                self.note("continue");
                format!("loop {{ {load} if {c} {{ continue; }} {body}{fence} break; }}")
            }
            _ => {
                self.note("loop");
                format!("loop {{ {load} {body}{fence} }}")
            }
        }
    }

    fn jump(&mut self, depth: usize) -> String {
        self.note("goto");
        let c = self.test(1);
        let body = self.block(depth);
        let label = self.label();
        match self.one_in(3) && self.taste.loops {
            true => {
                let fence = match self.taste.unfenced || self.guarded {
                    true => "",
                    false => " fence;",
                };
                format!("{label}: {body}{fence} if {c} {{ goto {label}; }}")
            }
            false => format!("if {c} {{ goto {label}; }} {body} {label}: skip;"),
        }
    }

    fn unrolled(&mut self, depth: usize) -> String {
        self.note("for");
        let name = format!("n{}", self.labels);
        self.labels += 1;
        self.constants.push((name.clone(), 1));
        // Each round has labels of its own, which nobody outside can name.
        let labels = self.families[self.own].labels.len();
        let atomic = std::mem::replace(&mut self.atomic, true);
        let guarded = std::mem::replace(&mut self.guarded, true);
        let body = self.statement(depth.max(1) + 1);
        (self.atomic, self.guarded) = (atomic, guarded);
        self.families[self.own].labels.truncate(labels);
        self.constants.pop();
        format!("for {name} in 0..1 {{ {body} }}")
    }
}

/// Whether every value of the one type is one of the other.
fn holds(to: Kind, from: Kind) -> bool {
    match (to, from) {
        (Kind::Int | Kind::Wrap { .. }, Kind::Int | Kind::Wrap { .. } | Kind::Range(..)) => true,
        (Kind::Range(a, b), Kind::Range(c, d)) => a <= c && d <= b,
        (
            Kind::Range(a, b),
            Kind::Wrap {
                bits,
                signed: false,
            },
        ) => a <= 0 && bits < 8 && (1 << bits) - 1 <= b,
        (Kind::Thread(f), Kind::Thread(g)) => f == g,
        (Kind::Range(..), Kind::Wrap { .. } | Kind::Int | Kind::Thread(_))
        | (Kind::Thread(_), Kind::Int | Kind::Wrap { .. } | Kind::Range(..))
        | (Kind::Int | Kind::Wrap { .. }, Kind::Thread(_)) => false,
    }
}
