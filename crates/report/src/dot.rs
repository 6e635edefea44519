//! The threads' graphs in the language of Graphviz.

use crate::words;
use std::fmt::Write;
use wattle_model::Instance;
use wattle_model::graph::Action;

/// One cluster per thread. Visible steps are bold, local ones thin; ended locations are doubled.
pub fn graph(instance: &Instance) -> String {
    let mut out = String::from("digraph program {\n  node [shape=circle, fontsize=10];\n");
    for (t, thread) in instance.threads.iter().enumerate() {
        let _ = writeln!(out, "  subgraph cluster_{t} {{");
        let _ = writeln!(out, "    label={};", quoted(&thread.name));
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
        for step in &thread.steps {
            let mut label = words::step(instance, thread, step);
            if step.span.is_some() {
                let _ = write!(label, "  :{}", step.span.line);
            }
            let visible = !matches!(
                step.action,
                Action::Skip | Action::Assign { .. } | Action::Assume(_) | Action::Havoc { .. }
            );
            let style = if visible { ", style=bold" } else { "" };
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

fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", escaped.replace('\n', "\\n"))
}
