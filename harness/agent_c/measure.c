/* Repeated runs, compared bit by bit, and timed runs. */

#include "job.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PROGRESS_MS = 100, MOST_SAMPLES = 1000000 };

typedef struct {
    const Value *first;
    size_t count;
    long runs, differing;
    double most, apart;
    Value *furthest;
    char (*digests)[65]; /* of the runs with other bits, and of the first */
    size_t known;
} Tally;

static void note_digest(Tally *tally, const Value *outputs) {
    char hex[65];
    values_digest(outputs, tally->count, hex);
    for (size_t index = 0; index < tally->known; index++)
        if (!memcmp(tally->digests[index], hex, sizeof hex)) return;
    tally->digests = realloc(tally->digests, (tally->known + 1) * sizeof *tally->digests);
    if (!tally->digests) abort();
    memcpy(tally->digests[tally->known++], hex, sizeof hex);
}

/* Compare one more run; return whether its outputs are kept. */
static bool tally_add(Tally *tally, Value *outputs) {
    tally->runs++;
    if (same_values(tally->first, outputs, tally->count)) return false;
    if (!tally->differing++) note_digest(tally, tally->first);
    note_digest(tally, outputs);
    tally->most = fmax(tally->most, values_apart(tally->first, outputs, tally->count, false));
    double apart = values_apart(tally->first, outputs, tally->count, true);
    if (apart <= tally->apart) return false;
    tally->apart = apart;
    tally->furthest = outputs;
    return true;
}

static bool run_again(Job *job, const Feeds *feeds, OrtValue **in, long runs, Tally *tally) {
    OrtValue **out = arena_take(&job->arena, (job->outputs + 1) * sizeof *out);
    for (long run = 0; run < runs; run++) {
        Arena arena = {0};
        Value *outputs = NULL;
        job_further(job);
        memset(out, 0, job->outputs * sizeof *out);
        bool fine = job_step(job, feeds, in, job->names, job->outputs, out);
        if (!fine) job_release(out, job->outputs);
        fine = fine && job_collect(job, &arena, out, job->outputs, &outputs);
        if (fine && tally_add(tally, outputs)) arena_join(&job->arena, &arena);
        arena_free(&arena);
        if (!fine) return false;
    }
    return true;
}

bool repeat_runs(Job *job, const Feeds *feeds) {
    const Json *settings = json_get(job->message, "repeat");
    long runs = (long)json_integer(json_get(settings, "runs"), 1), sessions = (long)json_integer(json_get(settings, "sessions"), 1);
    Tally tally = {.first = job->ran[0], .count = job->outputs, .runs = 1, .apart = -1};
    bool fine = true;
    for (long session = 0; fine && session < sessions; session++) {
        OrtValue **in = NULL;
        if (session) {
            job_enter(job, "teardown");
            job_close(job);
            job_enter(job, "create");
            fine = job_create(job);
            if (fine) job_enter(job, "run");
        }
        fine = fine && job_prepare(job, &job->arena, feeds, &in);
        if (!fine) break;
        fine = run_again(job, feeds, in, session ? runs : runs - 1, &tally);
        job_release(in, feeds->count);
    }
    if (fine) {
        bytes_format(&job->repeats, "{\"runs\":%ld,\"sessions\":%ld,\"distinct\":%zu,\"differing\":%ld,\"max_abs\":", tally.runs / sessions,
                     sessions, tally.known ? tally.known : 1, tally.differing);
        bytes_format(&job->repeats, isfinite(tally.most) ? "%.17g}" : "null}", tally.most);
        job->second = tally.furthest;
    }
    free(tally.digests);
    return fine;
}

bool time_runs(Job *job, const Feeds *feeds) {
    const Json *settings = json_get(job->message, "latency");
    long warm_up = (long)json_integer(json_get(settings, "warm_up"), 0), repeats = (long)json_integer(json_get(settings, "repeats"), 1);
    double budget_ms = json_number(json_get(settings, "budget_s"), 1) * 1e3;
    OrtValue **in = NULL, **out = arena_take(&job->arena, (job->outputs + 1) * sizeof *out);
    Value *last = NULL;
    if (repeats > MOST_SAMPLES) repeats = MOST_SAMPLES;
    double *samples = arena_take(&job->arena, (size_t)(repeats > 0 ? repeats : 1) * sizeof *samples);
    if (!job_prepare(job, &job->arena, feeds, &in)) return false;
    job_enter(job, "run");
    long done = 0, warmed = 0;
    bool fine = true;
    for (double began = now_ms(); done < repeats;) {
        double now = now_ms();
        bool warming = warmed < warm_up && !done && now - began < budget_ms / 2;
        if (done && now - began >= budget_ms) break;
        if (now - job->reported_ms > PROGRESS_MS) job_enter(job, "run");
        job_release(out, job->outputs);
        memset(out, 0, job->outputs * sizeof *out);
        fine = job_step(job, feeds, in, job->names, job->outputs, out);
        if (!fine) break;
        if (warming) warmed++;
        else samples[done++] = job->run_ms;
    }
    job_release(in, feeds->count);
    if (!fine) job_release(out, job->outputs);
    if (!fine || !job_collect(job, &job->arena, out, job->outputs, &last)) return false;
    bytes_format(&job->latency, "{\"samples_ns\":[");
    for (long index = 0; index < done; index++) bytes_format(&job->latency, index ? ",%.0f" : "%.0f", samples[index] * 1e6);
    bytes_format(&job->latency, "],\"warm_up\":%ld,\"stopped_by\":\"%s\",\"io\":\"copied\",\"intra_op_threads\":%lld,\"inter_op_threads\":1,"
                 "\"waiting_threads\":null,\"device_mib\":null,\"host_peak_mib\":", warmed, done == repeats ? "repeats" : "budget",
                 (long long)json_integer(json_get(job->message, "intra_op_threads"), 1));
    double peak = peak_mib(false);
    bytes_format(&job->latency, peak < 0 ? "null}" : "%.2f}", peak);
    /* Runs that became fast because they no longer compute must not pass. */
    if (!job->second && !same_values(job->ran[0], last, job->outputs)) job->second = last;
    return true;
}
