// Locks that ask the processor or the system for more than memory. Compile with: gcc -O2 -g -c system.c
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define relax() __builtin_ia32_pause()
#define load(p) atomic_load_explicit(p, memory_order_acquire)
#define store(p, v) atomic_store_explicit(p, v, memory_order_release)

// Taken again by who has it: how often is counted by each thread for itself.
struct flag { atomic_int taken; };
static _Thread_local int deep;
void again_lock(struct flag *l) {
    if (deep++ > 0) return;
    while (atomic_exchange_explicit(&l->taken, 1, memory_order_acquire)) relax();
}
void again_unlock(struct flag *l) {
    if (--deep > 0) return;
    store(&l->taken, 0);
}

// The same by who has it, as the system knows threads.
struct owned { atomic_int taken; _Atomic(void *) owner; int count; };
void owned_lock(struct owned *l) {
    void *me = (void *)pthread_self();
    if (atomic_load_explicit(&l->owner, memory_order_relaxed) == me) {
        l->count++;
        return;
    }
    while (atomic_exchange_explicit(&l->taken, 1, memory_order_acquire)) relax();
    atomic_store_explicit(&l->owner, me, memory_order_relaxed);
    l->count = 1;
}
void owned_unlock(struct owned *l) {
    if (--l->count) return;
    atomic_store_explicit(&l->owner, NULL, memory_order_relaxed);
    store(&l->taken, 0);
}

// A mutex whose threads sleep (Drepper, Futexes are tricky, 2011): 2 is taken with others waiting.
struct futex { atomic_uint state; };
static void wait(struct futex *m, unsigned value) {
    long back = syscall(SYS_futex, &m->state, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
    if (back == -1 && errno != EAGAIN && errno != EINTR) abort();
}
void futex_lock(struct futex *m) {
    unsigned seen = 0;
    if (atomic_compare_exchange_strong_explicit(&m->state, &seen, 1, memory_order_acquire, memory_order_relaxed)) return;
    if (seen != 2) seen = atomic_exchange_explicit(&m->state, 2, memory_order_acquire);
    while (seen != 0) {
        wait(m, 2);
        seen = atomic_exchange_explicit(&m->state, 2, memory_order_acquire);
    }
}
void futex_unlock(struct futex *m) {
    if (atomic_exchange_explicit(&m->state, 0, memory_order_release) == 2)
        syscall(SYS_futex, &m->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

// Waiting by the clock, and complaints of who unlocks what is not locked.
void clock_lock(struct flag *l) {
    uint64_t most = 64;
    while (atomic_exchange_explicit(&l->taken, 1, memory_order_acquire)) {
        uint64_t start = __builtin_ia32_rdtsc();
        while (__builtin_ia32_rdtsc() - start < most) relax();
        if (most < 4096) most *= 2;
        else usleep(1);
    }
}
void clock_unlock(struct flag *l) {
    if (load(&l->taken) != 1) {
        fprintf(stderr, "not locked: %d\n", load(&l->taken));
        abort();
    }
    store(&l->taken, 0);
}

// Two words at once: who has it, and how often it was had.
struct pair {
    _Alignas(16) uint64_t owner;
    uint64_t turn;
};
static bool swap(struct pair *p, struct pair from, struct pair to) {
    bool done;
    __asm__ volatile("lock cmpxchg16b %1"
                     : "=@ccz"(done), "+m"(*p), "+a"(from.owner), "+d"(from.turn)
                     : "b"(to.owner), "c"(to.turn)
                     : "memory");
    return done;
}
void pair_lock(struct pair *p, uint64_t me) {
    while (!swap(p, (struct pair){0, 0}, (struct pair){me + 1, 1})) relax();
}
void pair_unlock(struct pair *p, uint64_t me) {
    if (!swap(p, (struct pair){me + 1, 1}, (struct pair){0, 0})) abort();
}
