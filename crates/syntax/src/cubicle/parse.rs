//! Tokens to tree, by recursive descent. After an error the parser goes on at the next declaration,
//! so that one file's errors are reported together.

use super::tree::{
    Block, Cell, Expr, Factor, FenceWord, File, Name, Op, Predicate, Quantifier, Right, Term,
    Transition, Update, UpdateValue,
};
use crate::Diagnostic;
use crate::diagnostics::did_you_mean;
use crate::tokens::{Kind, Lexis, Reader, Reported, clip, digits, is_word, run};
use wattle_model::Span;

const LEXIS: Lexis = Lexis {
    symbols: &[
        "<=>", ":=", "<>", "<=", ">=", "=>", "&&", "||", "!=", "(", ")", "{", "}", "[", "]", ",",
        ";", ":", "=", "<", ">", "|", "_", ".", "?", "@", "+", "-", "*",
    ],
    line_comment: None,
    comments: &[Lexis::ML_COMMENT],
    marks: &[('#', digits)],
    quotes: &[],
    escapes: false,
    number: number_length,
    name: name_length,
};

/// Digits, perhaps with a fraction.
fn number_length(text: &str) -> usize {
    let whole = digits(text);
    let fraction = text[whole..].strip_prefix('.').map_or(0, digits);
    match (whole, fraction) {
        (0, _) => 0,
        (n, 0) => n,
        (n, more) => n + 1 + more,
    }
}

/// A lone `_` is none.
fn name_length(text: &str) -> usize {
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic())
        || (text.starts_with('_') && run(&text[1..], is_word) > 0);
    if begins {
        run(text, |c| is_word(c) || c == '\'')
    } else {
        0
    }
}

const DECLARATIONS: [&str; 12] = [
    "type",
    "var",
    "array",
    "const",
    "weak",
    "number_procs",
    "init",
    "invariant",
    "unsafe",
    "predicate",
    "transition",
    "size_proc",
];

type Parse<T> = Result<T, Reported>;

pub fn parse(text: &str) -> (File, Vec<Diagnostic>) {
    let mut c = Reader::new(&LEXIS, &[], text);
    let mut file = File::default();
    while !c.at_end() {
        let before = c.position();
        if declaration(&mut c, &mut file).is_err() {
            if c.position() == before {
                c.take();
            }
            c.skip_to(&DECLARATIONS);
        }
    }
    (file, c.diagnostics)
}

fn identifier(c: &mut Reader<'_>, what: &str) -> Parse<Name> {
    let (text, span) = c.named(what)?;
    Ok(Name { text, span })
}

/// A parameter or a thread constant.
fn thread(c: &mut Reader<'_>) -> Parse<Name> {
    let t = c.peek();
    if t.kind == Kind::Marked('#') {
        c.take();
        let text = format!("#{}", t.text);
        return Ok(Name { text, span: t.span });
    }
    identifier(c, "a thread parameter or a thread constant such as `#1`")
}

fn number(c: &mut Reader<'_>) -> Parse<Factor> {
    let t = c.take();
    let (whole, fraction) = t.text.split_once('.').unwrap_or((t.text, ""));
    let fraction = fraction.trim_end_matches('0');
    let denominator = 10i64.checked_pow(fraction.len() as u32);
    let numerator = format!("{whole}{fraction}").parse();
    match (numerator, denominator) {
        (Ok(n), Some(_)) if !t.text.contains('.') => Ok(Factor::Number(n)),
        (Ok(n), Some(d)) => Ok(Factor::Real(n, d)),
        _ => {
            let message = format!("the number `{}` is too large", clip(t.text));
            Err(c.error(t.span, message))
        }
    }
}

fn declaration(c: &mut Reader<'_>, file: &mut File) -> Parse<()> {
    let wanted = "a declaration (`type`, `var`, `array`, `init`, `unsafe`, `transition`, …)";
    let word = c.name(wanted)?;
    let start = word.span;
    match word.text {
        "type" => {
            let declared = type_declaration(c)?;
            file.types.push(declared);
        }
        "weak" => {
            if !(c.eat("var") || c.eat("array")) {
                return Err(c.unexpected("`var` or `array` after `weak`"));
            }
            let cell = cell(c, true, false)?;
            file.cells.push(cell);
        }
        "var" | "array" => {
            let cell = cell(c, false, false)?;
            file.cells.push(cell);
        }
        "const" => {
            let cell = cell(c, false, true)?;
            file.cells.push(cell);
        }
        "number_procs" | "size_proc" => {
            let t = c.peek();
            if t.kind != Kind::Number {
                return Err(c.unexpected("a number of threads"));
            }
            c.take();
            match t.text.parse() {
                Ok(n) if (1..=64).contains(&n) => file.threads = Some((n, t.span)),
                _ => {
                    let message = "the number of threads is out of range";
                    let d = Diagnostic::error(t.span, message);
                    c.report(d.expected("a number from 1 to 64"));
                }
            }
        }
        "init" => {
            let block = block(c, start)?;
            file.init.push(block);
        }
        "unsafe" => {
            let block = block(c, start)?;
            file.bad.push(block);
        }
        "invariant" => {
            let block = block(c, start)?;
            file.invariants.push(block);
        }
        "predicate" => {
            let p = predicate(c)?;
            file.predicates.push(p);
        }
        "transition" => {
            let t = transition(c)?;
            file.transitions.push(t);
        }
        other => {
            let mut d = Diagnostic::error(start, format!("unknown declaration {}", word.shown()))
                .expected("`type`, `var`, `array`, `const`, `weak`, `number_procs`, `init`, `invariant`, `predicate`, `unsafe` or `transition`");
            d.hint = did_you_mean(other, DECLARATIONS);
            return Err(c.report(d));
        }
    }
    Ok(())
}

fn type_declaration(c: &mut Reader<'_>) -> Parse<(Name, Vec<Name>)> {
    let name = identifier(c, "the name of a type")?;
    let mut constructors = Vec::new();
    if c.eat("=") {
        c.eat("|");
        constructors.push(identifier(c, "a constructor")?);
        while c.eat("|") {
            constructors.push(identifier(c, "a constructor")?);
        }
    }
    Ok((name, constructors))
}

fn cell(c: &mut Reader<'_>, weak: bool, constant: bool) -> Parse<Cell> {
    let name = identifier(c, "the name of a variable or array")?;
    let mut indices = Vec::new();
    if c.eat("[") {
        indices.push(identifier(c, "the index type `proc`")?);
        while c.eat(",") {
            indices.push(identifier(c, "the index type `proc`")?);
        }
        c.expect("]")?;
    }
    c.expect(":")?;
    let ty = identifier(c, "a type")?;
    Ok(Cell {
        name,
        indices,
        ty,
        weak,
        constant,
    })
}

fn predicate(c: &mut Reader<'_>) -> Parse<Predicate> {
    let name = identifier(c, "the name of the predicate")?;
    let (params, _) = optional_params(c, false)?;
    let body = body(c)?;
    Ok(Predicate { name, params, body })
}

/// A formula in braces; nothing in them is true.
fn body(c: &mut Reader<'_>) -> Parse<Expr> {
    c.expect("{")?;
    if c.eat("}") {
        return Ok(Expr::Truth(true));
    }
    let e = expr(c)?;
    c.expect("}")?;
    Ok(e)
}

fn block(c: &mut Reader<'_>, start: Span) -> Parse<Block> {
    let (params, _) = optional_params(c, false)?;
    let body = body(c)?;
    Ok(Block {
        params,
        body,
        span: start.to(c.last_span()),
    })
}

/// No parameters may be left out with their parentheses.
fn optional_params(c: &mut Reader<'_>, brackets: bool) -> Parse<(Vec<Name>, Option<usize>)> {
    match c.at("{") {
        true => Ok((Vec::new(), None)),
        false => params(c, brackets),
    }
}

/// Parameters between parentheses; the number of the bracketed one.
fn params(c: &mut Reader<'_>, brackets: bool) -> Parse<(Vec<Name>, Option<usize>)> {
    c.expect("(")?;
    let (mut params, mut bracketed) = (Vec::new(), None);
    loop {
        if c.eat(")") {
            return Ok((params, bracketed));
        }
        c.eat(",");
        if brackets && c.eat("[") {
            bracketed = Some(params.len());
            params.push(identifier(c, "the acting thread")?);
            c.expect("]")?;
        } else {
            params.push(identifier(c, "a thread parameter or `)`")?);
        }
    }
}

fn transition(c: &mut Reader<'_>) -> Parse<Transition> {
    let name = identifier(c, "the name of the transition")?;
    let (params, bracketed) = params(c, true)?;
    let mut guard = None;
    if c.eat("requires") {
        guard = Some(body(c)?);
    }
    c.expect("{")?;
    let mut updates = Vec::new();
    while !c.eat("}") {
        updates.push(update(c)?);
        if !c.eat(";") && !c.at("}") {
            return Err(c.unexpected("`;` or `}`"));
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

fn update(c: &mut Reader<'_>) -> Parse<Update> {
    let start = c.peek().span;
    let mut cell = thread(c)?;
    let mut writer = None;
    if c.eat("@") {
        writer = Some(cell);
        cell = identifier(c, "a weak variable or array")?;
    }
    let index = index(c)?;
    c.expect(":=")?;
    let value = if c.eat("case") {
        let mut branches = Vec::new();
        while c.eat("|") {
            let condition = match c.eat("_") {
                true => None,
                false => Some(expr(c)?),
            };
            c.expect(":")?;
            branches.push((condition, right(c)?));
        }
        if branches.is_empty() {
            return Err(c.unexpected("`|` and a condition"));
        }
        UpdateValue::Case(branches)
    } else {
        UpdateValue::Plain(right(c)?)
    };
    Ok(Update {
        writer,
        cell,
        index,
        value,
        span: start.to(c.last_span()),
    })
}

fn right(c: &mut Reader<'_>) -> Parse<Right> {
    if c.eat(".") || c.eat("?") {
        return Ok(Right::Any);
    }
    Ok(Right::Term(term(c)?))
}

fn index(c: &mut Reader<'_>) -> Parse<Vec<Name>> {
    let mut index = Vec::new();
    if c.eat("[") {
        index.push(thread(c)?);
        while c.eat(",") {
            index.push(thread(c)?);
        }
        c.expect("]")?;
    }
    Ok(index)
}

fn expr(c: &mut Reader<'_>) -> Parse<Expr> {
    let left = disjunction(c)?;
    let joined: fn(Box<Expr>, Box<Expr>) -> Expr = match c.peek().text {
        "=>" => Expr::Implies,
        "<=>" => Expr::Equivalent,
        _ => return Ok(left),
    };
    c.take();
    let right = c.nested(expr)?;
    Ok(joined(Box::new(left), Box::new(right)))
}

fn disjunction(c: &mut Reader<'_>) -> Parse<Expr> {
    let mut parts = vec![conjunction(c)?];
    while c.eat("||") {
        parts.push(conjunction(c)?);
    }
    Ok(match parts.len() {
        1 => parts.remove(0),
        _ => Expr::Or(parts),
    })
}

fn conjunction(c: &mut Reader<'_>) -> Parse<Expr> {
    let mut parts = vec![atom(c)?];
    while c.eat("&&") {
        parts.push(atom(c)?);
    }
    Ok(match parts.len() {
        1 => parts.remove(0),
        _ => Expr::And(parts),
    })
}

const QUANTIFIERS: [(&str, Quantifier); 4] = [
    (
        "forall_other",
        Quantifier {
            all: true,
            other: true,
        },
    ),
    (
        "exists_other",
        Quantifier {
            all: false,
            other: true,
        },
    ),
    (
        "forall",
        Quantifier {
            all: true,
            other: false,
        },
    ),
    (
        "exists",
        Quantifier {
            all: false,
            other: false,
        },
    ),
];

fn atom(c: &mut Reader<'_>) -> Parse<Expr> {
    let start = c.peek().span;
    if c.eat("(") {
        let inner = c.nested(expr)?;
        c.expect(")")?;
        return Ok(inner);
    }
    if c.eat("true") {
        return Ok(Expr::Truth(true));
    }
    if c.eat("false") {
        return Ok(Expr::Truth(false));
    }
    if c.eat("not") {
        return Ok(Expr::Not(Box::new(c.nested(atom)?)));
    }
    if c.eat("if") {
        let condition = c.nested(expr)?;
        c.expect("then")?;
        let yes = c.nested(expr)?;
        c.expect("else")?;
        let no = c.nested(atom)?;
        return Ok(Expr::If(Box::new([condition, yes, no])));
    }
    for (word, quantifier) in QUANTIFIERS {
        if c.eat(word) {
            let mut variables = vec![identifier(c, "a thread variable")?];
            while c.eat("<>") {
                variables.push(identifier(c, "a thread variable")?);
            }
            c.expect(".")?;
            let body = c.nested(expr)?;
            return Ok(Expr::Quantified(quantifier, variables, Box::new(body)));
        }
    }
    let called = c.peek().kind == Kind::Name && c.ahead(1).text == "(";
    if called && !["fence", "store_fence", "read"].contains(&c.peek().text) {
        let name = identifier(c, "a predicate")?;
        c.expect("(")?;
        let mut given = Vec::new();
        while !c.eat(")") {
            given.push(term(c)?);
            if !c.eat(",") && !c.at(")") {
                return Err(c.unexpected("`,` or `)`"));
            }
        }
        return Ok(Expr::Call(name, given));
    }
    for (word, kind) in [
        ("fence", FenceWord::Full),
        ("store_fence", FenceWord::Store),
    ] {
        if c.eat(word) {
            c.expect("(")?;
            let thread = match c.at(")") {
                true => None,
                false => Some(thread(c)?),
            };
            c.expect(")")?;
            return Ok(Expr::Fence(kind, thread, start.to(c.last_span())));
        }
    }
    let left = term(c)?;
    let op = match c.peek().text {
        "=" => Op::Eq,
        "<>" | "!=" => Op::Ne,
        "<" => Op::Lt,
        "<=" => Op::Le,
        ">" => Op::Gt,
        ">=" => Op::Ge,
        _ => return Err(c.unexpected("a comparison (`=`, `<>`, `<`, `<=`, `>`, `>=`)")),
    };
    c.take();
    let right = term(c)?;
    Ok(Expr::Compare(left, op, right, start.to(c.last_span())))
}

fn term(c: &mut Reader<'_>) -> Parse<Term> {
    let start = c.peek().span;
    let mut sign = if c.eat("-") { -1 } else { 1 };
    let mut parts = Vec::new();
    loop {
        let (coefficient, factor) = product(c)?;
        parts.push((sign * coefficient, factor));
        sign = match c.peek().text {
            "+" => 1,
            "-" => -1,
            _ => break,
        };
        c.take();
    }
    Ok(Term {
        parts,
        span: start.to(c.last_span()),
    })
}

fn product(c: &mut Reader<'_>) -> Parse<(i64, Factor)> {
    if c.peek().kind == Kind::Number {
        let factor = number(c)?;
        return match factor {
            Factor::Number(n) | Factor::Real(n, 1) if c.eat("*") => Ok((n, named(c)?)),
            factor => Ok((1, factor)),
        };
    }
    let factor = named(c)?;
    if !c.eat("*") {
        return Ok((1, factor));
    }
    let times = match c.peek().kind {
        Kind::Number => number(c)?,
        _ => return Err(c.unexpected("a number")),
    };
    match times {
        Factor::Number(n) | Factor::Real(n, 1) => Ok((n, factor)),
        _ => Err(c.unexpected("a whole number")),
    }
}

fn named(c: &mut Reader<'_>) -> Parse<Factor> {
    let t = c.peek();
    let keyword = ["case", "requires", "fence", "not", "if", "then", "else"].contains(&t.text)
        || QUANTIFIERS.iter().any(|(word, _)| *word == t.text);
    if keyword || matches!(t.kind, Kind::Symbol | Kind::End) {
        let hint = (t.is("=")).then(|| "equality is `=`, an update `A[i] := …`".to_string());
        return Err(c.refuse("a value", hint));
    }
    let mut name = thread(c)?;
    let mut reader = None;
    if name.text == "read" && c.eat("(") {
        reader = Some(thread(c)?);
        c.expect(",")?;
        name = identifier(c, "a weak variable or array")?;
        let index = index(c)?;
        c.expect(")")?;
        return Ok(Factor::Named {
            reader,
            name,
            index,
        });
    }
    if c.eat("@") {
        reader = Some(name);
        name = identifier(c, "a weak variable or array")?;
    }
    let index = index(c)?;
    Ok(Factor::Named {
        reader,
        name,
        index,
    })
}
