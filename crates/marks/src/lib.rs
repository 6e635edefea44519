//! Marks for `wattle check test.o`: places, conditions and properties in code that is compiled as it is.
//!
//! ```ignore
//! use std::sync::atomic::{AtomicBool, Ordering};
//! static LOCK: AtomicBool = AtomicBool::new(false);
//!
//! /// Any number of threads run this; `wattle_thread_t` is one thread.
//! #[unsafe(no_mangle)]
//! pub extern "C" fn wattle_threads_t() {
//!     loop {
//!         while LOCK.swap(true, Ordering::Acquire) {}
//!         wattle_marks::label!(critical); // no two threads are here at the same time
//!         LOCK.store(false, Ordering::Release);
//!     }
//! }
//! ```
//!
//! `rustc -O -g --crate-type lib --emit obj test.rs && wattle check test.o`. The functions behind the marks
//! are never linked: code with marks is checked, not run.
#![no_std]

unsafe extern "C" {
    fn wattle_assert(condition: i32);
    fn wattle_assume(condition: i32);
    fn wattle_any() -> u32;
}

/// A violation unless it is true. (A panic is one, too.)
#[inline(always)]
pub fn assert(condition: bool) {
    // SAFETY: never linked, only looked at.
    unsafe { wattle_assert(i32::from(condition)) }
}

/// Only runs in which it is true are looked at.
#[inline(always)]
pub fn assume(condition: bool) {
    // SAFETY: never linked, only looked at.
    unsafe { wattle_assume(i32::from(condition)) }
}

/// Any number.
#[inline(always)]
pub fn any() -> u32 {
    // SAFETY: never linked, only looked at.
    unsafe { wattle_any() }
}

/// A place that properties can name: `label!(critical)` is `t@critical`.
#[macro_export]
macro_rules! label {
    ($name:ident) => {
        // SAFETY: never linked, only looked at.
        unsafe {
            ::core::arch::asm!(
                concat!("call wattle_label_", stringify!($name)),
                clobber_abi("C")
            )
        }
    };
}

/// A property in Wattle's language: `check!("never a@critical && b@critical;");`
#[macro_export]
macro_rules! check {
    ($text:literal) => {
        const _: () = {
            const TEXT: &str = concat!($text, "\0");
            #[used]
            #[unsafe(link_section = ".wattle")]
            static PROPERTY: [u8; TEXT.len()] = $crate::bytes(TEXT);
        };
    };
}

/// A text as bytes of a static.
pub const fn bytes<const N: usize>(text: &str) -> [u8; N] {
    let mut all = [0; N];
    let mut k = 0;
    while k < N {
        all[k] = text.as_bytes()[k];
        k += 1;
    }
    all
}
