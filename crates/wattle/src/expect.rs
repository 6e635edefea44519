//! What a file says about its own answers, in comment lines of its header:
//!
//! ```text
//! // expect: sc holds, tso violated, pso violated
//! // expect 2: sc holds, tso holds (explicit: bounded), pso holds
//! ```
//!
//! `expect 2` is about the second property. A note in parentheses is what one engine gives instead,
//! because it cannot do better; the answer itself it never contradicts. `fairness: none` (or `strong`) in the
//! header is what the answers about runs take for granted instead of `weak`.

use std::collections::BTreeMap;
use wattle_evidence::live::Fairness;
use wattle_memory::MemoryModel;

/// The true answer about a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It holds.
    Holds,
    /// It does not.
    Violated,
}

/// What is expected of one property under one memory model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The true answer.
    pub answer: Answer,
    /// What engines may say instead, as written.
    pub notes: Vec<String>,
}

/// By property (from 0) and memory model.
pub type Expectations = BTreeMap<(usize, MemoryModel), Expected>;

/// The expectations of a text. Errors name the line.
pub fn of_text(text: &str) -> Result<Expectations, String> {
    let mut all = Expectations::new();
    for (number, line) in (1..).zip(text.lines()) {
        let Some((property, answers)) = header(line) else {
            continue;
        };
        for answer in answers.split(", ") {
            let (model, expected) = one(answer).map_err(|why| format!("line {number}: {why}"))?;
            all.insert((property, model), expected);
        }
    }
    Ok(all)
}

/// The fairness the answers are about.
pub fn fairness(text: &str) -> Result<Fairness, String> {
    for (number, line) in (1..).zip(text.lines()) {
        let comment = line.trim_start_matches(['/', '#', '-', ';', '(', '*', ' ']);
        let Some(said) = comment.strip_prefix("fairness: ") else {
            continue;
        };
        let word = said.split_whitespace().next().unwrap_or("");
        return match word {
            "none" => Ok(Fairness::None),
            "weak" => Ok(Fairness::Weak),
            "strong" => Ok(Fairness::Strong),
            "memory" => Ok(Fairness::Memory),
            other => Err(format!(
                "line {number}: `{other}` is no fairness; expected `none`, `weak`, `strong` or `memory`"
            )),
        };
    }
    Ok(Fairness::Weak)
}

/// The property a line is about, and what it says.
fn header(line: &str) -> Option<(usize, &str)> {
    let line = line.trim_start_matches(|c: char| !c.is_alphabetic());
    let (number, answers) = line.strip_prefix("expect")?.split_once(':')?;
    let property = match number.trim() {
        "" => 0,
        n => n.parse::<usize>().ok()?.checked_sub(1)?,
    };
    Some((property, answers.trim()))
}

fn one(answer: &str) -> Result<(MemoryModel, Expected), String> {
    let mut words = answer.split_whitespace();
    let (model, verdict) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    let all = MemoryModel::ALL.into_iter();
    let model = all.clone().find(|m| m.keyword() == model).ok_or_else(|| {
        let known: Vec<&str> = all.map(|m| m.keyword()).collect();
        format!(
            "`{answer}` begins with no memory model ({})",
            known.join(", ")
        )
    })?;
    let answer = match verdict.trim_matches(',') {
        "holds" => Answer::Holds,
        "violated" => Answer::Violated,
        other => {
            return Err(format!(
                "`{other}` is no answer; expected `holds` or `violated`"
            ));
        }
    };
    let notes = words.map(|w| w.trim_matches(['(', ')', ',']).to_string());
    let notes = notes.collect();
    Ok((model, Expected { answer, notes }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_any_language() {
        let text =
            "# expect: sc holds, tso violated\n(* expect 2: pso holds (explicit: bounded) *)\n";
        let all = of_text(text).expect("fine");
        assert_eq!(all[&(0, MemoryModel::Tso)].answer, Answer::Violated);
        assert_eq!(all[&(1, MemoryModel::Pso)].notes[0], "explicit:");
        assert_eq!(all.len(), 3);
        assert!(of_text("// expect: arm holds").is_err());
        assert!(of_text("// expect: tso hold").is_err_and(|e| e.contains("line 1")));
        assert!(of_text("// we expect nothing\nx = 1;").is_ok_and(|e| e.is_empty()));
    }

    #[test]
    fn fairness_of_any_language() {
        assert_eq!(fairness("# fairness: strong\n"), Ok(Fairness::Strong));
        assert_eq!(fairness("(* fairness: none *)"), Ok(Fairness::None));
        assert_eq!(fairness("// Without fairness: nothing"), Ok(Fairness::Weak));
        assert!(fairness("x\n// fairness: some").is_err_and(|e| e.contains("line 2")));
    }
}
