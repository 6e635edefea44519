//! Lines of code: `label: lock add dword [x], eax`.

use super::data::Variable;
use super::number;
use crate::diagnostics::{Diagnostic, nearest};
use crate::tokens::{Cursor, Kind, Token};
use crate::x86_core::{
    Code, ENOUGH, Element, Immediate, Instruction, Label, Memory, Name, Operand, Result, Size,
    check_shape, instruction, labels, operation_size, size_keyword,
};
use std::collections::BTreeMap;
use wattle_model::{FamilyId, RegionId, Span};

/// Reads code line by line; names are resolved at once because all data stands before.
pub struct Reader<'a> {
    pub variables: &'a [Variable],
    index: BTreeMap<&'a str, usize>,
    /// Numbers are mathematical: only whole registers make sense.
    pub mathematical: bool,
    pub diagnostics: &'a mut Vec<Diagnostic>,
    /// Whose code it is; nobody's before the threads start.
    family: Option<FamilyId>,
    /// Whether `N` is clear.
    counted: bool,
    /// What the code calls the running thread, with `$`.
    own: Option<(String, Span)>,
}

pub struct Read {
    pub code: Code,
    /// Where `start_threads` stands.
    pub started: Option<(usize, Span)>,
}

impl<'a> Reader<'a> {
    pub fn new(
        variables: &'a [Variable],
        mathematical: bool,
        (family, counted): (Option<FamilyId>, bool),
        diagnostics: &'a mut Vec<Diagnostic>,
    ) -> Self {
        let named = variables.iter().enumerate();
        Reader {
            index: named.map(|(i, v)| (v.name.as_str(), i)).collect(),
            variables,
            mathematical,
            diagnostics,
            family,
            counted,
            own: None,
        }
    }

    pub fn read(&mut self, lines: &[Vec<Token<'_>>]) -> Read {
        let mut read = Read {
            code: Code::default(),
            started: None,
        };
        for line in lines {
            if self.diagnostics.len() >= ENOUGH {
                break;
            }
            if let Err(d) = self.line(line, &mut read) {
                self.diagnostics.push(d);
            }
        }
        read
    }

    fn line(&mut self, line: &[Token<'_>], read: &mut Read) -> Result<()> {
        let mut c = Cursor::new(line.to_vec());
        for t in labels(&mut c) {
            read.code.labels.push(Label {
                name: t.text.to_string(),
                at: read.code.instructions.len(),
                span: t.span,
            });
        }
        if c.at_end() {
            return Ok(());
        }
        if c.peek().is_word("start_threads") {
            let t = c.take();
            read.started = Some((read.code.instructions.len(), t.span));
            return c.finish("the end of the line");
        }
        let x = self.instruction(&mut c)?;
        read.code.instructions.push(x);
        Ok(())
    }

    fn instruction(&mut self, c: &mut Cursor<'_>) -> Result<Instruction> {
        let start = c.peek().span;
        let lock = c.peek().is_word("lock");
        if lock {
            c.take();
        }
        let after = "`,` or the end of the line";
        let x = instruction(c, (lock, start), after, &mut |c| {
            let operand = self.operand(c)?;
            let span = operand.span();
            Ok((operand, span))
        })?;
        check_shape(&x)?;
        operation_size(&x)?;
        Ok(x)
    }

    fn operand(&mut self, c: &mut Cursor<'_>) -> Result<Operand> {
        let t = c.peek();
        let size = size_keyword(c);
        if c.peek().is("[") {
            return self.memory(c, size, t.span);
        }
        if size.is_some() {
            return Err(c.unexpected("`[`"));
        }
        if let Some(n) = number(c)? {
            return Ok(Operand::Immediate(Immediate::Number(n), t.span));
        }
        let t = c.name("a register, a number or a memory operand")?;
        if t.text == "N" {
            if !self.counted {
                let message =
                    "how many threads are meant is not clear: there are several functions";
                return Err(Diagnostic::error(t.span, message));
            }
            return Ok(Operand::Immediate(Immediate::Count, t.span));
        }
        match Name::parse(t.text) {
            Some(n) => {
                self.check_register(n, t)?;
                Ok(Operand::Register(n, t.span))
            }
            None => Err(self.unknown_operand(t)),
        }
    }

    /// Mathematical integers are in the registers of 32 bits.
    fn check_register(&self, n: Name, t: Token<'_>) -> Result<()> {
        if n.size == Size::Dword || !self.mathematical {
            return Ok(());
        }
        let message = match n.size {
            Size::Qword => format!(
                "register `{}` has 64 bits, which mathematical integers do not have",
                t.text
            ),
            _ => format!(
                "register `{}` is a part, which mathematical integers do not have",
                t.text
            ),
        };
        let whole = n.base.name(Size::Dword).to_ascii_lowercase();
        Err(Diagnostic::error(t.span, message).hint(format!("use `{whole}`")))
    }

    fn unknown_operand(&self, t: Token<'_>) -> Diagnostic {
        let d = Diagnostic::error(t.span, format!("unknown register `{}`", t.text));
        if self.index.contains_key(t.text) {
            return d.hint(format!("the variable is written `[{}]`", t.text));
        }
        match nearest(t.text, ["eax", "ebx", "ecx", "edx", "esi", "edi"]) {
            Some(near) => d.hint(format!("did you mean `{near}`?")),
            None => d.expected("a register, a number, `N` or `[variable]`"),
        }
    }

    /// `[x]`, `[x + $t]`, `[a + 4]`, `[a + eax*4 + 4]`.
    fn memory(&mut self, c: &mut Cursor<'_>, size: Option<Size>, start: Span) -> Result<Operand> {
        c.expect("[")?;
        let t = c.name("a variable")?;
        let Some(&i) = self.index.get(t.text) else {
            return Err(self.unknown_variable(t));
        };
        let v = &self.variables[i];
        let mut own = v.of.is_some();
        let mut offset = 0i64;
        let mut index: Option<(Name, i64)> = None;
        loop {
            if c.at("-") && c.ahead(1).kind == Kind::Number {
                offset = offset.wrapping_add(number(c)?.unwrap_or(0));
                continue;
            }
            if !c.eat("+") {
                break;
            }
            let term = c.peek();
            if term.kind == Kind::Marked('$') {
                c.take();
                if v.of.is_none() {
                    let message = format!("`{}` is one variable, not one per thread", v.name);
                    return Err(
                        Diagnostic::error(term.span, message).hint("declare it in `thread_data`")
                    );
                }
                self.check_own(term)?;
                own = true;
                continue;
            }
            let (register, by) = match number(c)? {
                Some(n) if c.eat("*") => (Some(self.register(c)?), n),
                Some(n) => (None, n),
                None => {
                    let register = self.register(c)?;
                    let by = if c.eat("*") { number(c)? } else { Some(1) };
                    (Some(register), by.ok_or_else(|| c.unexpected("a number"))?)
                }
            };
            match register {
                None => offset = offset.wrapping_add(by),
                Some(_) if index.is_some() => {
                    let message = "an element of an array has one index";
                    return Err(Diagnostic::error(term.span, message));
                }
                Some(_) if !matches!(by, 1 | 2 | 4 | 8) => {
                    let message = "an index is taken 1, 2, 4 or 8 times";
                    return Err(Diagnostic::error(term.span, message));
                }
                Some(register) => index = Some((register, by)),
            }
        }
        let end = c.expect("]")?;
        let span = start.to(end);
        if let (Some(_), None) = (v.of, self.family) {
            let message = "there is no thread yet whose variable this could be";
            return Err(Diagnostic::error(span, message));
        }
        if v.of.is_some() && v.of != self.family {
            let message = format!("these threads have no `{}`", v.name);
            return Err(Diagnostic::error(span, message));
        }
        let bytes = v.size.bytes();
        let element = offset / bytes;
        let inside = index.is_some() || (0..v.values.len() as i64).contains(&element);
        if offset % bytes != 0 || !inside || own && (offset != 0 || index.is_some()) {
            let message = format!("this address lies outside of `{}`", v.name);
            let hint = match v.values.len() {
                1 => format!("`{}` has {bytes} bytes", v.name),
                n => format!("`{}` has {n} elements of {bytes} bytes", v.name),
            };
            return Err(Diagnostic::error(span, message).hint(hint));
        }
        let region = RegionId::new(i);
        let at = match index {
            _ if own => Element::Own(region),
            None => Element::Number(region, element as u32),
            Some(index) => Element::Indexed {
                region,
                element,
                index,
            },
        };
        Ok(Operand::Memory(Memory { at, size, span }))
    }

    fn register(&mut self, c: &mut Cursor<'_>) -> Result<Name> {
        let t = c.peek();
        let Some(n) = Name::parse(t.text).filter(|_| t.kind == Kind::Name) else {
            return Err(c.unexpected("a register, a number or a thread such as `$t`"));
        };
        c.take();
        self.check_register(n, t)?;
        if n.size < Size::Dword {
            let message = "an index is a register of 32 or 64 bits";
            return Err(Diagnostic::error(t.span, message));
        }
        Ok(n)
    }

    /// The code has one name for the running thread, and no way to name another.
    fn check_own(&mut self, t: Token<'_>) -> Result<()> {
        match &self.own {
            Some((name, first)) if name != t.text => {
                let message = format!("`${}` is not the running thread", t.text);
                let hint = format!("line {} calls it `${name}`", first.line);
                Err(Diagnostic::error(t.span, message).hint(hint))
            }
            _ => {
                self.own = Some((t.text.to_string(), t.span));
                Ok(())
            }
        }
    }

    fn unknown_variable(&self, t: Token<'_>) -> Diagnostic {
        let d = Diagnostic::error(t.span, format!("there is no variable `{}`", t.text));
        if Name::parse(t.text).is_some() {
            return d.hint("an address begins with a variable: `[array + eax*4]`");
        }
        match nearest(t.text, self.variables.iter().map(|v| v.name.as_str())) {
            Some(near) => d.hint(format!("did you mean `{near}`?")),
            None => d.hint(format!("declare it: `{} dd 0` in `shared_data`", t.text)),
        }
    }
}
