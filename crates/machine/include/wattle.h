// Marks for `wattle check test.o`: threads, places and conditions in code that is compiled as it is.
//
//     static struct ticket lock;
//
//     void wattle_threads_t(void) {          // any number of threads run this; wattle_thread_t: one
//         for (;;) {
//             ticket_lock(&lock);
//             WATTLE_LABEL(critical);        // no two threads are here at the same time
//             ticket_unlock(&lock);
//         }
//     }
//
// `gcc -O2 -g -c test.c && wattle check test.o`. Nothing here is ever linked.
#ifndef WATTLE_H
#define WATTLE_H

#ifdef __cplusplus
extern "C" {
#endif

// A violation unless it is true.
void wattle_assert(int condition);

// Only runs in which it is true are looked at.
void wattle_assume(int condition);

// Any number.
unsigned wattle_any(void);

// A place that properties can name: t@critical.
#define WATTLE_LABEL(name)                \
    do {                                  \
        extern void wattle_label_##name(void); \
        wattle_label_##name();            \
    } while (0)

// A property in Wattle's language: WATTLE_CHECK("never a@critical && b@critical;");
// Without one, no two threads may be at a label called `critical`.
#define WATTLE_CHECK(text) WATTLE_CHECK_AT(text, __LINE__)
#define WATTLE_CHECK_AT(text, line) WATTLE_CHECK_NAMED(text, line)
#define WATTLE_CHECK_NAMED(text, line) \
    __attribute__((section(".wattle"), used)) static const char wattle_check_##line[] = text

#ifdef __cplusplus
}
#endif
#endif
