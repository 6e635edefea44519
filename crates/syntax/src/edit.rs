//! Fences put into a source text, in its own language.
//!
//! The text is edited, not printed anew: comments and layout stay. Whoever calls this parses the result and
//! checks it again.

use crate::Language;
use crate::gaps::Side;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use wattle_model::{FamilyId, LocationId, Program, Span, StepId};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FenceEdit {
    pub family: FamilyId,
    pub what: Edit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Edit {
    Fence(At),
    StoreFence(At),
    /// The store becomes atomic.
    Swap(StepId),
    /// The read-modify-write with this text becomes atomic.
    Lock(Span),
}

/// Where a fence is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum At {
    Text(Side),
    /// In automata.
    Location(LocationId),
}

/// Why a fence cannot be written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EditError {
    /// No text starts at the location.
    NoPlace { family: String },
    /// The language has no such thing.
    NoWord {
        language: &'static str,
        what: &'static str,
    },
}

impl fmt::Display for EditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EditError::NoPlace { family } => {
                write!(f, "no text of `{family}` stands where the fence belongs")
            }
            EditError::NoWord { language, what } => {
                write!(f, "the language {language} has no {what}")
            }
        }
    }
}

impl std::error::Error for EditError {}

/// The text with the fences in. `program` is what the text means.
pub fn insert_fences(
    language: Language,
    text: &str,
    program: &Program,
    fences: &[FenceEdit],
) -> Result<String, EditError> {
    if language == Language::Trencher {
        return trencher(text, program, fences);
    }
    // Text to insert, and text to replace, by position.
    let mut inserts: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    let mut replaced: BTreeMap<usize, (usize, String)> = BTreeMap::new();
    for fence in fences {
        let family = program.family(fence.family);
        let no_place = || EditError::NoPlace {
            family: family.name.clone(),
        };
        let word = word(language, fence.what)?;
        match fence.what {
            Edit::Lock(span) => {
                let span = Some(span).filter(|s| s.is_some()).ok_or_else(no_place)?;
                let (at, end, new) = atomic(language, text, span).ok_or_else(no_place)?;
                replaced.insert(at, (end, new));
            }
            Edit::Swap(s) => {
                let step = family.steps.get(s.index()).ok_or_else(no_place)?;
                let (at, end, new) = atomic(language, text, step.span).ok_or_else(no_place)?;
                replaced.insert(at, (end, new));
            }
            Edit::Fence(At::Text(side)) | Edit::StoreFence(At::Text(side)) => {
                let written = match side {
                    Side::Before(span) => before(language, text, span, &word),
                    Side::BehindLabels(span) => behind_labels(text, span, &word),
                    Side::Behind(span) => after(language, text, span, &word),
                };
                let (at, new) = written.ok_or_else(no_place)?;
                push(&mut inserts, at, new);
            }
            Edit::Fence(At::Location(_)) | Edit::StoreFence(At::Location(_)) => {
                return Err(no_place());
            }
        }
    }
    let mut out = String::with_capacity(text.len() + 64);
    let mut skip = 0;
    for (i, c) in text
        .char_indices()
        .map(|(i, c)| (i, Some(c)))
        .chain([(text.len(), None)])
    {
        for new in inserts.get(&i).into_iter().flatten() {
            out.push_str(new);
        }
        if let Some((end, new)) = replaced.get(&i) {
            out.push_str(new);
            skip = *end;
        }
        if let Some(c) = c.filter(|_| i >= skip) {
            out.push(c);
        }
    }
    Ok(out)
}

fn push(inserts: &mut BTreeMap<usize, Vec<String>>, at: usize, new: String) {
    let here = inserts.entry(at).or_default();
    if !here.contains(&new) {
        here.push(new);
    }
}

/// The fence as the language writes it, without separators.
fn word(language: Language, what: Edit) -> Result<String, EditError> {
    let missing = |what: &'static str| EditError::NoWord {
        language: language.name(),
        what,
    };
    let store = matches!(what, Edit::StoreFence(_));
    Ok(match (language, what) {
        (Language::Litmus | Language::X86, Edit::Swap(_)) => {
            return Err(missing("store that can be made atomic in place"));
        }
        // Nothing is ever pending there.
        (Language::Boolean, _) => return Err(missing("fence")),
        (Language::Bitchaku | Language::Imp, Edit::Swap(_)) => {
            return Err(missing("atomic store"));
        }
        (Language::Bitchaku | Language::Imp | Language::Trencher, Edit::Lock(_)) => {
            return Err(missing("atomic statement"));
        }
        (Language::Wtl, _) if store => "fence store",
        (Language::Rmm, _) if store => "ssfence",
        // A full fence does what a store fence does, and more.
        (Language::Litmus, _) => "MFENCE",
        (Language::X86, _) => "mfence",
        _ => "fence",
    }
    .to_string())
}

/// How lines end in a text.
fn line_end(text: &str) -> &'static str {
    match text.contains("\r\n") {
        true => "\r\n",
        false => "\n",
    }
}

/// The blanks before a position, if there is nothing else before it in its line.
fn blanks_before(text: &str, at: usize) -> Option<&str> {
    let before = text.get(..at)?;
    let line = before.rfind('\n').map_or(0, |n| n + 1);
    let blanks = before.get(line..)?;
    blanks
        .chars()
        .all(|c| c == ' ' || c == '\t')
        .then_some(blanks)
}

/// Whether nothing but blanks and a comment follows in the line.
fn ends_line(rest: &str) -> bool {
    let line = rest.lines().next().unwrap_or("").trim();
    line.is_empty() || ["//", "#", "--", "%"].iter().any(|c| line.starts_with(c))
}

/// Where and what to insert so that the fence comes before the statement.
fn before(language: Language, text: &str, span: Span, word: &str) -> Option<(usize, String)> {
    let start = span.start as usize;
    if !text.is_char_boundary(start) {
        return None;
    }
    match language {
        Language::Litmus => Some(litmus_row(text, start, word)),
        Language::X86 => {
            let end = line_end(text);
            Some((start, format!("{word}{end}{}", indentation(text, start))))
        }
        _ => {
            let at = before_labels(language, text, start);
            // On a line of its own if the statement has one.
            Some(match blanks_before(text, at) {
                Some(blanks) => (at, format!("{word};{}{blanks}", line_end(text))),
                None => (at, format!("{word}; ")),
            })
        }
    }
}

/// Line and column of a position, both counted from 1.
pub fn position(text: &str, at: usize) -> (u32, u32) {
    let (line, column) = crate::diagnostics::position(text, Span::new(at, at, 0));
    let narrow = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    (narrow(line), narrow(column))
}

/// Line and column that a fence before the statement goes to.
pub fn place_before(language: Language, text: &str, span: Span) -> (u32, u32) {
    let at = before_labels(language, text, span.start as usize);
    position(text, at)
}

/// Where the labels of the statement begin: who is at a label is past the fence. Labels in `.wtl` are
/// names of places only; elsewhere jumps lead to them, and have to meet the fence too.
fn before_labels(language: Language, text: &str, start: usize) -> usize {
    if language != Language::Wtl {
        return start;
    }
    let mut at = start;
    while let Some(before) = text.get(..at) {
        let Some(label) = before.trim_end().strip_suffix(':') else {
            break;
        };
        let label = label.trim_end();
        let name = label.trim_end_matches(|c: char| c.is_alphanumeric() || c == '_');
        if name.len() == label.len() {
            break;
        }
        at = name.len();
    }
    at
}

/// Where and what to insert so that the fence comes between the labels and the statement.
fn behind_labels(text: &str, span: Span, word: &str) -> Option<(usize, String)> {
    let start = span.start as usize;
    text.get(start..)?;
    Some(match blanks_before(text, start) {
        Some(blanks) => (start, format!("{word};{}{blanks}", line_end(text))),
        None => (start, format!("{word}; ")),
    })
}

/// Where and what to insert so that the fence comes after the statement.
fn after(language: Language, text: &str, span: Span, word: &str) -> Option<(usize, String)> {
    let end = span.end as usize;
    text.get(end..)?;
    match language {
        Language::Litmus => {
            // The table has more lines below it.
            let next = text.get(span.start as usize..)?.find('\n')? + span.start as usize + 1;
            let (_, row) = litmus_row(text, span.start as usize, word);
            Some((next, row))
        }
        Language::X86 => {
            let indentation = indentation(text, span.start as usize);
            Some((
                end_of_line(text, end),
                format!("{}{indentation}{word}", line_end(text)),
            ))
        }
        _ => {
            let Some(at) = behind(language, text, span) else {
                return Some((end, format!("; {word}")));
            };
            Some(match line_behind(language, text, span, at) {
                Some(blanks) => (
                    end_of_line(text, at),
                    format!("{}{blanks}{word};", line_end(text)),
                ),
                None => (at, format!(" {word};")),
            })
        }
    }
}

/// Where the statement and what separates it from the next end; none if nothing separates them.
fn behind(language: Language, text: &str, span: Span) -> Option<usize> {
    let end = span.end as usize;
    let rest = text.get(end..)?;
    let ended = text.get(..end)?.ends_with(match language {
        // Blocks are statements that nothing has to end.
        Language::Wtl => &[';', '}'][..],
        _ => &[';'][..],
    });
    match (ended, rest.trim_start().starts_with(';')) {
        (true, _) => Some(end),
        (false, true) => Some(end + rest.len() - rest.trim_start().len() + 1),
        (false, false) => None,
    }
}

/// How far a line of its own behind a statement that ends at `at` is indented; none if more of the line
/// follows, or the line begins outside of the block.
fn line_behind(language: Language, text: &str, span: Span, at: usize) -> Option<String> {
    let start = before_labels(language, text, span.start as usize);
    let line = text.get(..start)?.rfind('\n').map_or(0, |n| n + 1);
    let before = text.get(line..start)?;
    if !ends_line(text.get(at..)?) {
        return None;
    }
    let is_label = |label: &str| label.chars().all(|c| c.is_alphanumeric() || c == '_');
    match before.trim().strip_suffix(':') {
        // Below the statement, not below its label.
        Some(label) if is_label(label) => {
            let blank = |c: char| if c == '\t' { c } else { ' ' };
            Some(before.chars().map(blank).collect())
        }
        _ if before.trim().is_empty() || (language == Language::Wtl && is_closed(before)) => {
            Some(before.chars().take_while(|c| c.is_whitespace()).collect())
        }
        _ => None,
    }
}

/// Whether no block is left open in the text, and none that was open before is closed.
fn is_closed(text: &str) -> bool {
    let braces = text.chars().filter_map(|c| match c {
        '{' => Some(1),
        '}' => Some(-1),
        _ => None,
    });
    let depths = braces.scan(0, |depth, by| {
        *depth += by;
        Some(*depth)
    });
    let depths: Vec<i32> = depths.collect();
    depths.iter().all(|d| *d >= 0) && depths.last().is_none_or(|d| *d == 0)
}

/// The statement that a fence is written beside, where it gets no line of its own.
pub fn beside(language: Language, text: &str, side: Side) -> Option<String> {
    match language {
        Language::Litmus | Language::X86 | Language::Trencher => return None,
        Language::Wtl | Language::Rmm | Language::Bitchaku | Language::Boolean | Language::Imp => {}
    }
    let (span, alone) = match side {
        Side::Behind(span) => {
            let at = behind(language, text, span);
            let alone = at.and_then(|at| line_behind(language, text, span, at));
            (span, alone.is_some())
        }
        Side::Before(span) => {
            let at = before_labels(language, text, span.start as usize);
            (span, blanks_before(text, at).is_some())
        }
        Side::BehindLabels(span) => {
            let alone = blanks_before(text, span.start as usize);
            (span, alone.is_some())
        }
    };
    let statement = text.get(span.start as usize..span.end as usize)?;
    let statement = statement.trim().trim_end_matches(';').trim_end();
    let shown = match (statement.split_once('{'), statement.split_once('\n')) {
        (Some((head, _)), _) => format!("{} {{ … }}", head.trim_end()),
        (None, Some((head, _))) => format!("{} …", head.trim_end()),
        (None, None) => statement.to_string(),
    };
    (!alone).then_some(shown)
}

/// Where the line of a position ends, before its line end.
fn end_of_line(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or("");
    let line = rest.split('\n').next().unwrap_or("");
    at + line.trim_end_matches('\r').len()
}

/// The statement's text, and what makes it atomic.
fn atomic(language: Language, text: &str, span: Span) -> Option<(usize, usize, String)> {
    let (start, mut end) = (span.start as usize, span.end as usize);
    let statement = text.get(start..end)?;
    match language {
        Language::Wtl => {
            let rest = text.get(end..)?;
            let blank = rest.len() - rest.trim_start().len();
            if !statement.ends_with(';') && rest.trim_start().starts_with(';') {
                end += blank + 1;
            }
            let statement = text.get(start..end)?;
            Some((start, end, format!("atomic {{ {statement} }}")))
        }
        Language::Rmm => Some((start, start, "locked ".to_string())),
        Language::X86 => Some((start, start, "lock ".to_string())),
        Language::Litmus => Some((start, start, "LOCK ".to_string())),
        _ => None,
    }
}

fn indentation(text: &str, at: usize) -> String {
    let line = text[..at].rfind('\n').map_or(0, |n| n + 1);
    let blank = |c: &char| c.is_whitespace();
    let own: String = text[line..].chars().take_while(blank).collect();
    if own.is_empty() {
        "    ".to_string()
    } else {
        own
    }
}

/// A row of a litmus table with one instruction, to go before the row at `at`.
fn litmus_row(text: &str, at: usize, word: &str) -> (usize, String) {
    let start = text[..at].rfind('\n').map_or(0, |n| n + 1);
    let end = text[at..].find('\n').map_or(text.len(), |n| at + n);
    let column = text[start..at].matches('|').count();
    let columns = text[start..end].matches('|').count() + 1;
    let cells = (0..columns).map(|c| {
        if c == column {
            format!(" {word} ")
        } else {
            " ".into()
        }
    });
    (
        start,
        format!(
            "{} ;{}",
            cells.collect::<Vec<_>>().join("|"),
            line_end(text)
        ),
    )
}

/// Automata: a fenced state gets a twin that its transitions leave from.
fn trencher(text: &str, program: &Program, fences: &[FenceEdit]) -> Result<String, EditError> {
    // By thread: states to fence; lines of stores to lock.
    let mut fenced: BTreeSet<(&str, &str)> = BTreeSet::new();
    let mut locked: BTreeSet<u32> = BTreeSet::new();
    for fence in fences {
        let family = program.family(fence.family);
        let no_place = || EditError::NoPlace {
            family: family.name.clone(),
        };
        match fence.what {
            Edit::Fence(At::Text(_)) | Edit::StoreFence(At::Text(_)) => return Err(no_place()),
            Edit::Fence(At::Location(l)) | Edit::StoreFence(At::Location(l)) => {
                let location = family.locations.get(l.index()).ok_or_else(no_place)?;
                let state = location.labels.first().ok_or_else(no_place)?;
                fenced.insert((&family.name, state));
            }
            Edit::Swap(s) => {
                let step = family.steps.get(s.index()).ok_or_else(no_place)?;
                locked.insert(step.span.line);
            }
            Edit::Lock(_) => return Err(no_place()),
        }
    }
    let mut words: BTreeSet<&str> = text.split_whitespace().collect();
    let mut twins: BTreeMap<(&str, &str), String> = BTreeMap::new();
    for (thread, state) in &fenced {
        let mut twin = format!("{state}_fenced");
        while words.contains(twin.as_str()) {
            twin.push('_');
        }
        twins.insert((thread, state), twin);
    }
    words.extend(twins.values().map(String::as_str));
    let mut out = String::new();
    let end = line_end(text);
    let (mut thread, mut number) = ("", 0u32);
    let mut written: BTreeSet<(&str, &str)> = BTreeSet::new();
    for line in text.split_inclusive('\n') {
        number += 1;
        let mut parts = line.split_whitespace();
        let (first, second) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
        let target = parts.next().unwrap_or("");
        if first == "thread" {
            thread = second;
        }
        if first != "transition" {
            out.push_str(line);
            continue;
        }
        let mut source = second.to_string();
        if let Some(twin) = twins.get(&(thread, second)) {
            if written.insert((thread, second)) {
                out.push_str(&format!("transition {second} {twin} mfence{end}"));
            }
            source.clone_from(twin);
        }
        // The word after `transition` is the source, the next one the target.
        let after = line
            .find("transition")
            .map_or(0, |n| n + "transition".len());
        let at = after + (line[after..].len() - line[after..].trim_start().len());
        let (head, tail) = (&line[..at], &line[at + second.len()..]);
        if locked.contains(&number) {
            let fresh = |n: u32| {
                let mut name = format!("{second}_locked{n}");
                while words.contains(name.as_str()) {
                    name.push('_');
                }
                name
            };
            let (a, b) = (fresh(number), format!("{}_stored", fresh(number)));
            let rest = tail
                .trim_start()
                .strip_prefix(target)
                .unwrap_or("")
                .trim_end();
            out.push_str(&format!("transition {source} {a} lock{end}"));
            out.push_str(&format!("transition {a} {b} {}{end}", rest.trim_start()));
            out.push_str(&format!("transition {b} {target} unlock{end}"));
            continue;
        }
        out.push_str(head);
        out.push_str(&source);
        out.push_str(tail);
    }
    Ok(out)
}
