#ifndef _WIN32
#include "platform_own.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <link.h>
#include <sys/prctl.h>
#endif

static int input = 0, output = 1;

const OrtChar *runtime_path(Arena *arena, const char *path) {
    (void)arena;
    return path;
}

const OrtChar *name_for_runtime(Arena *arena, const char *name) { return runtime_path(arena, name); }

char **arguments(Arena *arena, int *count, char **given) {
    (void)arena, (void)count;
    return given;
}

const char *variable(Arena *arena, const char *name) {
    (void)arena;
    return getenv(name);
}

bool stream_connect(int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int made = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    if (made < 0 || connect(made, (struct sockaddr *)&address, sizeof address)) return false;
    setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    fcntl(made, F_SETFD, FD_CLOEXEC);
    input = output = made;
    return true;
}

void stream_leave_standard(void) {
    if (output == 1) {
        output = fcntl(1, F_DUPFD_CLOEXEC, 3);
        input = fcntl(0, F_DUPFD_CLOEXEC, 3);
        int nothing = open("/dev/null", O_RDONLY);
        if (nothing >= 0) {
            dup2(nothing, 0);
            close(nothing);
        }
    }
    dup2(2, 1);
}

size_t stream_read(void *data, size_t size) {
    for (;;) {
        ssize_t got = read(input, data, size);
        if (got >= 0) return (size_t)got;
        if (errno != EINTR) return 0;
    }
}

bool descriptor_write(int file, const void *data, size_t size) {
    const char *at = data;
    while (size) {
        ssize_t done = write(file, at, size);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return false;
        at += done;
        size -= (size_t)done;
    }
    return true;
}

bool stream_write(const void *data, size_t size) { return descriptor_write(output, data, size); }

struct Lock {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
};

Lock *lock_new(void) {
    Lock *lock = calloc(1, sizeof *lock);
    if (!lock) abort();
    pthread_mutex_init(&lock->mutex, NULL);
    pthread_cond_init(&lock->changed, NULL);
    return lock;
}

void lock_take(Lock *lock) { pthread_mutex_lock(&lock->mutex); }
void lock_give(Lock *lock) { pthread_mutex_unlock(&lock->mutex); }
void lock_wait(Lock *lock) { pthread_cond_wait(&lock->changed, &lock->mutex); }
void lock_wake(Lock *lock) { pthread_cond_broadcast(&lock->changed); }

static void *run_thread(void *function) {
    void (*wanted)(void);
    memcpy(&wanted, &function, sizeof wanted);
    wanted();
    return NULL;
}

bool thread_start(void (*function)(void)) {
    pthread_t thread;
    void *given;
    memcpy(&given, &function, sizeof given);
    if (pthread_create(&thread, NULL, run_thread, given)) return false;
    pthread_detach(thread);
    return true;
}

void sleep_ms(int ms) {
    struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    nanosleep(&pause, NULL);
}

void end_now(int code) { _exit(code); }

static double clock_ms(clockid_t clock) {
    struct timespec now;
    return clock_gettime(clock, &now) ? 0 : (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

double now_ms(void) { return clock_ms(CLOCK_MONOTONIC); }
double processor_ms(void) { return clock_ms(CLOCK_PROCESS_CPUTIME_ID); }

/* A figure of /proc/self/status; -1 where there is none. */
static double figure(const char *name) {
    char line[256];
    double found = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && found < 0 && fgets(line, sizeof line, file))
        if (!strncmp(line, name, strlen(name)) && line[strlen(name)] == ':') found = strtod(line + strlen(name) + 1, NULL);
    if (file) fclose(file);
    return found;
}

static double in_mib(double kib) { return kib < 0 ? -1 : kib / 1024; }

double resident_mib(void) { return in_mib(figure("VmRSS")); }
int thread_count(void) { return (int)figure("Threads"); }

double peak_mib(bool reset) {
    if (!reset) return in_mib(figure("VmHWM"));
    int file = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    bool done = file >= 0 && write(file, "5", 1) == 1;
    if (file >= 0) close(file);
    return done ? 0 : -1;
}

int descriptor_count(void) {
    DIR *folder = opendir("/proc/self/fd");
    int count = folder ? -3 : -1; /* `.`, `..`, and the folder itself */
    while (folder && readdir(folder)) count++;
    if (folder) closedir(folder);
    return count;
}

void limit_memory(int64_t mib) {
    struct rlimit limit;
    if (mib <= 0 || getrlimit(RLIMIT_AS, &limit)) return;
    rlim_t wanted = (rlim_t)mib << 20;
    if (limit.rlim_max == RLIM_INFINITY || wanted < limit.rlim_max) limit.rlim_cur = wanted;
    setrlimit(RLIMIT_AS, &limit);
}

void process_begin(void) {
    process_keep_variables();
    signal(SIGPIPE, SIG_IGN);
    signal(SIGINT, SIG_IGN); /* on Ctrl-C the harness stops its agents */
#ifdef __linux__
    const char *parent = getenv("EP_HARNESS_PARENT");
    if (parent && atol(parent) == (long)getppid()) prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
}

int processor_count(void) {
#ifdef __linux__
    cpu_set_t usable;
    if (!sched_getaffinity(0, sizeof usable, &usable)) return CPU_COUNT(&usable);
#endif
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

/* Return the first value of a key in /proc/cpuinfo, or NULL. */
static const char *cpuinfo(Arena *arena, const char *key) {
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[8192];
    const char *found = NULL;
    size_t length = strlen(key);
    while (file && !found && fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        if (!colon || strncmp(line, key, length) || line + length + strspn(line + length, "\t ") != colon) continue;
        const char *value = colon + 1 + strspn(colon + 1, " ");
        found = arena_text(arena, value, strcspn(value, "\n"));
    }
    if (file) fclose(file);
    return found;
}

const char *processor_model(Arena *arena) {
    const char *model = cpuinfo(arena, "model name"); /* Linux has none of Arm processors */
    return model ? model : "";
}

const char *processor_features(Arena *arena) {
#if defined(__x86_64__) || defined(__i386__)
    return cpuinfo(arena, "flags");
#else
    return cpuinfo(arena, "Features"); /* an emulator may show the file of another processor, which has none */
#endif
}

static struct utsname *system_facts(void) {
    static struct utsname facts;
    if (!facts.sysname[0]) uname(&facts);
    return &facts;
}

const char *system_name(void) {
    static char name[2 * sizeof(struct utsname)];
    snprintf(name, sizeof name, "%s-%s", system_facts()->sysname, system_facts()->release);
    return name;
}

const char *machine_name(void) { return system_facts()->machine; }

void *library_open(Arena *arena, const char *path, const char **why) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const char *error = library ? NULL : dlerror();
    *why = arena_text(arena, error ? error : "", error ? strlen(error) : 0);
    return library;
}

#ifdef __linux__
typedef struct {
    const char *path;
    int count;
    bool has;
} Loaded;

static int count_library(struct dl_phdr_info *about, size_t size, void *with) {
    Loaded *loaded = with;
    (void)size;
    loaded->count++;
    loaded->has |= !strcmp(about->dlpi_name, loaded->path);
    return 0;
}

int libraries_loaded(const char *path, bool *has) {
    Loaded loaded = {.path = path};
    dl_iterate_phdr(count_library, &loaded);
    *has = loaded.has;
    return loaded.count;
}
#else
int libraries_loaded(const char *path, bool *has) {
    *has = path == NULL;
    return -1;
}
#endif

void *library_symbol(void *library, const char *name) { return dlsym(library, name); }

void printed_take(Bytes *text, bool keep) {
    enum { MOST = 16384 };
    struct stat about;
    fflush(stdout);
    fflush(stderr);
    if (printed_is_shared || fstat(2, &about) || !S_ISREG(about.st_mode)) return;
    off_t from = about.st_size > MOST ? about.st_size - MOST : 0;
    char data[MOST];
    ssize_t size = text && about.st_size ? pread(2, data, MOST, from) : 0;
    if (size > 0) utf8_clean(text, data, (size_t)size);
    if (!keep && about.st_size && ftruncate(2, 0)) return;
}

bool make_folder(const char *path) { return !mkdir(path, 0700) || errno == EEXIST; }
void file_delete(const char *path) { unlink(path); }
int file_open(const char *path, int flags) { return open(path, flags | O_CLOEXEC | O_NONBLOCK | (flags & O_CREAT ? O_NOFOLLOW : 0), 0600); }

char *absolute_path(Arena *arena, const char *path) {
    char folder[PATH_MAX];
    if (path[0] == '~' && path[1] == '/' && getenv("HOME")) return arena_format(arena, "%s%s", getenv("HOME"), path + 1);
    if (path[0] == '/' || !getcwd(folder, sizeof folder)) return arena_format(arena, "%s", path);
    return arena_format(arena, "%s/%s", folder, path);
}

const char *self_folder(Arena *arena) {
    char path[PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
    while (size > 0 && path[size - 1] != '/') size--;
    return size > 0 ? arena_text(arena, path, (size_t)size) : "./";
}

bool path_move(const char *from, const char *to) { return !rename(from, to); }
void folder_delete(const char *path) { rmdir(path); }

char **folder_names(Arena *arena, const char *path, size_t *count) {
    DIR *folder = opendir(path);
    char **names = NULL;
    size_t room = 0;
    *count = 0;
    for (const struct dirent *one; folder && (one = readdir(folder));) {
        if (!strcmp(one->d_name, ".") || !strcmp(one->d_name, "..")) continue;
        if (*count == room) {
            char **more = arena_take(arena, (room = 2 * room + 16) * sizeof *more);
            if (*count) memcpy(more, names, *count * sizeof *more);
            names = more;
        }
        names[(*count)++] = arena_text(arena, one->d_name, strlen(one->d_name));
    }
    if (folder) closedir(folder);
    return names;
}
#else
typedef int not_empty; /* ISO C wants something in each file */
#endif
