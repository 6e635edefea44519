//! Random families as text.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// What else a system has.
#[derive(Clone, Copy, PartialEq)]
enum More {
    Nothing,
    Numbers,
    /// Guards that speak of two threads at once, or of some for each, and the order of what cells hold.
    Threads,
}

/// A small system as text, so that a failure can be read and kept: plain (0), with numbers (1), or with guards and cases
/// that speak of several threads and of their order (2).
pub fn random_system(seed: u64, kind: usize) -> String {
    let more = [More::Nothing, More::Numbers, More::Threads][kind];
    let numbers = more == More::Numbers;
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
    if more == More::Threads {
        text += "weak array W[proc] : proc\narray H[proc] : proc\n";
        init += " && H[p] = p && A[p] = False";
        if r.random_bool(0.5) {
            init += " && W[p] = p";
        } else if r.random_bool(0.5) {
            text += "weak var V : proc\n";
            init += " && V <> p";
        }
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
            text += &random_transition(&mut r, number, (from, to), turn, more);
        }
    }
    text
}

fn random_transition(
    r: &mut SmallRng,
    number: usize,
    (from, to): (usize, usize),
    turn: bool,
    more: More,
) -> String {
    let numbers = more == More::Numbers;
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
    if more == More::Threads && r.random_bool(0.7) {
        let held = |r: &mut SmallRng, t: &str| match r.random_range(0..3) {
            0 => "H[p]".to_string(),
            1 => "W[p]".to_string(),
            _ => format!("W[{t}]"),
        };
        let order = |r: &mut SmallRng, t: &str| {
            let op = ["<", "<=", ">", ">="][r.random_range(0..4)];
            let other = match r.random_range(0..3) {
                0 => t.to_string(),
                1 => held(r, t),
                _ => "p".to_string(),
            };
            format!("{} {op} {other}", held(r, t))
        };
        match r.random_range(0..8) {
            0 => guard.push(format!(
                "(forall_other a. forall_other b. (A[a] = {} || a = b || A[b] = {}))",
                value(r),
                value(r)
            )),
            1 => guard.push(format!(
                "(forall a <> b. (A[a] = {} || A[b] = {}))",
                value(r),
                value(r)
            )),
            2 => guard.push(format!(
                "(forall a. exists b. (A[b] = {} && a <> b))",
                value(r)
            )),
            3 => guard.push(format!(
                "(forall_other a. (A[a] = {} || {}))",
                value(r),
                order(r, "a")
            )),
            4 => guard.push(format!("(forall a. {})", order(r, "a"))),
            5 => updates.push(format!(
                "W[j] := case | {} : p | {} : H[p] | _ : W[j]",
                order(r, "j"),
                order(r, "j")
            )),
            6 => updates.push(format!(
                "H[j] := case | j = p && {} : p | _ : H[j]",
                order(r, "p")
            )),
            _ => updates.push(format!("W[p] := {}", if second { "q" } else { "p" })),
        }
        if second && r.random_bool(0.3) {
            let stores_h = updates.iter().any(|u| u.starts_with("H["));
            (!stores_h).then(|| updates.push("H[p] := q".into()));
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
