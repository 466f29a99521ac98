#include "company.h"
#include "onnx.h"

#include <string.h>

enum { LARGEST = 256 << 20 }; /* bytes of a model's file up to which companions are made */

/* Compute what is expected of a companion; what the CPU EP refuses, such as an activation of integers, is none. */
static bool run_on_cpu(Job *job, const Feeds *feeds, Companion *companion) {
    SessionPlan plan = companion->plan;
    Job aside = *job; /* its failure is not that of the job */
    plan.on_cpu = true;
    OrtSession *session = job_open(&aside, &plan);
    bool fine = session && job_run_in(&aside, session, &aside.arena, feeds, &companion->expected);
    if (session) ORT(ReleaseSession)(session);
    job->arena = aside.arena;
    return fine;
}

size_t companions_of(Job *job, const Feeds *feeds, Companion made[MOST_COMPANIONS]) {
    static const struct {
        const char *what;
        bool (*make)(Bytes *, const char *, size_t);
    } kinds[MOST_COMPANIONS] = {{"with other weights", other_weights}, {"with other activations", other_activations}};
    const char *model = NULL;
    size_t size = 0, count = 0;
    if (!file_read(&job->arena, job->plan.model, &model, &size) || size > LARGEST) return 0;
    const char **entries = arena_take(&job->arena, 3 * sizeof *entries);
    entries[0] = WEIGHTS_FOLDER;
    entries[1] = absolute_path(&job->arena, folder_of(&job->arena, job->plan.model));
    for (size_t kind = 0; kind < MOST_COMPANIONS; kind++) {
        Bytes other = {0};
        if (kinds[kind].make(&other, model, size)) {
            Companion *one = &made[count];
            *one = (Companion){.what = kinds[kind].what, .model = arena_text(&job->arena, other.at, other.size), .size = other.size, .plan = job->plan};
            one->plan.model = one->model, one->plan.model_size = one->size, one->plan.entries = entries;
            count += run_on_cpu(job, feeds, one);
        }
        bytes_free(&other);
    }
    return count;
}

OrtSession *companion_open(Job *job, const Companion *companion) {
    job_enter(job, "create");
    return job_open(job, &companion->plan);
}
