// The locks of system.c with one mistake each. Compile with: gcc -O2 -g -c system_broken.c
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define relax() __builtin_ia32_pause()
#define load(p) atomic_load_explicit(p, memory_order_acquire)
#define store(p, v) atomic_store_explicit(p, v, memory_order_release)

// The lock is given back however deep its owner is in it.
struct flag { atomic_int taken; };
static _Thread_local int deep;
void again_lock(struct flag *l) {
    if (deep++ > 0) return;
    while (atomic_exchange_explicit(&l->taken, 1, memory_order_acquire)) relax();
}
void again_unlock(struct flag *l) {
    --deep;
    store(&l->taken, 0);
}

// Who was woken takes it for free.
struct futex { atomic_uint state; };
void futex_lock(struct futex *m) {
    if (atomic_exchange_explicit(&m->state, 2, memory_order_acquire) == 0) return;
    syscall(SYS_futex, &m->state, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
    store(&m->state, 2);
}
void futex_unlock(struct futex *m) {
    if (atomic_exchange_explicit(&m->state, 0, memory_order_release) == 2)
        syscall(SYS_futex, &m->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

// Who waited long enough goes on.
void clock_lock(struct flag *l) {
    uint64_t end = __builtin_ia32_rdtsc() + 4096;
    while (atomic_exchange_explicit(&l->taken, 1, memory_order_acquire))
        if (__builtin_ia32_rdtsc() > end) return;
}
void clock_unlock(struct flag *l) { store(&l->taken, 0); }
