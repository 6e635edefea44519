//! Tokens to [`File`], by recursive descent along the language's grammar.

use super::ast::{
    Declaration, Domain, File, Labelled, Leaf, Location, Named, Process, Row, Statement,
};
use super::macros;
use crate::diagnostics::{Diagnostic, nearest};
use crate::tokens::{Cursor, Kind, Lexis, MAX_HEIGHT, Reported, Token, clip};
use wattle_model::{Expr, Op1, Op2, Span};

const LEXIS: Lexis = Lexis {
    symbols: &[
        ":=", "!=", "<=", ">=", "||", "&&", "=", "(", ")", ",", "-", "*", ";", ":", "{", "}", "<",
        ">", "+", "[", "]", "@",
    ],
    line_comments: false,
    sigil: Some('$'),
};

const RESERVED: [&str; 33] = [
    "if",
    "then",
    "else",
    "while",
    "do",
    "read",
    "write",
    "syncwr",
    "syncrd",
    "fence",
    "ssfence",
    "llfence",
    "locked",
    "slocked",
    "cas",
    "goto",
    "true",
    "false",
    "my",
    "me",
    "other",
    "process",
    "not",
    "nop",
    "text",
    "data",
    "either",
    "or",
    "forbidden",
    "assume",
    "predicates",
    "registers",
    "endmacro",
];

const STATEMENTS: [&str; 17] = [
    "nop", "read", "syncrd", "write", "syncwr", "locked", "slocked", "cas", "fence", "ssfence",
    "llfence", "assume", "if", "while", "goto", "either", "text",
];

/// More processes than this are refused at once.
const MAX_COUNT: i64 = 1000;

type Result<T> = std::result::Result<T, Reported>;

struct Parser<'t> {
    c: Cursor<'t>,
}

pub(super) fn file(text: &str) -> (File, Vec<Diagnostic>) {
    let mut diagnostics = Vec::new();
    let tokens = LEXIS.tokens(text, &mut diagnostics);
    let tokens = macros::expand(&tokens, &mut diagnostics);
    if !diagnostics.is_empty() {
        // With pieces missing, everything else would be noise.
        return (File::default(), diagnostics);
    }
    let mut p = Parser {
        c: Cursor::new(tokens, diagnostics),
    };
    let mut file = File::default();
    p.file(&mut file);
    (file, p.c.diagnostics)
}

impl<'t> Parser<'t> {
    fn file(&mut self, file: &mut File) {
        if self.c.expect("forbidden").is_err() {
            let hint = "a `.rmm` file starts with `forbidden` and the tuples of labels to exclude";
            if let Some(d) = self.c.diagnostics.last_mut() {
                d.hint = Some(hint.into());
            }
            if !self.skip_to(&["predicates", "data", "process"]) {
                return;
            }
        } else if self.rows(file).is_err() {
            self.skip_to(&["predicates", "data", "process"]);
        }
        if self.c.eat("predicates") && self.predicates(file).is_err() {
            self.skip_to(&["data", "process"]);
        }
        if self.c.eat("data") && self.declarations(&mut file.globals, false).is_err() {
            self.skip_to(&["process"]);
        }
        loop {
            if self.c.at_end() {
                break;
            }
            if self.c.at("process") {
                let process = self.process();
                file.processes.push(process);
                if self.c.at("process") || self.c.at_end() {
                    continue;
                }
                let word = self.c.peek().text;
                let near = nearest(word, STATEMENTS).filter(|n| *n != word);
                self.c
                    .unexpected("`;` and another statement, `process` or the end of the file");
                self.hint(near.map(|n| format!("did you mean `{n}`?")));
            } else {
                self.c.unexpected("`process`");
            }
            self.skip_to(&["process"]);
        }
        if file.processes.is_empty() && self.c.diagnostics.is_empty() {
            self.c.unexpected("`process`");
        }
    }

    fn hint(&mut self, hint: Option<String>) {
        if let Some(d) = self.c.diagnostics.last_mut() {
            d.hint = d.hint.take().or(hint);
        }
    }

    /// Skips to one of the words; false if the file ends first.
    fn skip_to(&mut self, words: &[&str]) -> bool {
        while !self.c.at_end() {
            if words.iter().any(|w| self.c.at(w)) {
                return true;
            }
            self.c.take();
        }
        false
    }

    fn rows(&mut self, file: &mut File) -> Result<()> {
        loop {
            let mut labels = Vec::new();
            let start = self.c.peek().span;
            loop {
                let t = self.c.peek();
                if t.text == "*" && t.kind == Kind::Symbol {
                    labels.push((None, self.c.take().span));
                } else if t.kind == Kind::Name && !RESERVED.contains(&t.text) {
                    labels.push((Some(t.text.to_string()), self.c.take().span));
                } else {
                    break;
                }
            }
            if labels.is_empty() {
                return Err(self.c.unexpected("a label or `*` for each process"));
            }
            let span = start.to(self.c.last_span());
            file.forbidden.push(Row { labels, span });
            if !self.c.eat(";") {
                return Ok(());
            }
        }
    }

    fn predicates(&mut self, file: &mut File) -> Result<()> {
        loop {
            file.predicates.push(self.condition()?.0);
            if !self.c.eat(";") {
                return Ok(());
            }
        }
    }

    fn declarations(&mut self, into: &mut Vec<Declaration>, registers: bool) -> Result<()> {
        let what = if registers {
            "a register"
        } else {
            "a variable"
        };
        loop {
            let t = self.c.name(what, &RESERVED)?;
            if t.text.starts_with('$') != registers {
                let message = format!("`{}` is not {what}", clip(t.text));
                self.c.error(t.span, message);
                self.hint(Some(
                    "names of registers start with `$`, names of variables do not".into(),
                ));
            }
            self.c.expect("=")?;
            let init = if self.c.eat("*") {
                None
            } else {
                Some(self.integer("an initial value: a number or `*`")?)
            };
            let domain = self.domain()?;
            if let (Some(v), Some((lo, hi))) = (init, domain)
                && !(lo <= v && v <= hi)
            {
                let message = format!(
                    "`{}` starts with {v}, outside its domain {lo} to {hi}",
                    clip(t.text)
                );
                self.c.error(t.span, message);
            }
            let name = t.text.trim_start_matches('$').to_string();
            if into.iter().any(|d| d.name == name) {
                let message = format!("`{}` is declared twice", clip(t.text));
                self.c.error(t.span, message);
            } else {
                into.push(Declaration {
                    name,
                    span: t.span,
                    init,
                    domain,
                });
            }
            let more = self.c.eat(",");
            let t = self.c.peek();
            if !more && (t.kind != Kind::Name || RESERVED.contains(&t.text)) {
                return Ok(());
            }
        }
    }

    fn domain(&mut self) -> Result<Domain> {
        if !self.c.eat(":") || self.c.eat("Z") {
            return Ok(None);
        }
        let start = self.c.peek().span;
        if !self.c.eat("[") {
            return Err(self.c.unexpected("a domain: `Z` or `[LOW:HIGH]`"));
        }
        let lo = self.integer("the least value")?;
        self.c.expect(":")?;
        let hi = self.integer("the greatest value")?;
        self.c.expect("]")?;
        if hi < lo {
            let message = format!("the domain {lo} to {hi} is empty");
            return Err(self.c.error(start.to(self.c.last_span()), message));
        }
        Ok(Some((lo, hi)))
    }

    fn integer(&mut self, what: &str) -> Result<i64> {
        let negative = self.c.eat("-");
        let n = self.c.number(what)?;
        Ok(if negative { -n } else { n })
    }

    fn process(&mut self) -> Process {
        let mut process = Process {
            span: self.c.take().span,
            count: 1,
            data: Vec::new(),
            registers: Vec::new(),
            body: Vec::new(),
        };
        if self.head(&mut process).is_err() && !self.skip_to(&["text", "process"]) {
            return process;
        }
        if self.c.at("text") {
            self.c.take();
            self.list(&mut process.body);
        } else {
            self.c.unexpected("`data`, `registers` or `text`");
        }
        process
    }

    fn head(&mut self, process: &mut Process) -> Result<()> {
        if self.c.eat("(") {
            let n = self.c.number("the number of copies")?;
            if n > MAX_COUNT || n == 0 {
                let message = format!("{n} copies of a process (1 to {MAX_COUNT} are possible)");
                self.c.error(self.c.last_span(), message);
            }
            process.count = u32::try_from(n.clamp(1, MAX_COUNT)).unwrap_or(1);
            self.c.expect(")")?;
        }
        loop {
            if self.c.eat("data") {
                self.declarations(&mut process.data, false)?;
            } else if self.c.eat("registers") {
                self.declarations(&mut process.registers, true)?;
            } else {
                return Ok(());
            }
        }
    }

    /// Statements separated by `;`. A bad one is skipped up to the next `;` or the end of the list.
    fn list(&mut self, into: &mut Vec<Labelled>) {
        loop {
            let first = self.c.peek();
            let labelled = self.c.ahead(1).text == ":" && !RESERVED.contains(&first.text);
            match self.labelled() {
                Ok(s) => into.push(s),
                Err(Reported) => {
                    self.recover();
                    // The label stays, so that jumps to it are no errors.
                    into.push(Labelled {
                        label: labelled.then(|| (first.text.to_string(), first.span)),
                        statement: Statement::Nop,
                        span: first.span,
                    });
                }
            }
            if !self.c.eat(";") || self.at_list_end() {
                return;
            }
        }
    }

    fn at_list_end(&self) -> bool {
        self.c.at_end() || ["}", "or", "process"].iter().any(|w| self.c.at(w))
    }

    fn recover(&mut self) {
        let mut depth = 0usize;
        while !self.c.at_end() && !self.c.at("process") {
            if depth == 0 && (self.c.at(";") || self.at_list_end()) {
                break;
            }
            match self.c.take().text {
                "{" => depth += 1,
                "}" => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
    }

    fn labelled(&mut self) -> Result<Labelled> {
        let t = self.c.peek();
        let mut label = None;
        if t.kind == Kind::Name && !RESERVED.contains(&t.text) && !t.text.starts_with('$') {
            if self.c.ahead(1).text != ":" {
                let near = nearest(t.text, STATEMENTS);
                self.c.unexpected("a statement, or a label and `:`");
                self.hint(near.map(|n| format!("did you mean `{n}`?")));
                return Err(Reported);
            }
            self.c.take();
            self.c.take();
            label = Some((t.text.to_string(), t.span));
        }
        let start = self.c.peek().span;
        let statement = self.nested(Self::statement)?;
        Ok(Labelled {
            label,
            statement,
            span: start.to(self.c.last_span()),
        })
    }

    fn nested<T>(&mut self, part: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.c.enter()?;
        let result = part(self);
        self.c.leave();
        result
    }

    fn statement(&mut self) -> Result<Statement> {
        let t = self.c.peek();
        if t.kind == Kind::Name && t.text.starts_with('$') {
            let register = self.register()?;
            self.c.expect(":=")?;
            return Ok(Statement::Assign(register, self.value()?));
        }
        if t.text == "{" {
            return Ok(Statement::Block(self.block()?));
        }
        if t.kind != Kind::Name || !STATEMENTS.contains(&t.text) {
            return Err(self.c.unexpected("a statement"));
        }
        self.c.take();
        match t.text {
            "nop" => Ok(Statement::Nop),
            "fence" => Ok(Statement::Fence),
            "ssfence" => Ok(Statement::StoreFence),
            "llfence" => Ok(Statement::LoadFence),
            "read" | "syncrd" => {
                self.c.expect(":")?;
                if self.c.peek().text.starts_with('$') {
                    let register = self.register()?;
                    self.c.expect(":=")?;
                    return Ok(Statement::Load(register, self.location()?));
                }
                let location = self.location()?;
                self.c.expect("=")?;
                Ok(Statement::Await(location, self.value()?))
            }
            "write" => self.write(),
            "syncwr" => self.locked_write(t),
            "slocked" => {
                self.c.expect("write")?;
                let Statement::Write(location, value) = self.write()? else {
                    return Err(Reported);
                };
                Ok(Statement::OrderedWrite(location, value))
            }
            "locked" => {
                if self.c.at("write") {
                    let write = self.c.take();
                    return self.locked_write(write);
                }
                Ok(Statement::Locked(self.alternatives()?))
            }
            "either" => Ok(Statement::Either(self.alternatives()?)),
            "cas" => {
                self.c.expect("(")?;
                let location = self.location()?;
                self.c.expect(",")?;
                let old = self.value()?;
                self.c.expect(",")?;
                let new = self.value()?;
                self.c.expect(")")?;
                Ok(Statement::Cas(location, old, new))
            }
            "assume" => {
                self.c.expect(":")?;
                Ok(Statement::Assume(self.condition()?.0))
            }
            "goto" => {
                let label = self.c.name("a label", &RESERVED)?;
                Ok(Statement::Goto((label.text.to_string(), label.span)))
            }
            "if" => {
                let condition = self.condition()?.0;
                self.c.expect("then")?;
                let then = Box::new(self.labelled()?);
                let otherwise = if self.c.eat("else") {
                    Some(Box::new(self.labelled()?))
                } else {
                    None
                };
                Ok(Statement::If(condition, then, otherwise))
            }
            "while" => {
                let condition = self.condition()?.0;
                self.c.expect("do")?;
                Ok(Statement::While(condition, Box::new(self.labelled()?)))
            }
            _ => Err(self.c.unexpected("a statement")),
        }
    }

    fn write(&mut self) -> Result<Statement> {
        self.c.expect(":")?;
        let location = self.location()?;
        self.c.expect(":=")?;
        Ok(Statement::Write(location, self.value()?))
    }

    /// `locked write: x := e` is a locked block with one statement.
    fn locked_write(&mut self, at: Token<'t>) -> Result<Statement> {
        let statement = self.write()?;
        let only = Labelled {
            label: None,
            statement,
            span: at.span.to(self.c.last_span()),
        };
        Ok(Statement::Locked(vec![vec![only]]))
    }

    fn block(&mut self) -> Result<Vec<Labelled>> {
        let open = self.c.expect("{")?;
        let mut list = Vec::new();
        self.list(&mut list);
        self.close(open)?;
        Ok(list)
    }

    fn alternatives(&mut self) -> Result<Vec<Vec<Labelled>>> {
        let open = self.c.expect("{")?;
        let mut all = Vec::new();
        loop {
            let mut list = Vec::new();
            self.list(&mut list);
            all.push(list);
            if !self.c.eat("or") {
                break;
            }
        }
        self.close(open)?;
        Ok(all)
    }

    fn close(&mut self, open: Span) -> Result<()> {
        if self.c.eat("}") {
            return Ok(());
        }
        let reported = self.c.unexpected("`}`");
        self.hint(Some(format!("it closes the `{{` of line {}", open.line)));
        Err(reported)
    }

    fn register(&mut self) -> Result<Named> {
        let t = self.c.name("a register", &RESERVED)?;
        match t.text.strip_prefix('$') {
            Some(name) if !name.is_empty() => Ok((name.to_string(), t.span)),
            _ => {
                let message = format!("`{}` is not a register", clip(t.text));
                let reported = self.c.error(t.span, message);
                self.hint(Some("names of registers start with `$`".into()));
                Err(reported)
            }
        }
    }

    fn location(&mut self) -> Result<Location> {
        let t = self.c.peek();
        if t.text == "[" {
            self.c.take();
            let address = self.value()?;
            self.c.expect("]")?;
            return Ok(Location::At(address, t.span.to(self.c.last_span())));
        }
        let name = self.c.name("a variable", &RESERVED)?;
        let named = (name.text.to_string(), name.span);
        if name.text.starts_with('$') {
            let message = format!("`{}` is a register, not memory", clip(name.text));
            return Err(self.c.error(name.span, message));
        }
        if !self.c.eat("[") {
            return Ok(Location::Global(named));
        }
        let location = if self.c.eat("my") {
            Location::Mine(named)
        } else {
            let k = self.c.number("`my` or the number of another process")?;
            Location::Other(named, u32::try_from(k).unwrap_or(u32::MAX))
        };
        self.c.expect("]")?;
        Ok(location)
    }

    /// A disjunction, with the height of its tree.
    fn condition(&mut self) -> Result<(Expr<Leaf>, usize)> {
        let mut left = self.conjunction()?;
        while self.c.eat("||") {
            let right = self.conjunction()?;
            left = self.binary(Op2::Or, left, right)?;
        }
        Ok(left)
    }

    fn conjunction(&mut self) -> Result<(Expr<Leaf>, usize)> {
        let mut left = self.negation()?;
        while self.c.eat("&&") {
            let right = self.negation()?;
            left = self.binary(Op2::And, left, right)?;
        }
        Ok(left)
    }

    fn negation(&mut self) -> Result<(Expr<Leaf>, usize)> {
        if self.c.eat("not") {
            let (of, height) = self.comparison()?;
            return Ok((Expr::unary(Op1::Not, of), height + 1));
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Result<(Expr<Leaf>, usize)> {
        if self.c.eat("true") {
            return Ok((Expr::TRUE, 1));
        }
        if self.c.eat("false") {
            return Ok((Expr::FALSE, 1));
        }
        if self.c.eat("[") {
            let inner = self.nested(Self::condition)?;
            self.c.expect("]")?;
            return Ok(inner);
        }
        let left = self.sum()?;
        let op = match self.c.peek().text {
            "=" => Op2::Eq,
            "!=" => Op2::Ne,
            "<" => Op2::Lt,
            ">" => Op2::Gt,
            "<=" => Op2::Le,
            ">=" => Op2::Ge,
            _ => {
                return Err(self
                    .c
                    .unexpected("a comparison: `=`, `!=`, `<`, `>`, `<=` or `>=`"));
            }
        };
        self.c.take();
        let right = self.sum()?;
        self.binary(op, left, right)
    }

    fn value(&mut self) -> Result<Expr<Leaf>> {
        Ok(self.sum()?.0)
    }

    fn sum(&mut self) -> Result<(Expr<Leaf>, usize)> {
        let mut left = self.unit()?;
        loop {
            let op = match self.c.peek().text {
                "+" => Op2::Add,
                "-" => Op2::Sub,
                _ => return Ok(left),
            };
            self.c.take();
            let right = self.unit()?;
            left = self.binary(op, left, right)?;
        }
    }

    fn unit(&mut self) -> Result<(Expr<Leaf>, usize)> {
        let t = self.c.peek();
        match (t.kind, t.text) {
            (Kind::Number, _) => Ok((Expr::Const(self.c.number("a number")?), 1)),
            (_, "-") => {
                self.c.take();
                let (of, height) = self.nested(Self::unit)?;
                Ok(match of {
                    Expr::Const(c) => (Expr::Const(-c), 1),
                    of => (Expr::unary(Op1::Neg, of), height + 1),
                })
            }
            (_, "(") => {
                self.c.take();
                let inner = self.nested(Self::sum)?;
                self.c.expect(")")?;
                Ok(inner)
            }
            (_, "me") => {
                self.c.take();
                Ok((Expr::Atom(Leaf::Me), 1))
            }
            (_, "other") => {
                self.c.take();
                let k = self.c.number("which other process")?;
                let k = u32::try_from(k).unwrap_or(u32::MAX);
                Ok((Expr::Atom(Leaf::Other(k)), 1))
            }
            (_, "@") => {
                self.c.take();
                Ok((Expr::Const(self.c.number("the number of a process")?), 1))
            }
            (Kind::Name, name) if name.starts_with('$') => {
                let (name, span) = self.register()?;
                Ok((Expr::Atom(Leaf::Register(name, span)), 1))
            }
            (Kind::Name, name) if !RESERVED.contains(&name) => {
                let message = format!("`{}` cannot be used in an expression", clip(name));
                let reported = self.c.error(t.span, message);
                self.hint(Some(
                    "expressions speak of registers; `read: $r := x` loads a variable".into(),
                ));
                Err(reported)
            }
            _ => Err(self.c.unexpected("an expression")),
        }
    }

    fn binary(
        &mut self,
        op: Op2,
        (a, height_a): (Expr<Leaf>, usize),
        (b, height_b): (Expr<Leaf>, usize),
    ) -> Result<(Expr<Leaf>, usize)> {
        let height = 1 + height_a.max(height_b);
        if height > MAX_HEIGHT {
            let message = format!("an expression of more than {MAX_HEIGHT} operators in a row");
            return Err(self.c.error(self.c.last_span(), message));
        }
        Ok((Expr::binary(op, a, b), height))
    }
}
