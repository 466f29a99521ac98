/* The scenario `buffers`: the caller's own buffers receive the outputs, and are used again. They are filled with a pattern, or with
 * what another model left there, before a run; nothing of that may be left, and nothing beyond their ends may have changed. */

#include "bind.h"
#include "company.h"

#include <string.h>

/* Each byte of a buffer before a run; bytes before and after it, as many as kernels align to, and what they hold. */
enum { PATTERN = 0x5A, GUARD = 256, GUARD_BYTE = 0xC3 };

typedef struct {
    Watch *watch;
    Bound *bound;
    size_t set;
    OrtValue **values;
    char **guarded; /* from the bytes before each buffer on; NULL on a device */
    size_t *sizes;
    const char **on;
} Buffers;

static bool check_guards(Job *job, const char *buffer, size_t size, const char *what) {
    size_t before = 0, after = 0;
    for (size_t index = 0; index < GUARD; index++) {
        before += (uint8_t)buffer[index] != GUARD_BYTE;
        after += (uint8_t)buffer[GUARD + size + index] != GUARD_BYTE;
    }
    if (!before && !after) return true;
    const char *words = "%s: %zu bytes %s its buffer were written";
    return job_fail(job, "error", "BeyondBufferError", arena_format(&job->arena, words, what, before ? before : after, before ? "before" : "after"));
}

static char *guarded(Job *job, size_t size) {
    char *buffer = arena_take(&job->arena, size + 2 * GUARD);
    memset(buffer, GUARD_BYTE, size + 2 * GUARD);
    return buffer;
}

static bool make_buffers(Buffers *buffers) {
    Job *job = buffers->watch->job;
    for (size_t index = 0; index < job->outputs; index++) {
        const Place *place = &buffers->bound->out[index];
        Value content = job->ran[buffers->set][index];
        Trouble trouble = {0};
        buffers->sizes[index] = content.size;
        char *buffer = guarded(job, content.size);
        content.data = memset(buffer + GUARD, PATTERN, content.size);
        if (place->allocator) {
            if (!(buffers->values[index] = place_value(job, &job->arena, place, &content))) return false;
        } else {
            buffers->guarded[index] = buffer;
            if (!value_over(buffer + GUARD, &content, &buffers->values[index], &trouble)) return job_trouble(job, &trouble);
        }
        buffers->on[index] = arena_format(&job->arena, "%.60s: %s", job->names[index], place->on);
    }
    return true;
}

/* Run once into the buffers as they are, with the inputs that are bound. */
static bool run_into(Buffers *buffers, Bound *bound) {
    Job *job = bound->job;
    job_enter(job, "run");
    if (!bound_to_values(bound, buffers->values) || !bound_run(bound)) return false;
    for (size_t index = 0; index < job->outputs; index++)
        if (buffers->guarded[index] && !check_guards(job, buffers->guarded[index], buffers->sizes[index], arena_format(&job->arena, "output %.60s", job->names[index])))
            return false;
    return true;
}

static bool look(Buffers *buffers, const char *where) {
    Job *job = buffers->watch->job;
    Arena arena = {0};
    Value *outputs = arena_take(&arena, (job->outputs + 1) * sizeof *outputs);
    bool fine = run_into(buffers, buffers->bound);
    for (size_t index = 0; fine && index < job->outputs; index++) {
        const char *on = "";
        fine = value_read_back(job, &arena, buffers->values[index], &outputs[index], &on);
    }
    if (fine) watch_look(buffers->watch, buffers->set, &arena, outputs, where);
    arena_free(&arena);
    return fine;
}

/* Let each companion run into the buffers, and then the model. */
static bool run_after_others(Buffers *buffers, const Feeds *feeds, long *runs) {
    Job *job = buffers->watch->job;
    Companion companions[MOST_COMPANIONS];
    bool fine = true;
    for (size_t index = 0, count = companions_of(job, feeds, companions); fine && index < count; index++, *runs += 2) {
        Bound other = {0};
        OrtSession *session = companion_open(job, &companions[index]);
        fine = session && bound_open(&other, job, session) && bound_feed(&other, feeds) && run_into(buffers, &other);
        if (other.job) bound_close(&other);
        if (session) ORT(ReleaseSession)(session);
        fine = fine && look(buffers, arena_format(&job->arena, "in buffers that a model %s has used", companions[index].what));
    }
    return fine;
}

static bool run_set(Watch *watch, Bound *bound, size_t set, long *runs) {
    Job *job = watch->job;
    const Feeds *feeds = &watch->seen[set].feeds;
    size_t room = (job->outputs + 1) * sizeof(void *);
    Buffers buffers = {watch, bound, set, arena_take(&job->arena, room), arena_take(&job->arena, room), arena_take(&job->arena, room), arena_take(&job->arena, room)};
    bool fine = make_buffers(&buffers) && bound_feed(bound, feeds) && look(&buffers, "in buffers filled with a pattern") &&
                look(&buffers, "in buffers used again, with inputs used again");
    *runs += 2;
    fine = fine && (set || run_after_others(&buffers, feeds, runs));
    if (fine && set + 1 == job->sets) fact_texts(job, "buffers_on", buffers.on, job->outputs);
    job_release(buffers.values, job->outputs);
    for (size_t index = 0; index < job->outputs; index++) /* no later model finds the pattern in memory that it gets */
        if (buffers.guarded[index]) memset(buffers.guarded[index], 0, buffers.sizes[index] + 2 * GUARD);
    return fine;
}

/* Copy values to a device and back into guarded memory. */
static bool copy_back(Job *job, const Place *place, int64_t count) {
    Value about = {.kind = TENSOR_VALUE, .type = 1, .rank = 1, .shape = &count, .size = (size_t)count * sizeof(float)};
    char *back = guarded(job, about.size);
    float *given = arena_take(&job->arena, about.size);
    OrtValue *there = NULL, *here = NULL;
    Trouble trouble = {0};
    for (int64_t index = 0; index < count; index++) given[index] = (float)(index + 1);
    about.data = given;
    const char *what = arena_format(&job->arena, "a copy of %zu bytes from the device", about.size);
    bool fine = (there = place_value(job, &job->arena, place, &about)) && (value_over(back + GUARD, &about, &here, &trouble) || job_trouble(job, &trouble)) &&
                job_good(job, ORT(CopyTensors)(ort_env, (const OrtValue *const *)&there, &here, NULL, 1)) && check_guards(job, back, about.size, what);
    job_release((OrtValue *[]){there, here}, 2);
    if (!fine || !memcmp(back + GUARD, given, about.size)) return fine;
    return job_fail(job, "error", "BeyondBufferError", arena_format(&job->arena, "%s differs from what was copied to it", what));
}

static bool copy_all(Job *job, const Bound *bound) {
    static const int64_t counts[] = {1, 6, 9, 33}; /* elements of float32: no multiple of 16 or 32 bytes */
    const Place *place = NULL;
    for (size_t index = job->outputs; index--;)
        if (bound->out[index].allocator) place = &bound->out[index];
    for (size_t index = 0; place && index < sizeof counts / sizeof *counts; index++)
        if (!copy_back(job, place, counts[index])) return false;
    if (place) fact(job, "\"copies\":%zu", sizeof counts / sizeof *counts);
    return true;
}

bool buffers(Job *job) {
    Watch watch;
    Bound bound = {0};
    long runs = 0;
    bool fine = job_create(job) && bound_open(&bound, job, job->session) && watch_begin(&watch, job);
    for (size_t set = 0; fine && set < job->sets; set++) fine = run_set(&watch, &bound, set, &runs);
    if (fine) fact(job, "\"runs\":%ld", runs);
    fine = fine && copy_all(job, &bound);
    if (bound.job) bound_close(&bound);
    return fine && share_allocators(&watch) && watch_conclude(&watch, "equal_to_plain");
}
