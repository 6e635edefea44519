//! What the condition, `locations` and `filter` speak of.

use super::build::MAX_LOCATIONS;
use super::header::{Architecture, Header};
use super::names::Locations;
use super::syntax::{Column, Declaration, Item, Proposition, Question, Value};
use crate::diagnostics::{Diagnostic, nearest};
use crate::x86_core::{Base, ENOUGH, Name, Size};
use std::collections::BTreeMap;
use wattle_model::{RegionId, Span};

/// An item of the condition with its meaning.
#[derive(Clone, Debug)]
pub struct Named {
    pub item: Item,
    pub place: Subject,
    pub shown: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    Register(usize, Name),
    Cell(RegionId, u32),
}

/// Finds what the condition, `locations` and `filter` speak of.
pub struct Items<'a> {
    pub header: &'a Header,
    pub columns: &'a [Column],
    pub locations: &'a mut Locations,
    pub names: Vec<Named>,
    /// Where in `names` a place stands.
    pub index: BTreeMap<Subject, usize>,
    pub diagnostics: &'a mut Vec<Diagnostic>,
}

impl Items<'_> {
    pub fn collect(&mut self, q: &Question) {
        for (item, span) in &q.locations {
            self.item(item, *span, true);
        }
        self.proposition(&q.proposition, true);
        if let Some(f) = &q.filter {
            self.proposition(f, false);
        }
    }

    fn proposition(&mut self, p: &Proposition, shown: bool) {
        match p {
            Proposition::Atom {
                left, right, span, ..
            } => {
                self.item(left, *span, shown);
                match right {
                    Value::Item(item) => self.item(item, *span, shown),
                    Value::Address(name, _)
                        if self.locations.get(name).is_none()
                            && self.diagnostics.len() < ENOUGH =>
                    {
                        let known = self.locations.all.iter().map(|l| l.name.as_str());
                        let near = nearest(name, known);
                        let d = Diagnostic::error(*span, format!("unknown location `{name}`"));
                        self.diagnostics.push(match near {
                            Some(near) => d.hint(format!("did you mean `{near}`?")),
                            None => d.expected("a number, or a location of this test"),
                        });
                    }
                    _ => {}
                }
            }
            Proposition::Not(p) => self.proposition(p, shown),
            Proposition::And(ps) | Proposition::Or(ps) => {
                ps.iter().for_each(|p| self.proposition(p, shown));
            }
            Proposition::Implies(a, b) => {
                self.proposition(a, shown);
                self.proposition(b, shown);
            }
        }
    }

    fn item(&mut self, item: &Item, span: Span, shown: bool) {
        let full = self.locations.all.len() >= MAX_LOCATIONS;
        if self.diagnostics.len() >= ENOUGH || full {
            return;
        }
        let place = match item {
            Item::Register { thread, register } => self.register(*thread, register, span),
            Item::Cell { name, element } => self.cell(name, *element, span),
        };
        let Some(place) = place else { return };
        match self.index.get(&place) {
            Some(known) => self.names[*known].shown |= shown,
            None => {
                self.index.insert(place, self.names.len());
                self.names.push(Named {
                    item: item.clone(),
                    place,
                    shown,
                });
            }
        }
    }

    fn register(&mut self, thread: i64, register: &str, span: Span) -> Option<Subject> {
        let Some(t) = self.columns.iter().position(|c| c.number == thread) else {
            let message = format!("there is no thread {thread}");
            let hint = match self.columns.len() {
                0 => "the test has no threads".to_string(),
                n => format!("the test has the {n} threads of its first row"),
            };
            self.diagnostics
                .push(Diagnostic::error(span, message).hint(hint));
            return None;
        };
        let Some(name) = Name::parse(register) else {
            let known: Vec<String> = Base::all()
                .flat_map(|b| [b.name(Size::Dword), b.name(Size::Qword)])
                .collect();
            let message = format!("thread {thread} has no register `{register}`");
            let d = Diagnostic::error(span, message);
            let near = nearest(register, known.iter().map(String::as_str));
            self.diagnostics.push(match near {
                Some(near) => d.hint(format!("did you mean `{near}`?")),
                None => d.expected("a general register such as `EAX`"),
            });
            return None;
        };
        if self.header.architecture == Architecture::X86 && name.size == Size::Qword {
            let message = format!("register `{register}` has 64 bits, but the test is for X86");
            let hint = format!(
                "use `{}`, or write `X86_64` in the header",
                name.base.name(Size::Dword)
            );
            self.diagnostics
                .push(Diagnostic::error(span, message).hint(hint));
            return None;
        }
        Some(Subject::Register(t, name))
    }

    fn cell(&mut self, name: &str, element: u32, span: Span) -> Option<Subject> {
        let known = self.locations.get(name);
        let id = known.unwrap_or_else(|| {
            let message = format!("no thread uses location `{name}`, so it stays 0");
            let all = self.locations.all.iter().map(|l| l.name.as_str());
            let d = Diagnostic::warning(span, message);
            let d = match nearest(name, all) {
                Some(near) => d.hint(format!("did you mean `{near}`?")),
                None => d,
            };
            self.diagnostics.push(d);
            self.locations.named(name, span)
        });
        let length = self.locations.location(id).length;
        if element >= length {
            let message = format!("`{name}` has {length} elements");
            self.diagnostics.push(Diagnostic::error(span, message));
            return None;
        }
        Some(Subject::Cell(id, element))
    }

    /// Registers of the initial state must exist; they are not observed.
    pub fn declared_registers(&mut self, init: &[Declaration]) {
        for d in init {
            if let Item::Register { thread, register } = &d.item {
                self.register(*thread, register, d.span);
            }
        }
    }
}
