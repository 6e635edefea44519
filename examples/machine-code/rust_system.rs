// Locks of Rust's own library, and locks that spin a while before they do something else.
// Compile with: rustc -O -g --crate-type lib --emit obj rust_system.rs
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::*};
use std::sync::{Mutex, OnceLock};

unsafe extern "C" {
    safe fn wattle_label_critical();
}

/// The library's mutex: its slow path is in the library.
#[unsafe(no_mangle)]
pub extern "C" fn std_with(m: &Mutex<u32>) {
    let mut guard = m.lock().unwrap();
    wattle_label_critical();
    *guard = guard.wrapping_add(1);
}

/// Broken: the guard is dropped before the work is done.
#[unsafe(no_mangle)]
pub extern "C" fn std_with_dropped(m: &Mutex<u32>) {
    drop(m.lock().unwrap());
    wattle_label_critical();
}

#[unsafe(no_mangle)]
pub extern "C" fn std_once() -> u32 {
    static ONCE: OnceLock<u32> = OnceLock::new();
    *ONCE.get_or_init(|| 7)
}

/// Looks a hundred times before it says that somebody waits: 0 free, 1 taken, 2 somebody waits.
#[unsafe(no_mangle)]
pub extern "C" fn patient_lock(l: &AtomicU32) {
    loop {
        let mut left = 100;
        while l.load(Relaxed) == 1 && left > 0 {
            std::hint::spin_loop();
            left -= 1;
        }
        if l.compare_exchange(0, 1, Acquire, Relaxed).is_ok() || l.swap(2, Acquire) == 0 {
            return;
        }
    }
}

/// Broken: who has looked a hundred times takes what it saw last for what is there.
#[unsafe(no_mangle)]
pub extern "C" fn patient_lock_in_two(l: &AtomicU32) {
    let mut seen;
    loop {
        let mut left = 100;
        loop {
            seen = l.load(Relaxed);
            if seen == 0 || left == 0 {
                break;
            }
            std::hint::spin_loop();
            left -= 1;
        }
        if seen == 0 {
            l.store(1, Release);
            return;
        }
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn patient_unlock(l: &AtomicU32) {
    l.store(0, Release);
}

/// Peterson's lock with its flags in an array of bytes, before a word.
#[repr(C)]
pub struct Flags {
    wants: [AtomicBool; 2],
    turn: AtomicUsize,
}

#[unsafe(no_mangle)]
pub extern "C" fn flags_lock(l: &Flags, me: usize) {
    l.wants[me].store(true, SeqCst);
    l.turn.store(1 - me, SeqCst);
    while l.wants[1 - me].load(SeqCst) && l.turn.load(SeqCst) != me {
        std::hint::spin_loop();
    }
}

/// Broken: nothing keeps the loads behind the stores.
#[unsafe(no_mangle)]
pub extern "C" fn flags_lock_released(l: &Flags, me: usize) {
    l.wants[me].store(true, Release);
    l.turn.store(1 - me, Release);
    while l.wants[1 - me].load(Acquire) && l.turn.load(Acquire) != me {
        std::hint::spin_loop();
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn flags_unlock(l: &Flags, me: usize) {
    l.wants[me].store(false, Release);
}
