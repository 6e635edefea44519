//! A page of findings to keep or to send: one file, no scripts, nothing fetched.
//!
//! Who made it and when, totals, a matrix of files and memory models, then each finding with its trace beside the buffers, the closing words,
//! and the source with the lines the trace passes marked. Rows of a trace link to their lines.

use crate::finding::Finding;
use crate::json::VERSION;
use crate::text::{self, Style};
use crate::{table, why, words};
use std::collections::BTreeSet;
use std::fmt::Write;
use wattle_evidence::{Broken, Trace, Verdict};
use wattle_memory::MemoryModel;
use wattle_model::Instance;

/// One file of the page.
#[derive(Clone, Debug)]
pub struct Section {
    file: String,
    summary: Vec<Entry>,
    body: String,
}

/// One finding in the summary.
#[derive(Clone, Debug)]
struct Entry {
    /// Where it is on the page; empty if nowhere.
    anchor: String,
    colour: &'static str,
    headline: String,
    model: Option<MemoryModel>,
    property: String,
}

/// What a page says of itself.
#[derive(Clone, Debug)]
pub struct Made {
    /// The command that made it.
    pub command: String,
    /// Seconds since 1970.
    pub seconds: u64,
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
        let mut marked = Marked::default();
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
            let property = finding.property.clone();
            section.summary.push(Entry {
                anchor,
                colour,
                headline,
                model: Some(finding.model),
                property: property.unwrap_or_else(|| "assertions and faults".into()),
            });
        }
        section.body += &listing(number, source, &marked);
        section
    }

    /// A file that could not be checked.
    pub fn failed(file: &str, reason: &str, messages: &[String]) -> Self {
        let mut section = Section::empty(file);
        let _ = writeln!(section.body, "<pre>{}</pre>", escape(&messages.join("\n")));
        let line = format!("not checked: {reason}");
        section.summary.push(Entry {
            anchor: String::new(),
            colour: "open",
            headline: line,
            model: None,
            property: String::new(),
        });
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
pub fn page(sections: &[Section], made: &Made) -> String {
    let mut out = String::from(HEAD);
    let _ = writeln!(
        out,
        "<h1>wattle</h1>\n<p class=\"effort\">version {VERSION}, {}<br><code>{}</code></p>",
        date(made.seconds),
        escape(&made.command)
    );
    out += &totals(sections);
    out += &matrix(sections);
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

/// `3 files, 6 answers: 4 hold, 2 violated`
fn totals(sections: &[Section]) -> String {
    let all = || sections.iter().flat_map(|s| &s.summary);
    let count = |colour: &str| all().filter(|e| e.colour == colour).count();
    format!(
        "<p class=\"totals\">{}: <span class=\"holds\">{} hold</span>, <span \
         class=\"violated\">{} violated</span>, <span class=\"open\">{} not decided or not \
         read</span></p>\n",
        match all().count() {
            n if n == sections.len() => some(n, "file"),
            n => format!("{}, {}", some(sections.len(), "file"), some(n, "answer")),
        },
        count("holds"),
        count("violated"),
        count("open"),
    )
}

/// `1 file`, `2 files`
fn some(n: usize, what: &str) -> String {
    match n {
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    }
}

/// Files and their properties down, memory models across; each verdict links to its finding.
fn matrix(sections: &[Section]) -> String {
    let all = || sections.iter().flat_map(|s| &s.summary);
    let models: BTreeSet<MemoryModel> = all().filter_map(|e| e.model).collect();
    let mut out = String::from("<div class=\"wide\"><table class=\"summary\">\n<tr><th>file</th>");
    for model in &models {
        let _ = write!(out, "<th>{model}</th>");
    }
    out.push_str("</tr>\n");
    for section in sections {
        let mut properties: Vec<&str> = Vec::new();
        for entry in &section.summary {
            if !properties.contains(&entry.property.as_str()) {
                properties.push(&entry.property);
            }
        }
        for property in &properties {
            let mine = || section.summary.iter().filter(|e| e.property == *property);
            let file = escape(&section.file);
            let _ = match properties.len() {
                1 => write!(out, "<tr><td>{file}</td>"),
                _ => write!(
                    out,
                    "<tr><td>{file}<br><code>{}</code></td>",
                    escape(property)
                ),
            };
            if let Some(entry) = mine().find(|e| e.model.is_none()) {
                let (span, why) = (models.len().max(1), escape(&entry.headline));
                let _ = write!(out, "<td colspan=\"{span}\" class=\"open\">{why}</td>");
            }
            for model in models.iter().filter(|_| mine().all(|e| e.model.is_some())) {
                let cells = mine().filter(|e| e.model == Some(*model)).map(|e| {
                    let word = match e.colour {
                        "holds" => "holds",
                        "violated" => "violated",
                        _ => "open",
                    };
                    let (colour, anchor, title) = (e.colour, &e.anchor, escape(&e.headline));
                    format!(
                        "<span class=\"{colour}\"><a href=\"#{anchor}\" title=\"{title}\">{word}</a></span>"
                    )
                });
                let _ = write!(out, "<td>{}</td>", cells.collect::<Vec<_>>().join(" "));
            }
            out.push_str("</tr>\n");
        }
    }
    out.push_str("</table></div>\n");
    out
}

/// `2026-11-17 16:30 UTC` (days to a date: Howard Hinnant's algorithm).
fn date(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let z = days + 719_468;
    let era = z / 146_097;
    let day_of_era = z % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute) = (rest / 3600, rest % 3600 / 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}

/// The table of a trace and its closing words; the lines it passes join `marked`.
fn run(
    number: usize,
    instance: &Instance,
    finding: &Finding,
    trace: &Trace,
    marked: &mut Marked,
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
    // The rows that *why* speaks of.
    let pair = finding.why.as_ref().and_then(|w| w.overtakings.first());
    let pair = pair.map(|o| [o.store, o.later].map(|event| table::row_number(&rows, event)));
    for (i, row) in rows.iter().enumerate() {
        let class = match pair.is_some_and(|p| p.contains(&(i + 1))) {
            true => " class=\"pair\"",
            false => "",
        };
        let _ = write!(out, "<tr{class}><td>{}</td>", i + 1);
        for &t in &threads {
            let mut cell = String::new();
            if row.thread.index() == t {
                cell = escape(&row.text);
                if row.line > 0 {
                    marked.passed.insert(row.line);
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
        let _ = writeln!(out, "<p class=\"why\"><b>why</b> {}</p>", quoted(&words));
        let fence = why.told().and_then(|o| why::line(instance, o));
        marked.fences.extend(fence);
    }
    out
}

/// Lines of the source that findings speak of.
#[derive(Default)]
struct Marked {
    /// A run passes them.
    passed: BTreeSet<u32>,
    /// A fence below them stops a run.
    fences: BTreeSet<u32>,
}

/// The source with line numbers; long ones show only the marked lines and what is around them.
fn listing(number: usize, source: &str, marked: &Marked) -> String {
    let mut out = String::from("<details open><summary>source</summary><pre class=\"source\">");
    let mut skipped = false;
    let long = source.lines().count() > WHOLE;
    for (line, text) in (1u32..).zip(source.lines()) {
        let near = line.saturating_sub(AROUND)..=line.saturating_add(AROUND);
        if long && marked.passed.range(near).next().is_none() {
            skipped = true;
            continue;
        }
        if std::mem::take(&mut skipped) {
            out.push_str("<span class=\"number\">  …</span>\n");
        }
        let class = match marked.passed.contains(&line) {
            true => " class=\"passed\"",
            false => "",
        };
        let _ = writeln!(
            out,
            "<span id=\"l{number}-{line}\"{class}><span class=\"number\">{line:>4}</span> {}</span>",
            escape(text)
        );
        if marked.fences.contains(&line) {
            let indent = text.len() - text.trim_start().len();
            let _ = writeln!(
                out,
                "<span class=\"fence\"><span class=\"number\">   +</span> {}a fence here stops a run above</span>",
                &text[..indent]
            );
        }
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

/// The same with what stands in backquotes as code.
fn quoted(text: &str) -> String {
    let mut out = String::new();
    for (i, part) in text.split('`').enumerate() {
        let part = escape(part);
        match i % 2 {
            0 => out.push_str(&part),
            _ => out += &format!("<code>{part}</code>"),
        }
    }
    out
}

const HEAD: &str = "<!DOCTYPE html>
<html lang=\"en\">
<head>
<meta charset=\"utf-8\">
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">
<title>wattle</title>
<style>
:root { color-scheme: light dark; --line: #8884; --mark: #f5c54233; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; }
td, th { padding: .15rem .7rem; border-bottom: 1px solid var(--line); text-align: left; white-space: nowrap; }
.run td, pre { font: 13px/1.5 ui-monospace, monospace; }
.wide, pre { overflow-x: auto; }
.buffer { opacity: .8; }
.pair td { background: #cf2f2f1c; }
.pair td:first-child { box-shadow: inset 3px 0 #cf2f2f; }
.why { border-left: 3px solid #cf2f2f; padding: .3rem .7rem; background: #cf2f2f12; max-width: 60rem; }
.fence { color: #1a8f3c; background: #1a8f3c1c; font-weight: 600; display: inline-block; min-width: 100%; }
.holds, .holds a { color: #1a8f3c; }
.violated, .violated a { color: #cf2f2f; }
.open, .open a { color: #b07800; }
.warning { color: #b07800; }
.property { font-family: ui-monospace, monospace; overflow-wrap: anywhere; }
.totals { font-weight: 600; }
.summary td:first-child { white-space: normal; overflow-wrap: anywhere; min-width: 7rem; }
.summary td[colspan] { white-space: normal; overflow-wrap: anywhere; }
h1, h2, h3 { overflow-wrap: anywhere; }
code { overflow-wrap: anywhere; }
@media (max-width: 40rem) { body { margin: .5rem auto; padding: 0 .5rem; } td, th { padding: .15rem .35rem; } .run td, .run th, pre { font-size: 11px; } .run td, .run th { padding: .1rem .2rem; } }
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
        let made = Made {
            command: "wattle check '<x>.wtl'".into(),
            seconds: 0,
        };
        let page = page(
            &[Section::failed("<x>.wtl", "<script>", &["</pre>".into()])],
            &made,
        );
        assert!(!page.contains("<script>") && page.contains("&lt;script&gt;"));
        assert_eq!(page.matches("</pre>").count(), 1);
    }

    #[test]
    fn backquotes_are_code() {
        assert_eq!(quoted("a `<b>` c"), "a <code>&lt;b&gt;</code> c");
    }

    #[test]
    fn dates() {
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(951_827_696), "2000-02-29 12:34 UTC");
        assert_eq!(date(1_794_935_460), "2026-11-17 17:11 UTC");
    }

    #[test]
    fn long_sources_show_what_the_run_passes() {
        let source = "x\n".repeat(1000);
        let marked = Marked {
            passed: BTreeSet::from([500]),
            fences: BTreeSet::from([501]),
        };
        let text = listing(1, &source, &marked);
        assert_eq!(text.matches("a fence here").count(), 1);
        assert_eq!(text.matches("id=\"l1-").count(), 7);
        assert!(text.contains("class=\"passed\""));
        assert_eq!(
            listing(1, "x\ny\n", &Marked::default())
                .matches("id=\"l1-")
                .count(),
            2
        );
    }
}
