// Locks that keep notes for each thread, which nobody else looks at. Compile with: gcc -O2 -g -c kept.c
#include <stdatomic.h>
#include <stdint.h>

#define relax() __builtin_ia32_pause()
#define load(p) atomic_load_explicit(p, memory_order_acquire)
#define store(p, v) atomic_store_explicit(p, v, memory_order_release)

// Whoever finds it taken waits, longer each time, by chance (Anderson 1990). How long at most, and what chance
// is made of, is the thread's own; so is a count of its waits.
struct patience { uint32_t limit; uint32_t waits; uint64_t chance[2]; };
struct patient { atomic_uint taken; };
static void wait_a_while(struct patience *mine) {
    uint64_t a = mine->chance[0], b = mine->chance[1];
    a ^= a << 23;
    mine->chance[0] = b;
    mine->chance[1] = a ^ b ^ a >> 18 ^ b >> 5;
    for (uint32_t n = (uint32_t)(mine->chance[1] + b) % mine->limit; n != 0; n--) relax();
    mine->limit = mine->limit < 512 ? 2 * mine->limit : 1024;
    mine->waits++;
}
void patient_lock(struct patient *l, struct patience *mine) {
    for (;;) {
        while (load(&l->taken)) relax();
        unsigned free = 0;
        if (atomic_compare_exchange_strong_explicit(&l->taken, &free, 1, memory_order_acquire, memory_order_relaxed)) return;
        wait_a_while(mine);
    }
}
void patient_unlock(struct patient *l) { store(&l->taken, 0); }

// Broken: between the look and the store others look, too.
void hasty_lock(struct patient *l, struct patience *mine) {
    while (load(&l->taken)) wait_a_while(mine);
    store(&l->taken, 1);
}

// The array lock of the same paper: each thread knows where the lock is, and which place it has.
struct places { atomic_uint next; uint32_t count; _Atomic uint16_t may[8]; };
struct place { uint32_t mine; struct places *of; };
void place_enter(struct place *p, struct places *l) { p->of = l; }
void place_lock(struct place *p) {
    struct places *l = p->of;
    p->mine = atomic_fetch_add_explicit(&l->next, 1, memory_order_relaxed) % l->count;
    while (!load(&l->may[p->mine])) relax();
}
void place_unlock(struct place *p) {
    struct places *l = p->of;
    store(&l->may[p->mine], 0);
    store(&l->may[(p->mine + 1) % l->count], 1);
}

// Broken: the place stays open for whoever comes there next time.
void place_leave(struct place *p) {
    struct places *l = p->of;
    store(&l->may[(p->mine + 1) % l->count], 1);
}
