//! Families of programs with a size (calin-2016, chapter 5), in the trencher language; what that cannot say
//! (one compare-and-swap) in Wattle's own.

use std::fmt::Write;

/// A family of programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Fig. 5.2: Lamport's fast mutex with N threads.
    Lamport,
    /// Fig. 5.3: Dekker's idea with N branches between the two accesses.
    Branching,
    /// Fig. 5.4: Dekker's idea behind a loop of N stores, which must be run twice.
    Unwinding,
    /// Fig. 5.12: N threads that put messages into a shared hash table.
    Indexer,
    /// The same with one compare-and-swap for each try, as in Flanagan and Godefroid.
    IndexerCas,
}

impl Family {
    /// Those in the trencher language.
    pub const ALL: [Family; 4] = [
        Family::Lamport,
        Family::Branching,
        Family::Unwinding,
        Family::Indexer,
    ];

    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Family::Lamport => "lamport",
            Family::Branching => "branching",
            Family::Unwinding => "unwinding",
            Family::Indexer => "indexer",
            Family::IndexerCas => "indexer-cas",
        }
    }

    /// The member of size `n`. Reaching all `final` states at once is the violation.
    pub fn program(self, n: u32) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = match self {
            Family::Lamport => lamport(&mut out, n),
            Family::Branching => branching(&mut out, n),
            Family::Unwinding => unwinding(&mut out, n),
            Family::Indexer => indexer(&mut out, n),
            Family::IndexerCas => indexer_cas(&mut out, n),
        };
        out
    }
}

fn lamport(out: &mut String, n: u32) -> std::fmt::Result {
    writeln!(
        out,
        "# Lamport's fast mutex, {n} threads. Memory: 0 is x, 1 is y."
    )?;
    for i in 1..=n {
        writeln!(out, "\nthread t{i}\ninitial start\nfinal critical")?;
        for line in [
            format!("start q0 local i {i}"),
            "q0 q1 write i 0".into(),
            "q1 q2 read y 1".into(),
            "q2 q0 check != y 0".into(),
            "q2 q3 check == y 0".into(),
            "q3 q4 write i 1".into(),
            "q4 q5 read x 0".into(),
            "q5 q6 check != x i".into(),
            "q6 q7 read y 1".into(),
            "q7 q0 check != y i".into(),
            "q7 critical check == y i".into(),
            "q5 critical check == x i".into(),
            "critical q0 write 0 1".into(),
        ] {
            writeln!(out, "transition {line}")?;
        }
        writeln!(out, "end")?;
    }
    Ok(())
}

fn branching(out: &mut String, n: u32) -> std::fmt::Result {
    writeln!(
        out,
        "# Two threads with {n} branches between a store and a load.\n\
         # Memory: 0 is x, 1 is y; 2 and 3 belong to one thread each."
    )?;
    for (t, own, other, table) in [(0, 0, 1, 2), (1, 1, 0, 3)] {
        writeln!(out, "\nthread t{t}\ninitial q0\nfinal critical")?;
        writeln!(out, "transition q0 q1 write 1 {own}")?;
        writeln!(out, "transition q1 q2 read r {table}")?;
        for i in 0..n {
            writeln!(out, "transition q2 b{i} check == r {i}")?;
            writeln!(out, "transition b{i} q3 write {} {table}", (i + 1) % n)?;
        }
        writeln!(out, "transition q3 q4 read r {other}")?;
        writeln!(out, "transition q4 critical check == r 0\nend")?;
    }
    Ok(())
}

fn unwinding(out: &mut String, n: u32) -> std::fmt::Result {
    writeln!(
        out,
        "# The first thread must run its loop of {n} stores twice.\n# Memory: 0 is x, 1 is y."
    )?;
    writeln!(out, "\nthread t1\ninitial q0\nfinal end")?;
    for line in [
        format!("q0 store check < i {n}"),
        "store next write i 0".into(),
        "next q0 local i + i 1".into(),
        format!("q0 full check == i {n}"),
        "full q0 local i 0".into(),
        "full q2 read r 1".into(),
        "q2 end check == r 0".into(),
    ] {
        writeln!(out, "transition {line}")?;
    }
    writeln!(out, "end\n\nthread t2\ninitial q0\nfinal end")?;
    for line in [
        "q0 q1 write 1 1",
        "q1 q2 read r 0",
        "q2 q3 check == r 1",
        "q3 q4 read r 0",
        "q4 end check == r 0",
    ] {
        writeln!(out, "transition {line}")?;
    }
    writeln!(out, "end")
}

fn indexer_cas(out: &mut String, n: u32) -> std::fmt::Result {
    writeln!(
        out,
        "// {n} threads put four messages each into a hash table of 128 cells, one compare-and-swap a try.
shared table[128]: u16;
thread p[{n}] {{
  local m: u4, w: u16, h: u8, ok: bool;
  while m < 4 {{
    m = m + 1;
    w = m * 11 + self + 1;
    h = (w * 7) % 128;
    again: ok = cas(table[h], 0, w);
    if ok == 0 {{ h = (h + 1) % 128; goto again; }}
  }}
  done: skip;
}}
never table[0] == 999;"
    )
}

fn indexer(out: &mut String, n: u32) -> std::fmt::Result {
    writeln!(
        out,
        "# {n} threads put four messages each into a hash table of 128 cells.\n\
         # The final states cannot be reached."
    )?;
    for i in 0..n {
        writeln!(out, "\nthread t{i}\ninitial q0\nfinal never")?;
        for line in [
            "q0 q1 check < m 4".to_string(),
            "q1 q2 local m + m 1".into(),
            format!("q2 q3 local w + * m 11 {}", i + 1),
            "q3 q4 local h & * w 7 127".into(),
            "q4 q5 lock".into(),
            "q5 q6 read r h".into(),
            "q6 q7 check == r 0".into(),
            "q7 q8 write w h".into(),
            "q8 q0 unlock".into(),
            "q6 q9 check != r 0".into(),
            "q9 q10 unlock".into(),
            "q10 q4 local h & + h 1 127".into(),
            "q0 done check == m 4".into(),
            "done never check == m 0".into(),
        ] {
            writeln!(out, "transition {line}")?;
        }
        writeln!(out, "end")?;
    }
    Ok(())
}
