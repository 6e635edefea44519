//! The threads' graphs in the language of Graphviz.

use crate::picture::{Added, threads};
use std::fmt::Write;
use wattle_model::graph::Action;
use wattle_model::{Instance, StepId};

/// One cluster per thread. Visible steps are bold, local ones thin; ended locations are doubled;
/// what was added is green.
pub fn graph(instance: &Instance, added: &Added, source: &str) -> String {
    let mut out = String::from("digraph program {\n  node [shape=circle, fontsize=10];\n");
    for (id, copies) in threads::families(instance) {
        let (t, thread) = (id.index(), instance.thread(id));
        let mine = threads::of(added, id);
        let _ = writeln!(out, "  subgraph cluster_{t} {{");
        let name = threads::title(&thread.name, copies);
        let _ = writeln!(out, "    label={};", quoted(&name));
        for (l, location) in thread.locations.iter().enumerate() {
            let mut label = l.to_string();
            for name in &location.labels {
                let _ = write!(label, "\n{name}");
            }
            let ended = thread.outgoing[l].is_empty();
            let shape = if ended { ", shape=doublecircle" } else { "" };
            let entry = if thread.entry.index() == l {
                ", penwidth=2"
            } else {
                ""
            };
            let _ = writeln!(
                out,
                "    t{t}_{l} [label={}{shape}{entry}];",
                quoted(&label)
            );
        }
        for (s, step) in thread.steps.iter().enumerate() {
            let s = StepId::new(s);
            let label = threads::text((source, instance), thread, s, &mine);
            let visible = !matches!(
                step.action,
                Action::Skip | Action::Assign { .. } | Action::Assume(_) | Action::Havoc { .. }
            );
            let style = match (mine.contains(&s), visible) {
                (true, _) => ", style=bold, color=darkgreen",
                (false, true) => ", style=bold",
                (false, false) => "",
            };
            let _ = writeln!(
                out,
                "    t{t}_{} -> t{t}_{} [label={}{style}];",
                step.source.0,
                step.target.0,
                quoted(&label)
            );
        }
        out.push_str("  }\n");
    }
    out.push_str("}\n");
    out
}

pub(crate) fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", escaped.replace('\n', "\\n"))
}
