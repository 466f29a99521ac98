/* The scenario `terminate`: a run is told to end while a loop goes on, and a session while it is loaded. The model is the body of a
 * Loop, and the last input says how often it computes. Its pace is measured first, so no load of the machine decides the verdict. */

#include "job.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

enum { LEAST_ITERATIONS = 4, MOST_ITERATIONS = 1 << 26, MULTIPLE = 8, TRIES = 4, INT64 = 7 };
static const double LEAST_MS = 50; /* of a run from which on its pace is known */

/* What another thread does: a run, or the cancellation of a load after some time. */
static struct {
    Lock *lock;
    Job *job;
    const Feeds *feeds;
    OrtValue **in, **out;
    OrtRunOptions *options;
    OrtSessionOptions *settings;
    OrtStatus *status;
    double began, ended_ms, wait_ms;
    bool ended, stopped;
} cut;

static const char *lowered(Arena *arena, const char *text) {
    char *made = arena_text(arena, text, strlen(text));
    for (char *at = made; *at; at++) *at = (char)tolower((unsigned char)*at);
    return made;
}

/* --- a run --- */

static void run_aside(void) {
    const Job *job = cut.job;
    OrtStatus *status = ORT(Run)(job->session, cut.options, cut.feeds->names, (const OrtValue *const *)cut.in, cut.feeds->count, job->names, job->outputs, cut.out);
    lock_take(cut.lock);
    cut.status = status;
    cut.ended_ms = now_ms() - cut.began;
    cut.ended = true;
    lock_give(cut.lock);
}

static bool has_ended(void) {
    lock_take(cut.lock);
    bool ended = cut.ended;
    lock_give(cut.lock);
    return ended;
}

/* The inputs with another length of the loop. */
static Feeds counted(Job *job, const Feeds *feeds, int64_t count) {
    Feeds made = {feeds->names, arena_take(&job->arena, (feeds->count + 1) * sizeof(Value)), feeds->count};
    memcpy(made.values, feeds->values, feeds->count * sizeof(Value));
    int64_t *data = arena_take(&job->arena, sizeof *data);
    *data = count;
    made.values[feeds->count - 1] = (Value){.kind = TENSOR_VALUE, .type = INT64, .shape = data, .size = sizeof *data, .data = data};
    return made;
}

static bool time_loop(Job *job, const Feeds *feeds, int64_t count, double *took_ms) {
    Feeds made = counted(job, feeds, count);
    Arena arena = {0};
    Value *outputs = NULL;
    job_enter(job, "run");
    bool fine = job_run(job, &arena, &made, job->names, job->outputs, &outputs);
    *took_ms = job->run_ms;
    arena_free(&arena);
    return fine;
}

/* Begin a run in a thread, tell it to end after so long, and wait until it has ended: its error, or NULL. */
static bool cut_run(Job *job, const Feeds *feeds, double wait_ms, double *told_ms, const char **error) {
    *told_ms = 0;
    *error = NULL;
    cut.job = job, cut.feeds = feeds, cut.status = NULL, cut.ended = false, cut.in = NULL;
    cut.out = arena_take(&job->arena, (job->outputs + 1) * sizeof *cut.out);
    if (!cut.lock) cut.lock = lock_new();
    job_enter(job, "run");
    if (!job_prepare(job, &job->arena, feeds, &cut.in) || !job_good(job, ORT(CreateRunOptions)(&cut.options))) return false;
    cut.began = now_ms();
    if (!thread_start(run_aside)) return job_fail(job, "unsupported", NULL, "the system gives no threads");
    while (!has_ended() && now_ms() - cut.began < wait_ms) sleep_ms(1);
    OrtStatus *told = NULL;
    if (!has_ended()) told = ORT(RunOptionsSetTerminate)(cut.options), *told_ms = now_ms() - cut.began;
    while (!has_ended()) sleep_ms(1); /* the harness limits the time of a run */
    ORT(ReleaseRunOptions)(cut.options);
    job_release(cut.in, feeds->count);
    job_release(cut.out, job->outputs);
    if (cut.status) *error = status_text(&job->arena, cut.status, &job->kind);
    return job_good(job, told);
}

static bool end_early(Job *job, const Feeds *feeds) {
    int64_t count = 1;
    double took_ms = 0, told_ms = 0, ended_ms = 0;
    const char *error = NULL;
    if (!time_loop(job, feeds, count, &took_ms)) return false;
    while (count < LEAST_ITERATIONS || took_ms < LEAST_MS) {
        const char *words = "a loop of %lld iterations takes no time: the model is computed once";
        if (count >= MOST_ITERATIONS) return job_fail(job, "unsupported", NULL, arena_format(&job->arena, words, (long long)count));
        count *= took_ms > LEAST_MS / 16 ? 2 : 16; /* a first slow run does not decide */
        if (!time_loop(job, feeds, count, &took_ms)) return false;
    }
    for (int turn = 0; turn < TRIES; turn++) {
        int64_t longer = count * MULTIPLE;
        Feeds made = counted(job, feeds, longer);
        if (!cut_run(job, &made, took_ms / 2, &told_ms, &error)) return false;
        ended_ms = cut.ended_ms;
        bool is_last = error || (told_ms > 0 && ended_ms >= 2 * told_ms) || turn + 1 == TRIES;
        if (is_last)
            fact(job, "\"iterations\":%lld,\"iteration_ms\":%.6f,\"told_after_ms\":%.4f,\"ended_after_ms\":%.4f", (long long)longer, took_ms / (double)count, told_ms, ended_ms);
        if (error) { /* a run that fails for another reason fails as any other */
            if (!strstr(lowered(&job->arena, error), "terminat")) return job_fail(job, "error", job->kind, error);
            fact_text(job, "message", error);
            job->kind = NULL;
            return true;
        }
        /* It went on for as long as it had gone before, so it did not merely come to its end. */
        const char *words = "told to end after %.3g s, the run went on to its end, after %.3g s and %lld iterations";
        if (told_ms > 0 && ended_ms >= 2 * told_ms)
            return job_fail(job, "error", "TerminateIgnoredError", arena_format(&job->arena, words, told_ms / 1e3, ended_ms / 1e3, (long long)longer));
        count = longer, took_ms = ended_ms;
    }
    return job_fail(job, "unsupported", NULL, arena_format(&job->arena, "every loop ended before it could be told to, at last after %.3g s", took_ms / 1e3));
}

/* --- a load --- */

static void cancel_aside(void) {
    for (double until = now_ms() + cut.wait_ms; !has_ended() && now_ms() < until;) sleep_ms(1);
    lock_take(cut.lock);
    if (!cut.ended) cut.status = ORT(SessionOptionsSetLoadCancellationFlag)(cut.settings, true);
    cut.stopped = true;
    lock_give(cut.lock);
}

/* Cancel a load before it begins, or after so many milliseconds; tell whether it was cancelled. */
static bool cancel_load(Job *job, double wait_ms, bool *cancelled) {
    Trouble trouble = {0};
    OrtSession *made = NULL;
    job_enter(job, "create");
    OrtSessionOptions *settings = session_options(&job->arena, &job->plan, &trouble);
    if (!settings) return job_trouble(job, &trouble);
    cut.settings = settings, cut.wait_ms = wait_ms, cut.ended = cut.stopped = false, cut.status = NULL;
    bool aside = wait_ms > 0 && thread_start(cancel_aside);
    if (!aside) cut.status = ORT(SessionOptionsSetLoadCancellationFlag)(settings, true);
    OrtStatus *status = ORT(CreateSession)(ort_env, runtime_path(&job->arena, job->plan.model), settings, &made);
    lock_take(cut.lock);
    cut.ended = true;
    while (aside && !cut.stopped) {
        lock_give(cut.lock);
        sleep_ms(1);
        lock_take(cut.lock);
    }
    lock_give(cut.lock);
    ORT(ReleaseSessionOptions)(settings);
    if (made) ORT(ReleaseSession)(made);
    *cancelled = status != NULL;
    if (!job_good(job, cut.status)) return false;
    if (!status) return true;
    const char *kind = NULL, *error = status_text(&job->arena, status, &kind);
    return strstr(lowered(&job->arena, error), "cancel") || job_fail(job, "error", kind, error);
}

static bool cancel_loads(Job *job) {
    bool cancelled = false;
    if (!HAS(SessionOptionsSetLoadCancellationFlag)) {
        fact_text(job, "load", arena_format(&job->arena, "onnxruntime %s has no load cancellation in C", runtime_version()));
        return true;
    }
    if (!cancel_load(job, 0, &cancelled)) return false;
    if (!cancelled) return job_fail(job, "error", "LoadNotCancelledError", "a session was made although its load was cancelled before it began");
    /* In the middle a load may be past the last look at the flag: either end is right. */
    if (!cancel_load(job, job->create_ms / 2, &cancelled)) return false;
    fact_text(job, "load", "cancelled");
    fact_text(job, "load_in_the_middle", cancelled ? "cancelled" : "made");
    return true;
}

/* Run all data sets again, and keep their results if they are further from those before than any. */
static bool run_again(Job *job, const Feeds *feeds, Value *const *before, double *apart) {
    Value **again = arena_take(&job->arena, (job->sets + 1) * sizeof *again);
    double further = 0;
    for (size_t set = 0; set < job->sets; set++) {
        job_enter(job, "run");
        if (!job_run(job, &job->arena, &feeds[set], job->names, job->outputs, &again[set])) return false;
        further = fmax(further, values_apart(before[set], again[set], job->outputs, true));
    }
    if (further > *apart || *apart < 0) *apart = further, job->ran = again;
    return true;
}

bool terminate(Job *job) {
    Value **before = job->ran;
    Feeds *feeds = arena_take(&job->arena, (job->sets + 1) * sizeof *feeds);
    double apart = -1;
    if (!job->sets) return job_fail(job, "unfeedable", NULL, "the scenario needs a data set");
    if (!job_create(job)) return false;
    for (const Json *one = json_item(json_get(job->message, "data_sets"), 0); one; one = one->next, job->sets_ran++) {
        job_enter(job, "run");
        if (!job_feeds(job, one, &feeds[job->sets_ran]) || !job_run(job, &job->arena, &feeds[job->sets_ran], job->names, job->outputs, &before[job->sets_ran])) return false;
        if (job->first_run_ms < 0) job->first_run_ms = job->run_ms;
    }
    if (!feeds[0].count) return job_fail(job, "unfeedable", NULL, "the scenario needs the length of the loop");
    if (!end_early(job, &feeds[0]) || !run_again(job, feeds, before, &apart) || !cancel_loads(job)) return false;
    if (HAS(SessionOptionsSetLoadCancellationFlag)) { /* the last session is one whose load was cancelled and begun again */
        job_enter(job, "teardown");
        job_close(job);
        job_enter(job, "create");
        if (!job_create(job) || !run_again(job, feeds, before, &apart)) return false;
    }
    fact(job, "\"equal_to_before\":%s", apart > 0 ? "false" : "true");
    if (apart > 0) fact_number(job, "difference", apart);
    return job_conclude(job);
}
