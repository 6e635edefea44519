//! Cubes as a person reads them: Cubicle-like literals over threads t1, t2, …

use crate::compile::{Compiled, Kind};
use crate::cube::{Cube, OTHER};
use crate::lin::{Lin, Op};
use crate::memory::{Events, NOBODY};
use crate::slot::Slot;

pub fn show(compiled: &Compiled<'_>, cube: &Cube) -> String {
    let mut parts: Vec<String> = Vec::new();
    for (t, f) in cube.fixed.iter().enumerate() {
        if *f != 0 {
            parts.push(format!("t{} = #{f}", t + 1));
        }
        for u in 0..cube.threads() {
            if cube.before[t] & 1 << u != 0 && (*f == 0 || cube.fixed[u] == 0) {
                parts.push(format!("t{} < t{}", t + 1, u + 1));
            }
        }
    }
    for (s, m) in &cube.doms {
        parts.push(format!(
            "{} {}",
            slot(compiled, cube, *s),
            set(compiled, cube, *s, *m)
        ));
    }
    for (a, b, equal) in &cube.rels {
        let op = if *equal { "=" } else { "<>" };
        parts.push(format!(
            "{} {op} {}",
            slot(compiled, cube, *a),
            slot(compiled, cube, *b)
        ));
    }
    for l in cube.ints.iter().chain(&cube.reals) {
        parts.push(number(compiled, cube, l));
    }
    let memory = &cube.memory;
    for (e, open) in memory.events.iter().enumerate() {
        let later = open.after & !(1 << e);
        if later != 0 {
            parts.push(format!("r{e} before {}", events(later)));
        }
    }
    for t in 0..memory.read_first.len() {
        if memory.read_first[t] & !memory.last != 0 {
            parts.push(format!(
                "reads of t{} before {}",
                t + 1,
                events(memory.read_first[t])
            ));
        }
        if memory.write_first[t] != 0 {
            parts.push(format!(
                "writes of t{} before {}",
                t + 1,
                events(memory.write_first[t])
            ));
        }
    }
    for (c, s) in &memory.cell_first {
        parts.push(format!(
            "writes of {} before {}",
            slot(compiled, cube, *c),
            events(*s)
        ));
    }
    if memory.last != 0 {
        parts.push(format!("all reads before {}", events(memory.last)));
    }
    parts.join(" && ")
}

fn events(set: Events) -> String {
    let names: Vec<String> = (0..64)
        .filter(|e| set & 1 << e != 0)
        .map(|e| format!("r{e}"))
        .collect();
    names.join(", ")
}

fn slot(compiled: &Compiled<'_>, cube: &Cube, s: Slot) -> String {
    if let Some(k) = s.as_pending() {
        let p = cube.memory.pending[k];
        return format!(
            "drained by t{} {}",
            p.thread + 1,
            slot(compiled, cube, p.cell)
        );
    }
    match s.as_read() {
        Some((e, p)) => {
            let part = cube.memory.events[e].parts[p];
            let reader = match part.reader {
                NOBODY => "memory".to_string(),
                t => format!("t{}", t + 1),
            };
            format!("r{e}:{reader} @ {}", slot(compiled, cube, part.cell))
        }
        None if s.is_cell() => {
            let args: Vec<String> = s.args().map(|a| format!("t{}", a + 1)).collect();
            let name = &compiled.system.cell(s.array()).name;
            if args.is_empty() {
                name.clone()
            } else {
                format!("{name}[{}]", args.join(", "))
            }
        }
        None => format!("{s:?}"),
    }
}

fn set(compiled: &Compiled<'_>, cube: &Cube, s: Slot, m: u128) -> String {
    let cell = match (s.as_read(), s.as_pending()) {
        (Some((e, p)), _) => cube.memory.events[e].parts[p].cell,
        (_, Some(k)) => cube.memory.pending[k].cell,
        _ => s,
    };
    let all = compiled.full(cube, s).unwrap_or(0);
    let name = |v: u32| match compiled.kind(cell.array()) {
        Kind::Thread if v == 127 => "other".to_string(),
        Kind::Thread => format!("t{}", v + 1),
        Kind::Finite(_) | Kind::Abstract | Kind::Int | Kind::Real => {
            match compiled.system.cell(cell.array()).ty {
                wattle_model::array::CellType::Declared(t) => {
                    compiled.system.types[usize::from(t)].constructors[v as usize].clone()
                }
                wattle_model::array::CellType::Bool
                | wattle_model::array::CellType::Int
                | wattle_model::array::CellType::Real
                | wattle_model::array::CellType::Thread => {
                    if v == 0 { "False" } else { "True" }.to_string()
                }
            }
        }
    };
    let list = |m: u128| {
        (0..128)
            .filter(|v| m & 1 << v != 0)
            .map(name)
            .collect::<Vec<_>>()
            .join(" | ")
    };
    let out = all & !m;
    match (m.count_ones(), out.count_ones()) {
        (1, _) if m != OTHER => format!("= {}", list(m)),
        (_, n) if n <= 2 => format!("<> {}", list(out)),
        _ => format!("in {}", list(m)),
    }
}

fn number(compiled: &Compiled<'_>, cube: &Cube, l: &Lin) -> String {
    let op = match l.op {
        Op::Le => "<=",
        Op::Lt => "<",
        Op::Eq => "=",
        Op::Ne => "<>",
    };
    let terms: Vec<String> = l
        .terms
        .iter()
        .map(|(s, c)| match c {
            1 => slot(compiled, cube, *s),
            c => format!("{c} * {}", slot(compiled, cube, *s)),
        })
        .collect();
    format!("{} {op} {}", terms.join(" + "), -l.constant)
}
