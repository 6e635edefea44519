//! Places between the statements of a text, where something can be put in.
//!
//! A graph has fewer: where a block ends, before a loop and its condition, before a label and behind it there
//! is no location. What a gap is to the graph are the steps that come by it.

use crate::Language;
use wattle_model::{Program, Span, StepId};

/// A place of the text. Copies of one text, as an unrolled loop has them, are one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    pub side: Side,
    /// The steps that lead there: what is put in comes right behind them, and on no other way.
    pub ways: Vec<StepId>,
    /// Labels that the text has before it: they name what is put in, and no longer what comes behind.
    pub labels: Vec<String>,
    /// How often an unrolled loop has the text.
    pub copies: usize,
}

/// What a gap is beside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// Before a statement and its labels.
    Before(Span),
    /// Before a statement and behind its labels.
    BehindLabels(Span),
    /// Behind the last statement of a block.
    Behind(Span),
}

/// The gaps of a text, family by family, in the steps of the program that it parses to. Empty if the
/// language does not know them: then they are told from the places of statements and steps.
pub fn gaps(language: Language, text: &str) -> Vec<Vec<Gap>> {
    match language {
        Language::Wtl => crate::wtl::gaps(text),
        Language::Rmm
        | Language::Litmus
        | Language::X86
        | Language::Bitchaku
        | Language::Boolean
        | Language::Imp
        | Language::Trencher => Vec::new(),
    }
}

/// Gaps in the steps of a program, in those of its canonical form.
pub(crate) fn canonical(program: &Program, gaps: Vec<Vec<Gap>>) -> Vec<Vec<Gap>> {
    // Numbers are written to where places are, which nobody looks at.
    let mut numbered = program.clone();
    for family in &mut numbered.families {
        for (i, step) in family.steps.iter_mut().enumerate() {
            step.span = Span::new(i, i, 0);
        }
    }
    let numbered = numbered.canonical();
    let families = gaps.into_iter().zip(&numbered.families);
    let of_family = |(gaps, family): (Vec<Gap>, &wattle_model::Family)| {
        let steps = family.steps.iter().map(|s| s.span.start as usize);
        let old: Vec<usize> = steps.collect();
        let length = old.iter().max().map_or(0, |m| m + 1);
        let mut new = vec![None; length];
        for (n, o) in old.iter().enumerate() {
            new[*o] = Some(StepId::new(n));
        }
        let renumbered = gaps.into_iter().map(|g| {
            let ways = g.ways.iter();
            let mut ways: Vec<StepId> = ways.filter_map(|s| *new.get(s.index())?).collect();
            ways.sort_unstable();
            Gap { ways, ..g }
        });
        renumbered.filter(|g| !g.ways.is_empty()).collect()
    };
    families.map(of_family).collect()
}
