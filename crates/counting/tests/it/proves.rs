//! Locks, semaphores, counts and barriers, for any number of threads under every memory model.

use crate::{audited, counted, questions, read};
use wattle_counting::Outcome;
use wattle_memory::MemoryModel;

fn proved(name: &str, text: &str) {
    proved_on(name, text, &MemoryModel::ALL);
}

fn proved_on(name: &str, text: &str, models: &[MemoryModel]) {
    let program = read(text);
    for model in models.iter().copied() {
        for q in questions(&program) {
            match counted(&program, model, q) {
                Outcome::Proved(c) => {
                    let audit = audited(&program, model, q, &c);
                    assert_eq!(audit, Ok(()), "{name}, {model}, {q:?}");
                }
                other => panic!("{name}, {model}, {q:?}: {other:?}"),
            }
        }
    }
}

fn not_proved(name: &str, text: &str, models: &[MemoryModel]) {
    let program = read(text);
    for model in models {
        let q = questions(&program)[0];
        let said = counted(&program, *model, q);
        assert!(!matches!(said, Outcome::Proved(_)), "{name}, {model}");
    }
}

pub const SEMAPHORE: &str = "shared s = 2;
thread p[*] { local r; loop { loop { r = s; if r > 0 { if cas(s, r, r-1) { break; } } }
 cs: skip; fetch_add(s, 1); } }
never p[i]@cs && p[j]@cs && p[k]@cs;";

/// The count is read into a register and stored, by whoever has the mutex.
pub const COUNT_UNDER_LOCK: &str = "shared m: bool, w: bool, n;
thread p[*] { local r; loop { await swap(m, 1) == 0; r = n; n = r + 1; if r == 0 { await swap(w, 1) == 0; } m = 0;
  rd: skip; await swap(m, 1) == 0; r = n; n = r - 1; if r == 1 { w = 0; } m = 0; } }
thread q[*] { loop { await swap(w, 1) == 0; wr: skip; w = 0; } }
never q[i]@wr && p[j]@rd;";

#[test]
fn a_count_that_is_changed_under_a_lock() {
    proved_on("courtois", COUNT_UNDER_LOCK, &[MemoryModel::Sc]);
    // Under PSO the mutex is free before the count is stored.
    not_proved("courtois", COUNT_UNDER_LOCK, &[MemoryModel::Pso]);
}

#[test]
fn a_cell_that_begins_with_the_number_of_threads() {
    proved(
        "latch",
        "shared n = count(w);
thread q { await n == 0; done: skip; }
thread w[*] { work: skip; fetch_add(n, -1); }
never q@done && w[i]@work;",
    );
    not_proved(
        "one too early",
        "shared n = count(w);
thread q { await n <= 1; done: skip; }
thread w[*] { work: skip; fetch_add(n, -1); }
never q@done && w[i]@work;",
        &MemoryModel::ALL,
    );
}

#[test]
fn a_reader_writer_lock_with_a_count() {
    proved(
        "rw_counter",
        "shared w: bool, n;
thread p[*] { local r; loop { choose {
   loop { atomic { r = w; if r == 0 { n = n + 1; } } if r == 0 { break; } } rd: skip; fetch_add(n,-1); }
 or { loop { atomic { r = w + n; if r == 0 { w = 1; } } if r == 0 { break; } } wr: skip; w = 0; } } }
never p[i]@wr && p[j]@wr;
never p[i]@wr && p[j]@rd;",
    );
}

#[test]
fn a_reader_writer_lock_in_one_word() {
    proved(
        "rw_linux",
        "shared l = 100;
thread p[*] { local r; loop { choose {
   loop { r = fetch_add(l,-1); if r > 0 { break; } fetch_add(l,1); await l > 0; } rd: skip; fetch_add(l,1); }
 or { loop { if cas(l,100,0) { break; } } wr: skip; fetch_add(l,100); } } }
never p[i]@wr && p[j]@wr;
never p[i]@wr && p[j]@rd;",
    );
}

#[test]
fn a_reference_count() {
    proved(
        "refcount",
        "shared n = 1, freed: bool;
thread p[*] { local r; loop { r = n; if r == 0 { stop; } if cas(n, r, r+1) { break; } }
 use: assert freed == 0; r = fetch_add(n,-1); if r == 1 { freed = 1; } }",
    );
}

#[test]
fn a_semaphore() {
    proved("sem", SEMAPHORE);
}

#[test]
fn a_bounded_queue_by_semaphores() {
    proved(
        "queue",
        "shared empty = 3, full, items;
thread p[*] { local r; loop { loop { r = empty; if r > 0 { if cas(empty, r, r-1) { break; } } }
  fetch_add(items, 1); a: skip; fetch_add(full, 1); } }
thread c[*] { local r; loop { loop { r = full; if r > 0 { if cas(full, r, r-1) { break; } } }
  fetch_add(items, -1); fetch_add(empty, 1); } }
always items >= 0;
always items <= 3;",
    );
}

#[test]
fn a_barrier_with_any_comparison() {
    for compare in ["==", ">="] {
        proved(
            "barrier",
            &format!(
                "shared arrived;
thread p[*] {{ before: skip; fetch_add(arrived, 1); await arrived {compare} count(p); after: skip; }}
never p[i]@before && p[j]@after;"
            ),
        );
    }
}

/// Counts one way while its sense is 0 and the other way while it is 1.
#[test]
fn a_barrier_that_is_used_again() {
    let text = include_str!("../../../../examples/families/barrier-reuse.wtl");
    proved("barrier-reuse", text);
    let text = include_str!("../../../../examples/families/barrier-reuse-broken.wtl");
    not_proved("opened too early", text, &MemoryModel::ALL);
}

/// Odd while somebody writes.
#[test]
fn a_lock_in_a_parity() {
    let text = include_str!("../../../../examples/families/parity-lock.wtl");
    proved("parity-lock", text);
    let text = include_str!("../../../../examples/families/parity-lock-broken.wtl");
    not_proved("made odd by a store", text, &MemoryModel::ALL);
}

#[test]
fn the_naive_mutex_repaired() {
    proved(
        "naive",
        "shared x;
thread p[*] { local r; loop { r = fetch_add(x, 1); if r == 0 { cs: skip; } fetch_add(x, -1); } }
never p[i]@cs && p[j]@cs;",
    );
}

#[test]
fn one_thread_beside_a_family() {
    proved(
        "writer",
        "shared w: bool, n;
thread q { local r; loop { loop { atomic { r = n; if r == 0 { w = 1; } } if r == 0 { break; } }
  cs: skip; w = 0; } }
thread p[*] { local r; loop { loop { atomic { r = w; if r == 0 { n = n + 1; } } if r == 0 { break; } }
  rd: skip; fetch_add(n, -1); } }
never q@cs && p[i]@rd;",
    );
}

/// Facts that only hold of few threads, or not with buffers, are not proved.
#[test]
fn what_is_broken_is_not_proved() {
    let all = MemoryModel::ALL;
    not_proved(
        "three of four",
        "shared s = 3;
thread p[*] { local r; loop { r = s; if r > 0 { if cas(s, r, r-1) { break; } } } cs: skip; }
never p[i]@cs && p[j]@cs && p[k]@cs;",
        &all,
    );
    not_proved(
        "the fifth",
        "shared c; thread p[*] { local r; r = fetch_add(c, 1); assert r != 4; }",
        &all,
    );
    not_proved(
        "a flag behind a store",
        "shared f, n;
thread p[*] { local r; f = 1; r = n; if r == 0 { cs: skip; } }
thread q { local r; n = 1; r = f; if r == 0 { cs: skip; } }
never p[i]@cs && q@cs;",
        &[MemoryModel::Tso, MemoryModel::Pso],
    );
}

/// As many places as the program says, whatever their number: more than instances are run with.
#[test]
fn semaphores_of_other_sizes() {
    for size in [1, 3, 5] {
        let inside: Vec<String> = (0..=size).map(|i| format!("p[i{i}]@cs")).collect();
        let never = format!("never {};", inside.join(" && "));
        let down = format!(
            "shared s = {size};
thread p[*] {{ local r; loop {{ loop {{ r = s; if r > 0 {{ if cas(s, r, r-1) {{ break; }} }} }}
 cs: skip; fetch_add(s, 1); }} }} {never}"
        );
        proved("down", &down);
        let up = format!(
            "shared used;
thread p[*] {{ local r; loop {{ loop {{ r = used; if r < {size} {{ if cas(used, r, r+1) {{ break; }} }} }}
 cs: skip; fetch_add(used, -1); }} }} {never}"
        );
        proved("up", &up);
    }
}

/// Who finds no place puts back what it took.
#[test]
fn a_semaphore_that_takes_first() {
    for size in [1, 2, 3] {
        let inside: Vec<String> = (0..=size).map(|i| format!("p[i{i}]@cs")).collect();
        let text = format!(
            "shared s = {size};
thread p[*] {{ local r; loop {{ loop {{ r = fetch_add(s, -1); if r > 0 {{ break; }} fetch_add(s, 1); }}
 cs: skip; fetch_add(s, 1); }} }} never {};",
            inside.join(" && ")
        );
        proved("undo", &text);
    }
}
