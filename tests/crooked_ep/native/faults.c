/* feenableexcept and dlopen's RTLD_NOLOAD are extensions. */
#define _GNU_SOURCE

#include "faults.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum fault environment_fault = FAULT_none, process_fault = FAULT_none;

/* ---- Ends ---- */

static OrtStatus *end_by_abort(void) { abort(); }

static OrtStatus *end_by_segv(void) {
    static volatile int *volatile nowhere = NULL;
    *nowhere = 1;
    return NULL;
}

static OrtStatus *end_by_fpe(void) {
    raise(SIGFPE);
    return NULL;
}

static int deep(volatile int *above) {
    volatile int here[1024];
    here[0] = *above + 1;
    return here[0] < 0 ? 0 : deep(here) + here[0];
}

static OrtStatus *end_by_stack(void) {
    volatile int zero = 0;
    return deep(&zero) == 1 ? NULL : NULL;
}

static OrtStatus *end_by_heap(void) {
    char *volatile memory = malloc(5000); /* too large for the caches that let a second free() pass */
    free(memory);
    free(memory);
    abort(); /* an allocator that lets it pass */
}

static OrtStatus *end_with_0(void) { _exit(0); }
static OrtStatus *end_with_3(void) { _exit(3); }

static OrtStatus *hang(void) {
    for (;;) sleep(60);
    return NULL;
}

static OrtStatus *spin(void) {
    for (volatile int i = 0;; i = i + 1) {
    }
    return NULL;
}

/* ---- Errors ---- */

static OrtStatus *fail(void) { return ORT(CreateStatus)(ORT_EP_FAIL, "crooked: planted failure 0x1234"); }
static OrtStatus *fail_memory(void) {
    return ORT(CreateStatus)(ORT_FAIL, "crooked: failed to allocate memory for requested buffer of size 4096");
}
static OrtStatus *refuse_option(void) { return ORT(CreateStatus)(ORT_INVALID_ARGUMENT, "crooked: option fault is refused"); }

/* Throw std::runtime_error as C++ does, without its compiler: onnxruntime has the library in this process. */
static OrtStatus *throws(void) {
    void *library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_NOLOAD);
    if (!library) return fail();
    void *(*allocate)(size_t) = (void *(*)(size_t))dlsym(library, "__cxa_allocate_exception");
    void (*construct)(void *, const char *) = (void (*)(void *, const char *))dlsym(library, "_ZNSt13runtime_errorC1EPKc");
    void (*destroy)(void *) = (void (*)(void *))dlsym(library, "_ZNSt13runtime_errorD1Ev");
    void (*throw)(void *, void *, void (*)(void *)) = (void (*)(void *, void *, void (*)(void *)))dlsym(library, "__cxa_throw");
    void *exception = allocate(16);
    construct(exception, "crooked: thrown, not returned");
    throw(exception, dlsym(library, "_ZTISt13runtime_error"), destroy);
    return NULL;
}

/* ---- Manners ---- */

static OrtStatus *set_rounding(void) {
    fesetround(FE_UPWARD);
    return NULL;
}

static OrtStatus *set_flush(void) {
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040); /* FTZ and DAZ */
#elif defined(__aarch64__)
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    __asm__ volatile("msr fpcr, %0" : : "r"(control | 1u << 24));
#endif
    return NULL;
}

static OrtStatus *set_traps(void) {
#if defined(__GLIBC__)
    feenableexcept(FE_DIVBYZERO);
#elif defined(__x86_64__)
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() & ~0x200u);
#endif
    return NULL;
}

static void ignore(int number) { (void)number; }

static void die(int number) {
    (void)number;
    _exit(1);
}

static OrtStatus *handle_sigint(void) {
    signal(SIGINT, ignore);
    return NULL;
}

static OrtStatus *handle_sigsegv(void) {
    signal(SIGSEGV, die);
    return NULL;
}

static OrtStatus *block_signals(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    return NULL;
}

static OrtStatus *set_locale(void) {
    if (!setlocale(LC_ALL, "de_DE.UTF-8")) setlocale(LC_ALL, "C.UTF-8"); /* it has another name, at least */
    return NULL;
}

static OrtStatus *change_directory(void) {
    if (chdir("/")) perror("crooked: chdir");
    return NULL;
}

static OrtStatus *write_files(void) {
    for (int i = 0; i < 3; i++) {
        char name[40];
        snprintf(name, sizeof name, "crooked_dump_%d.bin", i);
        FILE *file = fopen(name, "w");
        if (file) fputs("left behind\n", file), fclose(file);
    }
    return NULL;
}

static OrtStatus *close_stdout(void) {
    close(1);
    return NULL;
}

static OrtStatus *leak_descriptors(void) {
    for (int i = 0; i < 3; i++)
        if (open("/dev/null", O_RDONLY) < 0) perror("crooked: open");
    return NULL;
}

/* The thread runs in libc alone: this library may be unloaded under it. */
static OrtStatus *leave_thread(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, (void *(*)(void *))(void (*)(void))pause, NULL);
    pthread_detach(thread);
    return NULL;
}

static OrtStatus *leave(bool with_pipes, char *const variables[]) {
    extern char **environ;
    if (fork() == 0) {
        setsid();
        if (!with_pipes)
            for (int descriptor = 0; descriptor < 64; descriptor++) close(descriptor);
        char *const arguments[] = {"crooked-sleep", "60", NULL};
        execve("/bin/sleep", arguments, variables ? variables : environ);
        _exit(127);
    }
    return NULL;
}

static OrtStatus *leave_child(void) { return leave(false, NULL); }
static OrtStatus *leave_child_with_pipes(void) { return leave(true, NULL); }
static OrtStatus *leave_bare_child(void) { return leave(false, (char *const[]){NULL}); }

static OrtStatus *set_environment(void) {
    setenv("OMP_NUM_THREADS", "61", 1);
    return NULL;
}

static OrtStatus *set_file_mask(void) {
    umask(0);
    return NULL;
}

static OrtStatus *print_much(void) {
    char line[101];
    memset(line, '.', 99);
    line[99] = '\n';
    for (int i = 0; i < 20000; i++)
        if (write(2, line, 100) < 0) break;
    return NULL;
}

static void *take(size_t bytes) {
    void *memory = malloc(bytes);
    if (memory) memset(memory, 0x5a, bytes);
    return memory;
}

static OrtStatus *take_gigabyte(void) {
    static void *taken;
    if (!taken) taken = take((size_t)1 << 30);
    return NULL;
}

static void *volatile lost;

static OrtStatus *leak_10_mb(void) {
    lost = take(10000000);
    return NULL;
}

static OrtStatus *leak_1_mb(void) {
    lost = take(1000000);
    return NULL;
}

/* ---- The end of a process ---- */

/* A function that lies in memory of its own, as that of a library which is gone would: the call ends in SIGSEGV. */
static OrtStatus *crash_at_exit(void) {
    void *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    extern int __cxa_atexit(void (*)(void *), void *, void *);
    __cxa_atexit((void (*)(void *))page, NULL, NULL); /* of no library: atexit() would call it when this one is closed */
    return NULL;
}

/* Open this library once more, and never close it. */
static OrtStatus *stay_loaded(void) {
    Dl_info info;
    if (dladdr((void *)&lost, &info)) dlopen(info.dli_fname, RTLD_NOW);
    return NULL;
}

/* ---- The table ---- */

static const struct {
    const char *name;
    enum place place;
    OrtStatus *(*action)(void);
} table[] = {
    {"none", KERNEL, 0},
#define FAULT(name, place, action, ...) {#name, place, action},
#include "faults.def"
#undef FAULT
};

enum fault fault_named(const char *name) {
    if (!name || !*name) return FAULT_none;
    for (int fault = 0; fault < FAULT_unknown; fault++)
        if (!strcmp(table[fault].name, name)) return (enum fault)fault;
    return FAULT_unknown;
}

enum place place_of(enum fault fault) { return fault == FAULT_unknown ? KERNEL : table[fault].place; }

OrtStatus *act(enum fault fault, enum place place) {
    if (fault == FAULT_unknown || table[fault].place != place || !table[fault].action) return NULL;
    return table[fault].action();
}
