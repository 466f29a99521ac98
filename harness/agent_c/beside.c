/* Runs beside others, in several sessions or threads or in flight: what is furthest from a run alone is judged. */

#include "child.h"
#include "company.h"

#include <math.h>
#include <string.h>

enum { SESSIONS = 3, IN_FLIGHT = 4, MOST_THREADS = 256, POLL_MS = 5 };

/* Shares of the largest value: from the first on it is told where a result came about; rounding explains less than the second. */
static const double TOLD = 1e-3, CROSS_TALK = 0.05;

/* --- what a run alone gives --- */

static double furthest(const Watch *watch) {
    double most = 0;
    for (size_t set = 0; set < watch->job->sets; set++) most = fmax(most, watch->seen[set].tally.apart);
    return most;
}

static bool run_alone(Watch *watch, size_t set) {
    Job *job = watch->job;
    job_further(job);
    if (!job_run(job, &job->arena, &watch->seen[set].feeds, job->names, job->outputs, &job->ran[set])) return false;
    watch->seen[set].tally.first = job->ran[set];
    if (job->first_run_ms < 0) job->first_run_ms = job->run_ms;
    return true;
}

bool watch_begin(Watch *watch, Job *job) {
    *watch = (Watch){.job = job, .total = job->sets, .seen = arena_take(&job->arena, (job->sets + 1) * sizeof *watch->seen), .only = ""};
    if (!job->sets) return job_fail(job, "unfeedable", NULL, "the scenario needs a data set");
    for (const Json *one = json_item(json_get(job->message, "data_sets"), 0); one; one = one->next, job->sets_ran++) {
        job_enter(job, "run");
        if (!job_feeds(job, one, &watch->seen[job->sets_ran].feeds) || !run_alone(watch, job->sets_ran)) return false;
    }
    if (!watch_run(watch, 0, "")) return false;
    watch->wanders = watch->seen[0].tally.apart;
    job->ran[0] = watch->seen[0].tally.first;
    watch->seen[0].tally = (Tally){.first = job->ran[0]}; /* what differs from run to run is no matter of the scenario */
    return true;
}

bool watch_others(Watch *watch) {
    Job *job = watch->job;
    Feeds *other = &watch->seen[job->sets].feeds, *first = &watch->seen[0].feeds;
    *other = (Feeds){first->names, arena_take(&job->arena, (first->count + 1) * sizeof(Value)), first->count};
    watch->total += faded_values(&job->arena, first->values, first->count, other->values);
    return watch->total == job->sets || run_alone(watch, job->sets);
}

void watch_look(Watch *watch, size_t set, Arena *arena, Value *outputs, const char *where) {
    Tally *tally = &watch->seen[set].tally;
    if (tally_add(watch->job, tally, arena, outputs)) {
        watch->job->ran[set] = outputs;
        if (set < watch->job->sets && tally->apart >= furthest(watch)) watch->only = where;
    }
    arena_free(arena);
}

bool watch_run(Watch *watch, size_t set, const char *where) {
    Arena arena = {0};
    Value *outputs = NULL;
    Job *job = watch->job;
    job_further(job);
    bool fine = job_run(job, &arena, &watch->seen[set].feeds, job->names, job->outputs, &outputs);
    if (fine) watch_look(watch, set, &arena, outputs, where);
    arena_free(&arena);
    return fine;
}

bool watch_all(Watch *watch, OrtSession *session, const char *where) {
    OrtSession *judged = watch->job->session;
    bool fine = true;
    watch->job->session = session;
    for (size_t set = 0; fine && set < watch->job->sets; set++) fine = watch_run(watch, set, where);
    watch->job->session = judged;
    return fine;
}

bool watch_conclude(Watch *watch, const char *equal) {
    double apart = furthest(watch);
    fact(watch->job, "\"%s\":%s", equal, apart > 0 ? "false" : "true");
    if (apart > 0) fact_number(watch->job, "difference", apart);
    if (apart > fmax(TOLD, watch->wanders) && *watch->only) fact_text(watch->job, "only", watch->only);
    return job_conclude(watch->job);
}

bool watch_end(Watch *watch, const char *kind, const char *where) {
    Job *job = watch->job;
    Tally all = {0}, *other = &watch->seen[job->sets].tally;
    for (size_t set = 0; set < job->sets; set++) all.runs += watch->seen[set].tally.runs, all.differing += watch->seen[set].tally.differing;
    fact(job, "\"runs\":%ld,\"other_runs\":%ld,\"differing_runs\":%ld,\"differing_other_runs\":%ld", all.runs, other->runs, all.differing, other->differing);
    bool fine = watch_conclude(watch, "equal_to_alone");
    /* The harness has no golden for the other inputs: they are judged here, if they alone show that data were mixed up. */
    if (!fine || !(other->apart > CROSS_TALK) || fmax(furthest(watch), watch->wanders) > CROSS_TALK) return fine;
    const char *words = "%s a result is off by %.3g of its largest value, which it is not alone";
    return job_fail(job, "error", kind, arena_format(&job->arena, words, where, other->apart));
}

/* --- several sessions, in turns --- */

static bool take_turns(Watch *watch, OrtSession **open, size_t count, const char *where) {
    Job *job = watch->job;
    bool fine = true;
    for (size_t turn = 0; fine && turn < count * job->sets; turn++) {
        job->session = open[turn / job->sets];
        fine = watch_run(watch, turn % job->sets, where);
        job->session = open[(turn / job->sets + 1) % count];
        fine = fine && (watch->total == job->sets || watch_run(watch, job->sets, ""));
    }
    job->session = open[0];
    return fine;
}

static bool run_beside(Watch *watch, const Companion *companion, OrtSession *session, double *apart) {
    Job *job = watch->job;
    Arena arena = {0};
    Value *outputs = NULL;
    job_enter(job, "run");
    bool fine = job_run_in(job, session, &arena, &watch->seen[0].feeds, &outputs);
    if (fine) *apart = fmax(*apart, values_apart(companion->expected, outputs, job->outputs, true));
    arena_free(&arena);
    return fine;
}

/* Run the model and a companion in turns; close the model first, and then, made again, the companion. */
static bool take_turns_beside(Watch *watch, const Companion *companion, double *apart) {
    Job *job = watch->job;
    const char *where = arena_format(&job->arena, "in the company of a model %s", companion->what);
    OrtSession *beside = companion_open(job, companion);
    bool fine = beside && run_beside(watch, companion, beside, apart) && take_turns(watch, &job->session, 1, where) && run_beside(watch, companion, beside, apart);
    if (fine) {
        job_enter(job, "teardown");
        job_close(job);
        fine = run_beside(watch, companion, beside, apart);
    }
    if (fine) job_enter(job, "create");
    fine = fine && job_create(job) && take_turns(watch, &job->session, 1, where) && run_beside(watch, companion, beside, apart);
    if (fine) job_enter(job, "teardown");
    if (beside) ORT(ReleaseSession)(beside);
    return fine && take_turns(watch, &job->session, 1, where);
}

/* Tell whether a companion that is wrong here is right in a process of its own: else the provider mixes nothing up. */
static bool is_right_alone(Job *job, const Companion *companion, bool *right) {
    const char *folder = scratch_begin(job), *path = arena_format(&job->arena, "%s/model.onnx", folder ? folder : ".");
    Served served = {0};
    bool fine = folder && (file_append(path, companion->model, companion->size, true) || job_fail(job, "unfeedable", NULL, "the agent's folder takes no files"));
    fine = fine && child_serve(job, path, NULL, false, &served);
    scratch_end(job);
    *right = fine && !strcmp(served.status, "ok") && values_apart(companion->expected, served.outputs[0], job->outputs, true) <= CROSS_TALK;
    return fine;
}

/* Run the model behind a companion, in a fresh process: then the model is the one that may be wrong. */
static bool take_other_order(Watch *watch, const Companion *companion) {
    Job *job = watch->job;
    Served served;
    const char *settings = arena_format(&job->arena, "{\"behind\":\"%s\"}", companion->what);
    const char *changes[] = {"scenario", "\"interleaved\"", "scenario_settings", settings, NULL};
    if (!child_serve(job, job->plan.model, changes, false, &served)) return false;
    const char *where = arena_format(&job->arena, "in the company of a model %s", companion->what);
    for (size_t set = 0; !strcmp(served.status, "ok") && set < job->sets; set++) watch_look(watch, set, &(Arena){0}, served.outputs[set], where);
    return true;
}

static bool beside_companions(Watch *watch, const char **wrong) {
    Job *job = watch->job;
    Companion companions[MOST_COMPANIONS];
    const char *told[MOST_COMPANIONS];
    size_t count = companions_of(job, &watch->seen[0].feeds, companions);
    for (size_t index = 0; index < count; index++) {
        double apart = 0;
        bool right = false;
        told[index] = companions[index].what;
        if (!take_turns_beside(watch, &companions[index], &apart)) return false;
        if (furthest(watch) > fmax(TOLD, watch->wanders) || apart <= CROSS_TALK) continue;
        if (!is_right_alone(job, &companions[index], &right)) return false;
        if (right) *wrong = companions[index].what;
        if (right && !take_other_order(watch, &companions[index])) return false;
    }
    if (count) fact_texts(job, "companions", told, count);
    return true;
}

/* In a fresh process: make and run a companion before the session of the model, which stays open. */
static bool behind(Job *job, const char *what) {
    Companion companions[MOST_COMPANIONS];
    Feeds feeds;
    OrtSession *held = NULL;
    bool fine = job_create(job) && job_feeds(job, json_item(json_get(job->message, "data_sets"), 0), &feeds);
    size_t count = fine ? companions_of(job, &feeds, companions) : 0;
    job_close(job); /* it gave the names of the outputs */
    for (size_t index = 0; fine && index < count; index++) {
        if (strcmp(companions[index].what, what)) continue;
        Value *outputs = NULL;
        fine = (held = companion_open(job, &companions[index])) && job_run_in(job, held, &job->arena, &feeds, &outputs);
    }
    fact(job, "\"sessions\":%d", held ? 2 : 1);
    fine = fine && job_create(job) && job_run_sets(job) && job_conclude(job);
    if (held) ORT(ReleaseSession)(held);
    return fine;
}

bool interleaved(Job *job) {
    const char *first = json_text(json_get(json_get(job->message, "scenario_settings"), "behind"), NULL), *wrong = NULL;
    const char *where = "in the company of another session of the model";
    Watch watch;
    if (first) return behind(job, first);
    OrtSession *open[SESSIONS] = {NULL};
    size_t count = 1;
    bool fine = job_create(job) && watch_begin(&watch, job) && watch_others(&watch);
    for (open[0] = job->session; fine && count < SESSIONS; count += fine) {
        job_enter(job, "create");
        fine = job_create(job);
        open[count] = job->session;
    }
    job->session = open[0];
    fine = fine && take_turns(&watch, open, count, where);
    while (fine && count > 1) { /* the first is closed after a later one, and the last one outlives both */
        size_t closed = count == SESSIONS;
        job_enter(job, "teardown");
        ORT(ReleaseSession)(open[closed]);
        memmove(&open[closed], &open[closed + 1], (--count - closed) * sizeof *open);
        fine = take_turns(&watch, open, count, where);
    }
    while (count > 1) ORT(ReleaseSession)(open[--count]); /* a step failed */
    fine = fine && beside_companions(&watch, &wrong);
    fact(job, "\"sessions\":%d", SESSIONS);
    if (!fine || !watch_end(&watch, "OtherSessionError", "beside other sessions of the model")) return false;
    if (!wrong || furthest(&watch) > fmax(TOLD, watch.wanders)) return true;
    const char *words = "a model of the same shapes %s is computed wrongly, only in the company of this model";
    return job_fail(job, "error", "OtherSessionError", arena_format(&job->arena, words, wrong));
}

/* --- several threads in one session --- */

typedef struct {
    Watch *watch;
    Lock *lock;
    double until;
    size_t turns, started, ended, under_way, at_once;
    bool stopped;
    const char *where;
} Crowd;

static Crowd crowd;

static void join_crowd(void) {
    Watch *watch = crowd.watch;
    Job job = *watch->job; /* its own: a run notes in it what it took, and why it failed */
    job.arena = (Arena){0};
    bool fine = true;
    lock_take(crowd.lock);
    size_t number = crowd.started++, others = watch->total - job.sets;
    for (size_t step = 0; fine && !crowd.stopped && step / (1 + others) < crowd.turns && (step <= others || now_ms() < crowd.until); step++) {
        size_t set = others && step % 2 ? job.sets : (number + step / (1 + others)) % job.sets;
        Arena arena = {0};
        Value *outputs = NULL;
        if (++crowd.under_way > crowd.at_once) crowd.at_once = crowd.under_way;
        lock_give(crowd.lock);
        fine = job_run(&job, &arena, &watch->seen[set].feeds, job.names, job.outputs, &outputs);
        lock_take(crowd.lock);
        crowd.under_way--;
        if (fine) watch_look(watch, set, &arena, outputs, crowd.where);
        arena_free(&arena);
    }
    if (!fine && !crowd.stopped) {
        job_fail(watch->job, job.status, job.kind, job.error);
        arena_join(&watch->job->arena, &job.arena); /* it has the words */
        crowd.stopped = true;
    }
    arena_free(&job.arena);
    crowd.ended++;
    lock_give(crowd.lock);
}

/* Run in so many threads at once, and wait for all. */
static bool run_crowd(Watch *watch, size_t threads, const char *where) {
    const Json *settings = json_get(watch->job->message, "scenario_settings");
    double until = now_ms() + json_number(json_get(settings, "budget_s"), 60) * 1e3;
    Lock *lock = crowd.lock ? crowd.lock : lock_new();
    size_t begun = 0, ended = 0;
    crowd = (Crowd){.watch = watch, .lock = lock, .turns = (size_t)json_integer(json_get(settings, "runs"), 1), .until = until, .where = where};
    job_enter(watch->job, "run");
    while (begun < threads && thread_start(join_crowd)) begun++;
    for (long seen = 0; ended < begun; sleep_ms(POLL_MS)) {
        lock_take(lock);
        ended = crowd.ended;
        if (seen != watch->seen[0].tally.runs) job_further(watch->job); /* a hang is no progress */
        seen = watch->seen[0].tally.runs;
        lock_give(lock);
    }
    if (!begun) return job_fail(watch->job, "unsupported", NULL, "the system gives no threads");
    fact(watch->job, "\"threads\":%zu,\"at_once\":%zu", threads, crowd.at_once);
    return !crowd.stopped;
}

bool concurrent(Job *job) {
    size_t threads = (size_t)json_integer(json_get(json_get(job->message, "scenario_settings"), "threads"), 1);
    Watch watch;
    if (threads < 1 || threads > MOST_THREADS) return job_fail(job, "unfeedable", NULL, "a number of threads out of range");
    if (!job_create(job) || !watch_begin(&watch, job) || !watch_others(&watch) || !run_crowd(&watch, threads, "among concurrent runs")) return false;
    return watch_end(&watch, "_CrossTalkError", "among concurrent runs");
}

/* Each thread starts one run with RunAsync and waits for it: so many are in flight at once. */
bool async_runs(Job *job) {
    Watch watch;
    job->plan.least_threads = 2; /* the calling thread counts as one: alone, onnxruntime has no thread for the run */
    if (!job_create(job) || !watch_begin(&watch, job) || !watch_others(&watch)) return false;
    job->landing = lock_new();
    if (!run_crowd(&watch, IN_FLIGHT, "among runs in flight")) return false;
    job->landing = NULL;
    return watch_end(&watch, "AsynchronousRunError", "among runs in flight");
}
