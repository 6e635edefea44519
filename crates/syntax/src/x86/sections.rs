//! `begin name … end name`: a file is a list of sections.

use crate::diagnostics::{Diagnostic, nearest};
use crate::tokens::{Kind, Token};
use wattle_model::Span;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    SharedData,
    ThreadData,
    InitCode,
    ThreadCode,
    UnsafeProp,
}

impl Section {
    pub const ALL: [Section; 5] = [
        Section::SharedData,
        Section::ThreadData,
        Section::InitCode,
        Section::ThreadCode,
        Section::UnsafeProp,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Section::SharedData => "shared_data",
            Section::ThreadData => "thread_data",
            Section::InitCode => "init_code",
            Section::ThreadCode => "thread_code",
            Section::UnsafeProp => "unsafe_prop",
        }
    }

    fn named(text: &str) -> Option<Section> {
        Section::ALL
            .into_iter()
            .find(|s| s.name().eq_ignore_ascii_case(text))
    }
}

pub struct Block<'t> {
    pub section: Section,
    /// What it is called, or whose it is: `begin thread_code writer`.
    pub name: Option<Token<'t>>,
    /// How many threads run it: `begin thread_code writer 2`.
    pub count: Option<Token<'t>>,
    pub lines: Vec<Vec<Token<'t>>>,
    pub span: Span,
}

/// Splits the lines into sections.
pub fn sections<'t>(
    lines: Vec<Vec<Token<'t>>>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<Block<'t>> {
    let mut blocks: Vec<Block<'t>> = Vec::new();
    let mut open: Option<Option<Block<'t>>> = None;
    let mut opened = Span::NONE;
    for line in lines {
        let (first, second) = (line[0], line.get(1).copied().unwrap_or(line[0]));
        let label = second.is(":");
        if first.is_word("begin") && !label {
            if open.is_some() {
                let message = "a section begins inside another";
                let hint = format!("close the one begun on line {} with `end`", opened.line);
                diagnostics.push(Diagnostic::error(first.span, message).hint(hint));
            }
            blocks.extend(open.take().flatten());
            opened = first.span;
            open = Some(match Section::named(second.text) {
                Some(section) => {
                    let (name, count) = named(section, line.get(2..).unwrap_or(&[]), diagnostics);
                    Some(Block {
                        section,
                        name,
                        count,
                        lines: Vec::new(),
                        span: first.span.to(second.span),
                    })
                }
                None => {
                    diagnostics.push(unknown(second));
                    None
                }
            });
        } else if first.is_word("end") && !label {
            match open.take() {
                Some(block) => {
                    if let Some(b) = &block
                        && second.kind == Kind::Name
                        && Section::named(second.text) != Some(b.section)
                    {
                        let message = format!("`{}` ends as `{}`", b.section.name(), second.text);
                        diagnostics.push(
                            Diagnostic::error(second.span, message)
                                .expected(format!("`end {}`", b.section.name())),
                        );
                    }
                    blocks.extend(block);
                }
                None => diagnostics.push(Diagnostic::error(first.span, "no section is open here")),
            }
        } else {
            match &mut open {
                Some(Some(block)) => block.lines.push(line),
                Some(None) => {}
                None => {
                    diagnostics.push(outside(first, blocks.is_empty()));
                    // One message is enough for a file in another language.
                    if blocks.is_empty() {
                        return blocks;
                    }
                }
            }
        }
    }
    if let Some(block) = open {
        let message = "this section is not closed";
        let name = block.as_ref().map_or("…", |b| b.section.name());
        diagnostics.push(Diagnostic::error(opened, message).expected(format!("`end {name}`")));
        blocks.extend(block);
    }
    blocks
}

/// What follows a section's kind: the name of a function, and how many threads run it.
fn named<'t>(
    section: Section,
    rest: &[Token<'t>],
    diagnostics: &mut Vec<Diagnostic>,
) -> (Option<Token<'t>>, Option<Token<'t>>) {
    let rest: Vec<Token<'t>> = (rest.iter().copied())
        .filter(|t| t.kind != Kind::End)
        .collect();
    match (section, rest.as_slice()) {
        (_, []) => (None, None),
        (Section::ThreadCode | Section::ThreadData, [name]) if name.kind == Kind::Name => {
            (Some(*name), None)
        }
        (Section::ThreadCode, [name, count])
            if name.kind == Kind::Name && count.kind == Kind::Number =>
        {
            (Some(*name), Some(*count))
        }
        (_, [first, ..]) => {
            let message = format!("{} cannot stand here", first.shown());
            let d = Diagnostic::error(first.span, message);
            diagnostics.push(d.expected("the end of the line, or after `thread_code` the name of what threads run and how many"));
            (None, None)
        }
    }
}

fn unknown(t: Token<'_>) -> Diagnostic {
    let d = Diagnostic::error(t.span, format!("unknown section {}", t.shown()));
    let all = Section::ALL.map(Section::name);
    match nearest(t.text, all) {
        Some(near) => d.hint(format!("did you mean `{near}`?")),
        None => d.expected(format!("one of {}", all.join(", "))),
    }
}

fn outside(t: Token<'_>, first: bool) -> Diagnostic {
    let d = Diagnostic::error(t.span, format!("{} stands outside any section", t.shown()))
        .expected("`begin shared_data`, `begin thread_code`, …");
    if first {
        d.hint(
            "name the language with `--lang` if this is not an x86 program with sections; what a compiler \
             writes is read from `.s` and `.o` files",
        )
    } else {
        d
    }
}
