//! What a set of final states says about a test, in herd's words.
//!
//! herd counts executions; a final state may have many. Here `Positive` and `Negative` count final
//! states.

use std::collections::BTreeSet;
use std::fmt;
use wattle_syntax::litmus::{LitmusTest, Quantifier};

/// How often the condition's proposition holds in final states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observation {
    Never,
    Sometimes,
    Always,
}

impl fmt::Display for Observation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Observation::Never => "Never",
            Observation::Sometimes => "Sometimes",
            Observation::Always => "Always",
        })
    }
}

/// The answer to a test. `Display` prints it like herd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    pub name: String,
    pub quantifier: Quantifier,
    /// Quantifier and condition.
    pub condition: String,
    /// What a state consists of, `0:EAX` and `[x]`.
    pub items: Vec<String>,
    /// Sorted. Values may be addresses: [`Summary::location`].
    pub states: Vec<Vec<i64>>,
    /// Addresses and the names of their locations.
    addresses: Vec<(i64, String)>,
    /// Final states that satisfy the proposition, and that do not.
    pub positive: usize,
    pub negative: usize,
}

impl Summary {
    /// Summarises final states given as the values of the test's items. What the filter rejects
    /// does not count.
    pub fn new(name: &str, test: &LitmusTest, states: &BTreeSet<Vec<i64>>) -> Self {
        let holds = |e: &wattle_model::Expr<usize>, state: &[i64]| {
            let value = e.eval(&|i: &usize| state.get(*i).copied().unwrap_or(0));
            value.is_ok_and(|v| v != 0)
        };
        let counted = states
            .iter()
            .filter(|s| test.item_filter.as_ref().is_none_or(|f| holds(f, s)));
        // States that differ only in what the filter looks at are one state.
        let mut shown: BTreeSet<&[i64]> = BTreeSet::new();
        let mut positive = 0;
        for state in counted {
            let visible = &state[..test.shown.min(state.len())];
            if shown.insert(visible) && holds(&test.proposition, state) {
                positive += 1;
            }
        }
        Summary {
            name: name.to_string(),
            quantifier: test.quantifier,
            condition: test.text.clone(),
            items: test.items[..test.shown]
                .iter()
                .map(|i| i.name.clone())
                .collect(),
            negative: shown.len() - positive,
            positive,
            states: shown.iter().map(|s| s.to_vec()).collect(),
            addresses: test.addresses.clone(),
        }
    }

    /// Whether the test's condition is met.
    pub fn holds(&self) -> bool {
        match self.quantifier {
            Quantifier::Exists => self.positive > 0,
            Quantifier::NotExists => self.positive == 0,
            Quantifier::Forall => self.negative == 0,
        }
    }

    pub fn observation(&self) -> Observation {
        match (self.positive, self.negative) {
            (0, _) => Observation::Never,
            (_, 0) => Observation::Always,
            _ => Observation::Sometimes,
        }
    }

    /// The name of the location that a value is the address of.
    pub fn location(&self, value: i64) -> Option<&str> {
        let mut addresses = self.addresses.iter();
        let (_, name) = addresses.find(|(a, _)| *a == value)?;
        Some(name)
    }

    /// `0:EAX=1; [x]=2;`
    pub fn state_line(&self, state: &[i64]) -> impl fmt::Display {
        std::fmt::from_fn(move |f| {
            for (i, (item, value)) in self.items.iter().zip(state).enumerate() {
                let gap = if i > 0 { " " } else { "" };
                match self.location(*value) {
                    Some(name) => write!(f, "{gap}{item}={name};")?,
                    None => write!(f, "{gap}{item}={value};")?,
                }
            }
            Ok(())
        })
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.quantifier {
            Quantifier::Exists => "Allowed",
            Quantifier::NotExists => "Forbidden",
            Quantifier::Forall => "Required",
        };
        writeln!(f, "Test {} {kind}", self.name)?;
        writeln!(f, "States {}", self.states.len())?;
        for state in &self.states {
            writeln!(f, "{}", self.state_line(state))?;
        }
        writeln!(f, "{}", if self.holds() { "Ok" } else { "No" })?;
        writeln!(f, "Witnesses")?;
        let (positive, negative) = (self.positive, self.negative);
        writeln!(f, "Positive: {positive} Negative: {negative}")?;
        writeln!(f, "Condition {}", self.condition)?;
        writeln!(
            f,
            "Observation {} {} {positive} {negative}",
            self.name,
            self.observation()
        )
    }
}
