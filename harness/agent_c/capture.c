/* The scenario `capture`: the provider records its work, and replays it with other values in the same buffers. Each capture has
 * an id and a binding of its own. */

#include "bind.h"

#include <math.h>
#include <string.h>

enum { RUNS = 3 }; /* with one id: CUDA captures in the second by default, and replays from then on */
static const double CROSS_TALK = 0.05;

typedef struct {
    Bound bound;
    Feeds feeds;
    OrtValue **values; /* buffers of the outputs */
    Value *expected;
    int number;
    double apart;
} Capture;

typedef struct {
    Job *job;
    OrtSession *plain;
    Capture *captures; /* one for each data set, and one more with other inputs */
    size_t replays;
} Replays;

static bool capture_open(Replays *all, size_t index, const Feeds *feeds) {
    Job *job = all->job;
    Capture *one = &all->captures[index];
    Bound *bound = &one->bound;
    one->feeds = *feeds;
    one->number = (int)index + 1;
    one->values = arena_take(&job->arena, (job->outputs + 1) * sizeof(OrtValue *));
    job_enter(job, "run");
    if (!bound_open(bound, job, job->session) || !bound_feed(bound, feeds)) return false;
    if (!job_run_in(job, all->plain, &job->arena, feeds, &one->expected)) return false;
    for (size_t output = 0; output < job->outputs; output++)
        if (!(one->values[output] = place_value(job, &job->arena, &bound->out[output], &one->expected[output]))) return false;
    const char *number = arena_format(&job->arena, "%d", one->number);
    return job_good(job, ORT(CreateRunOptions)(&bound->options)) && job_good(job, ORT(AddRunConfigEntry)(bound->options, "gpu_graph_id", number)) &&
           bound_to_values(bound, one->values);
}

static bool replay(Replays *all, Capture *one, Arena *arena, Value **outputs) {
    all->replays++;
    return bound_run(&one->bound) && bound_take(&one->bound, arena, outputs);
}

/* Replay a data set, and keep the result if it is the furthest. */
static bool look(Replays *all, size_t index) {
    Job *job = all->job;
    Capture *one = &all->captures[index];
    Arena arena = {0};
    Value *outputs = NULL;
    job_enter(job, "run");
    bool fine = replay(all, one, &arena, &outputs);
    double apart = fine ? values_apart(one->expected, outputs, job->outputs, true) : 0;
    if (apart > one->apart) one->apart = apart, job->ran[index] = outputs, arena_join(&job->arena, &arena);
    arena_free(&arena);
    return fine;
}

/* Compare a replay with a run: the harness has no golden for it. */
static bool compare(Replays *all, Capture *one, const Value *expected, const char *when) {
    Job *job = all->job;
    Arena arena = {0};
    Value *outputs = NULL;
    job_further(job);
    bool fine = replay(all, one, &arena, &outputs);
    double apart = fine ? values_apart(expected, outputs, job->outputs, true) : 0;
    arena_free(&arena);
    if (!(apart > CROSS_TALK)) return fine;
    return job_fail(job, "error", "ReplayError", arena_format(&job->arena, "%s, a replay is off by %.3g of the largest value", when, apart));
}

static bool capture_all(Replays *all) {
    for (size_t index = 0; index < all->job->sets; index++)
        for (int run = 0; run < RUNS; run++)
            if (!look(all, index)) return false;
    return true;
}

/* Make other inputs from given ones; false if there are none. */
static bool faded(Job *job, const Feeds *feeds, Feeds *other) {
    *other = *feeds;
    other->values = arena_take(&job->arena, (feeds->count + 1) * sizeof(Value));
    return faded_values(&job->arena, feeds->values, feeds->count, other->values);
}

/* Replay with other values in the same buffers, then with the given ones again. */
static bool follow_other_inputs(Replays *all) {
    for (size_t index = 0; index < all->job->sets; index++) {
        Capture *one = &all->captures[index];
        Feeds other;
        Value *expected = NULL;
        if (!faded(all->job, &one->feeds, &other)) continue;
        if (!job_run_in(all->job, all->plain, &all->job->arena, &other, &expected)) return false;
        if (!bound_refill(&one->bound, &other) || !compare(all, one, expected, "with other values in its buffers")) return false;
        if (!bound_refill(&one->bound, &one->feeds) || !look(all, index)) return false;
    }
    return true;
}

static bool release_one(Replays *all, const Capture *one) { return job_good(all->job, ORT(SessionReleaseCapturedGraph)(all->job->session, one->number)); }

/* Replay the captures by turns, beside one with other inputs. */
static bool replay_in_turns(Replays *all) {
    Job *job = all->job;
    Capture *second = &all->captures[job->sets];
    Feeds other;
    if (!faded(job, &all->captures[0].feeds, &other)) other = all->captures[0].feeds;
    if (!capture_open(all, job->sets, &other)) return false;
    for (int run = 0; run < RUNS; run++) {
        if (!compare(all, second, second->expected, "beside another capture")) return false;
        for (size_t index = 0; index < job->sets; index++)
            if (!look(all, index)) return false;
    }
    return !HAS(SessionReleaseCapturedGraph) || release_one(all, second);
}

static bool play(Replays *all) {
    Job *job = all->job;
    for (const Json *one = json_item(json_get(job->message, "data_sets"), 0); one; one = one->next, job->sets_ran++) {
        Feeds feeds;
        if (!job_feeds(job, one, &feeds) || !capture_open(all, job->sets_ran, &feeds)) return false;
        job->ran[job->sets_ran] = all->captures[job->sets_ran].expected;
    }
    if (!capture_all(all) || !follow_other_inputs(all) || !replay_in_turns(all)) return false;
    if (!HAS(SessionReleaseCapturedGraph)) return true;
    for (size_t index = 0; index < job->sets; index++)
        if (!release_one(all, &all->captures[index])) return false;
    return capture_all(all) && follow_other_inputs(all);
}

bool graph_capture(Job *job) {
    const Json *option = json_get(json_get(job->message, "scenario_settings"), "option");
    const char *key = json_text(json_item(option, 0), NULL), *setting = json_text(json_item(option, 1), "");
    Replays all = {.job = job, .captures = arena_take(&job->arena, (job->sets + 1) * sizeof(Capture))};
    double apart = 0;
    if (!key) return job_fail(job, "unsupported", NULL, "no option of this provider captures graphs");
    if (!job->sets) return job_fail(job, "unfeedable", NULL, "the scenario needs a data set");
    if (!(all.plain = job_open(job, &job->plan))) return false;
    job->plan.option = key, job->plan.setting = setting;
    bool made = job_create(job), fine = made && play(&all);
    job->plan.option = NULL;
    if (made) {
        fact_text(job, "option", arena_format(&job->arena, "%s=%s", key, setting));
        fact_text(job, "device", all.captures[0].bound.out && job->outputs ? all.captures[0].bound.out[0].on : "cpu");
    } else if (!strcmp(job->status, "error")) {
        job_fail(job, "unsupported", NULL, arena_format(&job->arena, "no session with %s=%s: %s", key, setting, job->error));
    }
    for (size_t index = 0; index <= job->sets; index++) {
        apart = fmax(apart, all.captures[index].apart);
        if (all.captures[index].values) job_release(all.captures[index].values, job->outputs);
        if (all.captures[index].bound.job) bound_close(&all.captures[index].bound);
    }
    ORT(ReleaseSession)(all.plain);
    if (!fine) return false;
    fact(job, "\"captures\":%zu,\"replays\":%zu,\"released\":%s,\"equal_to_plain\":%s", job->sets, all.replays, HAS(SessionReleaseCapturedGraph) ? "true" : "false",
         apart > 0 ? "false" : "true");
    if (apart > 0) fact_number(job, "difference", apart);
    return job_conclude(job);
}
