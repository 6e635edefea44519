//! The code as text: one line for each instruction that is part of the model, with its source line. It
//! stands after the program's own text, so that places in the code are places in a text like any other.

use crate::graph::{Graph, Origin};
use crate::world::World;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use wattle_model::Span;

#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// What comes after the program's text.
    pub text: String,
    spans: BTreeMap<u64, Span>,
    /// The source place of a line of the whole text: `ticket.c:12`.
    pub places: BTreeMap<u32, String>,
}

impl Listing {
    pub fn new(graphs: &[Graph], world: &World, program: &str) -> Listing {
        let mut addresses = BTreeSet::new();
        for graph in graphs {
            for n in graph.reached() {
                let node = &graph.nodes[n];
                let all = node.out.iter().map(|e| e.origin).chain(node.origin);
                addresses.extend(all.filter_map(|o| match o {
                    Origin::Code(a) => Some(a),
                    Origin::Text(_) => None,
                }));
            }
        }
        let mut listing = Listing::default();
        let mut line = program.lines().count() as u32 + 1;
        let start = program.len();
        if !program.ends_with('\n') && !program.is_empty() {
            listing.text.push('\n');
        }
        let mut function = String::new();
        for a in addresses {
            let place = world.place(a);
            let name = place.split("+0x").next().unwrap_or(&place).to_string();
            if name != function {
                let _ = writeln!(listing.text, "// {name}");
                function = name;
                line += 1;
            }
            let frames: Vec<String> = world
                .frames(a)
                .iter()
                .map(|f| format!("{}:{}", f.file, f.line))
                .collect();
            let at = match frames.split_first() {
                None => place,
                Some((one, [])) => one.clone(),
                Some((one, rest)) => format!("{one} (inlined at {})", rest.join(", ")),
            };
            let text = world.text(a);
            let from = start + listing.text.len() + 4;
            let shown = format!("{at}: {text}");
            let _ = writeln!(listing.text, "    {shown}");
            listing
                .spans
                .insert(a, Span::new(from, from + shown.len(), line as usize));
            listing.places.insert(
                line,
                frames.first().cloned().unwrap_or_else(|| world.place(a)),
            );
            line += 1;
        }
        listing
    }

    pub fn span(&self, origin: Origin) -> Span {
        match origin {
            Origin::Text(span) => span,
            Origin::Code(a) => self.spans.get(&a).copied().unwrap_or(Span::NONE),
        }
    }
}
