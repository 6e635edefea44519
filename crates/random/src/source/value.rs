//! Expressions in the body of a thread.

use super::{Kind, Number, Size, Writer};

const COMPARISONS: &[&str] = &["==", "==", "!=", "<", "<=", ">", ">="];

impl Writer {
    /// A value that is meant to fit the type.
    pub(super) fn value(&mut self, kind: Kind) -> String {
        if let Kind::Thread(f) = kind {
            return self.thread_value(f);
        }
        if self.taste.faults && self.one_in(6) {
            return self.expression(1);
        }
        match self.rng.below(6) {
            0..=2 => self.constant(kind),
            3 => match self.register_of(kind) {
                Some(r) => r,
                None => self.constant(kind),
            },
            4 => match kind {
                Kind::Range(lo, hi) if lo > 0 || hi < 1 => self.constant(kind),
                Kind::Wrap { .. } | Kind::Int | Kind::Range(..) | Kind::Thread(_) => self.test(1),
            },
            _ => {
                let e = self.expression(2);
                self.fitted(e, kind)
            }
        }
    }

    fn constant(&mut self, kind: Kind) -> String {
        match kind {
            Kind::Range(lo, hi) => self.rng.between(lo, hi).to_string(),
            Kind::Int | Kind::Wrap { .. } if self.one_in(8) => "-1".into(),
            Kind::Int | Kind::Wrap { .. } => match self.constants.is_empty() || !self.one_in(3) {
                true => self.rng.between(0, 3).to_string(),
                false => self.rng.pick(&self.constants).0.clone(),
            },
            Kind::Thread(_) => "none".into(),
        }
    }

    /// The expression made to fit: by its type, by a cast, by bits, by a remainder, by cutting it off.
    fn fitted(&mut self, e: String, kind: Kind) -> String {
        match kind {
            Kind::Int | Kind::Wrap { .. } | Kind::Thread(_) => e,
            Kind::Range(0, hi) if (hi + 1).count_ones() == 1 && self.taste.bits => {
                format!("({e} & {hi})")
            }
            Kind::Range(0, hi) if (hi + 1).count_ones() == 1 && self.taste.casts => {
                format!("u{}({e})", (hi + 1).ilog2())
            }
            Kind::Range(0, hi) if self.taste.division => {
                let n = hi + 1;
                format!("(({e} % {n} + {n}) % {n})")
            }
            Kind::Range(lo, hi) => match self.any_register() {
                Some((r, _)) => format!("({r} < {lo} ? {lo} : {r} > {hi} ? {hi} : {r})"),
                None => lo.to_string(),
            },
        }
    }

    /// A thread of the family, or none.
    pub(super) fn thread_value(&mut self, family: usize) -> String {
        let own = family == self.own;
        let stored = self.scalars_of(Kind::Thread(family));
        match self.rng.below(6) {
            0 => "none".into(),
            1..=3 if own => "self".into(),
            4 if self.taste.reads && !stored.is_empty() => {
                let r = *self.rng.pick(&stored);
                self.regions[r].name.clone()
            }
            5 if self.taste.arithmetic && self.taste.faults => match self.one_in(2) {
                true => "self + 1".into(),
                false => "1".into(),
            },
            _ => match self.register_of(Kind::Thread(family)) {
                Some(r) => r,
                None if own => "self".into(),
                None => "0".into(),
            },
        }
    }

    pub(super) fn scalars_of(&self, kind: Kind) -> Vec<usize> {
        let all = self.regions.iter().enumerate();
        let fits = all.filter(|(_, r)| r.kind == kind && r.size == Size::Scalar);
        fits.map(|(i, _)| i).collect()
    }

    fn register_of(&mut self, kind: Kind) -> Option<String> {
        let registers = &self.families[self.own].registers;
        let fits: Vec<String> = registers
            .iter()
            .filter(|(n, k)| *k == kind && n != "c")
            .map(|(n, _)| n.clone())
            .collect();
        match fits.is_empty() {
            true => None,
            false => Some(self.rng.pick(&fits).clone()),
        }
    }

    /// A register that holds a number.
    pub(super) fn any_register(&mut self) -> Option<(String, Kind)> {
        let registers = &self.families[self.own].registers;
        let all: Vec<(String, Kind)> = registers
            .iter()
            .filter(|(_, k)| !matches!(k, Kind::Thread(_)))
            .cloned()
            .collect();
        match all.is_empty() {
            true => None,
            false => Some(self.rng.pick(&all).clone()),
        }
    }

    fn leaf(&mut self) -> String {
        match self.rng.below(10) {
            0 if self.taste.own_number => "self".into(),
            1 if self.taste.counts => {
                let f = self.rng.below(self.families.len());
                format!("count({})", self.families[f].name)
            }
            2 if self.taste.constants && !self.constants.is_empty() => {
                self.rng.pick(&self.constants).0.clone()
            }
            3 | 4 if self.taste.reads => self.read(),
            5 if self.taste.exchanges && self.one_in(4) => {
                let r = self.region();
                match self.regions[r].kind {
                    Kind::Thread(_) => "0".into(),
                    Kind::Int | Kind::Range(..) | Kind::Wrap { .. } => self.exchange_of(r),
                }
            }
            5..=8 => match self.any_register() {
                Some((r, _)) => r,
                None => "1".into(),
            },
            _ => self.rng.between(0, 3).to_string(),
        }
    }

    /// A cell that is read where it stands.
    fn read(&mut self) -> String {
        for _ in 0..4 {
            let r = self.region();
            if !matches!(self.regions[r].kind, Kind::Thread(_)) {
                return self.place_of(r);
            }
        }
        "1".into()
    }

    /// A region, rarely one in which there is a cell for each thread of another open family.
    pub(super) fn region(&mut self) -> usize {
        let mut r = self.rng.below(self.regions.len());
        for _ in 0..4 {
            match self.regions[r].size {
                Size::PerThread(f) if f != self.own && self.families[f].number == Number::Open => {
                    r = self.rng.below(self.regions.len());
                }
                Size::PerThread(_) | Size::Scalar | Size::Array(_) => break,
            }
        }
        r
    }

    /// `cas(x, 0, 1)`
    pub(super) fn exchange(&mut self) -> String {
        let r = self.region();
        self.exchange_of(r)
    }

    pub(super) fn exchange_of(&mut self, r: usize) -> String {
        let (place, kind) = (self.place_of(r), self.regions[r].kind);
        let new = self.value(kind);
        match self.rng.below(3) {
            0 => {
                self.note("cas");
                let old = self.value(kind);
                format!("cas({place}, {old}, {new})")
            }
            1 => {
                self.note("swap");
                format!("swap({place}, {new})")
            }
            _ if self.unlimited(kind) => {
                self.note("fetch_add");
                let by = *self.rng.pick(&["1", "1", "-1"]);
                format!("fetch_add({place}, {by})")
            }
            _ => {
                self.note("swap");
                format!("swap({place}, {new})")
            }
        }
    }

    /// Whether counting up cannot be a fault, or faults are wanted.
    fn unlimited(&self, kind: Kind) -> bool {
        match kind {
            Kind::Int | Kind::Wrap { .. } => true,
            Kind::Range(..) => self.taste.faults,
            Kind::Thread(_) => false,
        }
    }

    /// An element of the region: `x`, `a[1]`, `a[self]`, `*(&a + 1)`.
    pub(super) fn place_of(&mut self, r: usize) -> String {
        let (name, size) = (self.regions[r].name.clone(), self.regions[r].size);
        let index = match size {
            Size::Scalar => None,
            Size::Array(n) => Some(self.index(i64::from(n))),
            Size::PerThread(f) => Some(self.thread_index(f)),
        };
        let flat = self.taste.addresses && self.one_in(4);
        match (index, flat) {
            (None, false) => name,
            (None, true) => format!("*(&{name})"),
            (Some(i), false) => format!("{name}[{i}]"),
            (Some(i), true) if self.one_in(2) => format!("*(&{name} + {i})"),
            (Some(i), true) => format!("*(&{name}[{i}])"),
        }
    }

    fn index(&mut self, n: i64) -> String {
        let last = n - 1;
        let fits = |(_, most): &&(String, i64)| *most <= last;
        let constant = self.constants.iter().find(fits).map(|c| c.0.clone());
        match (self.rng.below(5), constant, self.any_register()) {
            (0, Some(k), _) => k,
            (1, _, Some((r, _))) if self.taste.bits => format!("{r} & 1"),
            (2, _, Some((r, Kind::Range(0, hi)))) if hi <= last || self.taste.faults => r,
            (
                2,
                _,
                Some((
                    r,
                    Kind::Wrap {
                        bits: 1,
                        signed: false,
                    },
                )),
            ) => r,
            (3, _, Some((r, _))) if self.taste.casts => format!("u1({r})"),
            (3, _, Some((r, _))) => format!("{r} == 1"),
            _ => self.rng.between(0, last).to_string(),
        }
    }

    fn thread_index(&mut self, f: usize) -> String {
        let own = f == self.own;
        match self.rng.below(8) {
            0..=4 if own => "self".into(),
            5 if self.taste.names => match self.register_of(Kind::Thread(f)) {
                Some(r) if self.taste.faults => r,
                Some(r) if own => format!("({r} == none ? self : {r})"),
                Some(_) | None => "0".into(),
            },
            6 if own && self.families[f].number == Number::Fixed(2) => "1 - self".into(),
            _ if own && self.families[f].number == Number::Open && !self.one_in(12) => {
                "self".into()
            }
            _ => "0".into(),
        }
    }

    /// Any arithmetic.
    pub(super) fn expression(&mut self, depth: usize) -> String {
        if depth == 0 || !self.taste.arithmetic && !self.one_in(4) {
            return self.leaf();
        }
        let a = self.leaf_or(depth - 1);
        match self.rng.below(16) {
            0..=2 => format!("({a} + {})", self.leaf()),
            3 | 4 => format!("({a} - {})", self.leaf()),
            5 => format!("({a} * {})", self.leaf()),
            6 if self.taste.division => {
                let by = self.divisor();
                format!("({a} / {by})")
            }
            7 | 8 if self.taste.division => {
                let by = self.divisor();
                format!("({a} % {by})")
            }
            9 if self.taste.bits => {
                let op = *self.rng.pick(&["&", "|", "^"]);
                format!("({a} {op} {})", self.leaf())
            }
            10 if self.taste.bits => {
                let by = match self.any_register() {
                    Some((r, _)) if self.taste.faults => r,
                    Some((r, _)) => format!("({r} & 1)"),
                    None => "1".into(),
                };
                let op = *self.rng.pick(&["<<", ">>"]);
                format!("({a} {op} {by})")
            }
            11 if self.taste.bits => format!("~{a}"),
            6..=9 => format!("-{a}"),
            10..=12 if self.taste.casts => {
                let cast = *self
                    .rng
                    .pick(&["u1", "u2", "u3", "i2", "i3", "u8", "i8", "u32"]);
                format!("{cast}({a})")
            }
            13 => {
                let c = self.test(depth - 1);
                format!("({c} ? {a} : {})", self.leaf())
            }
            _ => self.test(depth - 1),
        }
    }

    fn leaf_or(&mut self, depth: usize) -> String {
        match self.one_in(2) {
            true => self.leaf(),
            false => self.expression(depth),
        }
    }

    fn divisor(&mut self) -> String {
        match self.any_register() {
            Some((r, _)) if self.taste.faults && self.one_in(3) => r,
            Some((r, _)) if self.one_in(4) => format!("(1 + ({r} == 0))"),
            _ => self.rng.between(2, 4).to_string(),
        }
    }

    /// A condition.
    pub(super) fn test(&mut self, depth: usize) -> String {
        let simple = self.simple_test();
        if depth == 0 || !self.one_in(4) {
            return simple;
        }
        let more = self.simple_test();
        match self.rng.below(4) {
            0 => format!("({simple} || {more})"),
            1 => format!("!({simple})"),
            _ => format!("({simple} && {more})"),
        }
    }

    fn simple_test(&mut self) -> String {
        let op = *self.rng.pick(COMPARISONS);
        let registers = &self.families[self.own].registers;
        let named: Vec<(String, usize)> = registers
            .iter()
            .filter_map(|(n, k)| match k {
                Kind::Thread(f) if n != "c" => Some((n.clone(), *f)),
                Kind::Thread(_) | Kind::Int | Kind::Range(..) | Kind::Wrap { .. } => None,
            })
            .collect();
        if !named.is_empty() && self.one_in(3) {
            let (r, f) = self.rng.pick(&named).clone();
            let other = self.thread_value(f);
            let op = *self.rng.pick(&["==", "!="]);
            return format!("({r} {op} {other})");
        }
        if self.taste.counts && self.one_in(4) {
            let f = self.rng.below(self.families.len());
            let (a, n) = (self.leaf(), self.families[f].name.clone());
            let plain = self.rng.between(0, 4);
            return match self.one_in(2) {
                true => format!("({a} {op} count({n}))"),
                false => format!("(count({n}) {op} {plain})"),
            };
        }
        let (left, c) = match self.any_register() {
            Some((r, kind)) if !self.one_in(4) => (r, self.constant(kind)),
            _ => (self.expression(1), self.leaf()),
        };
        format!("({left} {op} {c})")
    }
}
