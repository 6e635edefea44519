//! What a person reads, as it is. `UPDATE_EXPECT=1 cargo test -p wattle text` rewrites it.

use crate::support::{Scratch, ran, root, run, wattle};
use expect_test::{Expect, expect};

/// What `wattle check` prints about the program.
fn says(program: &str, more: &[&str], expected: &Expect) {
    let s = Scratch::new();
    let file = s.file("program.wtl", program);
    let mut arguments = vec!["check", file.as_str()];
    arguments.extend(more);
    expected.assert_eq(&run(&arguments).out);
}

const PETERSON: &str = "shared flag[2], turn;
thread p[2] {
    let other = 1 - self;
    loop {
        flag[self] = 1;
        turn = other;
        while flag[other] == 1 && turn == other { }
        critical: skip;
        flag[self] = 0;
    }
}
never p[i]@critical && p[j]@critical;
";

#[test]
fn peterson() {
    says(
        PETERSON,
        &[],
        &expect![[r#"
        violated on TSO
          never p[i]@critical && p[j]@critical

        step  p0                   p1                   p0 buffer           p1 buffer           memory
        1     flag[0] = 1 :5                            [flag[0]=1]
        2     turn = 1 :6                               [flag[0]=1 turn=1]
        3     flag[1] → 0 :7                            [flag[0]=1 turn=1]
        4     reaches critical :7                       [flag[0]=1 turn=1]
        5                          flag[1] = 1 :5       [flag[0]=1 turn=1]  [flag[1]=1]
        6                          turn = 0 :6          [flag[0]=1 turn=1]  [flag[1]=1 turn=0]
        7                          flag[0] → 0 :7       [flag[0]=1 turn=1]  [flag[1]=1 turn=0]
        8                          reaches critical :7  [flag[0]=1 turn=1]  [flag[1]=1 turn=0]
        end   p0@critical, p1@critical
        why   p0 step 3 overtook step 1 (store flag[0], load flag[1]). SC forbids it.
              A fence after line 6 stops this run; `wattle fences` finds the least set.
    "#]],
    );
}

#[test]
fn message_passing_on_pso() {
    let text = "shared data, ready;
thread writer {
    data = 1;
    ready = 1;
}
thread reader { local r, d; r = ready; d = data; }
finally !(reader.r == 1 && reader.d == 0);
";
    says(
        text,
        &["--model", "pso"],
        &expect![[r#"
        violated on PSO
          finally !(reader.r == 1 && reader.d == 0)

        step  writer           reader            writer buffer     memory
        1     data = 1 :3                        [data=1]
        2     ready = 1 :4                       [data=1 ready=1]
        3     drain ready = 1                    [data=1]          ready=1
        4                      r = ready → 1 :6  [data=1]
        5                      d = data → 0 :6   [data=1]
        6     drain data = 1                                       data=1
        end   reader.r = 1, reader.d = 0
        why   writer step 3 overtook step 1 (store data, store ready). SC forbids it.
              A store fence after line 3 stops this run; `wattle fences` finds the least set.
    "#]],
    );
}

#[test]
fn an_atomic_step_is_one_row() {
    let text = "shared x;
thread p[2] { local old; old = fetch_add(x, 1); done: skip; }
never p[0].old == 1 && p[0]@done;
";
    says(
        text,
        &[],
        &expect![[r#"
            violated on TSO
              never p[0].old == 1 && p[0]@done

            step  p0                             p1                             memory
            1                                    atomic: old = x → 0, x = 1 :2  x=1
            2     atomic: old = x → 1, x = 2 :2                                 x=2
            end   p0.old = 1, p0@done
            why   It is violated on SC too.
        "#]],
    );
}

#[test]
fn a_fault() {
    let text = "shared a[2];
thread p { local i: 0..2 = any; a[0] = i; a[i] = 1; }
";
    says(
        text,
        &[],
        &expect![[r#"
        violated: index 2 outside an array of 2 (on TSO)
          no property: assertions and faults only

        start p.i = 2
        step  p            p buffer  memory
        1     a[0] = 2 :2  [a[0]=2]
        2     a[i] = 1 :2  [a[0]=2]
        end   p at line 2: index 2 outside an array of 2
        why   It is violated on SC too.
    "#]],
    );
}

#[test]
fn a_deadlock() {
    let text = "shared x, y;
thread p { await x == 1; y = 1; }
thread q { await y == 1; x = 1; }
";
    says(
        text,
        &["--deadlock"],
        &expect![[r#"
            violated: deadlock (on TSO)
              no property: assertions, faults and deadlock only

            the initial state already shows it
            end   deadlock: p at line 2, q at line 3 will never go on
            why   It is violated on SC too.
        "#]],
    );
}

#[test]
fn a_bound_is_no_proof() {
    let text = "shared light: 0..2;
thread beacon { loop { light = 1; light = 0; } }
thread watcher { local seen: 0..2; loop { seen = light; } }
never watcher.seen == 2;
";
    says(
        text,
        &["--engine", "explicit"],
        &expect![[r#"
        no violation on TSO up to 6 buffered stores (NOT a proof)
          never watcher.seen == 2
          the buffers are not bounded: thread beacon stores in a loop without a fence (line 2)
    "#]],
    );
}

#[test]
fn ten_threads_share_a_column() {
    let text = "shared x[11]: 0..1;
thread p[10] {
    await x[self] == 1;
    x[self + 1] = 1;
}
thread starter { x[0] = 1; }
never x[10] == 1;
";
    says(
        text,
        &[],
        &expect![[r#"
        violated on TSO
          never x[10] == 1

        step  thread   does             its buffer  memory
        1     starter  x[0] = 1 :6      [x[0]=1]
        2     starter  drain x[0] = 1               x[0]=1
        3     p0       x[0] → 1 :3
        4     p0       x[1] = 1 :4      [x[1]=1]
        5     p0       drain x[1] = 1               x[1]=1
        6     p1       x[1] → 1 :3
        7     p1       x[2] = 1 :4      [x[2]=1]
        8     p1       drain x[2] = 1               x[2]=1
        9     p2       x[2] → 1 :3
        10    p2       x[3] = 1 :4      [x[3]=1]
        11    p2       drain x[3] = 1               x[3]=1
        12    p3       x[3] → 1 :3
        13    p3       x[4] = 1 :4      [x[4]=1]
        14    p3       drain x[4] = 1               x[4]=1
        15    p4       x[4] → 1 :3
        16    p4       x[5] = 1 :4      [x[5]=1]
        17    p4       drain x[5] = 1               x[5]=1
        18    p5       x[5] → 1 :3
        19    p5       x[6] = 1 :4      [x[6]=1]
        20    p5       drain x[6] = 1               x[6]=1
        21    p6       x[6] → 1 :3
        22    p6       x[7] = 1 :4      [x[7]=1]
        23    p6       drain x[7] = 1               x[7]=1
        24    p7       x[7] → 1 :3
        25    p7       x[8] = 1 :4      [x[8]=1]
        26    p7       drain x[8] = 1               x[8]=1
        27    p8       x[8] → 1 :3
        28    p8       x[9] = 1 :4      [x[9]=1]
        29    p8       drain x[9] = 1               x[9]=1
        30    p9       x[9] → 1 :3
        31    p9       x[10] = 1 :4     [x[10]=1]
        32    p9       drain x[10] = 1              x[10]=1
        end   x[10] = 1
        why   It is violated on SC too.
    "#]],
    );
}

#[test]
fn idle_threads_get_no_column() {
    let text = "shared x, y;
thread p { local a; x = 1; a = y; }
thread q { local b; y = 1; b = x; }
thread r[3] { skip; skip; }
never p.a == 0 && q.b == 0 && x == 1 && y == 1;
";
    says(
        text,
        &[],
        &expect![[r#"
        violated on TSO
          never p.a == 0 && q.b == 0 && x == 1 && y == 1

        step  p            q            p buffer  q buffer  memory
        1     x = 1 :2                  [x=1]
        2     drain x = 1                                   x=1
        3                  y = 1 :3               [y=1]
        4                  drain y = 1                      y=1
        end   p.a = 0, q.b = 0, x = 1, y = 1
        why   It is violated on SC too.
    "#]],
    );
}

#[test]
fn a_narrow_terminal_folds_steps() {
    let s = Scratch::new();
    let file = s.file("peterson.wtl", PETERSON);
    let narrow = wattle()
        .args(["check", &file])
        .env("COLUMNS", "84")
        .output();
    expect![[r#"
        violated on TSO
          never p[i]@critical && p[j]@critical

        step  p0              p1              p0 buffer           p1 buffer           memory
        1     flag[0] = 1 :5                  [flag[0]=1]
        2     turn = 1 :6                     [flag[0]=1 turn=1]
        3     flag[1] → 0 :7                  [flag[0]=1 turn=1]
        4     reaches                         [flag[0]=1 turn=1]
               critical :7
        5                     flag[1] = 1 :5  [flag[0]=1 turn=1]  [flag[1]=1]
        6                     turn = 0 :6     [flag[0]=1 turn=1]  [flag[1]=1 turn=0]
        7                     flag[0] → 0 :7  [flag[0]=1 turn=1]  [flag[1]=1 turn=0]
        8                     reaches         [flag[0]=1 turn=1]  [flag[1]=1 turn=0]
                               critical :7
        end   p0@critical, p1@critical
        why   p0 step 3 overtook step 1 (store flag[0], load flag[1]). SC forbids it.
              A fence after line 6 stops this run; `wattle fences` finds the least set.
    "#]]
    .assert_eq(&ran(narrow).out);
}

/// Where columns are too narrow for what is in them, it goes on below: no line is too long, nothing is cut.
#[test]
fn a_very_narrow_terminal_loses_nothing() {
    let file = root().join("examples/bakery.wtl").display().to_string();
    for columns in [60, 80] {
        let narrow = wattle()
            .args(["check", &file])
            .env("COLUMNS", columns.to_string())
            .output();
        let r = ran(narrow);
        assert_eq!(r.code, 1, "{}", r.err);
        let table = r.out.lines().skip(2);
        assert!(
            table.into_iter().all(|l| l.chars().count() <= columns),
            "{}",
            r.out
        );
        assert!(!r.out.contains('…'), "{}", r.out);
        assert!(r.out.contains("step  thread"), "{}", r.out);
    }
}
