/* Memory that sessions share: part of the scenario `buffers`. The application gives onnxruntime an allocator of the CPU's memory, which
 * sessions use in place of their own; of devices they use the one of the plugin. What a session does with it is no matter of another. */

#include "company.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 64, GUARD_BYTE = 0xC3, ALIGNED = 64, VERSION = 18 };

/* As onnxruntime declares it; the last function is of 1.18. */
struct OrtAllocator {
    uint32_t version;
    void *(ORT_CALL *Alloc)(OrtAllocator *, size_t);
    void(ORT_CALL *Free)(OrtAllocator *, void *);
    const OrtMemoryInfo *(ORT_CALL *Info)(const OrtAllocator *);
    void *(ORT_CALL *Reserve)(OrtAllocator *, size_t);
};

/* What stands before a block and the guard before it. */
typedef struct {
    void *whole;
    size_t size;
} Head;

static OrtMemoryInfo *memory;
static atomic_long taken, alive, damaged; /* blocks; onnxruntime asks in several threads */

static void *ORT_CALL take(OrtAllocator *self, size_t size) {
    (void)self;
    char *whole = calloc(1, size + sizeof(Head) + 2 * GUARD + ALIGNED);
    if (!whole) return NULL;
    char *block = whole + sizeof(Head) + GUARD;
    block += ALIGNED - (uintptr_t)block % ALIGNED;
    Head head = {whole, size};
    memcpy(block - GUARD - sizeof head, &head, sizeof head);
    memset(block - GUARD, GUARD_BYTE, GUARD);
    memset(block + size, GUARD_BYTE, GUARD);
    atomic_fetch_add(&taken, 1);
    atomic_fetch_add(&alive, 1);
    return block;
}

static void ORT_CALL give(OrtAllocator *self, void *block) {
    (void)self;
    Head head;
    bool fine = true;
    if (!block) return;
    const char *before = (const char *)block - GUARD;
    memcpy(&head, before - sizeof head, sizeof head);
    for (size_t at = 0; at < GUARD; at++)
        fine = fine && (uint8_t)before[at] == GUARD_BYTE && (uint8_t)before[GUARD + head.size + at] == GUARD_BYTE;
    atomic_fetch_add(&damaged, !fine);
    atomic_fetch_sub(&alive, 1);
    free(head.whole);
}

static const OrtMemoryInfo *ORT_CALL about(const OrtAllocator *self) {
    (void)self;
    return memory;
}

/* Open a session that uses the allocators of the process. */
static OrtSession *open_sharing(Job *job, const SessionPlan *from) {
    const char *entries[] = {"session.use_env_allocators", "1", from->entries ? from->entries[0] : NULL, from->entries ? from->entries[1] : NULL, NULL};
    SessionPlan plan = *from;
    plan.entries = entries;
    job_enter(job, "create");
    return job_open(job, &plan);
}

static bool run_beside(Watch *watch, OrtSession *own, const Companion *companion) {
    Job *job = watch->job;
    Arena arena = {0};
    Value *outputs = NULL;
    OrtSession *other = open_sharing(job, &companion->plan);
    bool fine = other && job_run_in(job, other, &arena, &watch->seen[0].feeds, &outputs) &&
                watch_all(watch, own, arena_format(&job->arena, "with allocators shared with a model %s", companion->what));
    arena_free(&arena);
    if (other) ORT(ReleaseSession)(other);
    return fine && watch_all(watch, own, arena_format(&job->arena, "after a session %s that shared its allocators was closed", companion->what));
}

static bool run_all(Watch *watch) {
    Companion companions[MOST_COMPANIONS];
    size_t count = companions_of(watch->job, &watch->seen[0].feeds, companions);
    OrtSession *own = open_sharing(watch->job, &watch->job->plan);
    bool fine = own && watch_all(watch, own, "with allocators that sessions share");
    const char *kinds[MOST_COMPANIONS];
    for (size_t index = 0; fine && index < count; index++) kinds[index] = companions[index].what, fine = run_beside(watch, own, &companions[index]);
    if (fine) fact_texts(watch->job, "shared_with", kinds, count);
    if (own) ORT(ReleaseSession)(own);
    return fine;
}

bool share_allocators(Watch *watch) {
    static OrtAllocator counting = {VERSION, take, give, about, take};
    enum { DEVICE_ALLOCATOR = 0, DEFAULT_MEMORY = 0 };
    Job *job = watch->job;
    if (ort_minor < VERSION) counting.version = ort_minor;
    if (!memory && !job_good(job, ORT(CreateCpuMemoryInfo)(DEVICE_ALLOCATOR, DEFAULT_MEMORY, &memory))) return false;
    if (!job_good(job, ORT(RegisterAllocator)(ort_env, &counting))) return false;
    long before = atomic_load(&taken);
    bool fine = run_all(watch) || job_blame(job, "SharedAllocatorError", "with allocators that sessions share");
    OrtStatus *status = ORT(UnregisterAllocator)(ort_env, memory);
    if (!fine || !job_good(job, status)) return false;
    long used = atomic_load(&taken) - before, left = atomic_exchange(&alive, 0), spoiled = atomic_exchange(&damaged, 0);
    fact(job, "\"shared_blocks\":%ld", used);
    if (spoiled) return job_fail(job, "error", "BeyondBufferError", arena_format(&job->arena, "beyond %ld of %ld blocks of an allocator that sessions share", spoiled, used));
    if (left) return job_fail(job, "error", "SharedAllocatorError", arena_format(&job->arena, "%ld of %ld blocks are not given back when the last session is closed", left, used));
    return true;
}
