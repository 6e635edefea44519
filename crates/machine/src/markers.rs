//! Names that mean something to us.

use crate::image::Image;
use crate::lines::Lines;
use std::collections::BTreeMap;

/// What an undefined function that is called means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Marker {
    /// `wattle_label_NAME()`
    Label(String),
    /// `wattle_assert(x)`
    Assert,
    /// `wattle_assume(x)`
    Assume,
    /// `wattle_any()`: any number of 32 bits.
    Any,
    /// A function of the system that does nothing to memory but to `errno`.
    Library(Back),
    /// `syscall`: the same, if it is known which.
    Syscall,
    /// `nanosleep`, which may store how long it did not sleep.
    Nanosleep,
    /// Where the thread's `errno` is.
    Errno,
    /// `pthread_self`: no two threads have the same.
    Itself,
    /// Gives back its argument.
    Argument,
    /// Whoever calls it has failed: `abort`, a panic.
    Fails(String),
    /// Gives the processor away: nothing another thread could see.
    Nothing,
}

/// What a function of the system gives back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Back {
    /// A number that is not negative.
    Random,
    /// 0, or −1 where a signal came.
    Slept,
    /// Any.
    Printed,
}

/// `wattle_thread_NAME` (false) and `wattle_threads_NAME` (true, any number).
pub fn thread_name(symbol: &str) -> Option<(&str, bool)> {
    let one = symbol.strip_prefix("wattle_thread_").map(|n| (n, false));
    let any = symbol.strip_prefix("wattle_threads_").map(|n| (n, true));
    // With a dot it is a part of a function that the compiler put elsewhere (`.cold`, `.part.0`).
    one.or(any)
        .filter(|(n, _)| !n.is_empty() && !n.contains('.'))
}

/// The module each thread function stands in, where that is known: Rust's own path of modules.
pub fn modules(image: &Image) -> BTreeMap<String, String> {
    Lines::new(image).modules(&|name| thread_name(name).is_some())
}

/// The meaning of a function that is defined elsewhere.
pub fn marker(symbol: &str) -> Option<Marker> {
    if let Some(name) = symbol.strip_prefix("wattle_label_") {
        return Some(Marker::Label(name.to_string()));
    }
    let plain = crate::image::plain_name(symbol);
    let fails = [
        "abort",
        "__assert_fail",
        "__assert",
        "__stack_chk_fail",
        "__builtin_trap",
        "exit",
        "_exit",
    ];
    let nothing = [
        "sched_yield",
        "pthread_yield",
        "thrd_yield",
        "std::thread::yield_now",
        "std::thread::functions::yield_now",
    ];
    let random = ["rand", "random", "lrand48"];
    let prints = [
        "printf",
        "__printf_chk",
        "fprintf",
        "__fprintf_chk",
        "puts",
        "putchar",
        "fputs",
        "fputc",
        "fwrite",
        "fflush",
        "perror",
    ];
    Some(match symbol {
        "__tls_get_addr" => Marker::Argument,
        "__errno_location" => Marker::Errno,
        "pthread_self" | "thrd_current" => Marker::Itself,
        "syscall" => Marker::Syscall,
        s if random.contains(&s) => Marker::Library(Back::Random),
        s if prints.contains(&s) => Marker::Library(Back::Printed),
        "usleep" => Marker::Library(Back::Slept),
        "nanosleep" => Marker::Nanosleep,
        "wattle_assert" => Marker::Assert,
        "wattle_assume" => Marker::Assume,
        "wattle_any" => Marker::Any,
        s if fails.contains(&s) => Marker::Fails(format!("`{s}` is called")),
        s if nothing.contains(&s) || nothing.contains(&plain.as_str()) => Marker::Nothing,
        _ if is_panic(&plain) => Marker::Fails(format!("a panic: `{plain}`")),
        _ => return None,
    })
}

/// Rust's ways to panic; they are defined in its libraries.
fn is_panic(plain: &str) -> bool {
    plain.starts_with("core::panicking::")
        || plain.starts_with("core::option::unwrap_failed")
        || plain.starts_with("core::option::expect_failed")
        || plain.starts_with("core::result::unwrap_failed")
        || plain.starts_with("core::slice::index::slice_")
        || plain.ends_with("::abort")
        || plain.starts_with("std::panicking::")
}
