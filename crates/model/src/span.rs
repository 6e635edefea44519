//! Where something stands in the source text.

/// A half-open byte range with the 1-based line of its start. `Span::NONE` marks what no one wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    pub start: u32,
    pub end: u32,
    pub line: u32,
}

impl Span {
    pub const NONE: Span = Span {
        start: 0,
        end: 0,
        line: 0,
    };

    pub fn new(start: usize, end: usize, line: usize) -> Self {
        let clip = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Span {
            start: clip(start),
            end: clip(end),
            line: clip(line),
        }
    }

    /// Whether the span points at real text.
    pub fn is_some(self) -> bool {
        self.line != 0
    }

    /// From the start of `self` to the end of `other`.
    pub fn to(self, other: Span) -> Span {
        match (self.is_some(), other.is_some()) {
            (false, _) => other,
            (_, false) => self,
            _ => Span {
                start: self.start,
                end: other.end.max(self.end),
                line: self.line,
            },
        }
    }
}

impl crate::program::Program {
    /// The same program with every span erased: equality up to layout of the source.
    pub fn without_spans(&self) -> Self {
        let mut p = self.clone();
        p.regions.iter_mut().for_each(|r| r.span = Span::NONE);
        p.properties.iter_mut().for_each(|q| q.span = Span::NONE);
        p.temporal.iter_mut().for_each(|t| t.span = Span::NONE);
        for f in &mut p.families {
            f.span = Span::NONE;
            f.registers.iter_mut().for_each(|r| r.span = Span::NONE);
            f.locations.iter_mut().for_each(|l| l.span = Span::NONE);
            f.steps.iter_mut().for_each(|s| s.span = Span::NONE);
        }
        p
    }
}
