/* Repeated runs, compared bit by bit, and timed runs. */

#include "job.h"

#include <math.h>
#include <string.h>

enum { PROGRESS_MS = 100, MOST_SAMPLES = 1000000 };

struct Digest {
    char hex[65];
    struct Digest *next;
};

static void note_digest(Job *job, Tally *tally, const Value *outputs) {
    struct Digest *made = arena_take(&job->arena, sizeof *made), *one = tally->digests;
    values_digest(outputs, job->outputs, made->hex);
    while (one && strcmp(one->hex, made->hex)) one = one->next;
    made->next = tally->digests;
    if (!one) tally->digests = made;
}

bool tally_add(Job *job, Tally *tally, Arena *arena, Value *outputs) {
    tally->runs++;
    if (same_values(tally->first, outputs, job->outputs)) return false;
    if (!tally->differing++) note_digest(job, tally, tally->first);
    note_digest(job, tally, outputs);
    tally->most = fmax(tally->most, values_apart(tally->first, outputs, job->outputs, false));
    double apart = values_apart(tally->first, outputs, job->outputs, true);
    if (tally->furthest && apart <= tally->apart) return false;
    tally->apart = apart;
    tally->furthest = outputs;
    arena_join(&job->arena, arena);
    return true;
}

void tally_report(Job *job, const Tally *tally, long sessions) {
    size_t distinct = !tally->digests;
    for (struct Digest *one = tally->digests; one; one = one->next) distinct++;
    bytes_format(&job->repeats, "{\"runs\":%ld,\"sessions\":%ld,\"distinct\":%zu,\"differing\":%ld,\"max_abs\":", tally->runs / sessions, sessions,
                 distinct, tally->differing);
    bytes_format(&job->repeats, isfinite(tally->most) ? "%.17g}" : "null}", tally->most);
    job->second = tally->furthest;
}

bool repeat_runs(Job *job, const Feeds *feeds) {
    const Json *settings = json_get(job->message, "repeat");
    long runs = (long)json_integer(json_get(settings, "runs"), 1), sessions = (long)json_integer(json_get(settings, "sessions"), 1);
    Tally tally = {.first = job->ran[0], .runs = 1};
    bool fine = true;
    for (long session = 0; fine && session < sessions; session++) {
        if (session) {
            job_enter(job, "teardown");
            job_close(job);
            job_enter(job, "create");
            fine = job_create(job);
            if (fine) job_enter(job, "run");
        }
        for (long run = !session; fine && run < runs; run++) {
            Arena arena = {0};
            Value *outputs = NULL;
            job_further(job);
            fine = job_run(job, &arena, feeds, job->names, job->outputs, &outputs);
            if (fine) tally_add(job, &tally, &arena, outputs);
            arena_free(&arena);
        }
    }
    if (fine) tally_report(job, &tally, sessions);
    return fine;
}

bool time_steps(Job *job, bool (*step)(void *), void *with, const char *io) {
    const Json *settings = json_get(job->message, "latency");
    long warm_up = (long)json_integer(json_get(settings, "warm_up"), 0), repeats = (long)json_integer(json_get(settings, "repeats"), 1);
    double budget_ms = json_number(json_get(settings, "budget_s"), 1) * 1e3;
    if (repeats > MOST_SAMPLES) repeats = MOST_SAMPLES;
    double *samples = arena_take(&job->arena, (size_t)(repeats > 0 ? repeats : 1) * sizeof *samples);
    job_enter(job, "run");
    long done = 0, warmed = 0;
    for (double began = now_ms(); done < repeats;) {
        double now = now_ms();
        bool warming = warmed < warm_up && !done && now - began < budget_ms / 2;
        if (done && now - began >= budget_ms) break;
        if (now - job->reported_ms > PROGRESS_MS) job_enter(job, "run");
        if (!step(with)) return false;
        if (warming) warmed++;
        else samples[done++] = job->run_ms;
    }
    bytes_format(&job->latency, "{\"samples_ns\":[");
    for (long index = 0; index < done; index++) bytes_format(&job->latency, index ? ",%.0f" : "%.0f", samples[index] * 1e6);
    bytes_format(&job->latency, "],\"warm_up\":%ld,\"stopped_by\":\"%s\",\"io\":\"%s\",\"intra_op_threads\":%lld,\"inter_op_threads\":1,"
                 "\"waiting_threads\":null,\"device_mib\":null,\"host_peak_mib\":", warmed, done == repeats ? "repeats" : "budget", io,
                 (long long)json_integer(json_get(job->message, "intra_op_threads"), 1));
    double peak = peak_mib(false);
    bytes_format(&job->latency, peak < 0 ? "null}" : "%.2f}", peak);
    return true;
}

typedef struct {
    Job *job;
    const Feeds *feeds;
    OrtValue **in, **out;
} Prepared;

static bool run_prepared(void *with) {
    Prepared *prepared = with;
    Job *job = prepared->job;
    job_release(prepared->out, job->outputs);
    memset(prepared->out, 0, job->outputs * sizeof *prepared->out);
    return job_step(job, prepared->feeds, prepared->in, job->names, job->outputs, prepared->out);
}

bool time_runs(Job *job, const Feeds *feeds) {
    Prepared prepared = {job, feeds, NULL, arena_take(&job->arena, (job->outputs + 1) * sizeof(OrtValue *))};
    Value *last = NULL;
    if (!job_prepare(job, &job->arena, feeds, &prepared.in)) return false;
    bool fine = time_steps(job, run_prepared, &prepared, "copied");
    job_release(prepared.in, feeds->count);
    if (!fine) job_release(prepared.out, job->outputs);
    if (!fine || !job_collect(job, &job->arena, prepared.out, job->outputs, &last)) return false;
    /* Runs that became fast because they no longer compute must not pass. */
    if (!job->second && !same_values(job->ran[0], last, job->outputs)) job->second = last;
    return true;
}
