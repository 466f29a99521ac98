/* The process that the scenario `lifecycle` watches: it registers a library, uses it and unregisters it. It announces each step,
 * because any may be its last. */

#include "job.h"

#include <math.h>
#include <string.h>

typedef struct {
    Job job;
    const Json *config;
    Tally *tallies; /* of each data set */
    long differing; /* rounds */
    bool has_first;
} Life;

static void step(const char *name) { stream_send_plain("[\"step\",\"%s\"]", name); }

static void tell(const char *fact, Arena *arena, OrtStatus *status) {
    Message message = {0};
    put_then(&message, "[\"told\",", fact);
    put_then(&message, ",", status ? arena_format(arena, "refused: %s", status_text(arena, status, NULL)) : "accepted");
    put(&message, "]");
    stream_send(&message);
}

static bool enlist(Life *life) { /* register() is a name of old C */
    Refusal refusal = {0};
    step("register");
    return target_open(&life->job.arena, life->config, &refusal) || job_fail(&life->job, "error", "UnavailableError", refusal.reason);
}

static bool run(Life *life, const char *name) {
    Job *job = &life->job;
    size_t set = 0;
    bool differs = false;
    step(name);
    for (const Json *one = json_item(json_get(job->message, "data_sets"), 0); one; one = one->next, set++) {
        Feeds feeds;
        Value *outputs = NULL;
        Tally *tally = &life->tallies[set];
        if (!job_feeds(job, one, &feeds) || !job_run(job, &job->arena, &feeds, job->names, job->outputs, &outputs)) return false;
        if (!life->has_first) *tally = (Tally){.first = outputs};
        long before = tally->differing;
        tally_add(job, tally, &(Arena){0}, outputs);
        differs |= tally->differing > before;
    }
    life->has_first = true;
    life->differing += differs;
    return true;
}

static bool use(Life *life) {
    step("session");
    return job_create(&life->job) && run(life, "run");
}

static void release(Life *life) {
    step("release");
    job_close(&life->job);
}

static bool strike(Life *life) {
    step("unregister");
    return job_good(&life->job, target_unregister());
}

/* --- orders of the steps --- */

static bool in_rounds(Life *life, int64_t rounds) {
    while (rounds--) {
        double began = now_ms();
        if (!enlist(life)) return false;
        double registered_ms = now_ms() - began;
        if (!use(life)) return false;
        release(life);
        began = now_ms();
        if (!strike(life)) return false;
        Message message = {0};
        bool stays = false;
        double unregistered_ms = now_ms() - began, rss = resident_mib();
        int libraries = libraries_loaded(plugin_library(), &stays), descriptors = descriptor_count();
        put_format(&message, "[\"round\",{\"register_ms\":%.4f,\"unregister_ms\":%.4f", registered_ms, unregistered_ms);
        if (rss >= 0) put_format(&message, ",\"round_rss_mib\":%.2f", rss);
        if (descriptors >= 0) put_format(&message, ",\"round_descriptors\":%d", descriptors);
        if (libraries >= 0) put_format(&message, ",\"round_libraries\":%d,\"stays\":%s", libraries, stays ? "true" : "false");
        put(&message, "}]");
        stream_send(&message);
    }
    return true;
}

static bool left_registered(Life *life, int64_t rounds) {
    (void)rounds;
    if (!enlist(life) || !use(life)) return false;
    release(life);
    return true;
}

static bool registered_twice(Life *life, int64_t rounds) {
    (void)rounds;
    if (!enlist(life)) return false;
    step("register again");
    tell("second_registration", &life->job.arena, library_register(&life->job.arena, target.chain[0], plugin_library()));
    if (!use(life)) return false;
    release(life);
    return strike(life);
}

static bool two_libraries(Life *life, int64_t rounds) {
    Job *job = &life->job;
    (void)rounds;
    if (!enlist(life)) return false;
    step("register a copy");
    const char *path = plugin_library(), *folder = scratch_begin(job), *name = arena_format(&job->arena, "%s-copy", target.chain[0]);
    const char *copy = folder ? arena_format(&job->arena, "%s/%s", folder, path + strlen(folder_of(&job->arena, path))) : NULL;
    if (!copy || !file_copy(path, copy)) return job_fail(job, "error", "Fail", "the library cannot be copied");
    OrtStatus *status = library_register(&job->arena, name, copy);
    bool refused = status != NULL; /* a library may have to be the only one of its kind */
    tell("second_library", &job->arena, status);
    if (refused) return true;
    if (!use(life)) return false;
    step("unregister the copy");
    if (!job_good(job, ORT(UnregisterExecutionProviderLibrary)(ort_env, name)) || !run(life, "run")) return false;
    release(life);
    return strike(life);
}

static bool unregistered_in_use(Life *life, int64_t rounds) {
    (void)rounds;
    return enlist(life) && use(life) && strike(life) && run(life, "run after it");
}

/* Send the results that are furthest from the first ones. */
static void report(const Life *life) {
    Message message = {0};
    double apart = 0;
    for (size_t set = 0; set < life->job.sets; set++) apart = fmax(apart, life->tallies[set].apart);
    put(&message, "[\"outputs\",");
    put_number(&message, apart); /* what is infinite becomes null */
    put_format(&message, ",%ld,[", life->differing);
    for (size_t set = 0; life->has_first && set < life->job.sets; set++) {
        const Tally *tally = &life->tallies[set];
        put(&message, set ? ",[" : "[");
        for (size_t index = 0; index < life->job.outputs; index++) {
            if (index) put(&message, ",");
            value_put(&message, tally->furthest ? &tally->furthest[index] : &tally->first[index]);
        }
        put(&message, "]");
    }
    put(&message, "]]");
    stream_send(&message);
}

int life_serve(const Json *message) {
    static const struct {
        const char *name;
        bool (*take)(Life *, int64_t);
    } orders[] = {{"in_rounds", in_rounds}, {"left_registered", left_registered}, {"registered_twice", registered_twice},
                  {"two_libraries", two_libraries}, {"unregistered_in_use", unregistered_in_use}};
    const Json *job = json_item(message, 4);
    Life life = {.config = json_item(message, 3), .job = {.message = job, .plan = {.job = job, .model = json_text(json_get(job, "model"), ""), .without = -1}, .status = "ok"}};
    const Json *sets = json_get(job, "data_sets");
    life.job.sets = sets ? sets->size : 0;
    life.tallies = arena_take(&life.job.arena, (life.job.sets + 1) * sizeof(Tally));
    limit_memory(json_integer(json_get(life.config, "memory_limit_mb"), 0));
    for (size_t index = 0; index < sizeof orders / sizeof *orders; index++) {
        if (strcmp(orders[index].name, json_text(json_item(message, 1), ""))) continue;
        if (orders[index].take(&life, json_integer(json_item(message, 2), 1))) {
            report(&life);
            continue;
        }
        Message failed = {0};
        put_then(&failed, "[\"failed\",", arena_format(&life.job.arena, "%s: %s", life.job.kind ? life.job.kind : "Unfeedable", life.job.error));
        put(&failed, "]");
        stream_send(&failed);
        job_close(&life.job);
    }
    step("exit");
    job_close(&life.job);
    ORT(ReleaseEnv)(ort_env); /* as an application does at its end */
    return 0;
}
