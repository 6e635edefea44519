//! What a program says of compiled code.

use super::super::ast::{Ex, ExKind, File, Name, TypeEx};
use super::super::link::{Call, Memory, Size, hole};
use super::Lowering;
use super::refuse;
use super::statements::Body;
use wattle_model::{RegionId, Span};

impl Body<'_, '_> {
    /// A hole in the graph; whoever knows the code fills it.
    pub(super) fn call(
        &mut self,
        to: Option<&Ex>,
        f: &Name,
        arguments: &[Ex],
        span: Span,
    ) -> Option<()> {
        let (linked, inside) = (self.lowering.linked, self.atomic > 0);
        if let Some(d) = refuse::call(linked, inside, f, arguments.len(), span) {
            return self.refuse(d);
        }
        let arguments = self.values(arguments);
        let result = match to {
            None => None,
            Some(Ex {
                kind: ExKind::Name(n, None),
                ..
            }) if self.register_ids.contains_key(&n.text) => Some(self.register_ids[&n.text]),
            Some(e) => return self.refuse(refuse::result_register(e.span)),
        };
        let calls = &mut self.lowering.link.calls;
        let hole = hole(calls.len());
        calls.push(Call {
            function: f.text.clone(),
            function_span: f.span,
            arguments: arguments?,
            result,
            span,
        });
        self.emit(hole, span);
        Some(())
    }
}

impl Lowering<'_> {
    /// Object files, what lies in memory for them, functions they lack.
    pub(super) fn link_declarations(&mut self, file: &File) {
        refuse::objects(file, self.report);
        let named = |n: &Name| (n.text.clone(), n.span);
        self.link.objects = file.objects.iter().map(named).collect();
        for (i, d) in file.shared.iter().enumerate() {
            let size = match &d.ty {
                TypeEx::Object(e) => match self.number(e) {
                    Some(n) if (1..=1 << 20).contains(&n) => Some(Size::Bytes(n as u64)),
                    Some(_) => self.refuse(refuse::no_size(e.span)),
                    None => None,
                },
                TypeEx::Struct(n) => Some(Size::Struct(n.text.clone())),
                TypeEx::Int
                | TypeEx::Bool
                | TypeEx::Range(..)
                | TypeEx::Wrap { .. }
                | TypeEx::Family(_) => None,
            };
            self.link.memory.extend(size.map(|size| Memory {
                region: RegionId::new(i),
                size,
                span: d.name.span,
            }));
        }
        let skipped = file.skipped.iter().map(|(n, any)| (n.text.clone(), *any));
        self.link.skipped.extend(skipped);
    }
}
