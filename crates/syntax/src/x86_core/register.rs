//! The general registers and their partial names: `RAX` ⊃ `EAX` ⊃ `AX` ⊃ `AH`, `AL`.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use wattle_model::{Expr, Op1, Op2};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Size {
    Byte,
    Word,
    Dword,
    Qword,
}

impl Size {
    pub fn bits(self) -> u8 {
        match self {
            Size::Byte => 8,
            Size::Word => 16,
            Size::Dword => 32,
            Size::Qword => 64,
        }
    }

    pub fn bytes(self) -> i64 {
        i64::from(self.bits() / 8)
    }
}

/// One of the sixteen general registers, whatever part of it is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Base(u8);

/// A register as written: which one, how much of it, and whether the second byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    pub base: Base,
    pub size: Size,
    pub high: bool,
}

const LETTERS: [&str; 4] = ["A", "B", "C", "D"];
const POINTERS: [&str; 4] = ["SI", "DI", "BP", "SP"];

/// Every name in upper case.
static NAMES: LazyLock<BTreeMap<String, Name>> = LazyLock::new(|| {
    let mut names = BTreeMap::new();
    for base in Base::all() {
        for size in [Size::Byte, Size::Word, Size::Dword, Size::Qword] {
            let high = false;
            names.insert(base.name(size), Name { base, size, high });
        }
    }
    for (i, letter) in LETTERS.iter().enumerate() {
        let high = Name {
            base: Base(i as u8),
            size: Size::Byte,
            high: true,
        };
        names.insert(format!("{letter}H"), high);
    }
    names
});

impl Base {
    pub const A: Base = Base(0);
    pub const D: Base = Base(3);

    pub fn all() -> impl Iterator<Item = Base> {
        (0..16).map(Base)
    }

    /// The upper-case name of the low part of this size.
    pub fn name(self, size: Size) -> String {
        let i = usize::from(self.0);
        match (i, size) {
            (0..=3, Size::Byte) => format!("{}L", LETTERS[i]),
            (0..=3, Size::Word) => format!("{}X", LETTERS[i]),
            (0..=3, Size::Dword) => format!("E{}X", LETTERS[i]),
            (0..=3, Size::Qword) => format!("R{}X", LETTERS[i]),
            (4..=7, Size::Byte) => format!("{}L", POINTERS[i - 4]),
            (4..=7, Size::Word) => POINTERS[i - 4].to_string(),
            (4..=7, Size::Dword) => format!("E{}", POINTERS[i - 4]),
            (4..=7, Size::Qword) => format!("R{}", POINTERS[i - 4]),
            (_, Size::Byte) => format!("R{i}B"),
            (_, Size::Word) => format!("R{i}W"),
            (_, Size::Dword) => format!("R{i}D"),
            (_, Size::Qword) => format!("R{i}"),
        }
    }
}

impl Name {
    /// Any case; no `%`.
    pub fn parse(text: &str) -> Option<Name> {
        if text.len() > 4 {
            return None;
        }
        NAMES.get(text.to_ascii_uppercase().as_str()).copied()
    }

    /// The least register that holds this part.
    pub fn reach(self) -> Size {
        if self.high { Size::Word } else { self.size }
    }

    /// Upper case.
    pub fn text(self) -> String {
        if self.high {
            self.base.name(Size::Byte).replace('L', "H")
        } else {
            self.base.name(self.size)
        }
    }

    /// The part's value, signed, where the whole register is `whole` and keeps `width`.
    pub fn read<A>(self, whole: Expr<A>, width: Size) -> Expr<A> {
        if self.high {
            let shifted = Expr::binary(Op2::Shr, whole, Expr::Const(8));
            return wrapped(shifted, Size::Byte, true);
        }
        if self.size == width {
            return whole;
        }
        wrapped(whole, self.size, true)
    }

    /// The whole register after `value` was written to this part. Writing 32 bits of a 64-bit
    /// register clears the rest; writing less keeps the rest.
    pub fn write<A>(self, whole: Expr<A>, width: Size, value: Expr<A>) -> Expr<A> {
        if self.size == width && !self.high {
            return value;
        }
        let low = wrapped(value, self.size, false);
        if self.size == Size::Dword {
            return low;
        }
        let mask = (1i64 << self.size.bits()) - 1;
        let (mask, low) = if self.high {
            (mask << 8, Expr::binary(Op2::Shl, low, Expr::Const(8)))
        } else {
            (mask, low)
        };
        let kept = Expr::binary(Op2::BitAnd, whole, Expr::Const(!mask));
        Expr::binary(Op2::BitOr, kept, low)
    }
}

/// `value` cut to `size`.
pub fn wrapped<A>(value: Expr<A>, size: Size, signed: bool) -> Expr<A> {
    let op = Op1::Wrap {
        bits: size.bits(),
        signed,
    };
    match value {
        Expr::Const(c) => op.apply(c).map_or(Expr::Const(c), Expr::Const),
        e => Expr::unary(op, e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back() {
        for base in Base::all() {
            for size in [Size::Byte, Size::Word, Size::Dword, Size::Qword] {
                let name = Name::parse(&base.name(size).to_lowercase()).unwrap();
                assert_eq!((name.base, name.size, name.high), (base, size, false));
            }
        }
        assert_eq!(Name::parse("ch").unwrap().text(), "CH");
        for wrong in ["EXX", "R16", "", "EAXX", "H", "é"] {
            assert_eq!(Name::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn parts_alias() {
        let value = |e: Expr<()>| e.eval(&|()| 0).unwrap();
        let write = |name: &str, whole: i64, width, v| {
            let name = Name::parse(name).unwrap();
            value(name.write(Expr::Const(whole), width, Expr::Const(v)))
        };
        let read = |name: &str, whole: i64, width| {
            let name = Name::parse(name).unwrap();
            value(name.read(Expr::Const(whole), width))
        };
        assert_eq!(write("AL", 0x1234, Size::Dword, -1), 0x12ff);
        assert_eq!(write("AH", 0x1234, Size::Dword, 0x7f), 0x7f34);
        assert_eq!(write("AX", -1, Size::Dword, 0), -65536);
        assert_eq!(write("EAX", -1, Size::Qword, -1), 0xffff_ffff);
        assert_eq!(write("RAX", 5, Size::Qword, -1), -1);
        assert_eq!(read("AH", 0x8034, Size::Dword), -128);
        assert_eq!(read("EAX", 0xffff_ffff, Size::Qword), -1);
    }
}
