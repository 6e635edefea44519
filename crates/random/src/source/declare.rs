//! Families, memory, registers and what they start with.

use super::{Kind, Number, Profile, Shared, Size, Threads, Writer};

impl Writer {
    pub(super) fn choose_families(&mut self) {
        let open = self.taste.profile == Profile::Families;
        let families = match (open, self.taste.several) {
            (true, false) => 1,
            (true, true) => 2,
            (false, several) => 1 + self.rng.below(if several { 3 } else { 2 }),
        };
        let mut left = 3;
        for f in 0..families {
            let number = match (open, f) {
                (true, 0) => Number::Open,
                (true, _) if self.one_in(2) => Number::Open,
                _ if left >= 2 && self.one_in(3) => Number::Fixed(2 + self.rng.below(2) as u32),
                _ if left >= 1 && self.one_in(8) => Number::Fixed(1),
                _ => Number::One,
            };
            let many = match number {
                Number::Fixed(n) => n,
                Number::One | Number::Open => 1,
            };
            let number = match number {
                Number::Fixed(n) => Number::Fixed(n.min(left.max(1))),
                other @ (Number::One | Number::Open) => other,
            };
            left = left.saturating_sub(many);
            self.families.push(Threads {
                name: ["p", "q", "s"][f].to_string(),
                number,
                registers: Vec::new(),
                labels: Vec::new(),
            });
            if left == 0 {
                break;
            }
        }
        for f in 0..self.families.len() {
            self.own = f;
            let registers = 1 + self.rng.below(2);
            for r in 0..registers {
                let kind = self.kind();
                let name = format!("r{r}");
                self.families[f].registers.push((name, kind));
            }
            let several = self.families[f].number != Number::One;
            if self.taste.scans && several && self.scanned().is_none() {
                let cursor = ("c".to_string(), Kind::Thread(f));
                self.families[f].registers.push(cursor);
            }
        }
    }

    pub(super) fn choose_regions(&mut self) {
        for r in 0..1 + self.rng.below(3) {
            let several: Vec<usize> = (0..self.families.len())
                .filter(|f| self.families[*f].number != Number::One)
                .collect();
            let size = match self.rng.below(4) {
                0 | 1 if self.taste.per_thread && !several.is_empty() => {
                    Size::PerThread(*self.rng.pick(&several))
                }
                2 if self.taste.arrays => Size::Array(2 + self.rng.below(2) as u32),
                _ => Size::Scalar,
            };
            let kind = self.kind();
            let name = ["x", "y", "z"][r].to_string();
            self.regions.push(Shared { name, kind, size });
        }
        // A scan looks at a cell of each thread.
        if let Some(f) = self.scanned() {
            self.regions.push(Shared {
                name: "w".to_string(),
                kind: Kind::Range(0, 1),
                size: Size::PerThread(f),
            });
        }
    }

    /// The family whose threads look at one another in turn, with the register `c`.
    fn scanned(&self) -> Option<usize> {
        let cursor = |f: &Threads| f.registers.iter().any(|(n, _)| n == "c");
        self.families.iter().position(cursor)
    }

    fn kind(&mut self) -> Kind {
        let families = self.families.len();
        let named = |f: &Threads| f.number != Number::One;
        if self.taste.names && self.families.iter().any(named) && self.one_in(3) {
            let mut f = self.rng.below(families);
            while !named(&self.families[f]) {
                f = (f + 1) % families;
            }
            return Kind::Thread(f);
        }
        let wide = self.taste.profile == Profile::Integers || self.one_in(8);
        match self.rng.below(6) {
            0 | 1 if self.taste.wraps => {
                let signed = self.one_in(3);
                let bits = match (wide, signed) {
                    (true, true) => *self.rng.pick(&[8, 16, 32, 64]),
                    (true, false) => *self.rng.pick(&[8, 16, 32, 63]),
                    (false, true) => *self.rng.pick(&[1, 2, 3]),
                    (false, false) => *self.rng.pick(&[1, 1, 2, 3]),
                };
                Kind::Wrap { bits, signed }
            }
            2 | 3 if self.taste.integers => Kind::Int,
            4 => Kind::Range(-1, self.rng.between(0, 2)),
            _ => Kind::Range(0, self.rng.between(1, 3)),
        }
    }

    fn kind_text(&mut self, kind: Kind) -> String {
        match kind {
            Kind::Int => match self.one_in(2) {
                true => String::new(),
                false => ": int".into(),
            },
            Kind::Range(0, 1) if self.one_in(2) => ": bool".into(),
            Kind::Range(lo, hi) if self.one_in(6) => format!(": {lo}..={hi}"),
            Kind::Range(lo, hi) => format!(": {lo}..{hi}"),
            Kind::Wrap { bits, signed: true } => format!(": i{bits}"),
            Kind::Wrap { bits, .. } => format!(": u{bits}"),
            Kind::Thread(f) => format!(": {}", self.families[f].name),
        }
    }

    /// `x[p]: 0..3 = any`
    pub(super) fn declaration(&mut self, r: usize) -> String {
        let (name, kind, size) = {
            let region = &self.regions[r];
            (region.name.clone(), region.kind, region.size)
        };
        let size_text = match size {
            Size::Scalar => String::new(),
            Size::Array(n) => format!("[{n}]"),
            Size::PerThread(_) if self.families.len() == 1 && self.one_in(3) => "[thread]".into(),
            Size::PerThread(f) => format!("[{}]", self.families[f].name),
        };
        let elements = match size {
            Size::Scalar => None,
            Size::Array(n) => Some(n),
            Size::PerThread(f) => match self.families[f].number {
                Number::One => Some(1),
                Number::Fixed(n) => Some(n),
                // Fits one number of threads only.
                Number::Open => Some(1 + self.rng.below(4) as u32),
            },
        };
        let open_list =
            matches!(size, Size::PerThread(f) if self.families[f].number == Number::Open);
        let list =
            elements.filter(|_| self.taste.starts && self.one_in(if open_list { 8 } else { 3 }));
        let start = match list {
            Some(n) => {
                let each: Vec<String> = (0..n).map(|_| self.start_value(kind)).collect();
                format!(" = {{{}}}", each.join(", "))
            }
            None => self.start(kind, size != Size::Scalar),
        };
        format!("{name}{size_text}{}{start}", self.kind_text(kind))
    }

    /// ` = any`, ` = 1` or nothing; `numbered` where `self` is the number of an element or a thread.
    fn start(&mut self, kind: Kind, numbered: bool) -> String {
        let few = match kind {
            Kind::Range(..) | Kind::Thread(_) => true,
            Kind::Wrap { bits, .. } => bits <= 3,
            Kind::Int => false,
        };
        if let Kind::Thread(_) = kind
            && !(self.taste.starts && self.one_in(3))
        {
            // Without a value it is thread 0.
            let most = match self.taste.profile {
                Profile::Families | Profile::Levels => 16,
                Profile::Fixed | Profile::Integers => 4,
            };
            return match self.one_in(most) {
                true => String::new(),
                false => " = none".into(),
            };
        }
        if !self.taste.starts || self.one_in(3) {
            return String::new();
        }
        match self.rng.below(6) {
            0 | 1 if few => " = any".into(),
            2 if numbered => " = self".into(),
            3 if self.taste.counts => {
                let f = self.rng.below(self.families.len());
                format!(" = count({})", self.families[f].name)
            }
            _ => format!(" = {}", self.start_value(kind)),
        }
    }

    fn start_value(&mut self, kind: Kind) -> String {
        match kind {
            Kind::Int => self.rng.between(-1, 3).to_string(),
            Kind::Range(lo, hi) => self.rng.between(lo, hi).to_string(),
            Kind::Wrap { .. } => self.rng.between(0, 3).to_string(),
            Kind::Thread(_) => match self.one_in(3) {
                true => "0".into(),
                false => "none".into(),
            },
        }
    }

    /// `thread p[*] { … }`
    pub(super) fn family(&mut self) -> String {
        self.constants.clear();
        let number = self.families[self.own].number;
        let number = match number {
            Number::One => String::new(),
            Number::Fixed(n) => format!("[{n}]"),
            Number::Open => "[*]".into(),
        };
        let mut locals = Vec::new();
        for r in 0..self.families[self.own].registers.len() {
            let (name, kind) = self.families[self.own].registers[r].clone();
            let start = match name.as_str() {
                "c" => " = none".into(),
                _ => self.start(kind, true),
            };
            locals.push(format!("{name}{}{start}", self.kind_text(kind)));
        }
        let name = self.families[self.own].name.clone();
        let mut text = format!("thread {name}{number} {{\n  local {};\n", locals.join(", "));
        if self.taste.constants && self.one_in(2) {
            text += "  let k = 2 - 1;\n";
            self.constants.push(("k".into(), 1));
            self.note("let");
        }
        let statements = match self.taste.profile {
            Profile::Families | Profile::Levels => 1 + self.rng.below(4),
            Profile::Fixed | Profile::Integers => 2 + self.rng.below(4),
        };
        for _ in 0..statements {
            let statement = self.statement(0);
            text += &format!("  {statement}\n");
        }
        if self.scanned() == Some(self.own) {
            text += &self.scan();
        }
        // A place to speak of, now and then a loop round everything.
        if self.one_in(3) {
            let label = self.label();
            text += &format!("  {label}: skip;\n");
        }
        text + "}\n"
    }

    /// The other threads one after the other.
    fn scan(&mut self) -> String {
        self.note("scan over threads");
        let own = self.families[self.own].name.clone();
        let value = self.rng.below(2);
        let wait = match self.one_in(2) {
            true => format!("await w[c] == {value};"),
            false => format!("assume w[c] == {value};"),
        };
        let before = self.one_in(2);
        let text = format!(
            "  c = 0;\n  loop {{ if c != self {{ {wait} }} if c == count({own}) - 1 {{ break; }} c = c + 1; }}\n"
        );
        match before {
            true => format!("  w[self] = 1;\n{text}"),
            false => text,
        }
    }
}
