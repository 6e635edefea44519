//! Lines to threads: words between blanks, `#` starts a comment line.

use crate::diagnostics::{Diagnostic, nearest};
use indexmap::IndexMap;
use wattle_model::program::Local;
use wattle_model::{Expr, Op1, Op2, RegisterId, Span};

/// Deeper expressions are refused: the model's own operations on expressions recurse.
const MAX_DEPTH: usize = 100;
/// After this many errors the rest of a file is not worth reporting.
pub(super) const MAX_ERRORS: usize = 100;

const LINE_WORDS: [&str; 6] = ["thread", "initial", "final", "goal", "transition", "end"];
const INSTRUCTIONS: [&str; 8] = [
    "write", "read", "mfence", "local", "check", "noop", "lock", "unlock",
];
const OPERATORS: [(&str, Op2); 14] = [
    ("==", Op2::Eq),
    ("!=", Op2::Ne),
    ("<", Op2::Lt),
    ("<=", Op2::Le),
    (">", Op2::Gt),
    (">=", Op2::Ge),
    ("&&", Op2::And),
    ("||", Op2::Or),
    ("+", Op2::Add),
    ("-", Op2::Sub),
    ("*", Op2::Mul),
    ("/", Op2::Div),
    ("%", Op2::Rem),
    ("&", Op2::BitAnd),
];

#[derive(Default)]
pub(super) struct Thread {
    pub name: String,
    pub span: Span,
    /// Control states in order of appearance, with the first place each is named.
    pub states: IndexMap<String, Span>,
    pub registers: IndexMap<String, Span>,
    pub initial: Option<usize>,
    pub finals: Vec<usize>,
    pub transitions: Vec<Transition>,
}

pub(super) struct Transition {
    pub source: usize,
    pub target: usize,
    pub instruction: Instruction,
    pub span: Span,
}

pub(super) enum Instruction {
    Write {
        value: Expr<Local>,
        address: Expr<Local>,
    },
    Read {
        register: RegisterId,
        address: Expr<Local>,
    },
    Assign {
        register: RegisterId,
        value: Expr<Local>,
    },
    Check(Expr<Local>),
    Fence,
    Noop,
    Lock,
    Unlock,
}

/// A word of a line.
#[derive(Clone, Copy)]
struct Word<'t> {
    text: &'t str,
    span: Span,
}

/// The words of one line, taken from the left.
struct Line<'t, 'd> {
    words: Vec<Word<'t>>,
    next: usize,
    end: Span,
    /// Messages before this line.
    before: usize,
    diagnostics: &'d mut Vec<Diagnostic>,
}

pub(super) fn file(text: &str, diagnostics: &mut Vec<Diagnostic>) -> Vec<Thread> {
    let mut threads: Vec<Thread> = Vec::new();
    let mut open = false;
    let mut start = 0;
    let mut number = 0;
    for line in text.split_inclusive('\n') {
        number += 1;
        let words = words(line, start, number);
        let end = start + line.trim_end().len();
        start += line.len();
        if words.is_empty() || words[0].text.starts_with('#') {
            continue;
        }
        if diagnostics.len() >= MAX_ERRORS {
            return threads;
        }
        if threads.is_empty() && !LINE_WORDS.contains(&words[0].text) {
            let message = "this does not look like a trencher program";
            diagnostics.push(
                Diagnostic::error(words[0].span, message)
                    .expected("`thread NAME`, `initial STATE`, `transition …` lines and `end`"),
            );
            return threads;
        }
        let line = Line {
            words,
            next: 0,
            end: Span::new(end, end, number),
            before: diagnostics.len(),
            diagnostics,
        };
        line.read(&mut threads, &mut open);
    }
    if open && let Some(t) = threads.last() {
        diagnostics.push(
            Diagnostic::error(t.span, format!("thread `{}` is not closed", t.name))
                .expected("`end` after its last transition"),
        );
    }
    if threads.is_empty() && diagnostics.is_empty() {
        diagnostics.push(
            Diagnostic::error(Span::NONE, "the file has no thread")
                .expected("`thread NAME`, `initial STATE`, `transition …` lines and `end`"),
        );
    }
    for t in &threads {
        if t.initial.is_none() {
            diagnostics.push(
                Diagnostic::error(t.span, format!("thread `{}` has no initial state", t.name))
                    .expected("`initial STATE`"),
            );
        }
    }
    threads
}

fn words(line: &str, start: usize, number: usize) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let mut from = None;
    for (i, c) in line.char_indices().chain([(line.len(), ' ')]) {
        match (c.is_whitespace(), from) {
            (false, None) => from = Some(i),
            (true, Some(f)) => {
                words.push(Word {
                    text: &line[f..i],
                    span: Span::new(start + f, start + i, number),
                });
                from = None;
            }
            _ => {}
        }
    }
    words
}

impl<'t> Line<'t, '_> {
    fn read(mut self, threads: &mut Vec<Thread>, open: &mut bool) {
        let Some(first) = self.take() else { return };
        match (first.text, *open) {
            ("thread", was_open) => {
                if was_open && let Some(t) = threads.last() {
                    let hint = format!("put `end` before this line to close `{}`", t.name);
                    self.error(first.span, "a thread inside a thread").hint = Some(hint);
                }
                *open = true;
                let name = self.word("a name for the thread");
                let thread = Thread {
                    name: name.map_or_else(|| format!("t{}", threads.len()), |w| w.text.into()),
                    span: name.map_or(first.span, |w| w.span),
                    ..Thread::default()
                };
                if threads.iter().any(|t| t.name == thread.name) {
                    let message = format!("two threads are called `{}`", thread.name);
                    self.error(thread.span, message);
                }
                threads.push(thread);
            }
            ("end", true) => *open = false,
            ("initial" | "final" | "goal" | "transition", true) => {
                if let Some(thread) = threads.last_mut() {
                    self.member(first, thread);
                }
            }
            (word, false) if LINE_WORDS.contains(&word) => {
                let message = format!("`{word}` outside a thread");
                self.error(first.span, message).expected = Some("`thread NAME`".into());
                return;
            }
            (word, _) => {
                let near = nearest(word, LINE_WORDS);
                let message = format!("a line cannot start with `{}`", clip(word));
                let d = self.error(first.span, message);
                d.expected = Some(
                    "`thread`, `initial`, `final`, `transition`, `end` or a `#` comment".into(),
                );
                d.hint = near.map(|n| format!("did you mean `{n}`?"));
                return;
            }
        }
        self.finish();
    }

    /// A line inside a thread.
    fn member(&mut self, first: Word<'t>, thread: &mut Thread) {
        if first.text == "transition" {
            self.transition(first, thread);
            return;
        }
        let Some(word) = self.word("a control state") else {
            return;
        };
        let state = state(thread, word);
        if first.text != "initial" {
            thread.finals.push(state);
            while let Some(more) = self.take_unless_comment() {
                let s = self::state(thread, more);
                thread.finals.push(s);
            }
        } else if thread.initial.replace(state).is_some() {
            let message = format!("thread `{}` has two initial states", thread.name);
            self.error(first.span.to(word.span), message);
        }
    }

    fn transition(&mut self, first: Word<'t>, thread: &mut Thread) {
        let source = self.word("the control state it leaves");
        let target = self.word("the control state it reaches");
        let kind = self.word("an instruction");
        let (Some(source), Some(target), Some(kind)) = (source, target, kind) else {
            return;
        };
        let source = state(thread, source);
        let target = state(thread, target);
        let instruction = self.instruction(kind, thread);
        let last = self.words[self.next.saturating_sub(1)].span;
        if let Some(instruction) = instruction
            && self.diagnostics.len() == self.before
        {
            thread.transitions.push(Transition {
                source,
                target,
                instruction,
                span: first.span.to(last),
            });
        }
    }

    fn instruction(&mut self, kind: Word<'t>, thread: &mut Thread) -> Option<Instruction> {
        Some(match kind.text {
            "write" => Instruction::Write {
                value: self.expr(thread, "the value to write", 0)?,
                address: self.expr(thread, "the address to write to", 0)?,
            },
            "read" => Instruction::Read {
                register: self.register(thread)?,
                address: self.expr(thread, "the address to read from", 0)?,
            },
            "local" => Instruction::Assign {
                register: self.register(thread)?,
                value: self.expr(thread, "the value to assign", 0)?,
            },
            "check" => Instruction::Check(self.expr(thread, "the condition to check", 0)?),
            "mfence" => Instruction::Fence,
            "noop" => Instruction::Noop,
            "lock" => Instruction::Lock,
            "unlock" => Instruction::Unlock,
            other => {
                let near = nearest(other, INSTRUCTIONS);
                let message = format!("unknown instruction `{}`", clip(other));
                let d = self.error(kind.span, message);
                d.expected = Some(INSTRUCTIONS.map(|i| format!("`{i}`")).join(", "));
                d.hint = near.map(|n| format!("did you mean `{n}`?"));
                return None;
            }
        })
    }

    fn register(&mut self, thread: &mut Thread) -> Option<RegisterId> {
        let word = self.word("a register")?;
        if is_operator(word.text) || word.text.parse::<i64>().is_ok() {
            let message = format!("`{}` cannot be a register", word.text);
            let d = self.error(word.span, message);
            d.expected = Some("the name of a register".into());
            d.hint = Some("`write` has the value before the address; `read` and `local` have the register first".into());
            return None;
        }
        Some(register(thread, word))
    }

    /// An expression in prefix notation.
    fn expr(&mut self, thread: &mut Thread, what: &str, depth: usize) -> Option<Expr<Local>> {
        let word = self.word(what)?;
        if depth > MAX_DEPTH {
            let message = format!("an expression nested more than {MAX_DEPTH} deep");
            self.error(word.span, message);
            return None;
        }
        if word.text == "!" {
            let of = self.expr(thread, "the operand of `!`", depth + 1)?;
            return Some(Expr::unary(Op1::Not, of));
        }
        if let Some((_, op)) = OPERATORS.iter().find(|(s, _)| *s == word.text) {
            let a = self.expr(
                thread,
                &format!("the left operand of `{}`", word.text),
                depth + 1,
            )?;
            let b = self.expr(
                thread,
                &format!("the right operand of `{}`", word.text),
                depth + 1,
            )?;
            return Some(Expr::binary(*op, a, b));
        }
        let digits = word.text.strip_prefix('-').unwrap_or(word.text);
        if digits.starts_with(|c: char| c.is_ascii_digit()) {
            // The language's numbers are those of a C++ `int`.
            return match word.text.parse::<i32>() {
                Ok(n) => Some(Expr::Const(n.into())),
                Err(_) => {
                    let message = format!("`{}` is not a 32-bit number", clip(word.text));
                    self.error(word.span, message);
                    None
                }
            };
        }
        Some(Expr::Atom(Local::Register(register(thread, word))))
    }

    fn take(&mut self) -> Option<Word<'t>> {
        let word = self.words.get(self.next).copied();
        self.next += usize::from(word.is_some());
        word
    }

    fn take_unless_comment(&mut self) -> Option<Word<'t>> {
        match self.words.get(self.next) {
            Some(w) if !w.text.starts_with('#') => self.take(),
            _ => None,
        }
    }

    fn word(&mut self, what: &str) -> Option<Word<'t>> {
        let word = self.take_unless_comment();
        if word.is_none() {
            let end = self.end;
            self.error(end, "the line ends too early").expected = Some(what.into());
        }
        word
    }

    /// Whatever is left on a line is an error, unless the line had one already; what follows `#` is
    /// a comment.
    fn finish(mut self) {
        if self.diagnostics.len() == self.before
            && let Some(w) = self.take_unless_comment()
        {
            let message = format!("`{}` is one word too many", clip(w.text));
            let d = self.error(w.span, message);
            d.expected = Some("the end of the line".into());
            d.hint = Some("expressions are in prefix notation: `+ r 1`, not `r + 1`".into());
        }
    }

    fn error(&mut self, span: Span, message: impl Into<String>) -> &mut Diagnostic {
        self.diagnostics.push(Diagnostic::error(span, message));
        let last = self.diagnostics.len() - 1;
        &mut self.diagnostics[last]
    }
}

fn is_operator(word: &str) -> bool {
    word == "!" || OPERATORS.iter().any(|(s, _)| *s == word)
}

fn state(thread: &mut Thread, word: Word<'_>) -> usize {
    entry(&mut thread.states, word)
}

fn register(thread: &mut Thread, word: Word<'_>) -> RegisterId {
    RegisterId::new(entry(&mut thread.registers, word))
}

fn entry(names: &mut IndexMap<String, Span>, word: Word<'_>) -> usize {
    if let Some(i) = names.get_index_of(word.text) {
        return i;
    }
    names.insert_full(word.text.to_string(), word.span).0
}

/// A word short enough for a message.
fn clip(word: &str) -> String {
    match word.char_indices().nth(40) {
        Some((i, _)) => format!("{}…", &word[..i]),
        None => word.to_string(),
    }
}
