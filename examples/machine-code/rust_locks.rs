// Locks in Rust, over `std::sync::atomic`. Compile with: rustc -O -g --crate-type lib --emit obj rust_locks.rs
use std::cell::UnsafeCell;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicUsize, Ordering::*};

/// A mutex of the kind `spin::Mutex` is: the lock is held as long as the guard lives.
#[repr(C)]
pub struct Mutex<T> {
    locked: AtomicBool,
    data: UnsafeCell<T>,
}

pub struct Guard<'a, T>(&'a Mutex<T>);

impl<T> Mutex<T> {
    pub fn lock(&self) -> Guard<'_, T> {
        while self.locked.compare_exchange_weak(false, true, Acquire, Relaxed).is_err() {
            while self.locked.load(Relaxed) {
                spin_loop();
            }
        }
        Guard(self)
    }

    pub fn try_lock(&self) -> Option<Guard<'_, T>> {
        let free = self.locked.compare_exchange(false, true, Acquire, Relaxed);
        free.is_ok().then(|| Guard(self))
    }

    /// Broken: the guard is made before it is known whether it is wanted, and unlocks when dropped.
    pub fn try_lock_eager(&self) -> Option<Guard<'_, T>> {
        let free = self.locked.compare_exchange(false, true, Acquire, Relaxed);
        free.is_ok().then_some(Guard(self))
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        self.0.locked.store(false, Release);
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn spin_lock(m: &Mutex<u32>) {
    std::mem::forget(m.lock());
}

#[unsafe(no_mangle)]
pub extern "C" fn spin_try(m: &Mutex<u32>) -> bool {
    m.try_lock().map(std::mem::forget).is_some()
}

#[unsafe(no_mangle)]
pub extern "C" fn spin_try_eager(m: &Mutex<u32>) -> bool {
    m.try_lock_eager().map(std::mem::forget).is_some()
}

#[unsafe(no_mangle)]
pub extern "C" fn spin_unlock(m: &Mutex<u32>) {
    drop(Guard(m));
}

/// Two threads in `with` at once would lose an increment: it is read and written back in two steps.
#[unsafe(no_mangle)]
pub extern "C" fn spin_add(m: &Mutex<u32>) {
    let guard = m.lock();
    let data = guard.0.data.get();
    unsafe { data.write_volatile(data.read_volatile().wrapping_add(1)) };
}

/// The ticket lock.
#[repr(C)]
pub struct Ticket {
    next: AtomicUsize,
    serving: AtomicUsize,
}

#[unsafe(no_mangle)]
pub extern "C" fn ticket_lock(l: &Ticket) {
    let me = l.next.fetch_add(1, Relaxed);
    while l.serving.load(Acquire) != me {
        spin_loop();
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn ticket_unlock(l: &Ticket) {
    l.serving.store(l.serving.load(Relaxed) + 1, Release);
}

/// The queue lock of Mellor-Crummey and Scott.
#[repr(C)]
pub struct Node {
    next: AtomicPtr<Node>,
    waits: AtomicBool,
}

#[unsafe(no_mangle)]
pub extern "C" fn mcs_lock(tail: &AtomicPtr<Node>, me: &Node) {
    me.next.store(std::ptr::null_mut(), Relaxed);
    me.waits.store(true, Relaxed);
    let before = tail.swap(me as *const Node as *mut Node, AcqRel);
    if let Some(before) = unsafe { before.as_ref() } {
        before.next.store(me as *const Node as *mut Node, Release);
        while me.waits.load(Acquire) {
            spin_loop();
        }
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn mcs_unlock(tail: &AtomicPtr<Node>, me: &Node) {
    let own = me as *const Node as *mut Node;
    let mut after = me.next.load(Acquire);
    if after.is_null() {
        if tail.compare_exchange(own, std::ptr::null_mut(), Release, Relaxed).is_ok() {
            return;
        }
        while after.is_null() {
            after = me.next.load(Acquire);
        }
    }
    unsafe { &*after }.waits.store(false, Release);
}

/// Broken: the tail is read and written in two steps.
#[unsafe(no_mangle)]
pub extern "C" fn mcs_lock_in_two(tail: &AtomicPtr<Node>, me: &Node) {
    me.next.store(std::ptr::null_mut(), Relaxed);
    me.waits.store(true, Relaxed);
    let before = tail.load(Acquire);
    tail.store(me as *const Node as *mut Node, Release);
    if let Some(before) = unsafe { before.as_ref() } {
        before.next.store(me as *const Node as *mut Node, Release);
        while me.waits.load(Acquire) {
            spin_loop();
        }
    }
}

/// Readers and writers: twice the number of readers, or one.
#[repr(C)]
pub struct RwLock(AtomicU32);

#[unsafe(no_mangle)]
pub extern "C" fn rw_read(l: &RwLock) -> bool {
    let before = l.0.fetch_add(2, Acquire);
    if before & 1 != 0 {
        l.0.fetch_sub(2, Release);
        return false;
    }
    true
}

#[unsafe(no_mangle)]
pub extern "C" fn rw_read_done(l: &RwLock) {
    l.0.fetch_sub(2, Release);
}

#[unsafe(no_mangle)]
pub extern "C" fn rw_write(l: &RwLock) -> bool {
    l.0.compare_exchange(0, 1, Acquire, Relaxed).is_ok()
}

#[unsafe(no_mangle)]
pub extern "C" fn rw_write_done(l: &RwLock) {
    l.0.fetch_and(!1, Release);
}

/// A semaphore.
#[repr(C)]
pub struct Semaphore(AtomicI32);

#[unsafe(no_mangle)]
pub extern "C" fn semaphore_down(s: &Semaphore) {
    let down = |n: i32| (n > 0).then(|| n - 1);
    while s.0.fetch_update(Acquire, Relaxed, down).is_err() {
        spin_loop();
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn semaphore_up(s: &Semaphore) {
    s.0.fetch_add(1, Release);
}

/// Peterson's lock: SeqCst where it must be, and the same with Release, which is broken.
#[repr(C)]
pub struct Peterson {
    wants: [AtomicBool; 2],
    turn: AtomicUsize,
}

fn peterson(l: &Peterson, me: usize, order: std::sync::atomic::Ordering) {
    let (me, other) = (me & 1, 1 - (me & 1));
    l.wants[me].store(true, order);
    l.turn.store(other, order);
    while l.wants[other].load(Acquire) && l.turn.load(Acquire) == other {
        spin_loop();
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn peterson_lock(l: &Peterson, me: usize) {
    peterson(l, me, SeqCst);
}

#[unsafe(no_mangle)]
pub extern "C" fn peterson_lock_release(l: &Peterson, me: usize) {
    peterson(l, me, Release);
}

#[unsafe(no_mangle)]
pub extern "C" fn peterson_unlock(l: &Peterson, me: usize) {
    l.wants[me & 1].store(false, Release);
}

/// What is made once, by whoever comes first; the others wait. Without bounds checks a `match` is a bare table.
#[repr(C)]
pub struct Once {
    state: AtomicU32,
    value: UnsafeCell<u32>,
}

#[unsafe(no_mangle)]
pub extern "C" fn once_get(o: &Once) -> u32 {
    loop {
        match o.state.load(Acquire) {
            0 => {
                if o.state.compare_exchange(0, 1, Acquire, Relaxed).is_ok() {
                    unsafe { *o.value.get() = 7 };
                    o.state.store(3, Release);
                }
            }
            1 => spin_loop(),
            2 => return 1,
            3 => return unsafe { *o.value.get() },
            // SAFETY: nobody stores anything else.
            _ => unsafe { std::hint::unreachable_unchecked() },
        }
        match o.state.load(Acquire) {
            0 => spin_loop(),
            1 => drop(o.state.load(Relaxed)),
            2 => return 2,
            3 => return unsafe { *o.value.get() },
            // SAFETY: nobody stores anything else.
            _ => unsafe { std::hint::unreachable_unchecked() },
        }
    }
}
