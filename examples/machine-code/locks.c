// Locks in C11, written from the papers named beside them. Compile with: gcc -O2 -g -c locks.c
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define relax() __builtin_ia32_pause()
#define load(p) atomic_load_explicit(p, memory_order_acquire)
#define store(p, v) atomic_store_explicit(p, v, memory_order_release)

// Test-and-set, and test-and-test-and-set (Rudolph, Segall 1984).
struct flag { atomic_bool taken; };
void tas_lock(struct flag *l) { while (atomic_exchange_explicit(&l->taken, true, memory_order_acquire)) relax(); }
void tas_unlock(struct flag *l) { store(&l->taken, false); }
void ttas_lock(struct flag *l) {
    for (;;) {
        if (!atomic_exchange_explicit(&l->taken, true, memory_order_acquire)) return;
        while (atomic_load_explicit(&l->taken, memory_order_relaxed)) relax();
    }
}
bool tas_try(struct flag *l) { return !load(&l->taken) && !atomic_exchange(&l->taken, true); }

// Compare-and-swap, as a mutex without waiting queues has it.
struct mutex { atomic_int state; };
void mutex_lock(struct mutex *m) {
    int free = 0;
    while (!atomic_compare_exchange_weak_explicit(&m->state, &free, 1, memory_order_acquire, memory_order_relaxed)) {
        free = 0;
        relax();
    }
}
void mutex_unlock(struct mutex *m) { store(&m->state, 0); }

// The ticket lock (Mellor-Crummey, Scott 1991), with 32 bits each.
struct ticket { atomic_uint next, owner; };
void ticket_lock(struct ticket *l) {
    unsigned me = atomic_fetch_add_explicit(&l->next, 1, memory_order_relaxed);
    while (load(&l->owner) != me) relax();
}
void ticket_unlock(struct ticket *l) {
    unsigned me = atomic_load_explicit(&l->owner, memory_order_relaxed);
    store(&l->owner, me + 1);
}

// The same with both numbers in one word of 32 bits: drawn together, served by halves.
union small { atomic_uint both; struct { _Atomic uint16_t owner, next; }; };
void small_lock(union small *l) {
    unsigned old = atomic_fetch_add_explicit(&l->both, 1u << 16, memory_order_acquire);
    uint16_t me = old >> 16;
    if ((uint16_t)old == me) return;
    while (load(&l->owner) != me) relax();
}
void small_unlock(union small *l) {
    uint16_t me = atomic_load_explicit(&l->owner, memory_order_relaxed);
    store(&l->owner, me + 1);
}

// The queue lock of the same paper.
struct node { _Atomic(struct node *) next; atomic_int waits; };
struct mcs { _Atomic(struct node *) tail; };
void mcs_lock(struct mcs *l, struct node *me) {
    atomic_store_explicit(&me->next, NULL, memory_order_relaxed);
    atomic_store_explicit(&me->waits, 1, memory_order_relaxed);
    struct node *before = atomic_exchange_explicit(&l->tail, me, memory_order_acq_rel);
    if (before == NULL) return;
    store(&before->next, me);
    while (load(&me->waits)) relax();
}
void mcs_unlock(struct mcs *l, struct node *me) {
    struct node *after = load(&me->next);
    if (after == NULL) {
        struct node *last = me;
        if (atomic_compare_exchange_strong_explicit(&l->tail, &last, NULL, memory_order_release, memory_order_relaxed)) return;
        while ((after = load(&me->next)) == NULL) relax();
    }
    store(&after->waits, 0);
}

// The queue lock of Craig (1993), Landin and Hagersten (1994): whoever leaves takes its predecessor's node.
struct clh_node { atomic_int waits; };
struct clh { _Atomic(struct clh_node *) tail; };
struct clh_own { struct clh_node *node, *before; };
void clh_start(struct clh *l, struct clh_node *free) { store(&l->tail, free); }
void clh_enter(struct clh_own *mine, struct clh_node *node) { mine->node = node; }
void clh_lock(struct clh *l, struct clh_own *mine) {
    struct clh_node *node = mine->node;
    atomic_store_explicit(&node->waits, 1, memory_order_relaxed);
    struct clh_node *before = atomic_exchange_explicit(&l->tail, node, memory_order_acq_rel);
    mine->before = before;
    while (load(&before->waits)) relax();
}
void clh_unlock(struct clh_own *mine) {
    struct clh_node *node = mine->node;
    mine->node = mine->before;
    store(&node->waits, 0);
}

// The array lock (Anderson 1990) for at most four threads.
struct array { atomic_uint next; atomic_uint may[4]; };
unsigned array_lock(struct array *l) {
    unsigned me = atomic_fetch_add_explicit(&l->next, 1, memory_order_relaxed) & 3;
    while (!load(&l->may[me])) relax();
    return me;
}
void array_unlock(struct array *l, unsigned me) {
    atomic_store_explicit(&l->may[me], 0, memory_order_relaxed);
    store(&l->may[(me + 1) & 3], 1);
}

// A counting semaphore (Dijkstra 1965), busy waiting.
struct semaphore { atomic_int free; };
void semaphore_down(struct semaphore *s) {
    for (;;) {
        int n = atomic_load_explicit(&s->free, memory_order_relaxed);
        if (n > 0 && atomic_compare_exchange_weak_explicit(&s->free, &n, n - 1, memory_order_acquire, memory_order_relaxed)) return;
        relax();
    }
}
void semaphore_up(struct semaphore *s) { atomic_fetch_add_explicit(&s->free, 1, memory_order_release); }

// Readers and writers: a count of readers, −1 for a writer.
struct rw { atomic_int state; };
void read_lock(struct rw *l) {
    for (;;) {
        int n = atomic_load_explicit(&l->state, memory_order_relaxed);
        if (n >= 0 && atomic_compare_exchange_weak_explicit(&l->state, &n, n + 1, memory_order_acquire, memory_order_relaxed)) return;
        relax();
    }
}
void read_unlock(struct rw *l) { atomic_fetch_sub_explicit(&l->state, 1, memory_order_release); }
void write_lock(struct rw *l) {
    int free = 0;
    while (!atomic_compare_exchange_weak_explicit(&l->state, &free, -1, memory_order_acquire, memory_order_relaxed)) {
        free = 0;
        relax();
    }
}
void write_unlock(struct rw *l) { store(&l->state, 0); }

// Peterson's lock (1981) for two threads, with seq_cst stores.
struct peterson { atomic_int wants[2], turn; };
void peterson_lock(struct peterson *l, unsigned me) {
    atomic_store(&l->wants[me & 1], 1);
    atomic_store(&l->turn, 1 - (me & 1));
    while (load(&l->wants[1 - (me & 1)]) && load(&l->turn) == 1 - (int)(me & 1)) relax();
}
void peterson_unlock(struct peterson *l, unsigned me) { store(&l->wants[me & 1], 0); }

// Store buffering, the heart of Dekker's lock (1965): each announces itself and looks for the other.
struct dekker { atomic_int here[2]; };
bool dekker_try0(struct dekker *l) { atomic_store(&l->here[0], 1); return !atomic_load(&l->here[1]); }
bool dekker_try1(struct dekker *l) { atomic_store(&l->here[1], 1); return !atomic_load(&l->here[0]); }
void dekker_leave0(struct dekker *l) { store(&l->here[0], 0); }
void dekker_leave1(struct dekker *l) { store(&l->here[1], 0); }

// A sequence lock: a reader that sees an even number twice has seen one version.
struct seq { atomic_uint version; atomic_uint a, b; };
void seq_write(struct seq *s, unsigned v) {
    unsigned n = atomic_load_explicit(&s->version, memory_order_relaxed);
    store(&s->version, n + 1);
    store(&s->a, v);
    store(&s->b, v);
    store(&s->version, n + 2);
}
bool seq_read(struct seq *s) {
    unsigned n = load(&s->version);
    unsigned a = load(&s->a), b = load(&s->b);
    return (n & 1) || load(&s->version) != n || a == b;
}

// A ring of four slots with one producer and one consumer (Lamport 1983).
struct ring { atomic_uint head, tail; unsigned slot[4]; };
bool ring_put(struct ring *r, unsigned v) {
    unsigned t = atomic_load_explicit(&r->tail, memory_order_relaxed);
    if (t - load(&r->head) == 4) return false;
    r->slot[t & 3] = v;
    store(&r->tail, t + 1);
    return true;
}
bool ring_get(struct ring *r, unsigned *v) {
    unsigned h = atomic_load_explicit(&r->head, memory_order_relaxed);
    if (load(&r->tail) == h) return false;
    *v = r->slot[h & 3];
    store(&r->head, h + 1);
    return true;
}

// Push of Treiber's stack (1986): nodes are only added.
struct item { struct item *below; };
struct stack { _Atomic(struct item *) top; };
void stack_push(struct stack *s, struct item *i) {
    struct item *t = atomic_load_explicit(&s->top, memory_order_relaxed);
    do i->below = t;
    while (!atomic_compare_exchange_weak_explicit(&s->top, &t, i, memory_order_release, memory_order_relaxed));
}

// A barrier that changes its sense (Hensgen, Finkel, Manber 1988), two threads.
struct barrier { atomic_uint left, sense; };
void barrier_wait(struct barrier *b) {
    unsigned mine = atomic_load_explicit(&b->sense, memory_order_relaxed);
    if (atomic_fetch_sub_explicit(&b->left, 1, memory_order_acq_rel) == 1) {
        atomic_store_explicit(&b->left, 2, memory_order_relaxed);
        store(&b->sense, !mine);
    } else {
        while (load(&b->sense) == mine) relax();
    }
}

// Bit 0 says that it is taken, the rest of the word counts those who wait.
struct counted { atomic_uint word; };
void counted_lock(struct counted *l) {
    if (!(atomic_fetch_or_explicit(&l->word, 1, memory_order_acquire) & 1)) return;
    atomic_fetch_add_explicit(&l->word, 2, memory_order_relaxed);
    do while (atomic_load_explicit(&l->word, memory_order_relaxed) & 1) relax();
    while (atomic_fetch_or_explicit(&l->word, 1, memory_order_acquire) & 1);
    atomic_fetch_sub_explicit(&l->word, 2, memory_order_relaxed);
}
void counted_unlock(struct counted *l) { atomic_fetch_and_explicit(&l->word, ~1u, memory_order_release); }

// Two words written at once, as compilers write them with vector registers, and then handed over.
struct box { unsigned long first, second; atomic_uint full; };
void box_put(struct box *b, unsigned long v) {
    b->first = v;
    b->second = v;
    store(&b->full, 1);
}
bool box_get(struct box *b) {
    if (!load(&b->full)) return true;
    return b->first == 7 && b->second == 7;
}
