//! The state space of a small program, as a picture.

use wattle_evidence::{Control, Task};
use wattle_memory::compiled::Watched;
use wattle_memory::reference::{self, Snapshot, replay};
use wattle_memory::{ContentKind, Contents, Event};
use wattle_model::Instance;
use wattle_report::picture::{Shown, StateKind as Kind, States};
use wattle_report::words;
use wattle_search::graph::{Graph, NoGraph, graph};
use wattle_search::rounds::Subject;
use wattle_search::{Options, Order, Reduce};

/// More states than this nobody wants to look at.
pub const MOST: usize = 400;

/// What a search stores with so much left out, and every event between two of its states. States in which
/// the question's target is true are marked.
pub fn states(task: &Task<'_>, reduce: Reduce, control: &Control<'_>) -> Result<States, String> {
    let instance = task.instance;
    let contents = Contents::uniform(
        ContentKind::default(),
        instance.threads.len(),
        instance.cells.len(),
    );
    let view = Watched::of_question(instance, task.question());
    let plan = Subject {
        name: "states",
        instance,
        model: task.model,
        contents: &contents,
        view: &view,
        reductions: reduce.reductions(),
        order: Order::BreadthFirst,
        most_buffered: Options::default().most_buffered,
        compress: false,
    };
    let graph = graph(&plan, MOST, control).map_err(|why| match why {
        NoGraph::TooMany(most) => format!(
            "there are more than {most} states under {}, too many to draw; \
             fewer threads, `--model sc` or `--reduce persistent` make them fewer",
            task.model
        ),
        NoGraph::Endless => "a buffer may grow without end, so there is no end of states".into(),
        NoGraph::Fault => "a step before the first state is a fault".into(),
        NoGraph::Stopped(stop) => stop.to_string(),
        NoGraph::Refused(refusal) => refusal.to_string(),
    })?;
    draw(task, reduce, &graph)
}

fn draw(task: &Task<'_>, reduce: Reduce, graph: &Graph) -> Result<States, String> {
    let instance = task.instance;
    let run = |start: usize, events: &[Event]| {
        let start = &graph.starts[start];
        let run = replay(instance, task.model, start, events);
        run.map(|(states, _)| states)
            .map_err(|_| "a state could not be reached again".to_string())
    };
    let mut rows: Vec<Option<usize>> = vec![None; graph.nodes.len()];
    let mut states = Vec::new();
    for (i, node) in graph.nodes.iter().enumerate() {
        // Arrows are in the order of the states they leave, so the first one that gets there is the nearest.
        let first = graph.arrows.iter().find(|a| a.to == i && a.from < i);
        let row = first.and_then(|a| rows[a.from]).map_or(0, |r| r + 1);
        rows[i] = Some(row);
        let all = run(node.start, &node.events)?;
        let state = all.last().ok_or("there is no first state")?;
        let question = task.question();
        let hit = question.is_some_and(|q| {
            (!q.only_final || node.is_final)
                && reference::evaluate(state, &q.target).is_ok_and(|v| v != 0)
        });
        let faulty = graph.faults.iter().any(|(at, ..)| *at == i);
        let kind = match (hit || faulty, node.is_final, row) {
            (true, ..) => Kind::Bad,
            (false, true, _) => Kind::Final,
            (false, false, 0) => Kind::First,
            (false, false, _) => Kind::Plain,
        };
        let lines = lines(instance, state);
        states.push(Shown { lines, row, kind });
    }
    let mut events = Vec::new();
    for arrow in &graph.arrows {
        let node = &graph.nodes[arrow.from];
        let path = [node.events.clone(), arrow.events.clone()].concat();
        let all = run(node.start, &path)?;
        let first = node.events.len();
        let texts = arrow.events.iter().enumerate().filter_map(|(i, event)| {
            let before = all.get(first + i)?;
            let text = words::event(instance, event, before, all.get(first + i + 1));
            Some((event.thread(), text))
        });
        let mut label = String::new();
        let mut who = None;
        for (thread, text) in texts {
            let name = &instance.thread(thread).name;
            match who == Some(thread) {
                true => label.push_str(&format!("; {text}")),
                false => label.push_str(&format!("{name}: {text}")),
            }
            who = Some(thread);
        }
        events.push((arrow.from, arrow.to, label));
    }
    let left_out = match reduce {
        Reduce::None => "nothing left out",
        Reduce::Local => "local steps first",
        Reduce::Persistent => "local steps first, persistent sets",
    };
    let title = format!(
        "{} states, {} transitions under {} ({left_out})",
        states.len(),
        events.len(),
        task.model
    );
    Ok(States {
        title,
        states,
        events,
    })
}

/// Where each thread is, its registers and buffer, and the memory.
fn lines(instance: &Instance, state: &Snapshot) -> Vec<String> {
    let mut lines = Vec::new();
    for t in instance.thread_ids() {
        let thread = instance.thread(t);
        let at = state.locations[t.index()];
        let labels = &thread.locations[at.index()].labels;
        let place = labels.first().cloned().unwrap_or_else(|| at.0.to_string());
        let mut line = format!("{}@{place}", thread.name);
        let values = thread.registers.iter().zip(&state.registers[t.index()]);
        for (r, v) in values.filter(|(r, _)| !words::is_temporary(&r.name)) {
            line.push_str(&format!(" {}={v}", r.name));
        }
        let buffer = words::buffer(instance, &state.buffers[t.index()]);
        if !buffer.is_empty() {
            line.push_str(&format!(" {buffer}"));
        }
        lines.push(line);
    }
    let cells = instance.cells.iter().zip(&state.memory);
    let cells: Vec<String> = cells.map(|(c, v)| format!("{}={v}", c.name)).collect();
    lines.push(cells.join(" "));
    lines
}
