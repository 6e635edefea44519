//! The locations of a test, from the initial state, the code and the condition.

use super::syntax::{Declaration, Item, Value};
use crate::diagnostics::Diagnostic;
use crate::x86_core::Size;
use std::collections::BTreeMap;
use wattle_model::{RegionId, Span};

/// A memory location as far as it is known.
#[derive(Clone, Debug)]
pub struct Location {
    pub name: String,
    pub length: u32,
    pub array: bool,
    pub declared: Option<(Size, bool)>,
    pub values: Vec<(Value, Span)>,
    pub span: Span,
    /// The widest access.
    pub widest: Option<Size>,
    /// Whether its address can get into a register.
    pub pointed: bool,
    /// Whether the initial state or some instruction names it.
    pub used: bool,
}

#[derive(Default)]
pub struct Locations {
    pub all: Vec<Location>,
    index: BTreeMap<String, RegionId>,
}

impl Locations {
    pub fn get(&self, name: &str) -> Option<RegionId> {
        self.index.get(name).copied()
    }

    pub fn location(&self, id: RegionId) -> &Location {
        &self.all[id.index()]
    }

    /// The location of that name, made if it is new.
    pub fn named(&mut self, name: &str, span: Span) -> RegionId {
        if let Some(id) = self.index.get(name) {
            return *id;
        }
        let id = RegionId::new(self.all.len());
        self.all.push(Location {
            name: name.to_string(),
            length: 1,
            array: false,
            declared: None,
            values: Vec::new(),
            span,
            widest: None,
            pointed: false,
            used: false,
        });
        self.index.insert(name.to_string(), id);
        id
    }

    pub fn declare(
        &mut self,
        declarations: &[Declaration],
        pointer: Size,
        diagnostics: &mut Vec<Diagnostic>,
    ) {
        for d in declarations {
            if let Item::Cell { name, element } = &d.item {
                if *element != 0 {
                    let message = "an element is set with the whole array";
                    let hint = format!("write `int {name}[…] = {{…}}`");
                    diagnostics.push(Diagnostic::error(d.span, message).hint(hint));
                }
                let id = self.named(name, d.span);
                let l = &mut self.all[id.index()];
                l.used = true;
                l.length = d.length.unwrap_or(l.length);
                l.array |= d.length.is_some();
                l.declared = d.ty.or(l.declared);
                if d.pointer {
                    l.declared = Some((pointer, true));
                }
                if !d.values.is_empty() {
                    l.values.clone_from(&d.values);
                }
            }
        }
        for d in declarations {
            for (value, span) in &d.values {
                if let Value::Address(name, _) = value {
                    let id = self.named(name, *span);
                    self.all[id.index()].pointed = true;
                    self.all[id.index()].used = true;
                }
                if let (Value::Address(..), Item::Cell { name, .. }) = (value, &d.item)
                    && let Some(id) = self.get(name)
                {
                    let l = &mut self.all[id.index()];
                    l.declared = l.declared.or(Some((pointer, true)));
                }
                if let Value::Item(_) = value {
                    let message = "an initial value is a number or an address";
                    diagnostics.push(Diagnostic::error(*span, message));
                }
            }
        }
    }

    pub fn accessed(&mut self, id: RegionId, size: Option<Size>) {
        let l = &mut self.all[id.index()];
        l.used = true;
        l.widest = l.widest.max(size);
    }

    /// How many bits the location has, and whether they are signed. What no type says the widest
    /// access says.
    pub fn width(&self, id: RegionId) -> (Size, bool) {
        let l = self.location(id);
        let (size, signed) = l
            .declared
            .unwrap_or((l.widest.unwrap_or(Size::Dword), true));
        // Unsigned 64-bit numbers do not fit the model's.
        (size, signed || size == Size::Qword)
    }

    /// The flat number of an element's cell.
    pub fn cell(&self, id: RegionId, element: u32) -> i64 {
        let before = self.all[..id.index()].iter().map(|l| i64::from(l.length));
        before.sum::<i64>() + i64::from(element)
    }
}
