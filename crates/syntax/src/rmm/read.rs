//! Tokens to [`File`], by recursive descent along the language's grammar.

use super::ast::{Declaration, Domain, File, Labelled, Leaf, Location, Process, Row, Statement};
use super::macros;
use crate::diagnostics::{Diagnostic, did_you_mean};
use crate::tokens::{
    Kind, Lexis, MAX_HEIGHT, Named, Reader, Reported, Token, clip, digits, note, word,
};
use wattle_model::{Expr, Op1, Op2, Span};

const LEXIS: Lexis = Lexis {
    symbols: &[
        ":=", "!=", "<=", ">=", "||", "&&", "=", "(", ")", ",", "-", "*", ";", ":", "{", "}", "<",
        ">", "+", "[", "]", "@",
    ],
    line_comment: None,
    comments: &[Lexis::C_COMMENT],
    marks: &[],
    quotes: &[('"', Kind::Text)],
    escapes: false,
    number: digits,
    name: |text| word(text, |c| c == '$' || c == '_' || c.is_alphabetic(), in_name),
};

fn in_name(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

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

pub(super) fn file(text: &str) -> (File, Vec<Diagnostic>) {
    let mut diagnostics = Vec::new();
    let tokens = LEXIS.tokens(text, &mut |d| note(&mut diagnostics, d));
    let tokens = macros::expand(&tokens, &mut diagnostics);
    if !diagnostics.is_empty() {
        // With pieces missing, everything else would be noise.
        return (File::default(), diagnostics);
    }
    let mut c = Reader::over(tokens, &RESERVED, diagnostics);
    let mut file = File::default();
    parts(&mut c, &mut file);
    (file, c.diagnostics)
}

fn parts(c: &mut Reader<'_>, file: &mut File) {
    if !c.eat("forbidden") {
        let hint = "a `.rmm` file starts with `forbidden` and the tuples of labels to exclude";
        c.refuse("`forbidden`", Some(hint.into()));
        if !c.skip_to(&["predicates", "data", "process"]) {
            return;
        }
    } else if rows(c, file).is_err() {
        c.skip_to(&["predicates", "data", "process"]);
    }
    if c.eat("predicates") && predicates(c, file).is_err() {
        c.skip_to(&["data", "process"]);
    }
    if c.eat("data") && declarations(c, &mut file.globals, false).is_err() {
        c.skip_to(&["process"]);
    }
    loop {
        if c.at_end() {
            break;
        }
        if c.at("process") {
            let process = process(c);
            file.processes.push(process);
            if c.at("process") || c.at_end() {
                continue;
            }
            let word = c.peek().text;
            let near = did_you_mean(word, STATEMENTS).filter(|_| !STATEMENTS.contains(&word));
            let wanted = "`;` and another statement, `process` or the end of the file";
            c.refuse(wanted, near);
        } else {
            c.unexpected("`process`");
        }
        c.skip_to(&["process"]);
    }
    if file.processes.is_empty() && c.diagnostics.is_empty() {
        c.unexpected("`process`");
    }
}

fn rows(c: &mut Reader<'_>, file: &mut File) -> Result<()> {
    loop {
        let mut labels = Vec::new();
        let start = c.peek().span;
        loop {
            let t = c.peek();
            if t.is("*") {
                labels.push((None, c.take().span));
            } else if c.names(t) {
                labels.push((Some(t.text.to_string()), c.take().span));
            } else {
                break;
            }
        }
        if labels.is_empty() {
            return Err(c.unexpected("a label or `*` for each process"));
        }
        let span = start.to(c.last_span());
        file.forbidden.push(Row { labels, span });
        if !c.eat(";") {
            return Ok(());
        }
    }
}

fn predicates(c: &mut Reader<'_>, file: &mut File) -> Result<()> {
    loop {
        file.predicates.push(condition(c)?.0);
        if !c.eat(";") {
            return Ok(());
        }
    }
}

fn declarations(c: &mut Reader<'_>, into: &mut Vec<Declaration>, registers: bool) -> Result<()> {
    let what = if registers {
        "a register"
    } else {
        "a variable"
    };
    loop {
        let t = c.name(what)?;
        if t.text.starts_with('$') != registers {
            let message = format!("`{}` is not {what}", clip(t.text));
            let hint = "names of registers start with `$`, names of variables do not";
            c.report(Diagnostic::error(t.span, message).hint(hint));
        }
        c.expect("=")?;
        let init = if c.eat("*") {
            None
        } else {
            Some(c.integer("an initial value: a number or `*`")?)
        };
        let domain = domain(c)?;
        if let (Some(v), Some((lo, hi))) = (init, domain)
            && !(lo <= v && v <= hi)
        {
            let message = format!(
                "`{}` starts with {v}, outside its domain {lo} to {hi}",
                clip(t.text)
            );
            c.error(t.span, message);
        }
        let name = t.text.trim_start_matches('$').to_string();
        if into.iter().any(|d| d.name == name) {
            let message = format!("`{}` is declared twice", clip(t.text));
            c.error(t.span, message);
        } else {
            into.push(Declaration {
                name,
                span: t.span,
                init,
                domain,
            });
        }
        let more = c.eat(",");
        if !more && !c.names(c.peek()) {
            return Ok(());
        }
    }
}

fn domain(c: &mut Reader<'_>) -> Result<Domain> {
    if !c.eat(":") || c.eat("Z") {
        return Ok(None);
    }
    let start = c.peek().span;
    if !c.eat("[") {
        return Err(c.unexpected("a domain: `Z` or `[LOW:HIGH]`"));
    }
    let lo = c.integer("the least value")?;
    c.expect(":")?;
    let hi = c.integer("the greatest value")?;
    c.expect("]")?;
    if hi < lo {
        let message = format!("the domain {lo} to {hi} is empty");
        return Err(c.error(start.to(c.last_span()), message));
    }
    Ok(Some((lo, hi)))
}

fn process(c: &mut Reader<'_>) -> Process {
    let mut process = Process {
        span: c.take().span,
        count: 1,
        data: Vec::new(),
        registers: Vec::new(),
        body: Vec::new(),
    };
    if head(c, &mut process).is_err() && !c.skip_to(&["text", "process"]) {
        return process;
    }
    if c.at("text") {
        c.take();
        list(c, &mut process.body);
    } else {
        c.unexpected("`data`, `registers` or `text`");
    }
    process
}

fn head(c: &mut Reader<'_>, process: &mut Process) -> Result<()> {
    if c.eat("(") {
        let n = c.number("the number of copies")?;
        if n > MAX_COUNT || n == 0 {
            let message = format!("{n} copies of a process (1 to {MAX_COUNT} are possible)");
            c.error(c.last_span(), message);
        }
        process.count = u32::try_from(n.clamp(1, MAX_COUNT)).unwrap_or(1);
        c.expect(")")?;
    }
    loop {
        if c.eat("data") {
            declarations(c, &mut process.data, false)?;
        } else if c.eat("registers") {
            declarations(c, &mut process.registers, true)?;
        } else {
            return Ok(());
        }
    }
}

/// Statements separated by `;`. A bad one is skipped up to the next `;` or the end of the list.
fn list(c: &mut Reader<'_>, into: &mut Vec<Labelled>) {
    loop {
        let (label, span) = (c.label_ahead(), c.peek().span);
        match labelled(c) {
            Ok(s) => into.push(s),
            Err(Reported) => {
                recover(c);
                // The label stays, so that jumps to it are no errors.
                into.push(Labelled {
                    label,
                    statement: Statement::Nop,
                    span,
                });
            }
        }
        if !c.eat(";") || at_list_end(c) {
            return;
        }
    }
}

fn at_list_end(c: &Reader<'_>) -> bool {
    c.at_end() || c.at_any(&["}", "or", "process"])
}

fn recover(c: &mut Reader<'_>) {
    let mut depth = 0usize;
    while !c.at_end() && !c.at("process") {
        if depth == 0 && (c.at(";") || at_list_end(c)) {
            break;
        }
        match c.take().text {
            "{" => depth += 1,
            "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
}

fn labelled(c: &mut Reader<'_>) -> Result<Labelled> {
    let t = c.peek();
    let mut label = None;
    if c.names(t) && !t.text.starts_with('$') {
        if !c.ahead(1).is(":") {
            let near = did_you_mean(t.text, STATEMENTS);
            return Err(c.refuse("a statement, or a label and `:`", near));
        }
        c.take();
        c.take();
        label = Some((t.text.to_string(), t.span));
    }
    let start = c.peek().span;
    let statement = c.nested(statement)?;
    Ok(Labelled {
        label,
        statement,
        span: start.to(c.last_span()),
    })
}

fn statement(c: &mut Reader<'_>) -> Result<Statement> {
    let t = c.peek();
    if t.kind == Kind::Name && t.text.starts_with('$') {
        let register = register(c)?;
        c.expect(":=")?;
        return Ok(Statement::Assign(register, value(c)?));
    }
    if t.text == "{" {
        return Ok(Statement::Block(block(c)?));
    }
    if t.kind != Kind::Name || !STATEMENTS.contains(&t.text) {
        return Err(c.unexpected("a statement"));
    }
    c.take();
    match t.text {
        "nop" => Ok(Statement::Nop),
        "fence" => Ok(Statement::Fence),
        "ssfence" => Ok(Statement::StoreFence),
        "llfence" => Ok(Statement::LoadFence),
        "read" | "syncrd" => {
            c.expect(":")?;
            if c.peek().text.starts_with('$') {
                let register = register(c)?;
                c.expect(":=")?;
                return Ok(Statement::Load(register, location(c)?));
            }
            let location = location(c)?;
            c.expect("=")?;
            Ok(Statement::Await(location, value(c)?))
        }
        "write" => write(c),
        "syncwr" => locked_write(c, t),
        "slocked" => {
            c.expect("write")?;
            let Statement::Write(location, value) = write(c)? else {
                return Err(Reported);
            };
            Ok(Statement::OrderedWrite(location, value))
        }
        "locked" => {
            if c.at("write") {
                let write = c.take();
                return locked_write(c, write);
            }
            Ok(Statement::Locked(alternatives(c)?))
        }
        "either" => Ok(Statement::Either(alternatives(c)?)),
        "cas" => {
            c.expect("(")?;
            let location = location(c)?;
            c.expect(",")?;
            let old = value(c)?;
            c.expect(",")?;
            let new = value(c)?;
            c.expect(")")?;
            Ok(Statement::Cas(location, old, new))
        }
        "assume" => {
            c.expect(":")?;
            Ok(Statement::Assume(condition(c)?.0))
        }
        "goto" => Ok(Statement::Goto(c.named("a label")?)),
        "if" => {
            let condition = condition(c)?.0;
            c.expect("then")?;
            let then = Box::new(labelled(c)?);
            let otherwise = if c.eat("else") {
                Some(Box::new(labelled(c)?))
            } else {
                None
            };
            Ok(Statement::If(condition, then, otherwise))
        }
        "while" => {
            let condition = condition(c)?.0;
            c.expect("do")?;
            Ok(Statement::While(condition, Box::new(labelled(c)?)))
        }
        _ => Err(c.unexpected("a statement")),
    }
}

fn write(c: &mut Reader<'_>) -> Result<Statement> {
    c.expect(":")?;
    let location = location(c)?;
    c.expect(":=")?;
    Ok(Statement::Write(location, value(c)?))
}

/// `locked write: x := e` is a locked block with one statement.
fn locked_write(c: &mut Reader<'_>, at: Token<'_>) -> Result<Statement> {
    let statement = write(c)?;
    let only = Labelled {
        label: None,
        statement,
        span: at.span.to(c.last_span()),
    };
    Ok(Statement::Locked(vec![vec![only]]))
}

fn block(c: &mut Reader<'_>) -> Result<Vec<Labelled>> {
    let open = c.expect("{")?;
    let mut body = Vec::new();
    list(c, &mut body);
    close(c, open)?;
    Ok(body)
}

fn alternatives(c: &mut Reader<'_>) -> Result<Vec<Vec<Labelled>>> {
    let open = c.expect("{")?;
    let mut all = Vec::new();
    loop {
        let mut body = Vec::new();
        list(c, &mut body);
        all.push(body);
        if !c.eat("or") {
            break;
        }
    }
    close(c, open)?;
    Ok(all)
}

fn close(c: &mut Reader<'_>, open: Span) -> Result<()> {
    if c.eat("}") {
        return Ok(());
    }
    let hint = format!("it closes the `{{` of line {}", open.line);
    Err(c.refuse("`}`", Some(hint)))
}

fn register(c: &mut Reader<'_>) -> Result<Named> {
    let t = c.name("a register")?;
    match t.text.strip_prefix('$') {
        Some(name) if !name.is_empty() => Ok((name.to_string(), t.span)),
        _ => {
            let message = format!("`{}` is not a register", clip(t.text));
            let d = Diagnostic::error(t.span, message);
            Err(c.report(d.hint("names of registers start with `$`")))
        }
    }
}

fn location(c: &mut Reader<'_>) -> Result<Location> {
    let t = c.peek();
    if t.text == "[" {
        c.take();
        let address = value(c)?;
        c.expect("]")?;
        return Ok(Location::At(address, t.span.to(c.last_span())));
    }
    let name = c.name("a variable")?;
    let named = (name.text.to_string(), name.span);
    if name.text.starts_with('$') {
        let message = format!("`{}` is a register, not memory", clip(name.text));
        return Err(c.error(name.span, message));
    }
    if !c.eat("[") {
        return Ok(Location::Global(named));
    }
    let location = if c.eat("my") {
        Location::Mine(named)
    } else {
        let k = c.number("`my` or the number of another process")?;
        Location::Other(named, u32::try_from(k).unwrap_or(u32::MAX))
    };
    c.expect("]")?;
    Ok(location)
}

/// A disjunction, with the height of its tree.
fn condition(c: &mut Reader<'_>) -> Result<(Expr<Leaf>, usize)> {
    let mut left = conjunction(c)?;
    while c.eat("||") {
        let right = conjunction(c)?;
        left = binary(c, Op2::Or, left, right)?;
    }
    Ok(left)
}

fn conjunction(c: &mut Reader<'_>) -> Result<(Expr<Leaf>, usize)> {
    let mut left = negation(c)?;
    while c.eat("&&") {
        let right = negation(c)?;
        left = binary(c, Op2::And, left, right)?;
    }
    Ok(left)
}

fn negation(c: &mut Reader<'_>) -> Result<(Expr<Leaf>, usize)> {
    if c.eat("not") {
        let (of, height) = comparison(c)?;
        return Ok((Expr::unary(Op1::Not, of), height + 1));
    }
    comparison(c)
}

fn comparison(c: &mut Reader<'_>) -> Result<(Expr<Leaf>, usize)> {
    if c.eat("true") {
        return Ok((Expr::TRUE, 1));
    }
    if c.eat("false") {
        return Ok((Expr::FALSE, 1));
    }
    if c.eat("[") {
        let inner = c.nested(condition)?;
        c.expect("]")?;
        return Ok(inner);
    }
    let left = sum(c)?;
    let op = match c.peek().text {
        "=" => Op2::Eq,
        "!=" => Op2::Ne,
        "<" => Op2::Lt,
        ">" => Op2::Gt,
        "<=" => Op2::Le,
        ">=" => Op2::Ge,
        _ => {
            return Err(c.unexpected("a comparison: `=`, `!=`, `<`, `>`, `<=` or `>=`"));
        }
    };
    c.take();
    let right = sum(c)?;
    binary(c, op, left, right)
}

fn value(c: &mut Reader<'_>) -> Result<Expr<Leaf>> {
    Ok(sum(c)?.0)
}

fn sum(c: &mut Reader<'_>) -> Result<(Expr<Leaf>, usize)> {
    let mut left = unit(c)?;
    loop {
        let op = match c.peek().text {
            "+" => Op2::Add,
            "-" => Op2::Sub,
            _ => return Ok(left),
        };
        c.take();
        let right = unit(c)?;
        left = binary(c, op, left, right)?;
    }
}

fn unit(c: &mut Reader<'_>) -> Result<(Expr<Leaf>, usize)> {
    let t = c.peek();
    match (t.kind, t.text) {
        (Kind::Number, _) => Ok((Expr::Const(c.number("a number")?), 1)),
        (_, "-") => {
            c.take();
            let (of, height) = c.nested(unit)?;
            Ok(match of {
                Expr::Const(c) => (Expr::Const(-c), 1),
                of => (Expr::unary(Op1::Neg, of), height + 1),
            })
        }
        (_, "(") => {
            c.take();
            let inner = c.nested(sum)?;
            c.expect(")")?;
            Ok(inner)
        }
        (_, "me") => {
            c.take();
            Ok((Expr::Atom(Leaf::Me), 1))
        }
        (_, "other") => {
            c.take();
            let k = c.number("which other process")?;
            let k = u32::try_from(k).unwrap_or(u32::MAX);
            Ok((Expr::Atom(Leaf::Other(k)), 1))
        }
        (_, "@") => {
            c.take();
            Ok((Expr::Const(c.number("the number of a process")?), 1))
        }
        (Kind::Name, name) if name.starts_with('$') => {
            let (name, span) = register(c)?;
            Ok((Expr::Atom(Leaf::Register(name, span)), 1))
        }
        (Kind::Name, name) if c.names(t) => {
            let message = format!("`{}` cannot be used in an expression", clip(name));
            let hint = "expressions speak of registers; `read: $r := x` loads a variable";
            Err(c.report(Diagnostic::error(t.span, message).hint(hint)))
        }
        _ => Err(c.unexpected("an expression")),
    }
}

fn binary(
    c: &mut Reader<'_>,
    op: Op2,
    (a, height_a): (Expr<Leaf>, usize),
    (b, height_b): (Expr<Leaf>, usize),
) -> Result<(Expr<Leaf>, usize)> {
    let height = 1 + height_a.max(height_b);
    if height > MAX_HEIGHT {
        let message = format!("an expression of more than {MAX_HEIGHT} operators in a row");
        return Err(c.error(c.last_span(), message));
    }
    Ok((Expr::binary(op, a, b), height))
}
