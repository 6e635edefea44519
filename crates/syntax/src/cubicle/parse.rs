//! Tokens to tree, by recursive descent. After an error the parser goes on at the next declaration,
//! so that one file's errors are reported together.

use super::lexer::Token;
use super::tree::{
    Block, Cell, Expr, Factor, FenceWord, File, Name, Op, Right, Term, Transition, Update,
    UpdateValue,
};
use crate::Diagnostic;
use crate::diagnostics::nearest;
use wattle_model::Span;

const DECLARATIONS: [&str; 11] = [
    "type",
    "var",
    "array",
    "const",
    "weak",
    "number_procs",
    "init",
    "invariant",
    "unsafe",
    "transition",
    "size_proc",
];

/// Deeper nesting than any person writes.
const DEPTH: usize = 200;

/// The diagnostic is already recorded.
struct Failed;
type Parse<T> = Result<T, Failed>;

pub fn parse(tokens: &[(Token<'_>, Span)], diagnostics: &mut Vec<Diagnostic>) -> File {
    let mut parser = Parser {
        tokens,
        at: 0,
        depth: 0,
        diagnostics,
    };
    let mut file = File::default();
    while parser.peek() != Token::End {
        let before = parser.at;
        if parser.declaration(&mut file).is_err() {
            parser.depth = 0;
            parser.at = parser.at.max(before + 1).min(tokens.len() - 1);
            parser.skip_to_declaration();
        }
    }
    file
}

struct Parser<'a, 'd> {
    tokens: &'a [(Token<'a>, Span)],
    at: usize,
    depth: usize,
    diagnostics: &'d mut Vec<Diagnostic>,
}

impl<'a> Parser<'a, '_> {
    fn peek(&self) -> Token<'a> {
        self.tokens[self.at].0
    }

    fn span(&self) -> Span {
        self.tokens[self.at].1
    }

    fn last_span(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].1
    }

    fn next(&mut self) {
        self.at = (self.at + 1).min(self.tokens.len() - 1);
    }

    fn eat(&mut self, symbol: &str) -> bool {
        let found = matches!(self.peek(), Token::Symbol(s) if s == symbol);
        if found {
            self.next();
        }
        found
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.peek() == Token::Word(word);
        if found {
            self.next();
        }
        found
    }

    fn expect(&mut self, symbol: &str) -> Parse<()> {
        if self.eat(symbol) {
            return Ok(());
        }
        self.unexpected(&format!("`{symbol}`"))
    }

    fn unexpected<T>(&mut self, expected: &str) -> Parse<T> {
        let found = match self.peek() {
            Token::Word(w) => format!("unexpected `{w}`"),
            Token::Int(n) | Token::Real(n) => format!("unexpected number `{n}`"),
            Token::Constant(c) => format!("unexpected `{c}`"),
            Token::Symbol(s) => format!("unexpected `{s}`"),
            Token::End => "the file ends too early".to_string(),
        };
        self.diagnostics
            .push(Diagnostic::error(self.span(), found).expected(expected));
        Err(Failed)
    }

    fn skip_to_declaration(&mut self) {
        loop {
            match self.peek() {
                Token::End => return,
                Token::Word(w) if DECLARATIONS.contains(&w) => return,
                _ => self.next(),
            }
        }
    }

    fn name(&mut self, what: &str) -> Parse<Name> {
        match self.peek() {
            Token::Word(w) => {
                let span = self.span();
                self.next();
                Ok(Name {
                    text: w.to_string(),
                    span,
                })
            }
            _ => self.unexpected(what),
        }
    }

    /// A parameter or a thread constant.
    fn thread(&mut self) -> Parse<Name> {
        if let Token::Constant(c) = self.peek() {
            let span = self.span();
            self.next();
            return Ok(Name {
                text: c.to_string(),
                span,
            });
        }
        self.name("a thread parameter or a thread constant such as `#1`")
    }

    fn declaration(&mut self, file: &mut File) -> Parse<()> {
        let start = self.span();
        let Token::Word(word) = self.peek() else {
            return self.unexpected(
                "a declaration (`type`, `var`, `array`, `init`, `unsafe`, `transition`, …)",
            );
        };
        self.next();
        match word {
            "type" => {
                let declared = self.type_declaration()?;
                file.types.push(declared);
            }
            "weak" => {
                if !(self.eat_word("var") || self.eat_word("array")) {
                    return self.unexpected("`var` or `array` after `weak`");
                }
                let cell = self.cell(true, false)?;
                file.cells.push(cell);
            }
            "var" | "array" => {
                let cell = self.cell(false, false)?;
                file.cells.push(cell);
            }
            "const" => {
                let cell = self.cell(false, true)?;
                file.cells.push(cell);
            }
            "number_procs" | "size_proc" => match self.peek() {
                Token::Int(n) => {
                    let span = self.span();
                    self.next();
                    match u32::try_from(n) {
                        Ok(n) if (1..=64).contains(&n) => file.threads = Some((n, span)),
                        _ => self.diagnostics.push(
                            Diagnostic::error(span, "the number of threads is out of range")
                                .expected("a number from 1 to 64"),
                        ),
                    }
                }
                _ => return self.unexpected("a number of threads"),
            },
            "init" => {
                let block = self.block(start)?;
                file.init.push(block);
            }
            "unsafe" => {
                let block = self.block(start)?;
                file.bad.push(block);
            }
            "invariant" => {
                let block = self.block(start)?;
                file.invariants.push(block);
            }
            "transition" => {
                let t = self.transition()?;
                file.transitions.push(t);
            }
            other => {
                let mut d = Diagnostic::error(start, format!("unknown declaration `{other}`"))
                    .expected("`type`, `var`, `array`, `const`, `weak`, `number_procs`, `init`, `invariant`, `unsafe` or `transition`");
                if let Some(n) = nearest(other, DECLARATIONS) {
                    d = d.hint(format!("did you mean `{n}`?"));
                }
                self.diagnostics.push(d);
                return Err(Failed);
            }
        }
        Ok(())
    }

    fn type_declaration(&mut self) -> Parse<(Name, Vec<Name>)> {
        let name = self.name("the name of a type")?;
        let mut constructors = Vec::new();
        if self.eat("=") {
            self.eat("|");
            constructors.push(self.name("a constructor")?);
            while self.eat("|") {
                constructors.push(self.name("a constructor")?);
            }
        }
        Ok((name, constructors))
    }

    fn cell(&mut self, weak: bool, constant: bool) -> Parse<Cell> {
        let name = self.name("the name of a variable or array")?;
        let mut indices = Vec::new();
        if self.eat("[") {
            indices.push(self.name("the index type `proc`")?);
            while self.eat(",") {
                indices.push(self.name("the index type `proc`")?);
            }
            self.expect("]")?;
        }
        self.expect(":")?;
        let ty = self.name("a type")?;
        Ok(Cell {
            name,
            indices,
            ty,
            weak,
            constant,
        })
    }

    fn block(&mut self, start: Span) -> Parse<Block> {
        let (params, _) = self.params(false)?;
        self.expect("{")?;
        let body = match self.eat("}") {
            true => Expr::And(Vec::new()),
            false => {
                let e = self.expr()?;
                self.expect("}")?;
                e
            }
        };
        Ok(Block {
            params,
            body,
            span: start.to(self.last_span()),
        })
    }

    /// Parameters between parentheses; the number of the bracketed one.
    fn params(&mut self, brackets: bool) -> Parse<(Vec<Name>, Option<usize>)> {
        self.expect("(")?;
        let (mut params, mut bracketed) = (Vec::new(), None);
        loop {
            if self.eat(")") {
                return Ok((params, bracketed));
            }
            self.eat(",");
            if brackets && self.eat("[") {
                bracketed = Some(params.len());
                params.push(self.name("the acting thread")?);
                self.expect("]")?;
            } else {
                params.push(self.name("a thread parameter or `)`")?);
            }
        }
    }

    fn transition(&mut self) -> Parse<Transition> {
        let name = self.name("the name of the transition")?;
        let (params, bracketed) = self.params(true)?;
        let mut guard = None;
        if self.eat_word("requires") {
            self.expect("{")?;
            if !self.eat("}") {
                guard = Some(self.expr()?);
                self.expect("}")?;
            }
        }
        self.expect("{")?;
        let mut updates = Vec::new();
        while !self.eat("}") {
            updates.push(self.update()?);
            if !self.eat(";") && self.peek() != Token::Symbol("}") {
                return self.unexpected("`;` or `}`");
            }
        }
        Ok(Transition {
            name,
            params,
            bracketed,
            guard,
            updates,
        })
    }

    fn update(&mut self) -> Parse<Update> {
        let start = self.span();
        let mut cell = self.thread()?;
        let mut writer = None;
        if self.eat("@") {
            writer = Some(cell);
            cell = self.name("a weak variable or array")?;
        }
        let index = self.index()?;
        self.expect(":=")?;
        let value = if self.eat_word("case") {
            let mut branches = Vec::new();
            while self.eat("|") {
                let condition = match self.eat("_") {
                    true => None,
                    false => Some(self.expr()?),
                };
                self.expect(":")?;
                branches.push((condition, self.right()?));
            }
            if branches.is_empty() {
                return self.unexpected("`|` and a condition");
            }
            UpdateValue::Case(branches)
        } else {
            UpdateValue::Plain(self.right()?)
        };
        Ok(Update {
            writer,
            cell,
            index,
            value,
            span: start.to(self.last_span()),
        })
    }

    fn right(&mut self) -> Parse<Right> {
        if self.eat(".") || self.eat("?") {
            return Ok(Right::Any);
        }
        Ok(Right::Term(self.term()?))
    }

    fn index(&mut self) -> Parse<Vec<Name>> {
        let mut index = Vec::new();
        if self.eat("[") {
            index.push(self.thread()?);
            while self.eat(",") {
                index.push(self.thread()?);
            }
            self.expect("]")?;
        }
        Ok(index)
    }

    fn expr(&mut self) -> Parse<Expr> {
        if self.depth >= DEPTH {
            self.diagnostics.push(
                Diagnostic::error(self.span(), "this is nested too deeply")
                    .hint(format!("at most {DEPTH} levels are read")),
            );
            return Err(Failed);
        }
        self.depth += 1;
        let mut parts = vec![self.conjunction()?];
        while self.eat("||") {
            parts.push(self.conjunction()?);
        }
        self.depth -= 1;
        Ok(match parts.len() {
            1 => parts.remove(0),
            _ => Expr::Or(parts),
        })
    }

    fn conjunction(&mut self) -> Parse<Expr> {
        let mut parts = vec![self.atom()?];
        while self.eat("&&") {
            parts.push(self.atom()?);
        }
        Ok(match parts.len() {
            1 => parts.remove(0),
            _ => Expr::And(parts),
        })
    }

    fn atom(&mut self) -> Parse<Expr> {
        let start = self.span();
        if self.eat("(") {
            let inner = self.expr()?;
            self.expect(")")?;
            return Ok(inner);
        }
        if self.eat_word("forall_other") {
            let variable = self.name("a thread variable")?;
            self.expect(".")?;
            let body = self.expr()?;
            return Ok(Expr::Forall(variable, Box::new(body)));
        }
        for (word, kind) in [
            ("fence", FenceWord::Full),
            ("store_fence", FenceWord::Store),
        ] {
            if self.peek() == Token::Word(word) {
                self.next();
                self.expect("(")?;
                let thread = match self.peek() {
                    Token::Symbol(")") => None,
                    _ => Some(self.thread()?),
                };
                self.expect(")")?;
                return Ok(Expr::Fence(kind, thread, start.to(self.last_span())));
            }
        }
        let left = self.term()?;
        let op = match self.peek() {
            Token::Symbol("=") => Op::Eq,
            Token::Symbol("<>" | "!=") => Op::Ne,
            Token::Symbol("<") => Op::Lt,
            Token::Symbol("<=") => Op::Le,
            Token::Symbol(">") => Op::Gt,
            Token::Symbol(">=") => Op::Ge,
            _ => return self.unexpected("a comparison (`=`, `<>`, `<`, `<=`, `>`, `>=`)"),
        };
        self.next();
        let right = self.term()?;
        Ok(Expr::Compare(left, op, right, start.to(self.last_span())))
    }

    fn term(&mut self) -> Parse<Term> {
        let start = self.span();
        let mut sign = if self.eat("-") { -1 } else { 1 };
        let mut parts = Vec::new();
        loop {
            let (coefficient, factor) = self.product()?;
            parts.push((sign * coefficient, factor));
            sign = match self.peek() {
                Token::Symbol("+") => 1,
                Token::Symbol("-") => -1,
                _ => break,
            };
            self.next();
        }
        Ok(Term {
            parts,
            span: start.to(self.last_span()),
        })
    }

    fn product(&mut self) -> Parse<(i64, Factor)> {
        let number = match self.peek() {
            Token::Int(n) => Some(Factor::Number(n)),
            Token::Real(n) => Some(Factor::Real(n)),
            _ => None,
        };
        if let Some(factor) = number {
            self.next();
            if !self.eat("*") {
                return Ok((1, factor));
            }
            let (Factor::Number(n) | Factor::Real(n)) = factor else {
                return Ok((1, factor));
            };
            return Ok((n, self.named()?));
        }
        Ok((1, self.named()?))
    }

    fn named(&mut self) -> Parse<Factor> {
        let mut name = match self.peek() {
            Token::Word("case" | "requires" | "forall_other" | "fence")
            | Token::Symbol(_)
            | Token::End => {
                return self.unexpected("a value");
            }
            _ => self.thread()?,
        };
        let mut reader = None;
        if name.text == "read" && self.eat("(") {
            reader = Some(self.thread()?);
            self.expect(",")?;
            name = self.name("a weak variable or array")?;
            let index = self.index()?;
            self.expect(")")?;
            return Ok(Factor::Named {
                reader,
                name,
                index,
            });
        }
        if self.eat("@") {
            reader = Some(name);
            name = self.name("a weak variable or array")?;
        }
        let index = self.index()?;
        Ok(Factor::Named {
            reader,
            name,
            index,
        })
    }
}
