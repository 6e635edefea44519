//! Programs of the language's introduction, round trips, and what errors look like.

mod errors;
mod formulas;
mod hostile;
mod lowering;
mod spelling;

use super::parse;
use wattle_model::print::to_wtl;
use wattle_model::{Program, validate};

fn program(text: &str) -> Program {
    let parsed = parse(text);
    match parsed.program {
        Some(p) => p,
        None => panic!("{}", parsed.render("test.wtl", text)),
    }
}

/// Parses, prints, parses again: the same program.
fn round_trip(text: &str) -> String {
    let first = program(text);
    assert_eq!(validate(&first), []);
    let printed = to_wtl(&first);
    let second = program(&printed);
    assert_eq!(
        first.without_spans(),
        second.without_spans(),
        "printed:\n{printed}"
    );
    printed
}

const PETERSON: &str = "
// Peterson's lock. Broken on TSO until the fence is put back.
shared flag[2], turn;                 // integers, initially 0

thread p[2] {                         // two copies; `self` is 0 and 1
    let other = 1 - self;             // a constant of the thread
    loop {
        flag[self] = 1;
        turn = other;
        // fence;
        while flag[other] == 1 && turn == other { }
        critical: skip;
        flag[self] = 0;
    }
}

never p[i]@critical && p[j]@critical; // i and j are different threads
";

const SPINLOCK: &str = "
// The Linux spinlock, for any number of threads.
shared lock = 1;

thread t[*] {
    local old;
    acquire: loop {
        old = fetch_add(lock, -1);                 // atomic, drains the buffer
        if old > 0 { break; }
        while lock <= 0 { }
    }
    critical: skip;
    lock = 1;
    goto acquire;
}

never t[i]@critical && t[j]@critical;
";

const MESSAGE: &str = "
// Message passing: a final-state question.
shared data, ready;
thread writer { data = 1; ready = 1; }
thread reader { local r, d; r = ready; d = data; }
finally !(reader.r == 1 && reader.d == 0);      // every final state, buffers drained
";

const BAKERY: &str = "
// Bakery with unbounded tickets; ranges would make it finite.
shared choosing[2]: 0..1, number[2]: int;
thread customer[2] {
    local n, m;
    let other = 1 - self;
    loop {
        choosing[self] = 1;
        m = number[other];
        n = m + 1;
        number[self] = n;
        choosing[self] = 0;
        fence;
        await choosing[other] == 0;
        await number[other] == 0 || number[other] > n
              || (number[other] == n && self < other);
        critical: skip;
        number[self] = 0;
    }
}
never customer[0]@critical && customer[1]@critical;
predicates { number[0] == 0; number[1] == 0; number[0] <= number[1]; }   // optional hints
";

#[test]
fn the_introduction_round_trips() {
    for text in [PETERSON, SPINLOCK, MESSAGE, BAKERY] {
        round_trip(text);
    }
}
