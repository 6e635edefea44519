// Two places to be had, the first free one first. Compile with: gcc -O2 -g -c places.c
#include <stdatomic.h>

#define load(p) atomic_load_explicit(p, memory_order_acquire)

unsigned place_take(atomic_uint *taken) {
    for (;;) {
        unsigned seen = load(taken), free = ~seen & 3;
        if (free == 0) {
            __builtin_ia32_pause();
            continue;
        }
        unsigned k = __builtin_ctz(free);
        if (atomic_compare_exchange_weak_explicit(taken, &seen, seen | 1u << k, memory_order_acquire, memory_order_relaxed))
            return k;
    }
}

// Which place is free is seen before, and not looked at again.
unsigned place_grab(atomic_uint *taken) {
    for (;;) {
        unsigned free = ~load(taken) & 3;
        if (free == 0) continue;
        unsigned k = __builtin_ctz(free);
        atomic_fetch_or_explicit(taken, 1u << k, memory_order_acquire);
        return k;
    }
}

void place_leave(atomic_uint *taken, unsigned k) { atomic_fetch_xor_explicit(taken, 1u << k, memory_order_release); }
