/* A library that dies in each of the ways that a provider can: run_kernel(which) in the thread that calls it,
 * run_in_thread(which) in a new one. Its functions call one another: run_kernel > outer > inner_... */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define INNER __attribute__((noinline)) static int

typedef int (*function)(int);

static volatile int sink;

INNER divide(int by) { return 7 / by; }

INNER inner_fpe(int x) { return divide(x) + 1; }

INNER inner_segv(int x) { return *(volatile int *)(intptr_t)(16 + x) + 1; }

INNER inner_abort(int x) {
    if (x == 0) abort();
    return x + 1;
}

INNER inner_heap(int x) {
    char *volatile piece = malloc(40);
    free(piece);
    free(piece);
    return x + 1;
}

INNER inner_overflow(int x) {
    volatile char room[512];
    room[x % 512] = 1;
    return inner_overflow(x + 1) + room[0];
}

INNER inner_ill(int x) {
#if defined(__x86_64__)
    __asm__ volatile("ud2");
#else
    __asm__ volatile(".inst 0");
#endif
    return x + 1;
}

INNER inner_null(int x) {
    function volatile wild = 0;
    return wild(x) + 1;
}

/* Code made at run time, which reads address 0: no file, no symbol and no unwind table. */
INNER inner_jit(int x) {
#if defined(__x86_64__)
    static const unsigned char code[] = {0x48, 0x31, 0xc0, 0x8b, 0x00, 0xc3};
#else
    static const unsigned char code[] = {0x00, 0x00, 0x80, 0xd2, 0x00, 0x00, 0x40, 0xb9, 0xc0, 0x03, 0x5f, 0xd6};
#endif
    void *made = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(made, code, sizeof code);
    __builtin___clear_cache(made, (char *)made + sizeof code);
    return ((function)made)(x) + 1;
}

static void send_once_more(int number) {
    signal(number, SIG_DFL);
    raise(number);
}

static void give_up(int number) {
    (void)number;
    abort();
}

/* A handler that lets the signal through afterwards. */
INNER inner_handled(int x) {
    signal(SIGSEGV, send_once_more);
    return inner_segv(x) + 1;
}

/* A handler that ends the process in another way. */
INNER inner_aborted(int x) {
    signal(SIGSEGV, give_up);
    return inner_segv(x) + 1;
}

static const function inner[] = {inner_segv, inner_abort, inner_fpe,  inner_heap,    inner_overflow,
                                 inner_ill,  inner_null,  inner_jit, inner_handled, inner_aborted};

INNER outer(int which) { return inner[which](0) + 1; }

__attribute__((visibility("default"), noinline)) int run_kernel(int which) { return outer(which) + 1; }

static void *start(void *which) {
    sink = run_kernel(*(int *)which);
    return 0;
}

__attribute__((visibility("default"))) int run_in_thread(int which) {
    pthread_t thread;
    pthread_create(&thread, 0, start, &which);
    pthread_join(thread, 0);
    return sink + 1;
}
