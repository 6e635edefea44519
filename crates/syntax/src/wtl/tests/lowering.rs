//! What becomes a step, and where labels are. The printer shows one step per statement.

use super::{program, round_trip};
use expect_test::{Expect, expect};

fn check(text: &str, expect: Expect) {
    expect.assert_eq(&round_trip(text));
}

#[test]
fn loads_left_to_right_one_step_each() {
    check(
        "shared x, a[3]; thread p { local r; a[x] = a[r + 1] + x; r = a[x]; }",
        expect![[r#"
            shared x;
            shared a[3];

            thread p {
                local r;
                local _1;
                local _2;
                local _3;
                _1 = x;
                _2 = a[r + 1];
                _3 = x;
                a[_1] = _2 + _3;
                _1 = x;
                r = a[_1];
            }
        "#]],
    );
}

#[test]
fn short_circuit_only_where_memory_is_read() {
    check(
        "shared x, y; thread p { local r;
            if r == 1 && r != 2 { skip; }
            if x == 1 || y == 1 { skip; } else { r = 5; }
            r = x == 1 && !(y == 2 || x == 3);
            r = r == 0 ? x : 3;
            assume x == 0 || y == 0;
        }",
        expect![[r#"
            shared x;
            shared y;

            thread p {
                local r;
                local _1;
                local _2: 0..1;
                local _3;
                if r == 1 && r != 2 { } else { goto 2; }
                skip;
                2: _1 = x;
                if _1 == 1 { } else { goto 27; }
                4: skip;
                5: _1 = x;
                if _1 == 1 { } else { goto 9; }
                _1 = y;
                if _1 == 2 { } else { goto 24; }
                9: _2 = 0;
                10: r = _2;
                if r == 0 { } else { goto 23; }
                _3 = x;
                _1 = _3;
                14: r = _1;
                _1 = x;
                if _1 == 0 { } else { goto 20; }
                17: _2 = 1;
                18: assume _2;
                stop;
                20: _1 = y;
                if _1 == 0 { goto 17; }
                _2 = 0; goto 18;
                23: _1 = 3; goto 14;
                24: _1 = x;
                if _1 == 3 { goto 9; }
                _2 = 1; goto 10;
                27: _1 = y;
                if _1 == 1 { goto 4; }
                r = 5; goto 5;
            }
        "#]],
    );
}

#[test]
fn jumps_make_no_steps() {
    check(
        "shared x; thread p { local r;
            top: while r < 3 { r = r + 1; if r == 2 { continue; } if r == 1 { break; } goto top; }
            x = r;
        }",
        expect![[r#"
            shared x;

            thread p {
                local r;
                top: 0: if r < 3 { } else { goto 4; }
                r = r + 1;
                if r == 2 { goto 0; }
                if r == 1 { } else { goto 0; }
                4: x = r;
            }
        "#]],
    );
}

#[test]
fn labels_are_exact() {
    // At the end of the body, `done` is not the head of the loop.
    check(
        "shared x; thread p { loop { x = 1; done: } } never p@done;",
        expect![[r#"
            shared x;

            thread p {
                0: x = 1;
                done: skip; goto 0;
            }

            never p@done;
        "#]],
    );
    check(
        "thread p { a: b: skip; c: goto a; } never p@a && p@b && p@c;",
        expect![[r#"
            thread p {
                a: b: 0: skip;
                c: skip; goto 0;
            }

            never p@a && p@b && p@c;
        "#]],
    );
}

#[test]
fn an_empty_endless_loop_is_no_end() {
    check(
        "thread p { loop { } }",
        expect![[r#"
        thread p {
            0: skip; goto 0;
        }
    "#]],
    );
    check(
        "thread p { 1: goto 2; 2: goto 1; }",
        expect![[r#"
        thread p {
            0: skip; goto 0;
        }
    "#]],
    );
    check(
        "thread p { await false; }",
        expect![[r#"
        thread p {
            0: skip; goto 0;
        }
    "#]],
    );
}

#[test]
fn a_choice_cannot_be_undone() {
    check(
        "shared x; thread p {
            choose { x = 1; } or { } or { loop { x = 2; } } or { choose { x = 3; } or { x = 4; } }
            x = 5;
        }",
        expect![[r#"
            shared x;

            thread p {
                choose { x = 1; } or { skip; } or { skip; goto 3; } or { x = 3; } or { x = 4; }
                x = 5;
                stop;
                3: x = 2; goto 3;
            }
        "#]],
    );
}

#[test]
fn constants_are_put_in_and_for_is_unrolled() {
    check(
        "let N = 2; shared a[N + 1]: 0..N = self;
         thread p[N] {
            let other = 1 - self;
            for i in 0..N { if i == 1 { continue; } l: a[i] = i * 2 + other; }
         }
         never p[1]@l;",
        expect![[r#"
            shared a[3]: 0..2 = self;

            thread p[2] {
                l: a[0] = 0 + (1 - self);
                l: a[2] = 4 + (1 - self);
            }

            never p[1]@l;
        "#]],
    );
}

#[test]
fn exchanges_are_atomic_blocks() {
    check(
        "shared x: u8, a[2]; thread p { local r, s: u8;
            r = swap(x, r + 1);
            s = fetch_add(x, 1);
            s = cas(a[x], s, 0);
            atomic { x = 1; cas(x, 1, 2); }
            while swap(x, 1) == 1 { }
        }",
        expect![[r#"
            shared x: u8;
            shared a[2];

            thread p {
                local r;
                local s: u8;
                local _1: u8;
                local _2;
                atomic begin;
                _1 = x;
                x = r + 1;
                atomic end;
                r = _1;
                atomic begin;
                s = x;
                x = s + 1;
                atomic end;
                _1 = x;
                atomic begin;
                _2 = a[_1];
                if _2 == s { } else { goto 14; }
                a[_1] = 0;
                14: atomic end;
                s = _2 == s;
                atomic begin;
                x = 1;
                _1 = x;
                if _1 == 1 { } else { goto 21; }
                x = 2;
                21: atomic end;
                22: atomic begin;
                _1 = x;
                x = 1;
                atomic end;
                if _1 == 1 { goto 22; }
            }
        "#]],
    );
}

#[test]
fn flat_memory_and_odd_names() {
    check(
        "shared `x y`, a[2]; thread `q0.1` { local `$r`; `$r` = *(&a[1] + 1); *(&`x y`) = `$r` & &a; }
         finally *(&a + 1) == 0 && `q0.1`.`$r` == 0;",
        expect![[r#"
            shared `x y`;
            shared a[2];

            thread `q0.1` {
                local `$r`;
                `$r` = *(&a + 1 + 1);
                *(&`x y`) = `$r` & &a;
            }

            finally *(&a + 1) == 0 && `q0.1`.`$r` == 0;
        "#]],
    );
}

#[test]
fn every_statement_round_trips() {
    check(
        "shared x: i16 = any, owner: p = none, b[p] = {1, 2, 3}; let K = 3;
         thread p[K] { local r: -1..K = 1, s = any, t: p = self;
            r = any -1..2; s = any; x = any 0..3; lock; unlock; fence; fence store; skip;
            assert r >= -1, \"why \\\"not\\\"\"; assert r < count(p);
            if s == 0 { stop; } else if s == 1 { owner = self; } else { owner = none; }
            { let two = 2; r = two; } await owner != self; r = u8(s) + i4(-s) - -3;
            atomic begin; x = 0; atomic end;
         }
         never for p[j], p[i]: p[i].r == j; always true; reachable owner == none;
         predicates { x == 0; p[i].r > 0; }",
        expect![[r#"
            shared x: i16 = any;
            shared owner: p = -1;
            shared b[p] = {1, 2, 3};

            thread p[3] {
                local r: -1..3 = 1;
                local s = any;
                local t: p = self;
                local _1: i16;
                local _2: p;
                r = any -1..2;
                s = any;
                _1 = any 0..3;
                x = _1;
                lock;
                unlock;
                fence;
                fence store;
                skip;
                assert r >= -1, "why \"not\"";
                assert r < count(p);
                if s == 0 { } else { goto 13; }
                stop;
                13: if s == 1 { } else { goto 23; }
                owner = self;
                15: r = 2;
                16: _2 = owner;
                if _2 != self { } else { goto 16; }
                r = u8(s) + i4(-s) - (-3);
                atomic begin;
                x = 0;
                atomic end;
                stop;
                23: owner = -1; goto 15;
            }

            never for p[j], p[i]: p[i].r == j;
            always 1;
            reachable owner == -1;

            predicates {
                x == 0;
                p[i].r > 0;
            }
        "#]],
    );
}

#[test]
fn spans_point_at_statements() {
    let text = "shared x;\nthread p {\n    loop {\n        lab: x = 1;\n        fence;\n    }\n}\n";
    let p = program(text);
    let f = &p.families[0];
    let shown = |s: wattle_model::Span| &text[s.start as usize..s.end as usize];
    assert_eq!(shown(f.locations[0].span), "x = 1;");
    assert_eq!(f.locations[0].span.line, 4);
    assert_eq!(shown(f.locations[1].span), "fence;");
    assert_eq!(shown(f.steps[0].span), "x = 1;");
}
