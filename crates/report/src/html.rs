//! A page of findings to keep or to send: one file, no scripts, nothing fetched.
//!
//! A summary of every verdict, then each finding with its trace beside the buffers, the closing words,
//! and the source with the lines the trace passes marked. Rows of a trace link to their lines.

use crate::finding::Finding;
use crate::text::{self, Style};
use crate::{table, why, words};
use std::collections::BTreeSet;
use std::fmt::Write;
use wattle_evidence::{Broken, Trace, Verdict};
use wattle_model::Instance;

/// One file of the page.
#[derive(Clone, Debug)]
pub struct Section {
    file: String,
    /// Anchors and summary lines of its findings.
    summary: Vec<(String, &'static str, String)>,
    body: String,
}

impl Section {
    /// A file that was checked; `number` tells the sections of a page apart. A finding's picture is
    /// the drawing of its run.
    pub fn checked(
        number: usize,
        file: &str,
        source: &str,
        instance: Option<&Instance>,
        findings: &[(&Finding, Option<String>)],
    ) -> Self {
        let mut section = Section::empty(file);
        let mut marked = BTreeSet::new();
        for (i, (finding, picture)) in findings.iter().enumerate() {
            let anchor = format!("f{number}-{i}");
            let headline = text::headline(finding, Style::PLAIN);
            let colour = colour(&finding.judged.verdict);
            let _ = write!(
                section.body,
                "<section id=\"{anchor}\"><h3 class=\"{colour}\">{}</h3>\n<p class=\"property\">{}</p>\n",
                escape(&headline),
                escape(
                    finding
                        .property
                        .as_deref()
                        .unwrap_or("assertions and faults")
                ),
            );
            for warning in &finding.warnings {
                let _ = writeln!(section.body, "<p class=\"warning\">{}</p>", escape(warning));
            }
            if let (Some(instance), Some(trace)) = (finding.instance(instance), finding.trace()) {
                section.body += &run(number, instance, finding, trace, &mut marked);
            }
            if let Some(picture) = picture {
                let _ = writeln!(
                    section.body,
                    "<details><summary>happens before</summary><div class=\"wide\">{picture}</div></details>"
                );
            }
            if let (Some(lasso), Some(task)) =
                (finding.lasso(), instance.and_then(|i| finding.live_task(i)))
            {
                let shown = crate::lasso::text(&task, lasso, crate::text::Style::PLAIN);
                let _ = writeln!(section.body, "<pre>{}</pre>", escape(&shown));
            }
            if let Verdict::Violated {
                because: Broken::Run(lines),
            } = &finding.judged.verdict
            {
                let _ = writeln!(section.body, "<pre>{}</pre>", escape(&lines.join("\n")));
            }
            let _ = writeln!(
                section.body,
                "<p class=\"effort\">{} states, {:.3} s, engine {}</p></section>",
                finding.states,
                finding.seconds,
                escape(finding.engine),
            );
            section.summary.push((anchor, colour, headline));
        }
        section.body += &listing(number, source, &marked);
        section
    }

    /// A file that could not be checked.
    pub fn failed(file: &str, reason: &str, messages: &[String]) -> Self {
        let mut section = Section::empty(file);
        let _ = writeln!(section.body, "<pre>{}</pre>", escape(&messages.join("\n")));
        let line = format!("not checked: {reason}");
        section.summary.push((String::new(), "open", line));
        section
    }

    fn empty(file: &str) -> Self {
        Section {
            file: file.into(),
            summary: Vec::new(),
            body: String::new(),
        }
    }
}

/// The whole page.
pub fn page(sections: &[Section]) -> String {
    let mut out = String::from(HEAD);
    out.push_str("<h1>wattle</h1>\n<table class=\"summary\">\n");
    for section in sections {
        for (anchor, colour, headline) in &section.summary {
            let text = match anchor.is_empty() {
                true => escape(headline),
                false => format!("<a href=\"#{anchor}\">{}</a>", escape(headline)),
            };
            let file = escape(&section.file);
            let _ = writeln!(
                out,
                "<tr><td>{file}</td><td class=\"{colour}\">{text}</td></tr>"
            );
        }
    }
    out.push_str("</table>\n");
    for section in sections {
        let _ = write!(
            out,
            "<article>\n<h2>{}</h2>\n{}</article>\n",
            escape(&section.file),
            section.body
        );
    }
    out.push_str("</body>\n</html>\n");
    out
}

/// The table of a trace and its closing words; the lines it passes join `marked`.
fn run(
    number: usize,
    instance: &Instance,
    finding: &Finding,
    trace: &Trace,
    marked: &mut BTreeSet<u32>,
) -> String {
    let task = finding.task(instance);
    let states = match trace.check(&task) {
        Ok(states) => states,
        Err(e) => {
            return format!(
                "<p>the trace does not replay: {}</p>\n",
                escape(&e.to_string())
            );
        }
    };
    let rows = table::rows(&task, trace, &states);
    let threads: Vec<usize> = (0..instance.threads.len())
        .filter(|t| rows.iter().any(|r| r.thread.index() == *t))
        .collect();
    let buffered: Vec<usize> = (threads.iter().copied())
        .filter(|t| rows.iter().any(|r| !r.buffers[*t].is_empty()))
        .collect();
    let mut out = String::new();
    let open = words::choices(instance, &states[0]);
    if !open.is_empty() {
        let _ = writeln!(out, "<p>start {}</p>", escape(&open.join(", ")));
    }
    out.push_str("<div class=\"wide\"><table class=\"run\">\n<tr><th>step</th>");
    for &t in &threads {
        let _ = write!(out, "<th>{}</th>", escape(&instance.threads[t].name));
    }
    for &t in &buffered {
        let _ = write!(out, "<th>{} buffer</th>", escape(&instance.threads[t].name));
    }
    out.push_str("<th>memory</th></tr>\n");
    for (i, row) in rows.iter().enumerate() {
        let _ = write!(out, "<tr><td>{}</td>", i + 1);
        for &t in &threads {
            let mut cell = String::new();
            if row.thread.index() == t {
                cell = escape(&row.text);
                if row.line > 0 {
                    marked.insert(row.line);
                    let _ = write!(cell, " <a href=\"#l{number}-{0}\">:{0}</a>", row.line);
                }
            }
            let _ = write!(out, "<td>{cell}</td>");
        }
        for &t in &buffered {
            let _ = write!(out, "<td class=\"buffer\">{}</td>", escape(&row.buffers[t]));
        }
        let _ = writeln!(out, "<td>{}</td></tr>", escape(&row.memory));
    }
    out.push_str("</table></div>\n");
    if let Some(last) = states.last() {
        let end = text::end(&task, trace, last);
        let _ = writeln!(out, "<p><b>end</b> {}</p>", escape(&end));
    }
    if let Some(why) = &finding.why {
        let row = |event: usize| table::row_number(&rows, event);
        let words = why::sentences(&task, why, &row).join(" ");
        let _ = writeln!(out, "<p><b>why</b> {}</p>", escape(&words));
    }
    out
}

/// The source with line numbers; long ones show only the marked lines and what is around them.
fn listing(number: usize, source: &str, marked: &BTreeSet<u32>) -> String {
    let mut out = String::from("<details open><summary>source</summary><pre class=\"source\">");
    let mut skipped = false;
    let long = source.lines().count() > WHOLE;
    for (line, text) in (1u32..).zip(source.lines()) {
        let near = line.saturating_sub(AROUND)..=line.saturating_add(AROUND);
        if long && marked.range(near).next().is_none() {
            skipped = true;
            continue;
        }
        if std::mem::take(&mut skipped) {
            out.push_str("<span class=\"number\">  …</span>\n");
        }
        let class = match marked.contains(&line) {
            true => " class=\"passed\"",
            false => "",
        };
        let _ = writeln!(
            out,
            "<span id=\"l{number}-{line}\"{class}><span class=\"number\">{line:>4}</span> {}</span>",
            escape(text)
        );
    }
    out.push_str("</pre></details>\n");
    out
}

/// Sources up to this many lines are shown whole.
const WHOLE: usize = 400;
const AROUND: u32 = 3;

fn colour(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Holds { .. } => "holds",
        Verdict::Violated { .. } => "violated",
        Verdict::HoldsIf { .. } | Verdict::Bounded { .. } | Verdict::Undecided { .. } => "open",
    }
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() && c != '\n' && c != '\t' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

const HEAD: &str = "<!DOCTYPE html>
<html lang=\"en\">
<head>
<meta charset=\"utf-8\">
<meta name=\"viewport\" content=\"width=device-width\">
<title>wattle</title>
<style>
:root { color-scheme: light dark; --line: #8884; --mark: #f5c54233; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; }
td, th { padding: .15rem .7rem; border-bottom: 1px solid var(--line); text-align: left; white-space: nowrap; }
.run td, pre { font: 13px/1.5 ui-monospace, monospace; }
.wide { overflow-x: auto; }
.buffer { opacity: .8; }
.holds, .holds a { color: #1a8f3c; }
.violated, .violated a { color: #cf2f2f; }
.open, .open a { color: #b07800; }
.warning { color: #b07800; }
.property { font-family: ui-monospace, monospace; }
.effort, .number { opacity: .55; font-size: 13px; }
.passed { background: var(--mark); display: inline-block; min-width: 100%; }
:target { outline: 2px solid #f5c542; }
article { border-top: 2px solid var(--line); margin-top: 2rem; }
</style>
</head>
<body>
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_become_markup() {
        assert_eq!(
            escape("a<b> & \"c\"\u{1b}"),
            "a&lt;b&gt; &amp; &quot;c&quot;\u{fffd}"
        );
        let page = page(&[Section::failed("<x>.wtl", "<script>", &["</pre>".into()])]);
        assert!(!page.contains("<script>") && page.contains("&lt;script&gt;"));
        assert_eq!(page.matches("</pre>").count(), 1);
    }

    #[test]
    fn long_sources_show_what_the_run_passes() {
        let source = "x\n".repeat(1000);
        let text = listing(1, &source, &BTreeSet::from([500]));
        assert_eq!(text.matches("id=\"l1-").count(), 7);
        assert!(text.contains("class=\"passed\""));
        assert_eq!(
            listing(1, "x\ny\n", &BTreeSet::new())
                .matches("id=\"l1-")
                .count(),
            2
        );
    }
}
