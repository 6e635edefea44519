//! A trace as columns: one per thread, then each thread's buffer, then the cells that changed.
//! Drains are rows; an atomic block is one row; steps that touch nothing but unnamed registers are
//! left out. Where the columns do not fit the line, the threads share one, and what does not fit a column
//! goes on below: nothing is cut off, for a value that is not shown is the one that mattered.

use crate::words;
use wattle_evidence::{Task, Trace};
use wattle_memory::Event;
use wattle_memory::reference::Snapshot;
use wattle_model::graph::Action;
use wattle_model::{Instance, ThreadId};

/// One line of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Indices of the events it stands for, first and last.
    pub first: usize,
    pub last: usize,
    pub thread: ThreadId,
    pub text: String,
    /// Line in the source, or 0.
    pub line: u32,
    /// Every thread's buffer afterwards.
    pub buffers: Vec<String>,
    /// Cells whose value in memory changed.
    pub memory: String,
}

/// The rows of a checked trace; `states` are those it passes.
pub fn rows(task: &Task<'_>, trace: &Trace, states: &[Snapshot]) -> Vec<Row> {
    let instance = task.instance;
    let mut rows: Vec<Row> = Vec::new();
    let mut i = 0;
    while i < trace.events.len() {
        let last = block_end(instance, &trace.events, i);
        let texts = (i..=last).filter_map(|e| shown(instance, trace, states, e, i < last));
        let texts: Vec<String> = texts.collect();
        let is_last = last + 1 == trace.events.len();
        if !texts.is_empty() || is_last {
            let thread = trace.events[i].thread();
            let mut text = match texts.is_empty() {
                true => words::event(
                    instance,
                    &trace.events[last],
                    &states[last],
                    states.get(last + 1),
                ),
                false => texts.join(", "),
            };
            if i < last {
                text = format!("atomic: {text}");
            }
            let after = states.get(last + 1).unwrap_or(&states[last]);
            let buffers = after.buffers.iter();
            rows.push(Row {
                first: i,
                last,
                thread,
                text,
                line: line(instance, &trace.events[i]),
                buffers: buffers.map(|b| words::buffer(instance, b)).collect(),
                memory: changed(instance, &states[i], after),
            });
        }
        i = last + 1;
    }
    rows
}

/// The last event of the atomic block that starts at `i`, or `i` itself.
fn block_end(instance: &Instance, events: &[Event], i: usize) -> usize {
    let action = |e: &Event| match e {
        Event::Step { thread, step, .. } => Some(&instance.thread(*thread).step(*step).action),
        Event::Drain { .. } => None,
    };
    if !matches!(action(&events[i]), Some(Action::AtomicBegin(_))) {
        return i;
    }
    let end = events[i..]
        .iter()
        .position(|e| matches!(action(e), Some(Action::AtomicEnd)));
    end.map_or(events.len() - 1, |n| i + n)
}

/// The words for an event, unless it is not worth a row.
fn shown(
    instance: &Instance,
    trace: &Trace,
    states: &[Snapshot],
    i: usize,
    inside: bool,
) -> Option<String> {
    let event = &trace.events[i];
    let text = || words::event(instance, event, &states[i], states.get(i + 1));
    let Event::Step { thread, step, .. } = event else {
        return Some(text());
    };
    // A fault is always worth a row.
    if i + 1 == states.len() {
        return Some(text());
    }
    let thread = instance.thread(*thread);
    let step = thread.step(*step);
    let named =
        |r: &wattle_model::RegisterId| !words::is_temporary(&thread.registers[r.index()].name);
    let worth = match &step.action {
        Action::Assign { register, .. } | Action::Havoc { register, .. } => named(register),
        Action::Skip | Action::Assume(_) | Action::Assert { .. } => false,
        Action::AtomicBegin(_) | Action::AtomicEnd => false,
        _ => true,
    };
    let labels = &thread.locations[step.target.index()].labels;
    match (worth, labels.first()) {
        (true, _) => Some(text()),
        (false, Some(label)) if !inside => Some(format!("reaches {label}")),
        _ => None,
    }
}

pub fn line(instance: &Instance, event: &Event) -> u32 {
    match event {
        Event::Step { thread, step, .. } => instance.thread(*thread).step(*step).span.line,
        Event::Drain { .. } => 0,
    }
}

fn changed(instance: &Instance, before: &Snapshot, after: &Snapshot) -> String {
    let cells = instance
        .cells
        .iter()
        .zip(before.memory.iter().zip(&after.memory));
    let cells = cells.filter(|(_, (a, b))| a != b);
    let cells = cells.map(|(c, (_, b))| format!("{}={b}", c.name));
    cells.collect::<Vec<_>>().join(" ")
}

/// The row an event is in, counted from 1.
pub fn row_number(rows: &[Row], event: usize) -> usize {
    1 + rows.iter().take_while(|r| r.last < event).count()
}

/// The widest a column of steps gets before it goes on below.
const MAX_STEP: usize = 40;
const MIN_STEP: usize = 14;
const MIN_SHARED: usize = 10;
const MAX_BUFFER: usize = 30;
const MAX_MEMORY: usize = 40;

/// The table as text, at most `width` characters a line where that is possible at all.
pub fn render(instance: &Instance, rows: &[Row], width: usize) -> String {
    let step = |r: &Row| match r.line {
        0 => r.text.clone(),
        line => format!("{} :{line}", r.text),
    };
    // Threads that do nothing in this run get no column.
    let active: Vec<usize> = (0..instance.threads.len())
        .filter(|t| rows.iter().any(|r| r.thread.index() == *t))
        .collect();
    let number = rows.len().to_string().len().max(4);
    let width_of = |texts: &mut dyn Iterator<Item = usize>, least: usize, most: usize| {
        texts.max().unwrap_or(0).clamp(least, most.max(least))
    };
    let name = |t: usize| chars(&instance.threads[t].name);
    let mut columns: Vec<usize> = active
        .iter()
        .map(|&t| {
            let mine = rows.iter().filter(|r| r.thread.index() == t);
            width_of(&mut mine.map(|r| chars(&step(r))), name(t).max(4), MAX_STEP)
        })
        .collect();
    let buffers: Vec<usize> = active
        .iter()
        .map(|&t| {
            let used = rows.iter().map(|r| chars(&r.buffers[t]));
            match used.clone().max() {
                None | Some(0) => 0,
                Some(_) => width_of(&mut used.clone(), name(t) + 7, MAX_BUFFER),
            }
        })
        .collect();
    let memory = width_of(&mut rows.iter().map(|r| chars(&r.memory)), 6, MAX_MEMORY);
    let tail: usize = buffers
        .iter()
        .filter(|b| **b > 0)
        .map(|b| b + 2)
        .sum::<usize>()
        + memory;
    let total =
        |columns: &[usize]| number + 2 + columns.iter().map(|c| c + 2).sum::<usize>() + tail;
    while total(&columns) > width {
        let Some(widest) = columns.iter_mut().max().filter(|c| **c > MIN_STEP) else {
            break;
        };
        *widest -= 1;
    }
    if total(&columns) > width {
        return shared(instance, rows, width, number, &step);
    }
    let mut out = String::new();
    let mut header = vec![("step".to_string(), number)];
    for (&t, c) in active.iter().zip(&columns) {
        header.push((instance.threads[t].name.clone(), *c));
    }
    let buffered: Vec<(usize, usize)> = active
        .iter()
        .zip(&buffers)
        .filter(|(_, b)| **b > 0)
        .map(|(t, b)| (*t, *b))
        .collect();
    for &(t, b) in &buffered {
        header.push((format!("{} buffer", instance.threads[t].name), b));
    }
    header.push(("memory".into(), memory));
    push_line(&mut out, &header);
    for (i, r) in rows.iter().enumerate() {
        let mut cells = vec![((i + 1).to_string(), number)];
        for (&t, c) in active.iter().zip(&columns) {
            let mine = r.thread.index() == t;
            cells.push((if mine { step(r) } else { String::new() }, *c));
        }
        for &(t, b) in &buffered {
            cells.push((r.buffers[t].clone(), b));
        }
        cells.push((r.memory.clone(), memory));
        push_line(&mut out, &cells);
    }
    out
}

/// Too many threads for a column each: name, step, the acting thread's buffer, memory.
fn shared(
    instance: &Instance,
    rows: &[Row],
    width: usize,
    number: usize,
    step: &dyn Fn(&Row) -> String,
) -> String {
    let longest =
        |it: &mut dyn Iterator<Item = usize>, most: usize| it.max().unwrap_or(0).min(most);
    let mine = |r: &Row| r.buffers[r.thread.index()].clone();
    let name = |r: &Row| instance.thread(r.thread).name.clone();
    let names = longest(&mut rows.iter().map(|r| chars(&name(r))), 16).max(6);
    let mut widths = [
        longest(&mut rows.iter().map(|r| chars(&step(r))), MAX_STEP).max(4),
        longest(&mut rows.iter().map(|r| chars(&mine(r))), MAX_BUFFER).max(10),
        longest(&mut rows.iter().map(|r| chars(&r.memory)), MAX_MEMORY).max(6),
    ];
    let room = width.saturating_sub(number + names + 8);
    while widths.iter().sum::<usize>() > room {
        let Some(widest) = widths.iter_mut().max().filter(|w| **w > MIN_SHARED) else {
            break;
        };
        *widest -= 1;
    }
    let [steps, buffers, memory] = widths;
    let mut out = String::new();
    let header = ["step", "thread", "does", "its buffer", "memory"];
    let widths = [number, names, steps, buffers, memory];
    let line = |cells: [String; 5]| cells.into_iter().zip(widths).collect::<Vec<_>>();
    push_line(&mut out, &line(header.map(String::from)));
    for (i, r) in rows.iter().enumerate() {
        let cells = [
            (i + 1).to_string(),
            name(r),
            step(r),
            mine(r),
            r.memory.clone(),
        ];
        push_line(&mut out, &line(cells));
    }
    out
}

fn push_line(out: &mut String, cells: &[(String, usize)]) {
    let cells: Vec<_> = (cells.iter())
        .map(|(text, width)| (folded(text, *width), *width))
        .collect();
    let height = cells.iter().map(|(lines, _)| lines.len()).max();
    for i in 0..height.unwrap_or(0) {
        let mut line = String::new();
        for (lines, width) in &cells {
            let text = lines.get(i).map_or("", String::as_str);
            line.push_str(text);
            line.extend(std::iter::repeat_n(
                ' ',
                width.saturating_sub(chars(text)) + 2,
            ));
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
}

fn chars(text: &str) -> usize {
    text.chars().count()
}

/// Lines of at most `width` characters, broken between words where that is possible; what goes on is a
/// little further in.
fn folded(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let mut word: Vec<char> = word.chars().collect();
        loop {
            let line = lines.last().map_or(0, |l| chars(l));
            let blank = line > INDENT.len() || (lines.len() == 1 && line > 0);
            let Some(last) = lines.last_mut() else { break };
            let room = width.saturating_sub(line + usize::from(blank));
            if word.len() <= room {
                if blank {
                    last.push(' ');
                }
                last.extend(word);
                break;
            }
            // A word longer than a line is broken anywhere.
            if !blank {
                last.extend(word.drain(..room.clamp(1, word.len())));
            }
            lines.push(INDENT.to_string());
        }
    }
    lines
}

/// Before what goes on.
const INDENT: &str = " ";

#[cfg(test)]
mod tests {
    use super::folded;

    #[test]
    fn nothing_is_lost_where_it_does_not_fit() {
        for width in 3..30 {
            let text = "atomic: choosing[0] → 1, m = number[1] → 12 :11";
            let lines = folded(text, width);
            assert!(
                lines.iter().all(|l| l.chars().count() <= width),
                "{lines:?}"
            );
            let plain = |t: &str| t.replace(' ', "");
            assert_eq!(plain(&lines.concat()), plain(text), "{lines:?}");
        }
        assert_eq!(
            folded("m = number[1] → 0 :11", 14),
            ["m = number[1]", " → 0 :11"]
        );
        assert_eq!(folded("", 4), [""]);
    }
}
