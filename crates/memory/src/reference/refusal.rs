//! What the machine does not run, and why.

/// Nondeterministic choices wider than this are refused: one event per value would not end.
pub const MAX_CHOICE: u64 = 1 << 16;

/// Why the machine cannot run an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A register or cell that starts with, or is assigned, any of too many values.
    TooManyChoices { what: String },
    /// More initial states than anyone wants to list.
    TooManyStarts,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refusal::TooManyChoices { what } => write!(
                f,
                "`{what}` may take any of more than {MAX_CHOICE} values; give it a smaller range"
            ),
            Refusal::TooManyStarts => write!(
                f,
                "there are more than {MAX_CHOICE} initial states; give `any` smaller ranges"
            ),
        }
    }
}
