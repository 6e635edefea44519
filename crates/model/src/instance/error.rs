//! Why there is no instance, in words.

use super::Counts;
use crate::program::{Count, Family, Program};
use crate::span::Span;

/// Why there is no instance.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InstanceError {
    #[error("the number of threads of `{family}` is not fixed")]
    Unfixed { family: String, span: Span },
    #[error("there is no family of threads called `{family}`")]
    NoFamily { family: String },
    #[error("`{family}` is a single thread; its number cannot be changed")]
    Single { family: String },
    #[error("the instance is too large: {what} (at most {limit})")]
    TooLarge { what: String, limit: u64 },
    #[error("`{what}` starts with a value outside its type")]
    BadInit { what: String, span: Span },
    #[error("`{what}` starts with {given} values but has {length} elements")]
    InitLength {
        what: String,
        given: usize,
        length: u32,
        span: Span,
    },
    #[error("the property speaks of `{family}[{index}]`, but there are only {count} such threads")]
    NoThread {
        family: String,
        index: u32,
        count: u32,
        span: Span,
    },
    #[error("the initial value of `{what}` is not a constant")]
    NotConstant { what: String, span: Span },
}

pub(super) fn unfixed(family: &Family) -> InstanceError {
    InstanceError::Unfixed {
        family: family.name.clone(),
        span: family.span,
    }
}

pub(super) fn init_length(what: String, given: usize, length: u32, span: Span) -> InstanceError {
    InstanceError::InitLength {
        what,
        given,
        length,
        span,
    }
}

pub(super) fn no_thread(family: &Family, index: u32, count: u32, span: Span) -> InstanceError {
    InstanceError::NoThread {
        family: family.name.clone(),
        index,
        count,
        span,
    }
}

pub(super) fn within(n: u64, limit: u64, what: &str) -> Result<(), InstanceError> {
    if n <= limit {
        return Ok(());
    }
    Err(InstanceError::TooLarge {
        what: format!("{n} {what}"),
        limit,
    })
}

/// Whether the counts given are of families that can have them.
pub(super) fn named(program: &Program, given: &Counts) -> Result<(), InstanceError> {
    for name in given.0.keys() {
        match program.family_named(name).map(|f| program.family(f)) {
            None => {
                return Err(InstanceError::NoFamily {
                    family: name.clone(),
                });
            }
            Some(f) if f.count == Count::One => {
                return Err(InstanceError::Single {
                    family: name.clone(),
                });
            }
            Some(_) => {}
        }
    }
    Ok(())
}
