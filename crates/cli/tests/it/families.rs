//! Any number of threads, from the text to the audited proof.

use super::support::{Scratch, root, run};

const LOCK: &str = "shared lock;
thread t[*] {
    local old;
    loop {
        old = swap(lock, 1);
        if old == 0 {
            critical: skip;
            lock = 0;
        }
    }
}
never t[i]@critical && t[j]@critical;
";

const BROKEN: &str = "shared lock;
thread t[*] {
    local old;
    loop {
        old = lock;
        lock = 1;
        if old == 0 {
            critical: skip;
            lock = 0;
        }
    }
}
never t[i]@critical && t[j]@critical;
";

#[test]
fn proofs_are_audited_and_kept() {
    let s = Scratch::new();
    let lock = s.file("lock.wtl", LOCK);
    for model in ["sc", "tso", "pso"] {
        let proof = s.path("proof.json");
        let by = ["--engine", "params", "--certificate", &proof];
        let r = run(&[&["check", &lock, "--model", model], &by[..]].concat());
        assert_eq!(r.code, 0, "{model} {}{}", r.out, r.err);
        assert!(r.out.contains("(proved by params, audited)"), "{}", r.out);
        let r = run(&["audit", &lock, &proof]);
        assert_eq!(r.code, 0, "{model} {}", r.err);
        assert!(r.out.contains("cubes over threads"), "{}", r.out);
        // Another program, and fewer cubes.
        let other = s.file("other.wtl", BROKEN);
        assert_eq!(run(&["audit", &other, &proof]).code, 2);
        let text = std::fs::read_to_string(&proof).expect("written");
        let mut json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        if let Some(cubes) = json["evidence"]["cubes"].as_array_mut() {
            cubes.remove(0);
        }
        let less = s.file("less.json", json.to_string());
        let r = run(&["audit", &lock, &less]);
        assert_eq!(r.code, 4, "{model} {}", r.err);
        // It is not about deadlock, nor about threads there are not.
        for (field, value) in [
            ("deadlock", serde_json::json!(true)),
            ("threads", serde_json::json!({"nobody": 1})),
        ] {
            let mut json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            json[field] = value;
            let other = s.file("other.json", json.to_string());
            assert_eq!(run(&["audit", &lock, &other]).code, 2, "{model} {field}");
        }
    }
}

#[test]
fn a_deadlock_is_found_on_small_instances_and_never_proved_absent() {
    let s = Scratch::new();
    let stuck = "shared l: 0..1;\nthread t[*] { await l == 1; }\nnever l == 2;\n";
    let r = run(&["check", &s.file("stuck.wtl", stuck), "--deadlock"]);
    assert_eq!(r.code, 1, "{}{}", r.out, r.err);
    let r = run(&["check", &s.file("lock.wtl", LOCK), "--deadlock"]);
    assert_eq!(r.code, 3, "{}{}", r.out, r.err);
    assert!(r.out.contains("deadlocks are looked for"), "{}", r.out);
}

#[test]
fn a_family_with_a_number_is_told() {
    let s = Scratch::new();
    let text = "shared x: 0..2;
thread a[*] { atomic { x = x == 2 ? 2 : x + 1; } }
thread b[*] { local r: 0..2; r = x; d: skip; }
never b[i]@d && b[i].r == 2;
";
    let file = s.file("two.wtl", text);
    assert_eq!(run(&["check", &file]).code, 1);
    for engine in ["params", "exact"] {
        let r = run(&["check", &file, "--threads", "a=1", "--engine", engine]);
        assert_eq!(r.code, 0, "{engine} {}{}", r.out, r.err);
        let told = "for any number of threads with a=1";
        assert!(r.out.contains(told), "{engine} {}", r.out);
    }
}

/// `exact` by name: its proofs are audited and kept like those of `params`.
#[test]
fn exact_proves_for_any_number() {
    let s = Scratch::new();
    let lock = s.file("lock.wtl", LOCK);
    let broken = s.file("broken.wtl", BROKEN);
    for model in ["sc", "tso", "pso"] {
        let proof = s.path("proof.json");
        let by_exact = ["--model", model, "--engine", "exact"];
        let kept = ["--certificate", &proof];
        let r = run(&[&["check", &lock][..], &by_exact, &kept].concat());
        assert_eq!(r.code, 0, "{model} {}{}", r.out, r.err);
        assert!(r.out.contains("any number of threads"), "{}", r.out);
        assert!(r.out.contains("(proved by exact, audited)"), "{}", r.out);
        let r = run(&["audit", &lock, &proof]);
        assert_eq!(r.code, 0, "{model} {}", r.err);
        assert!(r.out.contains("load buffers"), "{}", r.out);
        assert_eq!(run(&["audit", &broken, &proof]).code, 2);
        // Every configuration is needed.
        let text = std::fs::read_to_string(&proof).expect("written");
        let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let size = json["evidence"]["basis"].as_array().map_or(0, Vec::len);
        assert!(size > 2, "{text}");
        for n in (0..size).step_by(size.div_ceil(5)) {
            let mut less = json.clone();
            if let Some(basis) = less["evidence"]["basis"].as_array_mut() {
                basis.remove(n);
            }
            let less = s.file("less.json", less.to_string());
            let r = run(&["audit", &lock, &less]);
            assert_eq!(r.code, 4, "{model} without {n}: {}", r.err);
        }
        let r = run(&[&["check", &broken][..], &by_exact].concat());
        assert_eq!(r.code, 1, "{model} {}{}", r.out, r.err);
        assert!(r.out.contains("t0@critical, t1@critical"), "{}", r.out);
    }
}

/// Refused with the place: what tells threads apart, data that is not finite, PSO.
#[test]
fn what_exact_cannot_have() {
    let cells = "shared f[thread];\nthread t[*] { f[self] = 1; here: skip; }\nnever t[i]@here && f[i] == 0;\n";
    let number = "shared x;\nthread t[*] {\n    x = self;\n}\nnever x == 7;\n";
    let total = "shared x;\nthread t[*] {\n    x = count(t);\n}\nnever x == 7;\n";
    let s = Scratch::new();
    let by_exact = ["--engine", "exact"];
    for (text, place) in [(cells, "1"), (number, "3"), (total, "3")] {
        let file = s.file("refused.wtl", text);
        let r = run(&[&["check", &file][..], &by_exact].concat());
        assert_eq!(r.code, 3, "{}{}", r.out, r.err);
        let place = format!("refused.wtl:{place}");
        assert!(r.err.contains(&place), "{place}: {}", r.err);
    }
    let integers =
        "shared x: int;\nthread t[*] { local r: int; r = fetch_add(x, 1); }\nnever x < 0;\n";
    let integers = s.file("integers.wtl", integers);
    let r = run(&[&["check", &integers][..], &by_exact].concat());
    assert_eq!(r.code, 3, "{}{}", r.out, r.err);
    assert!(r.out.contains("too many values"), "{}", r.out);
    let lock = s.file("lock.wtl", LOCK);
    let two = s.file(
        "two.wtl",
        LOCK.replace("lock = 0;", "x = 1; lock = 0;")
            .replace("lock;", "lock, x;"),
    );
    let r = run(&[&["check", &two][..], &by_exact, &["--model", "pso"]].concat());
    assert_eq!(r.code, 3, "{}{}", r.out, r.err);
    assert!(r.out.contains("one cell pending"), "{}", r.out);
    // Others are for a fixed number, and `params` only for any.
    let r = run(&["check", &lock, "--engine", "coherent"]);
    assert_eq!(r.code, 3, "{}{}", r.out, r.err);
    let r = run(&["check", &lock, "--threads", "t=2", "--engine", "params"]);
    assert_eq!(r.code, 3, "{}{}", r.out, r.err);
    // Array-based systems are no programs.
    let flags = root()
        .join("examples/cubicle/flags.cub")
        .display()
        .to_string();
    assert_eq!(run(&["check", &flags, "--engine", "params"]).code, 0);
    let r = run(&[&["check", &flags][..], &by_exact].concat());
    assert_eq!(r.code, 3, "{}{}", r.out, r.err);
}

/// Where `params` does not go, `auto` has the answer of others, after a look at small instances; the
/// number of threads is told.
#[test]
fn auto_asks_all() {
    let example = |name: &str| {
        root()
            .join("examples/families")
            .join(name)
            .display()
            .to_string()
    };
    let r = run(&["check", &example("slots.wtl"), "--model", "tso"]);
    assert_eq!(r.code, 0, "{}{}", r.out, r.err);
    let others = ["counting", "exact"].map(|name| format!("(proved by {name}, audited)"));
    assert!(others.iter().any(|o| r.out.contains(o)), "{}", r.out);
    for model in ["sc", "tso", "pso"] {
        let r = run(&["check", &example("slots-broken.wtl"), "--model", model]);
        assert_eq!(r.code, 1, "{}{}", r.out, r.err);
        assert!(r.out.contains("t0@using, t1@using"), "{}", r.out);
    }
    // Three threads are needed to fill two seats and see it.
    let s = Scratch::new();
    let seats = "shared n: 0..3;
thread t[*] {
    local m: 0..3;
    atomic { m = n; assume m < 3; n = m + 1; }
    assert m < 2;
}
";
    let seats = s.file("seats.wtl", seats);
    let r = run(&["check", &seats, "--engine", "exact", "--json"]);
    assert_eq!(r.code, 1, "{}{}", r.out, r.err);
    let json: serde_json::Value = serde_json::from_str(&r.out).expect("JSON");
    assert_eq!(json["scope"]["threads"], 3, "{}", r.out);
}

/// The system a program is translated to, as a file of its own, has the program's verdict.
#[test]
fn cubicle_files_mean_the_same() {
    let s = Scratch::new();
    let lock = s.file("lock.wtl", LOCK);
    let broken = s.file("broken.wtl", BROKEN);
    let x86 = root().join("examples/x86/spinlock.asm");
    for file in [lock, broken, x86.display().to_string()] {
        let shown = run(&["show", &file, "--as", "cubicle"]);
        assert_eq!(shown.code, 0, "{}", shown.err);
        let system = s.file("shown.cub", &shown.out);
        let codes = |file: &str| {
            // The system's integers are mathematical.
            run(&["check", file, "-q", "--assume", "no-wrap"]).code
        };
        assert_eq!(codes(&file), codes(&system), "{file}\n{}", shown.out);
        let again = run(&["show", &system]);
        assert_eq!(again.out, shown.out);
    }
}

/// So have those of conchon-2017's case studies.
#[test]
fn case_studies_as_cubicle_files() {
    let s = Scratch::new();
    for name in [
        "counter_from_all_with_all_lock",
        "counter_from_all_with_all_plain",
        "counter_from_all_with_zero_lock",
        "counter_from_all_with_zero_plain",
        "counter_from_zero_with_all_lock",
        "counter_from_zero_with_all_plain",
        "counter_from_zero_with_zero_plain",
        "counter_only_down",
        "counter_put_back",
        "mutex_cmpxchg",
        "mutex_cmpxchg_no_lock",
        "mutex_xchg",
        "mutex_xchg_split",
        "naive_mutex",
        "naive_mutex_deadlock",
        "sense_barrier",
        "sense_barrier_again",
        "spinlock_no_lock",
        "view_counter_down",
    ] {
        let file = root().join(format!("examples/x86/{name}.asm"));
        let file = file.display().to_string();
        let shown = run(&["show", &file, "--as", "cubicle"]);
        assert_eq!(shown.code, 0, "{name}: {}", shown.err);
        let system = s.file("shown.cub", &shown.out);
        let codes = |file: &str| run(&["check", file, "-q", "--assume", "no-wrap"]).code;
        let code = codes(&system);
        assert!(code < 2, "{name}: {code}");
        assert_eq!(codes(&file), code, "{name}\n{}", shown.out);
    }
}

#[test]
fn fixed_families_are_lifted() {
    let s = Scratch::new();
    let fixed = s.file("fixed.wtl", LOCK.replace("t[*]", "t[2]"));
    let r = run(&["check", &fixed, "--threads", "t=*"]);
    assert_eq!(r.code, 0, "{}{}", r.out, r.err);
    assert!(r.out.contains("any number of threads"), "{}", r.out);
}

/// Refused with the place and what to do instead.
#[test]
fn what_any_number_cannot_have() {
    let arithmetic =
        "shared x;\nthread t[2] {\n    local n;\n    n = self + 1;\n    x = n;\n}\nnever x == 7;\n";
    let neighbour = "shared f[2];\nthread t[2] {\n    let other = 1 - self;\n    f[self] = 1;\n    await f[other] == 0;\n    here: skip;\n}\nnever t[i]@here && t[j]@here;\n";
    for (text, word) in [(arithmetic, "identifier"), (neighbour, "line")] {
        let s = Scratch::new();
        let file = s.file("refused.wtl", text);
        let r = run(&["check", &file, "--threads", "t=*", "--engine", "params"]);
        assert_eq!(r.code, 3, "{}{}", r.out, r.err);
        assert!(r.out.contains("no engine accepts"), "{}", r.out);
        assert!(r.err.contains("refused.wtl"), "{} {word}", r.err);
    }
}

/// The fences of two threads, proved for any number, and proved again from the written file.
#[test]
fn fences_for_any_number() {
    let s = Scratch::new();
    let text = "shared flag[thread];
thread t[*] {
    loop {
        flag[self] = 1;
        choose { skip; } or { goto t_out; }
        t_in: skip;
        t_out: skip;
        flag[self] = 0;
    }
}
never t[i]@t_in && t[j]@t_in;
";
    // Broken under SC already: no fence helps.
    let broken = s.file("broken.wtl", text);
    let r = run(&["fences", &broken]);
    assert_eq!(r.code, 1, "{}{}", r.out, r.err);
    // Nothing is needed.
    let lock = s.file("lock.wtl", LOCK);
    let written = s.path("written.wtl");
    let r = run(&["fences", &lock, "--write", &written]);
    assert_eq!(r.code, 0, "{}{}", r.out, r.err);
    // Two flags, two roles: each role needs its fence.
    let roles = "shared a, b;
thread p[*] { local r; a = 1; r = b; if r == 0 { here: skip; } }
thread t[*] { local s; b = 1; s = a; if s == 0 { there: skip; } }
never p[i]@here && t[j]@there;
";
    let roles = s.file("roles.wtl", roles);
    let r = run(&["fences", &roles, "--write", &written]);
    assert_eq!(r.code, 0, "{}{}", r.out, r.err);
    let text = std::fs::read_to_string(&written).expect("written");
    assert_eq!(text.matches("fence;").count(), 2, "{text}");
    let r = run(&["check", &written]);
    assert_eq!(r.code, 0, "{}{}", r.out, r.err);
    assert!(r.out.contains("any number of threads"), "{}", r.out);
}

/// The kinds of input that any number of threads cannot have, as a person sees them.
#[test]
fn refusals_as_they_are_printed() {
    let expect = |text: &str, wanted: [&str; 3]| {
        let s = Scratch::new();
        let file = s.file("refused.wtl", text);
        let r = run(&["check", &file, "--engine", "params"]);
        assert_eq!(r.code, 3, "{}{}", r.out, r.err);
        let both = format!("{}{}", r.out, r.err).replace(&file, "refused.wtl");
        for line in wanted {
            assert!(both.contains(line), "{line}\n{both}");
        }
    };
    // Indexed in a way that cannot be treated.
    expect(
        "shared f[t], n: 0..1;\nthread t[*] {\n    f[n] = 1;\n    here: skip;\n}\nnever t[i]@here && t[j]@here;\n",
        [
            "`f` is indexed by a number",
            "--> refused.wtl:3:5",
            "= hint: index it with `self` or a thread identifier",
        ],
    );
    // Two families' identifiers mixed.
    expect(
        "shared owner: t = none;\nthread t[*] {\n    owner = self;\n    here: skip;\n}\nthread u[*] {\n    local mine: u;\n    mine = owner;\n}\nnever t[i]@here && t[j]@here;\n",
        [
            "identifiers of two families of threads are mixed",
            "--> refused.wtl:8:5",
            "= hint: thread identifiers can be copied, compared and used as indexes, nothing else",
        ],
    );
    // Arithmetic on identifiers.
    expect(
        "shared next: t = none;\nthread t[*] {\n    next = self + 1;\n    here: skip;\n}\nnever t[i]@here && t[j]@here;\n",
        [
            "arithmetic on a thread identifier",
            "--> refused.wtl:3:5",
            "= hint: thread identifiers can be copied, compared and used as indexes, nothing else",
        ],
    );
    // Numbers of threads compared with something else.
    expect(
        "shared left = count(t);\nthread t[*] {\n    local r;\n    atomic { r = left; left = r - 1; }\n    r = left;\n    if r == 1 { here: skip; }\n}\nnever t[i]@here && t[j]@here;\n",
        [
            "a number of threads is compared with something else than 0 and all threads",
            "--> refused.wtl:6:8",
            "= hint: what counts threads begins as `= count(…)` or is `! as counter`",
        ],
    );
}

/// What was once proved although two threads break it.
#[test]
fn small_instances_decide_what_any_number_does() {
    let cases = [
        // A thread that is stuck after a store has stored.
        "shared x;\nthread t[*] {\n    local r;\n    x = 1;\n    assume r == 1;\n}\nnever x == 1;\n",
        // A value outside its range is a fault.
        "shared x: 0..1, y;\nthread t[*] {\n    local r;\n    r = 5;\n    x = r;\n    y = 1;\n}\nnever y == 2;\n",
        "shared x: 0..100, y;\nthread t[*] {\n    x = x + 60;\n}\nnever y == 2;\n",
        // What a stuck thread has read can be seen.
        "shared x;\nthread t[*] {\n    local r;\n    x = 1;\n    r = x;\n    assume r == 0;\n}\nnever t[i].r == 1;\n",
    ];
    for text in cases {
        let s = Scratch::new();
        let file = s.file("program.wtl", text);
        for model in ["sc", "tso", "pso"] {
            let r = run(&["check", &file, "--model", model]);
            assert_eq!(r.code, 1, "{model}\n{text}\n{}{}", r.out, r.err);
        }
    }
}

/// What a message says is not said again before it.
#[test]
fn refusals_are_told_once() {
    let s = Scratch::new();
    let text = "shared x: 0..1;\nthread t[*] {\n    lock;\n    x = 1;\n    unlock;\n    here: skip;\n}\nnever t[i]@here && t[j]@here;\n";
    let file = s.file("refused.wtl", text);
    let r = run(&["check", &file, "--engine", "params"]);
    assert_eq!(r.code, 3, "{}{}", r.out, r.err);
    let first = r.out.lines().next().unwrap_or_default();
    assert_eq!(first.matches("any number of threads").count(), 1, "{first}");
}

/// `init` of a `.cub` file may have so many parameters that it stands for tens of thousands of formulas.
#[test]
fn initial_states_may_have_many_parameters() {
    let s = Scratch::new();
    let file = s.file("many.cub", include_str!("many-parameters.cub"));
    let r = run(&["check", &file]);
    assert_eq!(r.code, 0, "{}{}", r.out, r.err);
}
