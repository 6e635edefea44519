//! The threads' graphs in the language of Graphviz.

use crate::picture::{Mark, threads};
use crate::words;
use std::fmt::Write;
use wattle_model::graph::Action;
use wattle_model::{Instance, LocationId, StepId, ThreadId};

/// One cluster per thread. Visible steps are bold, local ones thin; ended locations are doubled;
/// places of fences are filled.
pub fn graph(instance: &Instance, marks: &[Mark], source: &str) -> String {
    let mut out = String::from("digraph program {\n  node [shape=circle, fontsize=10];\n");
    for (id, copies) in threads::families(instance) {
        let (t, thread) = (id.index(), instance.thread(id));
        let _ = writeln!(out, "  subgraph cluster_{t} {{");
        let name = threads::title(&thread.name, copies);
        let _ = writeln!(out, "    label={};", quoted(&name));
        for (l, location) in thread.locations.iter().enumerate() {
            let mut label = l.to_string();
            for name in &location.labels {
                let _ = write!(label, "\n{name}");
            }
            let here = (ThreadId::new(t), LocationId::new(l));
            let mut fence = "";
            for mark in marks {
                let kind = match mark {
                    Mark::Fence(t, l) if (*t, *l) == here => "fence",
                    Mark::StoreFence(t, l) if (*t, *l) == here => "fence store",
                    Mark::Lock(t, l) if (*t, *l) == here => "lock",
                    _ => continue,
                };
                let _ = write!(label, "\n{kind}");
                fence = ", style=filled, fillcolor=palegreen";
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
                "    t{t}_{l} [label={}{shape}{entry}{fence}];",
                quoted(&label)
            );
        }
        for (s, step) in thread.steps.iter().enumerate() {
            let mut label = words::written(source, instance, thread, step);
            if step.span.is_some() {
                let _ = write!(label, "  :{}", step.span.line);
            }
            let swapped = Mark::Swap(ThreadId::new(t), StepId::new(s));
            let swapped = marks.contains(&swapped);
            if swapped {
                label.push_str("  → swap");
            }
            let visible = !matches!(
                step.action,
                Action::Skip | Action::Assign { .. } | Action::Assume(_) | Action::Havoc { .. }
            );
            let style = match (swapped, visible) {
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
