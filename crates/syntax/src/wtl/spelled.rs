//! Whether a tree is what a text says. The parser finds a tree, and words that help where there is none; nobody has to
//! trust it: here the tree is spelled out again, piece by piece, and has to give the text.
//!
//! **Lemma.** No text is spelled by two trees that mean different things. *Sketch.* Every declaration, statement and type
//! begins with words of its own or is told apart by the sign that follows a name ([`WORDS`] and the words of types
//! name nothing unless quoted). In an expression operands and operators alternate; one stands without parentheses only
//! where nothing stronger is around it, and a tree says how many parentheses are around each part of it, so what
//! belongs to which operator is settled from the left. (`G` and `F` take the comparison behind them; nothing is
//! computed with what they say, so they are never inside one.)

use super::ast::{
    Between, Block, ConditionEx, CountEx, Declared, Ex, ExKind, File, InitEx, Item, Label, Later,
    LengthEx, Let, Name, Statement, StatementKind, TemporalEx, ThreadEx, TypeEx,
};
use crate::tokens::unescape;
use wattle_model::{Op1, Op2, Section, Span};

/// Words that would be something else in a place where a name may stand.
const WORDS: [&str; 6] = ["any", "true", "false", "none", "self", "thread"];

/// Longer signs before their beginnings.
const SIGNS: [&str; 40] = [
    "..=", "..", "->", "~>", "::", "&&", "||", "==", "!=", "<=", ">=", "<<", ">>", "+=", "-=", "{",
    "}", "[", "]", "(", ")", ";", ",", ":", "=", "<", ">", "+", "-", "*", "/", "%", "&", "|", "^",
    "!", "~", "?", "@", ".",
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Piece<'t> {
    Word(&'t str),
    Number(&'t str),
    /// A name in backquotes.
    Quoted(&'t str),
    /// In double quotes.
    Text(&'t str),
    Sign(&'t str),
}

/// The piece that a text begins with and its length; none for blanks and comments.
fn piece(text: &str) -> (Option<Piece<'_>>, usize) {
    let run = |keep: fn(char) -> bool| text.find(|c| !keep(c)).unwrap_or(text.len());
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let first = text.chars().next().unwrap_or(' ');
    if first.is_whitespace() || first == '\u{feff}' {
        return (None, first.len_utf8());
    }
    if text.starts_with("//") {
        return (None, run(|c| c != '\n'));
    }
    if let Some(inside) = text.strip_prefix("/*") {
        return (None, inside.find("*/").map_or(text.len(), |n| n + 4));
    }
    if first == '"' || first == '`' {
        let mut escaped = false;
        let closes = |c: char| {
            let closes = c == first && !escaped;
            escaped = c == '\\' && !escaped;
            closes
        };
        let n = text[1..].find(closes).unwrap_or(text.len() - 1);
        let inside = &text[1..=n];
        let quoted = match first {
            '`' => Piece::Quoted(inside),
            _ => Piece::Text(inside),
        };
        return (Some(quoted), (n + 2).min(text.len()));
    }
    if word(first) {
        let n = run(word);
        let word = match first.is_ascii_digit() {
            true => Piece::Number(&text[..n]),
            false => Piece::Word(&text[..n]),
        };
        return (Some(word), n);
    }
    let sign = SIGNS.iter().find(|s| text.starts_with(**s));
    let n = sign.map_or(first.len_utf8(), |s| s.len());
    (Some(Piece::Sign(&text[..n])), n)
}

fn value(digits: &str) -> Option<u64> {
    let digits = digits.replace('_', "");
    let of = |prefix, radix| Some(u64::from_str_radix(digits.strip_prefix(prefix)?, radix).ok());
    let value = of("0x", 16).or_else(|| of("0b", 2));
    value.unwrap_or_else(|| digits.parse().ok())
}

/// Whether the word is a type by itself.
fn is_type(word: &str) -> bool {
    let width = word.strip_prefix(['u', 'i']).unwrap_or("");
    let wraps = !width.is_empty() && width.bytes().all(|b| b.is_ascii_digit());
    wraps || word == "int" || word == "bool"
}

/// What a construct is made of.
enum Part<'a> {
    /// Words and signs, with blanks between them.
    Is(&'a str),
    Named(&'a Name),
    Of(&'a Ex),
    /// What binds weaker needs parentheses.
    Strong(&'a Ex, u8),
    /// `[…]`, or nothing.
    Index(Option<&'a Ex>),
    Range(&'a Ex, &'a Ex),
    Each(&'a [Ex], &'a str),
    Inside(&'a Block),
    Jump(&'a Label),
    Says(&'a str),
    When(&'a ConditionEx),
}

use Part::{Each, Index, Inside, Is, Jump, Named, Of, Range, Says, Strong, When};

struct Speller<'t> {
    /// With where it stands.
    pieces: Vec<(usize, Piece<'t>)>,
    next: usize,
}

/// Nothing if the text is something else.
type Spelled = Option<()>;

/// Where the text goes on otherwise than the tree, if it does.
pub(super) fn spells(file: &File, text: &str) -> Result<(), Span> {
    let (mut pieces, mut at) = (Vec::new(), 0);
    while at < text.len() {
        let (found, length) = piece(&text[at..]);
        pieces.extend(found.map(|p| (at, p)));
        at += length;
    }
    let mut s = Speller { pieces, next: 0 };
    let whole = s.file(file);
    let rest = s.pieces.get(s.next);
    if whole.is_some() && rest.is_none() {
        return Ok(());
    }
    let at = rest.map_or(text.len(), |p| p.0);
    let line = 1 + text[..at].bytes().filter(|b| *b == b'\n').count();
    Err(Span::new(at, at, line))
}

fn must(holds: bool) -> Spelled {
    holds.then_some(())
}

impl<'t> Speller<'t> {
    fn peek(&self) -> Option<Piece<'t>> {
        self.pieces.get(self.next).map(|p| p.1)
    }

    /// Whether the word or sign is next.
    fn at(&self, text: &str) -> bool {
        matches!(self.peek(), Some(Piece::Word(t) | Piece::Sign(t)) if t == text)
    }

    fn take(&mut self) -> Option<Piece<'t>> {
        let found = self.peek()?;
        self.next += 1;
        Some(found)
    }

    /// Takes the word or sign if it is next.
    fn eat(&mut self, text: &str) -> bool {
        let here = self.at(text);
        self.next += usize::from(here);
        here
    }

    fn all(&mut self, parts: &[Part<'_>]) -> Spelled {
        parts.iter().try_for_each(|p| match p {
            Is(texts) => texts.split(' ').try_for_each(|t| must(self.eat(t))),
            Named(name) => self.name(name),
            Of(e) => self.expression(e, 0),
            Strong(e, least) => self.expression(e, *least),
            Index(None) => must(!self.at("[")),
            Index(Some(e)) => self.all(&[Is("["), Of(e), Is("]")]),
            Range(lo, hi) => {
                self.expression(lo, level(Op2::Add))?;
                must(self.eat("..") || self.eat("..="))?;
                self.expression(hi, level(Op2::Add))
            }
            Each(es, close) => {
                for (i, e) in es.iter().enumerate() {
                    must(i == 0 || self.eat(","))?;
                    self.expression(e, 0)?;
                }
                // One more comma may stand behind the last.
                must(self.eat(close) || !es.is_empty() && self.eat(",") && self.eat(close))
            }
            Inside(b) => {
                must(self.eat("{"))?;
                b.statements.iter().try_for_each(|s| self.statement(s))?;
                must(self.eat("}"))
            }
            Jump(Label::Named(n)) => self.name(n),
            Jump(Label::Numbered(n, _)) => {
                must(matches!(self.take()?, Piece::Number(d) if value(d) == Some(*n)))
            }
            Says(text) => must(matches!(self.take()?, Piece::Text(t) if unescape(t) == *text)),
            When(c) => self.condition(c),
        })
    }

    fn name(&mut self, name: &Name) -> Spelled {
        must(match self.take()? {
            Piece::Word(w) => w == name.text && !WORDS.contains(&w),
            Piece::Quoted(w) => unescape(w) == name.text,
            Piece::Number(_) | Piece::Text(_) | Piece::Sign(_) => false,
        })
    }

    fn number(&mut self, n: i64) -> Spelled {
        let negative = self.eat("-");
        must(match self.take()? {
            Piece::Word(w) => {
                !negative && [("true", 1), ("false", 0), ("none", -1)].contains(&(w, n))
            }
            Piece::Number(digits) => {
                let v = i128::from(value(digits)?);
                i128::from(n) == if negative { -v } else { v }
            }
            Piece::Quoted(_) | Piece::Text(_) | Piece::Sign(_) => false,
        })
    }

    fn file(&mut self, file: &File) -> Spelled {
        let (mut shared, mut lets) = (file.shared.iter(), file.lets.iter());
        let (mut threads, mut properties) = (file.threads.iter(), file.properties.iter());
        let (mut temporal, mut predicates) = (file.temporal.iter(), file.predicates.iter());
        let (mut objects, mut skipped) = (file.objects.iter(), file.skipped.iter());
        for item in &file.order {
            match item {
                Item::Shared => {
                    must(self.eat("shared"))?;
                    self.declared(&mut shared)?;
                }
                Item::Let => self.constant(lets.next()?)?,
                Item::Thread => self.thread(threads.next()?)?,
                Item::Property => {
                    let p = properties.next()?;
                    self.all(&[Is(p.kind.keyword()), When(&p.condition), Is(";")])?;
                }
                Item::Temporal => match &temporal.next()?.0 {
                    TemporalEx::Progress => self.all(&[Is("progress ;")])?,
                    TemporalEx::Ltl(c) => self.all(&[Is("ltl"), When(c), Is(";")])?,
                    TemporalEx::LeadsTo(c, to) => {
                        self.all(&[When(c), Is("~>"), Of(to), Is(";")])?;
                    }
                },
                Item::Predicates => {
                    self.all(&[Is("predicates {")])?;
                    while !self.eat("}") {
                        self.condition(predicates.next()?)?;
                        must(self.eat(";") || self.at("}"))?;
                    }
                }
                Item::Object => {
                    let file = &objects.next()?.text;
                    self.all(&[Is("object"), Says(file), Is(";")])?;
                }
                Item::Skipped => {
                    let (name, havoc) = skipped.next()?;
                    let word = if *havoc { "havoc" } else { "skip" };
                    self.all(&[Is(word), Named(name), Is(";")])?;
                }
            }
        }
        let left = shared.len() + lets.len() + threads.len() + properties.len();
        must(left + temporal.len() + predicates.len() + objects.len() + skipped.len() == 0)
    }

    /// What stands between `shared` or `local` and the semicolon.
    fn declared<'d>(&mut self, all: &mut impl Iterator<Item = &'d Declared>) -> Spelled {
        loop {
            let d = all.next()?;
            self.name(&d.name)?;
            match &d.length {
                LengthEx::Scalar => must(!self.at("["))?,
                LengthEx::Thread(_) => self.all(&[Is("[ thread ]")])?,
                LengthEx::Array(e) => self.all(&[Index(Some(e))])?,
            }
            match self.eat(":") {
                true => self.ty(&d.ty)?,
                false => must(matches!(d.ty, TypeEx::Int))?,
            }
            match &d.init {
                InitEx::Zero => must(!self.at("="))?,
                InitEx::Any => self.all(&[Is("= any")])?,
                InitEx::All(e) => self.all(&[Is("="), Of(e)])?,
                InitEx::Each(es) => self.all(&[Is("= {"), Each(es, "}")])?,
            }
            if self.eat(";") {
                return Some(());
            }
            must(self.eat(","))?;
        }
    }

    fn ty(&mut self, ty: &TypeEx) -> Spelled {
        match ty {
            TypeEx::Int => self.all(&[Is("int")]),
            TypeEx::Bool => self.all(&[Is("bool")]),
            TypeEx::Wrap { bits, signed } => self.all(&[Is(&wrap(*bits, *signed))]),
            TypeEx::Family(n) => {
                must(!matches!(self.peek()?, Piece::Word(w) if is_type(w)))?;
                self.name(n)
            }
            TypeEx::Range(lo, hi) => self.all(&[Range(lo, hi)]),
            TypeEx::Object(size) => self.all(&[Is("object ("), Of(size), Is(")")]),
            TypeEx::Struct(n) => self.all(&[Is("struct"), Named(n)]),
        }
    }

    fn constant(&mut self, l: &Let) -> Spelled {
        self.all(&[Is("let"), Named(&l.name), Is("="), Of(&l.value), Is(";")])
    }

    fn thread(&mut self, t: &ThreadEx) -> Spelled {
        self.all(&[Is("thread"), Named(&t.name)])?;
        match &t.count {
            CountEx::One => {}
            CountEx::Any => self.all(&[Is("[ * ]")])?,
            CountEx::Fixed(n) => self.all(&[Index(Some(n))])?,
        }
        must(self.eat("{"))?;
        let (mut locals, mut statements) = (t.locals.iter(), t.body.statements.iter());
        // Constants may stand between registers.
        while self.at("let") || self.at("local") {
            match self.eat("local") {
                true => self.declared(&mut locals)?,
                false => self.statement(statements.next()?)?,
            }
        }
        statements.try_for_each(|s| self.statement(s))?;
        must(locals.len() == 0 && self.eat("}"))
    }

    fn condition(&mut self, c: &ConditionEx) -> Spelled {
        for (i, (family, index)) in c.indices.iter().enumerate() {
            must(self.eat(if i == 0 { "for" } else { "," }))?;
            self.all(&[Named(family), Is("["), Named(index), Is("]")])?;
        }
        must(c.indices.is_empty() || self.eat(":"))?;
        self.expression(&c.expr, 0)
    }

    fn statement(&mut self, s: &Statement) -> Spelled {
        let labels = &mut s.labels.iter();
        labels.try_for_each(|l| self.all(&[Jump(l), Is(":")]))?;
        match &s.kind {
            StatementKind::Nothing => must(self.at("}")),
            StatementKind::Let(l) => self.constant(l),
            StatementKind::If(c, yes, None) => {
                self.all(&[Is("if"), Of(c), Inside(yes)])?;
                must(!self.at("else"))
            }
            StatementKind::If(c, yes, Some(no)) => {
                self.all(&[Is("if"), Of(c), Inside(yes), Is("else")])?;
                // `else if` is a block of one statement.
                match &no.statements[..] {
                    [inner] if self.at("if") => {
                        must(inner.labels.is_empty())?;
                        self.statement(inner)
                    }
                    _ => self.all(&[Inside(no)]),
                }
            }
            StatementKind::While(c, b) => self.all(&[Is("while"), Of(c), Inside(b)]),
            StatementKind::Loop(b) => self.all(&[Is("loop"), Inside(b)]),
            StatementKind::For(name, lo, hi, b) => {
                self.all(&[Is("for"), Named(name), Is("in"), Range(lo, hi), Inside(b)])
            }
            StatementKind::Choose(blocks) => blocks.iter().enumerate().try_for_each(|(i, b)| {
                self.all(&[Is(if i == 0 { "choose" } else { "or" }), Inside(b)])
            }),
            StatementKind::Block(b) => self.all(&[Inside(b)]),
            StatementKind::Atomic(b) => self.all(&[Is("atomic"), Inside(b)]),
            StatementKind::AtomicBuffered(b) => self.all(&[Is("atomic buffered"), Inside(b)]),
            StatementKind::AtomicBegin(Section::Drained) => self.all(&[Is("atomic begin ;")]),
            StatementKind::AtomicBegin(Section::Buffered) => {
                self.all(&[Is("atomic buffered begin ;")])
            }
            StatementKind::AtomicEnd => self.all(&[Is("atomic end ;")]),
            StatementKind::Skip => self.all(&[Is("skip ;")]),
            StatementKind::Stop => self.all(&[Is("stop ;")]),
            StatementKind::Break => self.all(&[Is("break ;")]),
            StatementKind::Continue => self.all(&[Is("continue ;")]),
            StatementKind::Fence => self.all(&[Is("fence ;")]),
            StatementKind::FenceStore => self.all(&[Is("fence store ;")]),
            StatementKind::Lock => self.all(&[Is("lock ;")]),
            StatementKind::Unlock => self.all(&[Is("unlock ;")]),
            StatementKind::Goto(l) => self.all(&[Is("goto"), Jump(l), Is(";")]),
            StatementKind::Await(e) => self.all(&[Is("await"), Of(e), Is(";")]),
            StatementKind::Assume(e) => self.all(&[Is("assume"), Of(e), Is(";")]),
            StatementKind::Assert(e, None) => self.all(&[Is("assert"), Of(e), Is(";")]),
            StatementKind::Assert(e, Some(m)) => {
                self.all(&[Is("assert"), Of(e), Is(","), Says(m), Is(";")])
            }
            StatementKind::Assign(place, e) => self.all(&[Of(place), Is("="), Of(e), Is(";")]),
            StatementKind::Any(place, None) => self.all(&[Of(place), Is("= any ;")]),
            StatementKind::Any(place, Some((lo, hi))) => {
                self.all(&[Of(place), Is("= any"), Range(lo, hi), Is(";")])
            }
            StatementKind::Call(to, function, arguments) => {
                let to = to.as_ref().map(|to| [Of(to), Is("=")]);
                to.map_or(Some(()), |to| self.all(&to))?;
                let arguments = Each(arguments, ")");
                self.all(&[Is("call"), Named(function), Is("("), arguments, Is(";")])
            }
            StatementKind::Effect(e) => self.all(&[Of(e), Is(";")]),
        }
    }

    fn prefixed(&mut self, sign: &str, e: &Ex) -> Spelled {
        must(self.eat(sign))?;
        // A sign directly before digits belongs to the number.
        must(sign != "-" || !matches!(self.peek()?, Piece::Number(_)))?;
        self.expression(e, PREFIX)
    }

    /// What binds weaker than `least` needs parentheses.
    fn expression(&mut self, e: &Ex, least: u8) -> Spelled {
        (0..e.parentheses).try_for_each(|_| must(self.eat("(")))?;
        let least = if e.parentheses > 0 { 0 } else { least };
        match &e.kind {
            ExKind::Number(n) => self.number(*n)?,
            ExKind::SelfIndex => self.all(&[Is("self")])?,
            ExKind::Count(family) => self.all(&[Is("count ("), Named(family), Is(")")])?,
            ExKind::AddressOf(name, i) => self.all(&[Is("&"), Named(name), Index(i.as_deref())])?,
            ExKind::Name(name, i) => {
                self.all(&[Named(name), Index(i.as_deref())])?;
                must(!self.at("@") && !self.at(".") && !self.at("::"))?;
            }
            ExKind::Field(name, i, register) => {
                self.all(&[Named(name), Index(i.as_deref()), Is("."), Named(register)])?;
            }
            ExKind::Seen(name, i, region, j) => {
                self.all(&[Named(name), Index(i.as_deref()), Is("::")])?;
                self.all(&[Named(region), Index(j.as_deref())])?;
            }
            ExKind::At(name, i, label) => {
                self.all(&[Named(name), Index(i.as_deref()), Is("@"), Named(label)])?;
            }
            ExKind::Memory(a) => self.prefixed("*", a)?,
            ExKind::Unary(Op1::Neg, a) => self.prefixed("-", a)?,
            ExKind::Unary(Op1::Not, a) => self.prefixed("!", a)?,
            ExKind::Unary(Op1::BitNot, a) => self.prefixed("~", a)?,
            ExKind::Unary(Op1::Wrap { bits, signed }, a) => {
                self.all(&[Is(&wrap(*bits, *signed)), Is("("), Of(a), Is(")")])?;
            }
            ExKind::Binary(op, a, b) => {
                let own = level(*op);
                must(own >= least)?;
                // Comparisons do not chain.
                let left = own + u8::from(own == level(Op2::Eq));
                self.all(&[Strong(a, left), Is(op.symbol()), Strong(b, own + 1)])?;
            }
            ExKind::Ite(c, a, b) => {
                must(least == 0)?;
                self.all(&[Strong(c, 1), Is("?"), Of(a), Is(":"), Of(b)])?;
            }
            ExKind::Cas(place, old, new) => {
                self.all(&[Is("cas ("), Of(place), Is(",")])?;
                self.all(&[Of(old), Is(","), Of(new), Is(")")])?;
            }
            ExKind::Swap(place, new) => {
                self.all(&[Is("swap ("), Of(place), Is(","), Of(new), Is(")")])?;
            }
            ExKind::FetchAdd(place, by) => {
                self.all(&[Is("fetch_add ("), Of(place), Is(","), Of(by), Is(")")])?;
            }
            ExKind::Later(Later::Globally, a) => self.all(&[Is("G"), Strong(a, level(Op2::Eq))])?,
            ExKind::Later(Later::Finally, a) => self.all(&[Is("F"), Strong(a, level(Op2::Eq))])?,
            ExKind::Between(Between::Implies, a, b) => {
                must(least == 0)?;
                self.all(&[Strong(a, 1), Is("->"), Of(b)])?;
            }
            ExKind::Between(between, a, b) => {
                let own = level(Op2::Eq) - 1;
                must(own >= least)?;
                let word = match between {
                    Between::Until => "U",
                    Between::Release => "R",
                    Between::WeakUntil => "W",
                    Between::Implies => return None,
                };
                self.all(&[Strong(a, own + 1), Is(word), Strong(b, own)])?;
            }
        }
        (0..e.parentheses).try_for_each(|_| must(self.eat(")")))
    }
}

/// How strongly an operator binds, with room in between.
fn level(op: Op2) -> u8 {
    2 * op.precedence()
}

/// More than any [`level`].
const PREFIX: u8 = 20;

fn wrap(bits: u8, signed: bool) -> String {
    format!("{}{bits}", if signed { "i" } else { "u" })
}
