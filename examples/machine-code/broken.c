// The locks of locks.c with one mistake each. Compile with: gcc -O2 -g -c broken.c
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define relax() __builtin_ia32_pause()
#define load(p) atomic_load_explicit(p, memory_order_acquire)
#define store(p, v) atomic_store_explicit(p, v, memory_order_release)

// The test and the set are two steps.
struct flag { atomic_bool taken; };
void tas_lock(struct flag *l) {
    while (load(&l->taken)) relax();
    store(&l->taken, true);
}
void tas_unlock(struct flag *l) { store(&l->taken, false); }

// The ticket is drawn in two steps.
struct ticket { atomic_uint next, owner; };
void ticket_lock(struct ticket *l) {
    unsigned me = load(&l->next);
    store(&l->next, me + 1);
    while (load(&l->owner) != me) relax();
}
void ticket_unlock(struct ticket *l) { store(&l->owner, load(&l->owner) + 1); }

// The tail is read and written in two steps.
struct node { _Atomic(struct node *) next; atomic_int waits; };
struct mcs { _Atomic(struct node *) tail; };
void mcs_lock(struct mcs *l, struct node *me) {
    store(&me->next, NULL);
    store(&me->waits, 1);
    struct node *before = load(&l->tail);
    store(&l->tail, me);
    if (before == NULL) return;
    store(&before->next, me);
    while (load(&me->waits)) relax();
}
void mcs_unlock(struct mcs *l, struct node *me) {
    struct node *after = load(&me->next);
    if (after == NULL) {
        struct node *last = me;
        if (atomic_compare_exchange_strong(&l->tail, &last, NULL)) return;
        while ((after = load(&me->next)) == NULL) relax();
    }
    store(&after->waits, 0);
}

// The state is looked at, then changed.
struct mutex { atomic_int state; };
void mutex_lock(struct mutex *m) {
    while (load(&m->state)) relax();
    store(&m->state, 1);
}
void mutex_unlock(struct mutex *m) { store(&m->state, 0); }

// The node says that it waits only after others can see it.
struct clh_node { atomic_int waits; };
struct clh { _Atomic(struct clh_node *) tail; };
struct clh_own { struct clh_node *node, *before; };
void clh_start(struct clh *l, struct clh_node *free) { store(&l->tail, free); }
void clh_enter(struct clh_own *mine, struct clh_node *node) { mine->node = node; }
void clh_lock(struct clh *l, struct clh_own *mine) {
    struct clh_node *node = mine->node;
    struct clh_node *before = atomic_exchange(&l->tail, node);
    store(&node->waits, 1);
    mine->before = before;
    while (load(&before->waits)) relax();
}
void clh_unlock(struct clh_own *mine) {
    struct clh_node *node = mine->node;
    mine->node = mine->before;
    store(&node->waits, 0);
}

// The place in the row is taken in two steps.
struct array { atomic_uint next; atomic_uint may[4]; };
unsigned array_lock(struct array *l) {
    unsigned me = load(&l->next);
    store(&l->next, me + 1);
    while (!load(&l->may[me & 3])) relax();
    return me & 3;
}
void array_unlock(struct array *l, unsigned me) {
    store(&l->may[me], 0);
    store(&l->may[(me + 1) & 3], 1);
}

// Readers look whether a writer is there, then count themselves.
struct rw { atomic_int state; };
void read_lock(struct rw *l) {
    while (load(&l->state) < 0) relax();
    atomic_fetch_add(&l->state, 1);
}
void read_unlock(struct rw *l) { atomic_fetch_sub(&l->state, 1); }
void write_lock(struct rw *l) {
    int free = 0;
    while (!atomic_compare_exchange_weak(&l->state, &free, -1)) {
        free = 0;
        relax();
    }
}
void write_unlock(struct rw *l) { store(&l->state, 0); }

// The count is looked at, then changed.
struct semaphore { atomic_int free; };
void semaphore_down(struct semaphore *s) {
    while (load(&s->free) <= 0) relax();
    atomic_fetch_sub(&s->free, 1);
}
void semaphore_up(struct semaphore *s) { atomic_fetch_add(&s->free, 1); }

// Release stores: right under SC, broken on x86.
struct peterson { atomic_int wants[2], turn; };
void peterson_lock(struct peterson *l, unsigned me) {
    store(&l->wants[me & 1], 1);
    store(&l->turn, 1 - (me & 1));
    while (load(&l->wants[1 - (me & 1)]) && load(&l->turn) == 1 - (int)(me & 1)) relax();
}
void peterson_unlock(struct peterson *l, unsigned me) { store(&l->wants[me & 1], 0); }

struct dekker { atomic_int here[2]; };
bool dekker_try0(struct dekker *l) { store(&l->here[0], 1); return !load(&l->here[1]); }
bool dekker_try1(struct dekker *l) { store(&l->here[1], 1); return !load(&l->here[0]); }
void dekker_leave0(struct dekker *l) { store(&l->here[0], 0); }
void dekker_leave1(struct dekker *l) { store(&l->here[1], 0); }

// The version is not made odd while the halves are written.
struct seq { atomic_uint version; atomic_uint a, b; };
void seq_write(struct seq *s, unsigned v) {
    unsigned n = load(&s->version);
    store(&s->a, v);
    store(&s->b, v);
    store(&s->version, n + 2);
}
bool seq_read(struct seq *s) {
    unsigned n = load(&s->version);
    unsigned a = load(&s->a), b = load(&s->b);
    return (n & 1) || load(&s->version) != n || a == b;
}

// The slot is filled after it is handed over.
struct ring { atomic_uint head, tail; unsigned slot[4]; };
bool ring_put(struct ring *r, unsigned v) {
    unsigned t = load(&r->tail);
    if (t - load(&r->head) == 4) return false;
    store(&r->tail, t + 1);
    *(volatile unsigned *)&r->slot[t & 3] = v;
    return true;
}
bool ring_get(struct ring *r, unsigned *v) {
    unsigned h = load(&r->head);
    if (load(&r->tail) == h) return false;
    *v = r->slot[h & 3];
    store(&r->head, h + 1);
    return true;
}

// Handed over before it is filled.
struct box { unsigned long first, second; atomic_uint full; };
void box_put(struct box *b, unsigned long v) {
    store(&b->full, 1);
    b->first = v;
    b->second = v;
}
bool box_get(struct box *b) {
    if (!load(&b->full)) return true;
    return b->first == 7 && b->second == 7;
}

// The bit is set without looking whether it was.
struct counted { atomic_uint word; };
void counted_lock(struct counted *l) {
    while (load(&l->word) & 1) relax();
    atomic_fetch_or_explicit(&l->word, 1, memory_order_acquire);
}
void counted_unlock(struct counted *l) { atomic_fetch_and_explicit(&l->word, ~1u, memory_order_release); }

// The writer forgets readers that have added themselves and are about to take that back.
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
void packed_write_done(struct packed *l) { store(&l->word, 0); }

// It is taken in two steps.
union word { atomic_uint all; _Atomic unsigned char taken; };
void word_lock(union word *l) {
    while (atomic_load_explicit(&l->all, memory_order_relaxed)) relax();
    store(&l->taken, 1);
}
void word_unlock(union word *l) { store(&l->taken, 0); }

// Whoever finds nothing left goes in as well.
struct down { atomic_int free; };
void down_lock(struct down *l) {
    while (atomic_fetch_sub_explicit(&l->free, 1, memory_order_acquire) < 0)
        while (atomic_load_explicit(&l->free, memory_order_relaxed) <= 0) relax();
}
void down_unlock(struct down *l) { store(&l->free, 1); }

// The flag is put back with the rest of the word as it was: who came in between is forgotten.
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
        if (!(n & 1)) store(&l->word, n | 1);
        while (atomic_load_explicit(&l->word, memory_order_relaxed) > 1) relax();
    }
}
void waiting_write_done(struct waiting *l) { atomic_fetch_sub_explicit(&l->word, 2, memory_order_release); }

// Broken: whoever saw no writer comes in, though one may have come since.
struct upper { atomic_uint word; };
void upper_read(struct upper *l) {
    while (atomic_load_explicit(&l->word, memory_order_relaxed) >> 31) relax();
    atomic_fetch_add_explicit(&l->word, 1, memory_order_acquire);
}
void upper_read_done(struct upper *l) { atomic_fetch_sub_explicit(&l->word, 1, memory_order_release); }
void upper_write(struct upper *l) {
    atomic_fetch_or_explicit(&l->word, 1u << 31, memory_order_acquire);
    while (atomic_load_explicit(&l->word, memory_order_acquire) << 2) relax();
}
void upper_write_done(struct upper *l) { atomic_fetch_and_explicit(&l->word, ~(3u << 30), memory_order_release); }
