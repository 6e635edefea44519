//! Compiled code that keeps notes: memory that only one thread looks at, or nobody.

use super::machine::with_code;
use super::support::run;

const COUNTING_LOCK: &str = "
    #include <stdatomic.h>
    struct lock { atomic_int taken; unsigned long times; };
    struct notes { unsigned tries, most; };
    void lock(struct lock *l, struct notes *mine) {
        mine->tries = 0;
        while (atomic_exchange_explicit(&l->taken, 1, memory_order_acquire)) mine->tries++;
        if (mine->tries > mine->most) mine->most = mine->tries;
        l->times++;
    }
    void unlock(struct lock *l) { atomic_store_explicit(&l->taken, 0, memory_order_release); }";

/// Notes that nobody asks for are no states; asked for, they are.
#[test]
fn what_only_its_thread_looks_at_is_no_state() {
    for (property, code, said) in [
        (
            "never t[i]@critical && t[j]@critical;",
            0,
            "for at most 4194304 threads",
        ),
        ("never for t[i]: mine[i] == 2;", 1, "violated"),
    ] {
        let harness = format!(
            "shared l: struct lock, mine[t]: struct notes;
            thread t[*] {{ loop {{ call lock(&l, &mine[self]); critical: skip; call unlock(&l); }} }}
            {property}"
        );
        let Some((_scratch, file, _)) = with_code(COUNTING_LOCK, &harness) else {
            return;
        };
        let ran = run(&["check", &file, "--timeout", "60s"]);
        assert_eq!(ran.code, code, "{property}: {}{}", ran.out, ran.err);
        assert!(ran.out.contains(said), "{property}: {}", ran.out);
    }
}

/// An object whose address gets about is shared, whoever was given it first.
#[test]
fn what_others_are_told_of_is_shared() {
    let code = "
        #include <stdatomic.h>
        static int *_Atomic told;
        void tell(int *mine) { *mine = 1; told = mine; }
        int look(int *mine) { int *p = told; return p ? *p : 1; }";
    let harness = "shared mine[t]: object(4);
        thread t[2] { local r: u32; call tell(&mine[self]); r = call look(&mine[self]); assert r == 1; }";
    let Some((_scratch, file, _)) = with_code(code, harness) else {
        return;
    };
    let ran = run(&["check", &file]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let shown = run(&["show", &file, "--as", "wtl"]);
    assert!(shown.out.contains("mine[t]"), "{}", shown.out);
}

/// Leaving an object is a violation, kept or not, in a locked instruction, too.
#[test]
fn leaving_an_object_is_a_violation() {
    let code = "
        #include <stdatomic.h>
        struct two { atomic_int a, b; };
        void plain(struct two *p) { atomic_store_explicit(&p->b, 1, memory_order_relaxed); }
        void locked(struct two *p) { atomic_fetch_add(&p->b, 1); }
        int null(struct two *p, int *q) { return atomic_fetch_add(*(atomic_int *_Atomic *)q, 1); }";
    for (call, why) in [
        ("plain(&mine[self])", "outside of `mine`"),
        ("locked(&mine[self])", "outside of `mine`"),
        ("locked(&l)", "outside of `l`"),
        ("null(&l, &p)", "a null pointer is followed"),
    ] {
        let harness = format!(
            "shared mine[t]: object(4), l: object(4), p: object(8);
            thread t[2] {{ call {call}; }}"
        );
        let Some((_scratch, file, _)) = with_code(code, &harness) else {
            return;
        };
        let ran = run(&["check", &file]);
        assert_eq!(ran.code, 1, "{call}: {}{}", ran.out, ran.err);
        assert!(ran.out.contains(why), "{call}: {}", ran.out);
    }
}

/// A table that is found by a pointer some thread stores: before that it is null.
#[test]
fn an_index_behind_a_pointer_from_memory() {
    let code = "
        #include <stdatomic.h>
        struct table { unsigned *_Atomic at; };
        void set(struct table *t, unsigned *p) { atomic_store_explicit(&t->at, p, memory_order_release); }
        unsigned get(struct table *t, unsigned i) {
            return atomic_load_explicit(&t->at, memory_order_acquire)[i & 3];
        }";
    for (wait, verdict) in [("await ready == 1;", 0), ("", 1)] {
        let harness = format!(
            "shared l: struct table, all: object(16) = {{5, 0, 0, 0, 5, 0, 0, 0, 5, 0, 0, 0, 5}}, ready: bool;
            thread first {{ call set(&l, &all); ready = 1; }}
            thread t[2] {{
                local r: u32;
                local n: 0..9 = any;
                {wait}
                r = call get(&l, n);
                assert r == 5;
            }}"
        );
        let Some((_scratch, file, _)) = with_code(code, &harness) else {
            return;
        };
        let ran = run(&["check", &file]);
        assert_eq!(ran.code, verdict, "{wait}: {}{}", ran.out, ran.err);
    }
}

/// Division by a number is a product of which the upper half is taken.
#[test]
fn both_halves_of_a_product() {
    let code = "
        static const unsigned long large = 100000000000000000;
        int tenth(unsigned n) { return n * large / 10 == n * (large / 10); }
        int sixth(long n) { return (n * 6 - 120) / 6 == n - 20; }";
    let harness = "thread t {
            local n: 0..40 = any;
            local r: u32;
            r = call tenth(n);
            assert r == 1;
            r = call sixth(n);
            assert r == 1;
        }";
    let Some((_scratch, file, _)) = with_code(code, harness) else {
        return;
    };
    let ran = run(&["check", &file]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
}
