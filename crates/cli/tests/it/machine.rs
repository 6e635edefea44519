//! Compiled code: the sources of examples/machine-code through the compilers of this machine, and what is
//! said of them compared with their headers.

use super::support::{Scratch, root, run};
use std::path::Path;
use std::process::Command;

/// Compiles a source beside its harnesses; false if there is no such compiler.
fn compiled(compiler: &str, flags: &[&str], source: &Path, object: &str) -> bool {
    let done = Command::new(compiler)
        .args(flags)
        .arg("-o")
        .arg(object)
        .arg(source)
        .output();
    match done {
        Ok(done) => {
            let said = String::from_utf8_lossy(&done.stderr);
            assert!(
                done.status.success(),
                "{compiler} {}: {said}",
                source.display()
            );
            true
        }
        Err(_) => {
            println!("skipped: there is no {compiler} here");
            false
        }
    }
}

/// What the header says: the verdict on TSO, and words that must be in what is printed.
fn expected(text: &str) -> (String, Vec<String>) {
    let line = |word: &str| {
        let found = text
            .lines()
            .filter_map(|l| l.strip_prefix("// ")?.strip_prefix(word));
        found.map(|l| l.trim().to_string()).collect::<Vec<_>>()
    };
    let verdict = line("expect: tso").pop().expect("an `expect:` line");
    (verdict, line("shows:"))
}

fn check(source: &str, compiler: &str, flags: &[&str]) {
    let folder = root().join("examples/machine-code");
    let scratch = Scratch::new();
    let stem = source.rsplit_once('.').unwrap().0;
    if !compiled(
        compiler,
        flags,
        &folder.join(source),
        &scratch.path(&format!("{stem}.o")),
    ) {
        return;
    }
    let mut seen = 0;
    let mut names: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    names.sort();
    for path in names {
        let Ok(text) = std::fs::read_to_string(&path) else {
            continue;
        };
        if !text.contains(&format!("object \"{stem}.o\"")) {
            continue;
        }
        seen += 1;
        let name = path.file_name().unwrap().to_str().unwrap();
        let file = scratch.file(name, &text);
        let (verdict, shows) = expected(&text);
        let ran = run(&["check", &file, "--timeout", "120s"]);
        let all = format!("{}{}", ran.out, ran.err);
        let code = match verdict.as_str() {
            "holds" => 0,
            "violated" => 1,
            "holds-if" => 3,
            "refused" => 2,
            other => panic!("{name}: `{other}` is no verdict"),
        };
        assert_eq!(ran.code, code, "{name} with {compiler} {flags:?}:\n{all}");
        for words in shows {
            assert!(
                all.contains(&words),
                "{name} with {compiler} {flags:?} lacks `{words}`:\n{all}"
            );
        }
    }
    assert!(seen > 0, "no harness for {source}");
}

#[test]
fn c_locks_at_o1() {
    check("locks.c", "gcc", &["-O1", "-g", "-c"]);
}

#[test]
fn c_locks_at_o2() {
    check("locks.c", "gcc", &["-O2", "-g", "-c"]);
}

/// Everything on the stack, and everything unrolled.
#[test]
fn c_locks_at_o0_and_o3() {
    for level in ["-O0", "-O3"] {
        check("locks.c", "gcc", &[level, "-g", "-c"]);
    }
}

#[test]
fn c_locks_of_clang() {
    check("locks.c", "clang", &["-O2", "-g", "-c"]);
    check("broken.c", "clang", &["-O2", "-g", "-c"]);
}

#[test]
fn c_locks_in_parts_of_words() {
    for level in ["-O1", "-O2", "-O3"] {
        check("words.c", "gcc", &[level, "-g", "-c"]);
    }
    check("words.c", "clang", &["-O2", "-g", "-c"]);
}

/// Thread-local memory in each of the ways compilers find it, the clock, and calls of the kernel.
#[test]
fn c_locks_of_the_system() {
    for source in ["system.c", "system_broken.c"] {
        for level in ["-O1", "-O2"] {
            check(source, "gcc", &[level, "-g", "-c"]);
        }
        check(source, "gcc", &["-O2", "-g", "-fPIC", "-c"]);
        check(source, "clang", &["-O2", "-g", "-c"]);
    }
    for level in ["-O1", "-O2"] {
        check("places.c", "gcc", &[level, "-g", "-c"]);
    }
}

/// What a thread notes for itself is nobody else's.
#[test]
fn c_locks_that_keep_notes() {
    for level in ["-O1", "-O2"] {
        check("kept.c", "gcc", &[level, "-g", "-c"]);
        check("kept.c", "clang", &[level, "-g", "-c"]);
    }
}

#[test]
fn broken_c_locks() {
    for level in ["-O1", "-O2"] {
        check("broken.c", "gcc", &[level, "-g", "-c"]);
    }
}

#[test]
fn rust_locks() {
    for level in ["1", "2"] {
        let level = format!("opt-level={level}");
        let kind = ["--edition", "2024", "--crate-type", "lib", "--emit", "obj"];
        let how = ["-C", &level, "-g", "-C", "panic=abort"];
        let flags: Vec<&str> = kind.into_iter().chain(how).collect();
        check("rust_locks.rs", "rustc", &flags);
    }
}

/// Locks of Rust's library, whose slow paths are found there; spinning for a while.
#[test]
fn rust_locks_of_the_library() {
    for level in ["2", "3"] {
        let level = format!("opt-level={level}");
        let kind = ["--edition", "2024", "--crate-type", "lib", "--emit", "obj"];
        let how = ["-C", &level, "-g", "-C", "panic=abort"];
        let flags: Vec<&str> = kind.into_iter().chain(how).collect();
        check("rust_system.rs", "rustc", &flags);
    }
}

/// Two modules are two tests, of which one fails; a crate it depends on has the lock.
#[test]
fn cargo_wattle_of_modules() {
    let scratch = Scratch::new();
    let marks = root().join("crates/marks").canonicalize().unwrap();
    let spin = |order: &str| {
        format!(
            "use std::sync::atomic::{{AtomicBool, Ordering::*}};
            pub struct Spin(AtomicBool);
            impl Spin {{
                pub const fn new() -> Spin {{ Spin(AtomicBool::new(false)) }}
                #[inline(never)]
                pub fn lock(&self) {{ while self.0.swap(true, Acquire) {{ std::hint::spin_loop(); }} }}
                pub fn unlock(&self) {{ self.0.store({order}, Release); }}
            }}"
        )
    };
    let manifest = |name: &str, more: &str| {
        format!("[package]\nname = {name:?}\nversion = \"0.1.0\"\nedition = \"2024\"\n{more}")
    };
    scratch.file(
        "Cargo.toml",
        "[workspace]\nmembers = [\"spin\", \"user\"]\nresolver = \"3\"\n",
    );
    scratch.file("spin/Cargo.toml", manifest("spin", ""));
    scratch.file("spin/src/lib.rs", spin("false"));
    let needs = format!(
        "[dependencies]\nspin = {{ path = \"../spin\" }}\n\
         [target.'cfg(wattle)'.dependencies]\nwattle-marks = {{ path = {marks:?} }}\n"
    );
    scratch.file("user/Cargo.toml", manifest("user", &needs));
    let module = |name: &str, lock: &str| {
        format!(
            "#[cfg(wattle)]
            mod {name} {{
                static LOCK: spin::Spin = spin::Spin::new();
                #[unsafe(no_mangle)]
                pub extern \"C\" fn wattle_threads_{name}() {{
                    loop {{
                        {lock}
                        wattle_marks::label!(critical);
                        LOCK.unlock();
                    }}
                }}
                #[unsafe(no_mangle)]
                pub extern \"C\" fn wattle_thread_{name}_other() {{ LOCK.lock(); LOCK.unlock(); }}
            }}"
        )
    };
    let wattle = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-wattle"));
        let done = command
            .arg("wattle")
            .args(words)
            .current_dir(scratch.path(""))
            .env("NO_COLOR", "1")
            .env_remove("CARGO_TARGET_DIR")
            .env_remove("RUSTFLAGS")
            .output();
        super::support::ran(done)
    };
    let right = "LOCK.lock();";
    scratch.file(
        "user/src/lib.rs",
        module("one", right) + &module("two", right),
    );
    let ran = wattle(&[]);
    assert_eq!(ran.code, 2, "{}{}", ran.out, ran.err);
    assert!(ran.err.contains("cargo wattle -p NAME"), "{}", ran.err);
    let ran = wattle(&["-p", "user"]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("2 modules: 2 ok"), "{}", ran.out);
    scratch.file("user/src/lib.rs", module("one", right) + &module("two", ""));
    let ran = wattle(&["-p", "user"]);
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("1 ok, 1 violated"), "{}", ran.out);
    scratch.file("user/src/lib.rs", "pub fn nothing() {}");
    let ran = wattle(&["-p", "user"]);
    assert_eq!(ran.code, 2, "{}{}", ran.out, ran.err);
    assert!(ran.err.contains("nothing to check"), "{}", ran.err);
}

/// A C text, compiled, with a harness beside it; `None` without a compiler.
pub(super) fn with_code(code: &str, harness: &str) -> Option<(Scratch, String, String)> {
    let scratch = Scratch::new();
    let source = scratch.file("code.c", code);
    let object = scratch.path("code.o");
    let include = root().join("crates/machine/include").display().to_string();
    let flags = ["-O2", "-g", "-c", "-I", &include];
    if !compiled("gcc", &flags, Path::new(&source), &object) {
        return None;
    }
    let file = scratch.file("code.wtl", format!("object \"code.o\";\n{harness}"));
    Some((scratch, file, object))
}

const STORE_BUFFERING: &str = "
#include <stdatomic.h>
struct b { atomic_uint w, r; };
#define store(p, v) atomic_store_explicit(p, v, memory_order_release)
#define load(p) atomic_load_explicit(p, memory_order_acquire)
void r_lock(struct b *l) { for (;;) {
    store(&l->r, 1);
    if (!load(&l->w)) return;
    store(&l->r, 0); } }
void r_unlock(struct b *l) { store(&l->r, 0); }
void w_lock(struct b *l) { for (;;) {
    store(&l->w, 1);
    if (!load(&l->r)) return;
    store(&l->w, 0); } }
void w_unlock(struct b *l) { store(&l->w, 0); }
";

#[test]
fn fences_name_the_source() {
    let harness = "shared l: struct b;
        thread r { loop { call r_lock(&l); critical: skip; call r_unlock(&l); } }
        thread w { loop { call w_lock(&l); critical: skip; call w_unlock(&l); } }
        never r@critical && w@critical;";
    let Some((_scratch, file, _)) = with_code(STORE_BUFFERING, harness) else {
        return;
    };
    let ran = run(&["check", &file]);
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("code.c:7: mov dword ptr"), "{}", ran.out);
    let ran = run(&["fences", &file]);
    assert!(ran.out.starts_with("2 fences"), "{}{}", ran.out, ran.err);
    for line in ["code.c:7", "code.c:12"] {
        assert!(ran.out.contains(line), "{}", ran.out);
    }
    let ran = run(&["fences", &file, "--write", "/dev/null"]);
    assert_eq!(ran.code, 2, "{}{}", ran.out, ran.err);
}

/// Every event of a run of compiled code says which source line and instruction it is.
#[test]
fn traces_as_data_name_the_source() {
    let harness = "shared l: struct b;
        thread r { loop { call r_lock(&l); critical: skip; call r_unlock(&l); } }
        thread w { loop { call w_lock(&l); critical: skip; call w_unlock(&l); } }
        never r@critical && w@critical;";
    let Some((_scratch, file, _)) = with_code(STORE_BUFFERING, harness) else {
        return;
    };
    let ran = run(&["check", &file, "--json"]);
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    let value: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let events = value["trace"].as_array().unwrap();
    let of = |e: &serde_json::Value| e["source"].clone();
    let stores: Vec<_> = (events.iter())
        .filter(|e| e["kind"] == "store")
        .map(of)
        .collect();
    assert!(!stores.is_empty());
    for s in stores {
        assert_eq!(s["file"], "code.c", "{s}");
        let line = s["line"].as_u64().unwrap();
        assert!([7, 12].contains(&line), "{s}");
        let text = s["text"].as_str().unwrap();
        assert!(text.contains("mov dword ptr"), "{s}");
    }
    // Steps of the harness are no code.
    assert!(
        events
            .iter()
            .all(|e| e["source"].is_object() || e["kind"] == "skip")
    );
}

/// What the harness says of functions that are elsewhere: by their path or its end.
#[test]
fn functions_elsewhere_are_named_by_their_path() {
    let code = "
        void _ZN3lib4deep4slow17h0123456789abcdefE(void);
        void work(int *x) { _ZN3lib4deep4slow17h0123456789abcdefE(); *x = 1; }";
    for (said, code_expected) in [
        ("", 2),
        ("skip `lib::deep::slow`;", 0),
        ("skip `deep::slow`;", 0),
        ("havoc slow;", 0),
        ("skip low;", 2),
    ] {
        let harness =
            format!("{said}\nshared x: object(4);\nthread t {{ call work(&x); }}\nnever x == 2;");
        let Some((_scratch, file, _)) = with_code(code, &harness) else {
            return;
        };
        let ran = run(&["check", &file]);
        assert_eq!(ran.code, code_expected, "{said}: {}{}", ran.out, ran.err);
        if code_expected == 2 {
            let hint = "say “skip `lib::deep::slow`;”";
            assert!(ran.err.contains(hint), "{}", ran.err);
        }
    }
}

/// Of an argument only one bit is looked at: the others are cut off, which is no fault.
#[test]
fn what_is_not_looked_at_is_cut_off() {
    let code = "void set(int *x, unsigned n) { if (n & 1) *x = 1; }";
    let harness = "shared x: object(4);
        thread t { local n: u32; n = 7; call set(&x, n); n = 6; call set(&x, n); }
        finally x == 1;";
    let Some((_scratch, file, _)) = with_code(code, harness) else {
        return;
    };
    let ran = run(&["check", &file]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
}

#[test]
fn marks_in_c() {
    let code = "
        #include <stdatomic.h>
        #include <stdlib.h>
        #include \"wattle.h\"
        static atomic_int taken;
        static int inside;
        void wattle_threads_t(void) {
            for (;;) {
                while (atomic_exchange(&taken, 1)) ;
                WATTLE_LABEL(critical);
                if (inside++ != 0) abort();
                inside--;
                atomic_store_explicit(&taken, 0, memory_order_release);
            }
        }";
    let Some((_scratch, _, object)) = with_code(code, "") else {
        return;
    };
    let ran = run(&["check", &object]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("never t[i]@critical"), "{}", ran.out);
}

/// Nodes that are variables of their own, a queue that begins with one of them, and a lock that knows its
/// slots by a pointer: what the file says of memory counts.
#[test]
fn memory_is_what_the_file_says() {
    let queue = |take: &str| {
        format!(
            "
        #include <stdatomic.h>
        #include \"wattle.h\"
        struct node {{ atomic_uint wait; struct node *before; }};
        static struct node free_node, first, second;
        static struct node *_Atomic last = &free_node;
        static void run(struct node *mine) {{
            for (;;) {{
                atomic_store_explicit(&mine->wait, 1, memory_order_relaxed);
                struct node *before = {take};
                mine->before = before;
                while (atomic_load_explicit(&before->wait, memory_order_acquire)) ;
                WATTLE_LABEL(critical);
                before = mine->before;
                atomic_store_explicit(&mine->wait, 0, memory_order_release);
                mine = before;
            }}
        }}
        void wattle_thread_a(void) {{ run(&first); }}
        void wattle_thread_b(void) {{ run(&second); }}"
        )
    };
    let slots = |first: u32| {
        format!(
            "
        #include <stdatomic.h>
        #include \"wattle.h\"
        struct slot {{ atomic_uint wait, number; }};
        static struct slot slots[2] = {{{{{first}, 0}}, {{1, 1}}}};
        static struct {{ struct slot *all; unsigned mask; atomic_uint next; }} l = {{slots, 1, 0}};
        static void run(void) {{
            for (;;) {{
                struct slot *mine = l.all + (atomic_fetch_add(&l.next, 1) & l.mask);
                while (atomic_load_explicit(&mine->wait, memory_order_acquire)) ;
                atomic_store_explicit(&mine->wait, 1, memory_order_relaxed);
                WATTLE_LABEL(critical);
                unsigned on = (mine->number + 1) & l.mask;
                atomic_store_explicit(&l.all[on].wait, 0, memory_order_release);
            }}
        }}
        void wattle_thread_a(void) {{ run(); }}
        void wattle_thread_b(void) {{ run(); }}"
        )
    };
    let exchange = "atomic_exchange(&last, mine)";
    let apart = "last; atomic_store_explicit(&last, mine, memory_order_release)";
    for (code, verdict) in [
        (queue(exchange), 0),
        (queue(apart), 1),
        (slots(0), 0),
        // Nobody ever gets in.
        (slots(1), 0),
    ] {
        let Some((_scratch, _, object)) = with_code(&code, "") else {
            return;
        };
        let ran = run(&["check", &object, "--timeout", "120s"]);
        assert_eq!(ran.code, verdict, "{code}\n{}{}", ran.out, ran.err);
    }
}

/// A number of threads that is given later does not make two threads one.
#[test]
fn more_threads_than_the_code_was_read_for() {
    let code = "void set(unsigned char *x, unsigned long i) { x[i] = 1; }";
    let harness = "shared x: object(4);\nthread t[2] { call set(&x, self); }\nnever x == 7;";
    let Some((_scratch, file, _)) = with_code(code, harness) else {
        return;
    };
    for (threads, verdict) in [("t=2", 0), ("t=3", 1)] {
        let ran = run(&["check", &file, "--threads", threads]);
        assert_eq!(ran.code, verdict, "{threads}: {}{}", ran.out, ran.err);
    }
}

#[test]
fn leaving_an_object_is_a_violation() {
    let code = "void set(int *x, unsigned n) { if (n == 1) x[n] = 1; else x[0] = 0; }";
    for (n, verdict) in [(0, 0), (1, 1)] {
        let harness =
            format!("shared x: object(4);\nthread t {{ call set(&x, {n}); }}\nnever x == 1;");
        let Some((_scratch, file, _)) = with_code(code, &harness) else {
            return;
        };
        let ran = run(&["check", &file]);
        assert_eq!(ran.code, verdict, "{n}: {}{}", ran.out, ran.err);
        assert_eq!(
            verdict == 1,
            ran.out.contains("outside of `x`"),
            "{}",
            ran.out
        );
    }
}

#[test]
fn refusals_say_where() {
    let code = "
        double half(double x) { return x / 2; }
        int twice(int n) { return n ? twice(n - 1) + n * (n & 3) : 0; }
        extern _Thread_local int far; int away(void) { return far; }
        static _Thread_local int own; int *_Atomic shown; void shows(void) { __atomic_store_n(&shown, &own, __ATOMIC_RELEASE); own = *shown; }
        int gone(void) { volatile int v = 0; shown = (int *)&v; return *shown; }
        long syscall(long, ...); long maps(void) { return syscall(9, 0, 4096, 3, 34, -1, 0); }
        void other(int *); void calls(int *x) { other(x); other(x); }";
    for (call, words) in [
        ("half()", "code.c:2"),
        ("calls(&x)", "`other` is called but not defined"),
        ("calls(3)", "`other` is called but not defined"),
        (
            "away()",
            "`far` is a variable of each thread that is defined elsewhere",
        ),
        ("shows()", "of which not everything"),
        (
            "gone()",
            "a variable that only this thread has is stored where others see it",
        ),
        ("maps()", "only calls of the kernel"),
        ("nobody()", "there is no function `nobody`"),
    ] {
        let harness = format!("shared x: object(4);\nthread t {{ call {call}; }}\nnever x == 1;");
        let Some((_scratch, file, _)) = with_code(code, &harness) else {
            return;
        };
        let ran = run(&["check", &file]);
        assert_eq!(ran.code, 2, "{call}: {}{}", ran.out, ran.err);
        assert!(ran.err.contains(words), "{call}: {}", ran.err);
    }
}

/// On PSO a flag may overtake a word that was stored before it, also a word that others read byte by byte: such a store is refused,
/// and if it is not, the run must be found.
#[test]
fn a_word_that_is_read_in_parts_may_be_overtaken() {
    let code = "
        #include <stdint.h>
        void put(volatile uint32_t *w, volatile uint32_t *f) { *w = 1; *f = 1; }
        int got(volatile uint8_t *w, volatile uint32_t *f) { return *f != 1 || w[0] == 1; }";
    let harness = "shared w: object(4); shared f: object(4);
        thread a { call put(&w, &f); }
        thread b { local r: u32; r = call got(&w, &f); assert r == 1; }";
    let Some((_scratch, file, _)) = with_code(code, harness) else {
        return;
    };
    let ran = run(&["check", &file, "--model", "pso"]);
    assert!([1, 2].contains(&ran.code), "{}{}", ran.out, ran.err);
}

const FLAG: &str = "
#include <stdatomic.h>
void lock(atomic_int *l) { while (atomic_exchange(l, 1)) ; }
void unlock(atomic_int *l) { atomic_store_explicit(l, 0, memory_order_release); }
int main(void) { static atomic_int l; lock(&l); unlock(&l); return 0; }";

const USES_FLAG: &str = "shared l: object(4);
    thread t[*] { loop { call lock(&l); critical: skip; call unlock(&l); } }
    never t[i]@critical && t[j]@critical;";

/// Runs a tool; false if there is none.
fn tool(name: &str, arguments: &[&str]) -> bool {
    match Command::new(name).args(arguments).output() {
        Ok(done) => {
            let said = String::from_utf8_lossy(&done.stderr);
            assert!(done.status.success(), "{name} {arguments:?}: {said}");
            true
        }
        Err(_) => {
            println!("skipped: there is no {name} here");
            false
        }
    }
}

/// Objects, assembly, archives, executables, and several of them together.
#[test]
fn kinds_of_files() {
    let scratch = Scratch::new();
    let source = scratch.file("flag.c", FLAG);
    let other = scratch.file("other.c", "int other(void) { return 1; }");
    let at = |name: &str| scratch.path(name);
    let compiled = [
        ["-O2", "-c", "-o", &at("flag.o"), &source],
        ["-O2", "-c", "-o", &at("other.o"), &other],
        ["-O2", "-S", "-o", &at("flag.s"), &source],
        ["-O2", "-g", "-o", &at("flag"), &source],
    ];
    if !compiled.iter().all(|arguments| tool("gcc", arguments)) {
        return;
    }
    if !tool("ar", &["rcs", &at("flag.a"), &at("flag.o"), &at("other.o")]) {
        return;
    }
    for files in [
        &["flag.o"][..],
        &["flag.s"],
        &["flag.a"],
        &["flag"],
        &["other.o", "flag.o"],
        &["other.o", "flag.a"],
        &["flag.s", "other.o"],
    ] {
        let named: String = files.iter().map(|f| format!("object {f:?};\n")).collect();
        let file = scratch.file("flag.wtl", format!("{named}{USES_FLAG}"));
        let ran = run(&["check", &file]);
        assert_eq!(ran.code, 0, "{files:?}: {}{}", ran.out, ran.err);
    }
    for (files, words) in [
        (["flag.o", "flag.o"], "multiple definition"),
        (["flag.o", "none.o"], "cannot be read"),
        (["flag.o", "flag.c"], "no object file"),
    ] {
        let named: String = files.iter().map(|f| format!("object {f:?};\n")).collect();
        let file = scratch.file("flag.wtl", format!("{named}{USES_FLAG}"));
        let ran = run(&["check", &file]);
        assert_eq!(ran.code, 2, "{files:?}: {}{}", ran.out, ran.err);
        assert!(ran.err.contains(words), "{files:?}: {}", ran.err);
    }
}

/// What compilers make of waiting, of `switch`, of loops over arrays, of pointers to functions.
#[test]
fn shapes_of_code() {
    let code = "
        #include <stdatomic.h>
        #include <stdlib.h>
        struct l { atomic_uint word; atomic_uchar reader[4]; atomic_uint step; };
        void backs_off(struct l *l) {
            unsigned limit = 4;
            while (atomic_exchange(&l->word, 1)) {
                for (volatile unsigned i = 0; i < limit; i++) ;
                limit <<= limit < 1024;
            }
        }
        void leave(struct l *l) { atomic_store_explicit(&l->word, 0, memory_order_release); }
        void all_gone(struct l *l) {
            for (int i = 0; i < 4; i++) while (atomic_load_explicit(&l->reader[i], memory_order_acquire)) ;
        }
        void read_in(struct l *l, unsigned me) {
            for (;;) {
                atomic_store(&l->reader[me & 3], 1);
                if (!atomic_load(&l->word)) return;
                atomic_store_explicit(&l->reader[me & 3], 0, memory_order_release);
            }
        }
        void read_out(struct l *l, unsigned me) {
            atomic_store_explicit(&l->reader[me & 3], 0, memory_order_release);
        }
        unsigned next(struct l *l) {
            switch (atomic_load(&l->step)) {
                case 0: atomic_store(&l->step, 3); return 1;
                case 1: atomic_store(&l->word, 7); return 2;
                case 2: return 9;
                case 3: atomic_store(&l->step, 4); return 4;
                case 4: atomic_store(&l->step, 5); return 11;
                case 5: atomic_store(&l->step, 0); return 12;
                default: abort();
            }
        }
        static void one(struct l *l) { atomic_store(&l->step, 1); }
        void through(struct l *l) { void (*volatile f)(struct l *) = one; f(l); }";
    for (harness, exit) in [
        (
            "thread t[*] { loop { call backs_off(&l); critical: skip; call leave(&l); } }
             never t[i]@critical && t[j]@critical;",
            0,
        ),
        (
            "thread r { loop { call read_in(&l, 2); critical: skip; call read_out(&l, 2); } }
             thread w { loop { call backs_off(&l); call all_gone(&l); critical: skip; call leave(&l); } }
             never r@critical && w@critical;",
            0,
        ),
        (
            "thread w { loop { call all_gone(&l); call backs_off(&l); critical: skip; call leave(&l); } }
             thread r { loop { call read_in(&l, 3); critical: skip; call read_out(&l, 3); } }
             never r@critical && w@critical;",
            1,
        ),
        (
            "thread t { local k: u32; loop { k = call next(&l); assert k < 13; } } never l == 7;",
            0,
        ),
        (
            "thread t { local k: u32; loop { k = call next(&l); assert k < 12; } }",
            1,
        ),
        ("thread t { call through(&l); done: skip; } never t@done && false;", 0),
    ] {
        let harness = format!("shared l: struct l;\n{harness}");
        let Some((_scratch, file, _)) = with_code(code, &harness) else {
            return;
        };
        let ran = run(&["check", &file]);
        assert_eq!(ran.code, exit, "{harness}: {}{}", ran.out, ran.err);
    }
}

#[test]
fn files_that_are_no_objects() {
    let scratch = Scratch::new();
    let harness = scratch.file(
        "h.wtl",
        "object \"x.o\"; shared x: object(4); thread t { call f(&x); } never x == 1;",
    );
    for bytes in [
        &b""[..],
        b"hello",
        b"\x7fELF\x02\x01\x01",
        b"!<arch>\nbroken",
    ] {
        scratch.file("x.o", bytes);
        let ran = run(&["check", &harness]);
        assert_eq!(ran.code, 2, "{}{}", ran.out, ran.err);
        assert!(ran.err.contains("x.o"), "{}", ran.err);
    }
}

/// The path of docs/languages/from-a-rust-lock.md: from an empty crate to a proved spin lock.
#[test]
fn cargo_wattle() {
    let scratch = Scratch::new();
    let marks = root().join("crates/marks").canonicalize().unwrap();
    let manifest = format!(
        "[package]\nname = \"my-lock\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
         [target.'cfg(wattle)'.dependencies]\nwattle-marks = {{ path = {marks:?} }}\n\n[workspace]\n"
    );
    scratch.file("Cargo.toml", manifest);
    let code = |order: &str| {
        format!(
            "use std::sync::atomic::{{AtomicBool, Ordering::*}};
            pub struct Spin(AtomicBool);
            impl Spin {{
                pub const fn new() -> Spin {{ Spin(AtomicBool::new(false)) }}
                pub fn lock(&self) {{ while {order} {{ std::hint::spin_loop(); }} }}
                pub fn unlock(&self) {{ self.0.store(false, Release); }}
            }}
            #[cfg(wattle)]
            mod checks {{
                static LOCK: super::Spin = super::Spin::new();
                #[unsafe(no_mangle)]
                pub extern \"C\" fn wattle_threads_t() {{
                    loop {{
                        LOCK.lock();
                        wattle_marks::label!(critical);
                        LOCK.unlock();
                    }}
                }}
            }}"
        )
    };
    let right = "self.0.swap(true, Acquire)";
    let wrong = "{ let taken = self.0.load(Acquire); self.0.store(true, Release); taken }";
    for (order, exit) in [(right, 0), (wrong, 1)] {
        scratch.file("src/lib.rs", code(order));
        let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-wattle"));
        let done = command
            .arg("wattle")
            .current_dir(scratch.path(""))
            .env("NO_COLOR", "1")
            .env_remove("CARGO_TARGET_DIR")
            .env_remove("RUSTFLAGS")
            .output();
        let ran = super::support::ran(done);
        assert_eq!(ran.code, exit, "{}{}", ran.out, ran.err);
        assert!(ran.out.contains("never t[i]@critical"), "{}", ran.out);
    }
}

/// A register of which one bit is left is cut to it like a wider one: here −1 was a value outside of 0..1.
#[test]
fn sums_of_one_bit_wrap_around() {
    let scratch = Scratch::new();
    let code = "
        .intel_syntax noprefix
        .text
        .globl odd
        .type odd, @function
    odd:
        cmp esi, 7
        je 1f
        mov eax, edi
        sub eax, esi
        jmp 2f
    1:  lea eax, [rdi+rsi]
    2:  test al, 1
        jne 3f
        mov eax, 5
        ret
    3:  mov eax, 6
        ret
        .size odd, .-odd\n";
    if Command::new("as").arg("--version").output().is_err() {
        println!("skipped: there is no assembler here");
        return;
    }
    scratch.file("odd.s", code);
    for (a, b, right) in [(0, 3, 6), (1, 3, 5), (1, 7, 5), (0, 7, 6), (3, 0, 6)] {
        let harness = |given: u32| {
            format!(
                "object \"odd.s\"; shared a: u32 = {a}, b: u32 = {b};
                 thread t {{ local r: u32, x: u32, y: u32; x = a; y = b; r = call odd(x, y); assert r == {given}; }}"
            )
        };
        for (given, exit) in [(right, 0), (11 - right, 1)] {
            let file = scratch.file("odd.wtl", harness(given));
            let ran = run(&["check", &file]);
            assert_eq!(ran.code, exit, "{a} {b} {given}: {}{}", ran.out, ran.err);
            assert!(!ran.out.contains("outside its range"), "{}", ran.out);
        }
    }
}
