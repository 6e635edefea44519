// Locks of which several things are in one word. Compile with: gcc -O2 -g -c words.c
#include <stdatomic.h>
#include <stdint.h>

#define relax() __builtin_ia32_pause()
#define store(p, v) atomic_store_explicit(p, v, memory_order_release)

// Readers and writers in one word: the lowest bit is a writer's, the rest counts readers, who add themselves
// first and look for a writer then.
struct packed { atomic_uint word; };
void packed_read(struct packed *l) {
    while (atomic_fetch_add_explicit(&l->word, 2, memory_order_acquire) & 1) {
        atomic_fetch_sub_explicit(&l->word, 2, memory_order_relaxed);
        relax();
    }
}
void packed_read_done(struct packed *l) { atomic_fetch_sub_explicit(&l->word, 2, memory_order_release); }
void packed_write(struct packed *l) {
    unsigned free = 0;
    while (!atomic_compare_exchange_weak_explicit(&l->word, &free, 1, memory_order_acquire, memory_order_relaxed)) {
        free = 0;
        relax();
    }
}
void packed_write_done(struct packed *l) { atomic_fetch_and_explicit(&l->word, ~1u, memory_order_release); }

// A word that is taken whole and given back by its lowest byte.
union word { atomic_uint all; _Atomic uint8_t taken; };
void word_lock(union word *l) {
    unsigned free = 0;
    while (!atomic_compare_exchange_weak_explicit(&l->all, &free, 1, memory_order_acquire, memory_order_relaxed)) {
        while (atomic_load_explicit(&l->all, memory_order_relaxed)) relax();
        free = 0;
    }
}
void word_unlock(union word *l) { store(&l->taken, 0); }

// One is free, less is taken: whoever takes away the one is in, and the others count on until it is back.
struct down { atomic_int free; };
void down_lock(struct down *l) {
    while (atomic_fetch_sub_explicit(&l->free, 1, memory_order_acquire) != 1)
        while (atomic_load_explicit(&l->free, memory_order_relaxed) <= 0) relax();
}
void down_unlock(struct down *l) { store(&l->free, 1); }

// Readers and writers with a flag that a writer waits: bit 0 is the flag, bit 1 a writer's, the rest counts readers.
struct waiting { atomic_int word; };
void waiting_read(struct waiting *l) {
    for (;;) {
        while (atomic_load_explicit(&l->word, memory_order_relaxed) & 3) relax();
        if (!(atomic_fetch_add_explicit(&l->word, 4, memory_order_acquire) & 3)) return;
        atomic_fetch_sub_explicit(&l->word, 4, memory_order_relaxed);
    }
}
void waiting_read_done(struct waiting *l) { atomic_fetch_sub_explicit(&l->word, 4, memory_order_release); }
void waiting_write(struct waiting *l) {
    for (;;) {
        int n = atomic_load_explicit(&l->word, memory_order_relaxed);
        if (n < 2 && atomic_compare_exchange_weak_explicit(&l->word, &n, 2, memory_order_acquire, memory_order_relaxed)) return;
        if (!(n & 1)) atomic_fetch_or_explicit(&l->word, 1, memory_order_relaxed);
        while (atomic_load_explicit(&l->word, memory_order_relaxed) > 1) relax();
    }
}
void waiting_write_done(struct waiting *l) { atomic_fetch_sub_explicit(&l->word, 2, memory_order_release); }

// Readers and a writer, of whom there is one: the uppermost bit is his, the rest counts readers. He waits until nobody
// is left; who comes after the bit goes back.
struct upper { atomic_uint word; };
#define WRITES (1u << 31)
#define FLAGS (3u << 30)
void upper_read(struct upper *l) {
    for (;;) {
        while (atomic_load_explicit(&l->word, memory_order_relaxed) & WRITES) relax();
        if (!(atomic_fetch_add_explicit(&l->word, 1, memory_order_acquire) & FLAGS)) return;
        atomic_fetch_sub_explicit(&l->word, 1, memory_order_relaxed);
    }
}
void upper_read_done(struct upper *l) { atomic_fetch_sub_explicit(&l->word, 1, memory_order_release); }
void upper_write(struct upper *l) {
    atomic_fetch_or_explicit(&l->word, WRITES, memory_order_acquire);
    while (atomic_load_explicit(&l->word, memory_order_acquire) & ~FLAGS) relax();
}
void upper_write_done(struct upper *l) { atomic_fetch_and_explicit(&l->word, ~FLAGS, memory_order_release); }
