#define _GNU_SOURCE

#include "profiler.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define MOST_PROFILERS 64

struct event {
    const char *name;
    int64_t start_us, duration_us; /* from the start of the profile */
};

struct profiler {
    OrtEpProfilerImpl table; /* first: onnxruntime's pointer is also ours */
    const OrtEp *ep;
    int64_t zero_ns; /* on our clock: when onnxruntime's profile started */
    struct event *events;
    size_t count, room;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct profiler *running[MOST_PROFILERS];

int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void append(struct profiler *profiler, enum fault fault, const char *name, int64_t began_ns, int64_t ended_ns) {
    if (profiler->count == profiler->room) {
        profiler->room = profiler->room ? 2 * profiler->room : 64;
        profiler->events = realloc(profiler->events, profiler->room * sizeof *profiler->events);
    }
    int64_t start_us = (began_ns - profiler->zero_ns) / 1000, duration_us = (ended_ns - began_ns) / 1000;
    if (fault == FAULT_profile_negative) duration_us = -1;
    if (fault == FAULT_profile_shifted) start_us += 60 * INT64_C(1000000);
    profiler->events[profiler->count++] = (struct event){name, start_us, duration_us};
}

void add_event(const OrtEp *ep, enum fault fault, const char *name, int64_t began_ns) {
    int64_t ended_ns = now_ns();
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST_PROFILERS; i++)
        if (running[i] && (running[i]->ep == ep || fault == FAULT_profile_of_all))
            append(running[i], fault, name, began_ns, ended_ns);
    pthread_mutex_unlock(&lock);
}

static void put(struct profiler *before, struct profiler *after) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST_PROFILERS; i++)
        if (running[i] == before) {
            running[i] = after;
            break;
        }
    pthread_mutex_unlock(&lock);
}

static OrtStatus *start(OrtEpProfilerImpl *table, int64_t since_start_ns) {
    struct profiler *profiler = (struct profiler *)table;
    profiler->zero_ns = now_ns() - since_start_ns;
    put(NULL, profiler);
    return NULL;
}

static OrtStatus *end(OrtEpProfilerImpl *table, OrtProfilingEventsContainer *container) {
    enum { KERNEL_EVENT = 2 };
    struct profiler *profiler = (struct profiler *)table;
    put(profiler, NULL);
    OrtStatus *status = NULL;
    for (size_t i = 0; !status && i < profiler->count; i++) {
        const struct event *event = &profiler->events[i];
        OrtProfilingEvent *made = NULL;
        status = EP(CreateProfilingEvent)(KERNEL_EVENT, getpid(), gettid(), event->name, event->start_us,
                                          event->duration_us, NULL, NULL, 0, &made);
        const OrtProfilingEvent *one = made;
        if (!status) status = EP(ProfilingEventsContainer_AddEvents)(container, &one, 1);
        if (made) EP(ReleaseProfilingEvent)(made);
    }
    profiler->count = 0;
    return status;
}

static void release(OrtEpProfilerImpl *table) {
    struct profiler *profiler = (struct profiler *)table;
    put(profiler, NULL);
    free(profiler->events);
    free(profiler);
}

OrtStatus *create_profiler(OrtEp *ep, OrtEpProfilerImpl **made) {
    struct profiler *profiler = calloc(1, sizeof *profiler);
    profiler->table = (OrtEpProfilerImpl){PROFILER_VERSION, release, start, NULL, NULL, end};
    profiler->ep = ep;
    *made = &profiler->table;
    return NULL;
}
