//! Random families as text.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// A small system as text, so that a failure can be read and kept.
pub fn random_system(seed: u64, numbers: bool) -> String {
    let mut r = SmallRng::seed_from_u64(seed);
    let locations = r.random_range(3..=4);
    let names: Vec<String> = (0..locations).map(|i| format!("L{i}")).collect();
    let turn = r.random_bool(0.3);
    let mut text = format!(
        "type loc = {}\narray PC[proc] : loc\narray R[proc] : bool\nweak var X : bool\nweak var Y : bool\nweak array A[proc] : bool\n",
        names.join(" | ")
    );
    if turn {
        text += "weak var T : proc\n";
    }
    let mut init =
        "PC[p] = L0 && R[p] = False && X = False && Y = False && A[p] = False".to_string();
    if numbers {
        text += "weak var N : int\narray M[proc] : int\narray Q[proc] : proc\n";
        init += " && N = 0 && M[p] = 0 && Q[p] = p";
    }
    text += &format!("init (p) {{ {init} }}\n");
    let last = format!("L{}", locations - 1);
    text += &match r.random_range(0..6) {
        0 => format!("unsafe (p) {{ PC[p] = {last} && R[p] = True }}\n"),
        1 => format!("unsafe (p q) {{ PC[p] = {last} && p @ X = True && q @ Y = False }}\n"),
        2 => format!("unsafe (p) {{ PC[p] = {last} && p @ A[p] = False && X = True }}\n"),
        3 => format!("unsafe (p q) {{ PC[p] = {last} && PC[q] = {last} && R[p] = R[q] }}\n"),
        _ => format!("unsafe (p q) {{ PC[p] = {last} && PC[q] = {last} }}\n"),
    };
    let mut number = 0;
    for from in 0..locations {
        for _ in 0..r.random_range(1..=2) {
            number += 1;
            let to = if r.random_bool(0.6) && from + 1 < locations {
                from + 1
            } else {
                r.random_range(0..locations)
            };
            text += &random_transition(&mut r, number, from, to, turn, numbers);
        }
    }
    text
}

fn random_transition(
    r: &mut SmallRng,
    number: usize,
    from: usize,
    to: usize,
    turn: bool,
    numbers: bool,
) -> String {
    let second = r.random_bool(0.3);
    let mut guard = vec![format!("PC[p] = L{from}")];
    let mut updates = vec![format!("PC[p] := L{to}")];
    let value = |r: &mut SmallRng| if r.random_bool(0.5) { "True" } else { "False" };
    let weak = |r: &mut SmallRng| match r.random_range(0..if second { 4 } else { 3 }) {
        0 => "X".to_string(),
        1 => "Y".to_string(),
        2 => "A[p]".to_string(),
        _ => "A[q]".to_string(),
    };
    match r.random_range(0..12) {
        0..=3 => updates.push(format!("{} := {}", weak(r), value(r))),
        4 | 5 => guard.push(format!("{} = {}", weak(r), value(r))),
        6 => updates.push(format!("R[p] := {}", weak(r))),
        7 => {
            guard.push(format!("{} = {}", weak(r), value(r)));
            updates.push(format!("{} := {}", weak(r), value(r)));
        }
        8 => guard.push(format!("forall_other j. A[j] = {}", value(r))),
        9 => {
            let (a, b) = (weak(r), weak(r));
            updates.push(format!("{a} := {}", value(r)));
            if a != b {
                updates.push(format!("{b} := {}", value(r)));
            }
        }
        10 => updates.push(match r.random_range(0..3) {
            0 => format!("A[j] := case | _ : {}", value(r)),
            1 => format!(
                "A[j] := case | j = p : {} | A[j] = {} : {}",
                value(r),
                value(r),
                value(r)
            ),
            _ => format!("A[j] := case | j = p : {} | _ : {}", value(r), value(r)),
        }),
        _ => {
            guard.push(format!("R[p] = {}", value(r)));
            updates.push(format!("R[p] := {}", value(r)));
        }
    }
    if turn && r.random_bool(0.3) {
        match r.random_range(0..3) {
            0 => guard.push("T = p".into()),
            1 if second => updates.push("T := q".into()),
            _ => updates.push("T := p".into()),
        }
    }
    if numbers && r.random_bool(0.5) {
        match r.random_range(0..if second { 10 } else { 6 }) {
            0 => updates.push("M[p] := N".into()),
            1 => updates.push("N := M[p] + 1".into()),
            2 => guard.push("M[p] < N".into()),
            3 => guard.push("N = M[p]".into()),
            4 => updates.push("M[p] := M[p] + 1".into()),
            5 => guard.push("N <= M[p] + 1".into()),
            6 => updates.push("Q[p] := q".into()),
            7 => guard.push("Q[p] = q".into()),
            8 => guard.push("Q[p] <> q".into()),
            _ => guard.push("N <> 2".into()),
        }
    }
    if second && r.random_bool(0.3) {
        guard.push(if r.random_bool(0.5) {
            "p < q".into()
        } else {
            "q < p".into()
        });
    }
    if r.random_bool(0.25) {
        guard.insert(0, "fence()".into());
    }
    let q = if second { " q" } else { "" };
    format!(
        "transition t{number} ([p]{q})\nrequires {{ {} }}\n{{ {} }}\n",
        guard.join(" && "),
        updates.join("; ")
    )
}
