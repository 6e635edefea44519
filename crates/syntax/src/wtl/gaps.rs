//! Where something can be put into a text.

use super::{Collector, lower, parser};
use crate::gaps::{Gap, canonical};

/// The gaps of a text that parses and calls no compiled code.
pub(crate) fn gaps(text: &str) -> Vec<Vec<Gap>> {
    let mut report = Collector::default();
    let file = parser::parse(text, &mut report);
    if file.incomplete || report.errors > 0 {
        return Vec::new();
    }
    let (program, link, gaps) = lower::lower(&file, &mut report);
    match report.errors == 0 && link.objects.is_empty() {
        true => canonical(&program, gaps),
        false => Vec::new(),
    }
}
