//! What people write who come from C or Rust: each slip is one error with the words that help, and reading goes
//! on behind it.

use super::Parser;
use crate::Diagnostic;
use crate::tokens::{Kind, Token};

/// Words that begin a declaration in C.
const C_TYPES: &[&str] = &[
    "int",
    "bool",
    "char",
    "short",
    "long",
    "unsigned",
    "signed",
    "void",
    "volatile",
    "const",
    "static",
    "atomic_int",
    "atomic_bool",
    "atomic_flag",
    "_Atomic",
    "_Bool",
];

impl Parser<'_, '_> {
    /// `int x;` and the like, where a declaration or a statement may stand.
    pub(super) fn c_declaration(&self, inside: bool) -> Option<Diagnostic> {
        let t = self.token();
        let next = self.cursor.ahead(1);
        let is_type = t.kind == Kind::Name && C_TYPES.contains(&t.text);
        let named = next.kind == Kind::Name || next.is("*");
        let constant = t.is("const") && self.cursor.ahead(2).is("=");
        let hint = match inside {
            _ if constant => "constants are declared with `let N = 3;`",
            true => "registers are declared with `local x;` at the top of the thread",
            false => {
                "shared memory is declared with `shared x;` or `shared x: 0..3 = 0;`, a thread with \
                 `thread p { … }`"
            }
        };
        let other = t.is("var") || t.is("auto") || (t.is("let") && next.is("mut"));
        let message = match other {
            true => format!("there is no `{}` here", t.text),
            false => format!("declarations do not begin with a type such as `{}`", t.text),
        };
        ((is_type || other) && named).then(|| Diagnostic::error(t.span, message).hint(hint))
    }

    /// `x++;` or `++x;`
    pub(super) fn increment(&self) -> Option<Diagnostic> {
        let signs = |n: usize| {
            let (a, b) = (self.cursor.ahead(n), self.cursor.ahead(n + 1));
            let twice = a.text == b.text && (a.is("+") || a.is("-"));
            (twice && a.span.end == b.span.start).then(|| (a.text, a.span.to(b.span)))
        };
        let found = signs(0).or_else(|| {
            let length = self.place_length()?;
            let ends = self.cursor.ahead(length + 2).is(";");
            signs(length).filter(|_| ends)
        });
        let (sign, span) = found?;
        let by = if sign == "+" { "1" } else { "-1" };
        Some(
            Diagnostic::error(span, format!("there is no operator `{sign}{sign}`")).hint(format!(
                "write `x = x {sign} 1;`: a load and a store, or `fetch_add(x, {by});` to be atomic"
            )),
        )
    }

    /// `x += 1;`, `x |= 1;`, `a[i] <<= 1;`
    pub(super) fn operator_assignment(&self) -> Option<Diagnostic> {
        let at = self.place_length()?;
        let (t, next) = (self.cursor.ahead(at), self.cursor.ahead(at + 1));
        let joined = next.is("=") && t.span.end == next.span.start;
        let (sign, span) = match t.text {
            "+=" | "-=" => (&t.text[..1], t.span),
            "|" | "&" | "^" | "*" | "/" | "%" | "<<" | ">>" if joined => {
                (t.text, t.span.to(next.span))
            }
            _ => return None,
        };
        let atomic = match sign {
            "+" => "`fetch_add(x, 1);`",
            "-" => "`fetch_add(x, -1);`",
            _ => "`atomic { … }`",
        };
        let hint = format!("write `x = x {sign} 1;`: a load and a store, or {atomic} to be atomic");
        Some(Diagnostic::error(span, "there is no assignment operator of this kind").hint(hint))
    }

    /// `if x = 1 {`: told where `sign` was expected, and read on as if it were a comparison.
    pub(super) fn assigned(&mut self, sign: &str) -> super::Result<()> {
        if self.at("=") {
            let _ = self.expect(sign);
            self.advance();
            self.expression()?;
        }
        Ok(())
    }

    /// How many tokens a name with an index has.
    fn place_length(&self) -> Option<usize> {
        if self.token().kind != Kind::Name {
            return None;
        }
        if !self.cursor.ahead(1).is("[") {
            return Some(1);
        }
        let far = (2..LOOK).find(|n| self.cursor.ahead(*n).is("]"))?;
        Some(far + 1)
    }

    /// `for (i = 0; i < n; i++) { … }`: skips the head; what is inside the braces is read.
    pub(super) fn c_for(&mut self) -> Diagnostic {
        let start = self.span();
        let mut open = 0usize;
        while !self.at_end() {
            let t = self.advance();
            match t.text {
                "(" if t.kind == Kind::Symbol => open += 1,
                ")" if t.kind == Kind::Symbol => open -= 1,
                _ => {}
            }
            if open == 0 || self.at("{") || self.at("}") {
                break;
            }
        }
        let span = start.to(self.last_span());
        if self.at("{") {
            let _ = self.block();
        }
        Diagnostic::error(span, "a `for` counts over a range").hint(
            "write `for i in 0..2 { … }` for 0, 1 and 2 (constants, both ends included), or `while … { … }`",
        )
    }

    /// `do { … } while (…);` and `switch (…) { … }`: skips to behind the braces.
    pub(super) fn c_statement(&mut self) -> Option<Diagnostic> {
        let (t, next) = (self.token(), self.cursor.ahead(1));
        let (message, hint) = match t.text {
            "do" if next.is("{") => ("there is no `do`", "write `loop { …; if … { break; } }`"),
            "switch" if next.is("(") => {
                ("there is no `switch`", "write `if … { … } else if … { … }`")
            }
            _ => return None,
        };
        self.advance();
        while !self.at_end() && !self.at("{") && !self.at(";") {
            self.advance();
        }
        if self.at("{") {
            self.skip_braces();
        }
        if t.text == "do" && self.eat("while") {
            while !self.at_end() && !self.at("}") && !self.eat(";") {
                self.advance();
            }
        }
        Some(Diagnostic::error(t.span, message).hint(hint))
    }

    fn skip_braces(&mut self) {
        let mut open = 0usize;
        while !self.at_end() {
            let t = self.advance();
            if t.is("{") {
                open += 1;
            } else if t.is("}") {
                open -= 1;
            }
            if open == 0 {
                return;
            }
        }
    }

    /// Why a word of the language stands where a name should.
    pub(super) fn reserved(&self) -> Option<String> {
        let (t, next) = (self.token(), self.cursor.ahead(1));
        match t.text {
            word if next.is("(") => Self::c_call(word).map(String::from),
            "atomic" if next.kind == Kind::Name => Some(format!(
                "no word says that memory is shared atomically, all of it is: `shared {};`",
                next.text
            )),
            _ => None,
        }
    }

    /// What is written instead of something that is no declaration here.
    pub(super) fn declared_elsewhere(&self) -> Option<&'static str> {
        let colon = self.cursor.ahead(1).is(":");
        match self.token().text {
            "assert" => Some(
                "`assert` is a statement of a thread; of the whole program say `always …;`, or \
                 `finally …;` of its end",
            ),
            "fn" | "func" | "function" | "def" | "proc" | "procedure" | "inline" | "macro" => Some(
                "there are no functions here: write the statements where they are needed, or check \
                 compiled ones (`object \"lock.o\";` and `call`)",
            ),
            "property" | "invariant" | "spec" | "check" if colon => Some(
                "a property is `never …;`, `always …;`, `finally …;` or `reachable …;`, without a name",
            ),
            "init" | "initially" | "main" | "int" => {
                Some("what memory holds at first is said where it is declared: `shared x = 1;`")
            }
            _ => None,
        }
    }

    /// A function that is none here: what it is called, or what is written instead.
    pub(super) fn c_function(word: &str) -> Option<String> {
        let lower = word.to_ascii_lowercase();
        let known = ["cas", "swap", "fetch_add"];
        if let Some(same) = known.iter().find(|k| **k == lower) {
            return Some(format!("did you mean `{same}`?"));
        }
        Self::c_call(word).map(String::from)
    }

    /// What is written instead of a function, as C11, C++, Rust and the kernel call them.
    fn c_call(word: &str) -> Option<&'static str> {
        let lower = word.to_ascii_lowercase();
        let has = |part: &str| lower.contains(part);
        let hint = match () {
            () if has("compare_exchange") || has("cmpxchg") || has("compare_and_swap") => {
                "compare and exchange is `cas(x, old, new)`, true if it took place"
            }
            () if has("exchange") || has("xchg") || has("test_and_set") => {
                "an exchange is `swap(x, 1)`, which gives the old value"
            }
            () if has("fetch_sub") => "write `fetch_add(x, -1)`",
            () if has("fetch_add") || has("xadd") => "write `fetch_add(x, 1)`",
            () if has("fence") || lower.ends_with("_mb") => "write `fence;`",
            () if has("load") || has("read_once") => "a load is written `r = x;`",
            () if has("store") || has("write_once") => "a store is written `x = 1;`",
            () if has("lock") => {
                "a lock is a cell that is taken with `while swap(l, 1) == 1 { }` and given back with `l = 0;`"
            }
            () if has("print") => {
                "there is no output: `wattle check` shows the run, `wattle final` the end"
            }
            () => return None,
        };
        Some(hint)
    }

    /// `x.store(1)`, `p->next`, `a[0][1]`: what to write where an expression cannot go on.
    pub(super) fn beyond(&self) -> Option<&'static str> {
        match () {
            () if self.at("(") => Self::c_call(self.last_text()),
            () if self.at("->") => {
                Some("there are no pointers: an array and an index, as in `next[p]`")
            }
            () if self.at("[") && self.last_text() == "]" => {
                Some("an array has one index: `a[2 * i + j]`")
            }
            () => None,
        }
    }

    /// `struct … { … };` and the like: skips to behind it.
    pub(super) fn c_structure(&mut self) -> Option<Diagnostic> {
        let t = self.token();
        let words = ["struct", "typedef", "enum", "union", "class"];
        if t.kind != Kind::Name || !words.contains(&t.text) {
            return None;
        }
        while !self.at_end() && !self.at("{") && !self.at(";") {
            self.advance();
        }
        if self.at("{") {
            self.skip_braces();
        }
        self.eat(";");
        let message = format!("there is no `{}`", t.text);
        Some(Diagnostic::error(t.span, message).hint(
            "each field is shared memory of its own: `shared head, tail;`, an array for several",
        ))
    }

    /// What to do where `sign` was expected and something else came.
    pub(super) fn slip(&self, sign: &str) -> Option<&'static str> {
        let t = self.token();
        let word = |w: &str| t.kind == Kind::Name && t.text == w;
        let before = self.last_text();
        match sign {
            _ if word("and") => Some("and is `&&`"),
            _ if word("or") => Some("or is `||`"),
            ";" if self.at("=") && self.cursor.ahead(2).is(";") => {
                Some("one assignment in a statement; equality is `==`")
            }
            "{" | ")" | ";" if self.at("=") => Some("equality is `==`"),
            ";" if self.at(",") => Some("statements are separated by `;`"),
            ";" if self.at(".") && self.cursor.last().kind == Kind::Number => {
                Some("numbers are whole")
            }
            ";" if self.at("}") => Some("every statement ends with `;`"),
            "{" if self.at("(") && self.cursor.ahead(1).is(")") => {
                Some("a thread has no parameters: `thread p { … }`")
            }
            ";" if t.kind == Kind::Name && C_TYPES.contains(&before) => Some(
                "a type comes behind the name: `shared x: bool;`, and integers need none: `shared x;`",
            ),
            ";" if self.at("[") && C_TYPES.contains(&before) => {
                Some("the length comes behind the name: `shared x[3];`, `shared x[3]: bool;`")
            }
            ";" if self.at("(") && before == "fence" => Some("write `fence;`, without parentheses"),
            "{" if self.starts_statement(t) => {
                Some("braces are always needed: `while … { x = 1; }`, `if … { x = 1; }`")
            }
            "{" if self.at(";") => Some("an empty body is `{ }`"),
            ";" => self.beyond(),
            _ => None,
        }
    }

    fn starts_statement(&self, t: Token<'_>) -> bool {
        t.kind == Kind::Name && !super::items::STARTS.contains(&t.text)
    }

    fn last_text(&self) -> &str {
        self.cursor.last().text
    }
}

/// How far an index is looked over.
const LOOK: usize = 40;
