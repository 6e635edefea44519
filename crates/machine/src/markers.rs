//! Names that mean something to us.

/// What an undefined function that is called means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Marker {
    /// `wattle_label_NAME()`
    Label(String),
    /// `wattle_assert(x)`
    Assert,
    /// `wattle_assume(x)`
    Assume,
    /// `wattle_any()`: any number.
    Any,
    /// Whoever calls it has failed: `abort`, a panic.
    Fails(String),
    /// Gives the processor away: nothing another thread could see.
    Nothing,
}

/// `wattle_thread_NAME` (false) and `wattle_threads_NAME` (true, any number).
pub fn thread_name(symbol: &str) -> Option<(&str, bool)> {
    let one = symbol.strip_prefix("wattle_thread_").map(|n| (n, false));
    let any = symbol.strip_prefix("wattle_threads_").map(|n| (n, true));
    // With a dot it is a part of a function that the compiler put elsewhere (`.cold`, `.part.0`).
    one.or(any)
        .filter(|(n, _)| !n.is_empty() && !n.contains('.'))
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
    Some(match symbol {
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
