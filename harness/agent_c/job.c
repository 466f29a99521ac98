#include "job.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PROGRESS_MS = 100 };

static const char *const KNOWN[] = {"model", "data_sets", "graph_optimization", "execution_mode", "scenario",
                                    "scenario_settings", "other", "repeat", "latency", "intra_op_threads", "entries", "fixed"};

bool job_fail(Job *job, const char *status, const char *kind, const char *error) {
    job->status = status;
    job->kind = kind;
    job->error = error;
    return false;
}

bool job_trouble(Job *job, Trouble *trouble) {
    if (!trouble->status) return job_fail(job, "unfeedable", NULL, trouble->unfeedable);
    job->error = status_text(&job->arena, trouble->status, &job->kind);
    job->status = "error";
    return false;
}

bool job_lacks(Job *job, const char *what) {
    job->cause = "not_in_runtime";
    return job_fail(job, "unsupported", NULL, arena_format(&job->arena, "onnxruntime %s has no %s", runtime_version(), what));
}

bool job_good(Job *job, OrtStatus *status) { return !status || job_trouble(job, &(Trouble){.status = status}); }

void job_enter(Job *job, const char *phase) {
    job->phase = phase;
    job->reported_ms = now_ms();
    stream_send_plain("[\"phase\",%lld,\"%s\"]", (long long)job->id, phase);
}

void job_further(Job *job) {
    if (now_ms() - job->reported_ms > PROGRESS_MS) job_enter(job, "run");
}

void fact_text(Job *job, const char *key, const char *text) {
    fact(job, "\"%s\":", key);
    put_text(&job->facts, text);
}

void fact_texts(Job *job, const char *key, const char *const *texts, size_t count) {
    fact(job, "\"%s\":", key);
    put_texts(&job->facts, "", texts, count);
}

void fact_number(Job *job, const char *key, double number) {
    if (isfinite(number)) fact(job, "\"%s\":%.17g", key, number);
    else fact_text(job, key, "inf");
}

/* --- a session --- */

static bool take_names(Job *job) {
    if (!job_good(job, ORT(SessionGetOutputCount)(job->session, &job->outputs))) return false;
    job->names = arena_take(&job->arena, (job->outputs + 1) * sizeof(char *));
    for (size_t index = 0; index < job->outputs; index++) {
        char *name = NULL;
        if (!job_good(job, ORT(SessionGetOutputName)(job->session, index, ort_allocator, &name))) return false;
        job->names[index] = arena_text(&job->arena, name, strlen(name));
        if (!job_good(job, ORT(AllocatorFree)(ort_allocator, name))) return false;
    }
    return true;
}

bool job_blame(Job *job, const char *kind, const char *where) {
    if (strcmp(job->status, "error")) return false;
    return job_fail(job, "error", kind, arena_format(&job->arena, "%s: %s", where, job->error));
}

OrtSession *job_open(Job *job, const SessionPlan *plan) {
    Trouble trouble = {0};
    job->phase = "create";
    OrtSession *made = session_open(&job->arena, plan, &trouble);
    if (!made) job_trouble(job, &trouble);
    return made;
}

bool job_create(Job *job) {
    double began = now_ms();
    job->session = job_open(job, &job->plan);
    if (!job->session) return false;
    double took = now_ms() - began;
    if (job->create_ms < 0) job->create_ms = took;
    return job->names || take_names(job);
}

void job_close(Job *job) {
    if (job->session) ORT(ReleaseSession)(job->session);
    job->session = NULL;
}

bool job_feeds(Job *job, const Json *data_set, Feeds *feeds) {
    Trouble trouble = {0};
    if (!json_is(data_set, JSON_ARRAY)) return job_fail(job, "unfeedable", NULL, "a data set that is no array");
    *feeds = (Feeds){.count = data_set->size};
    feeds->names = arena_take(&job->arena, (data_set->size + 1) * sizeof(char *));
    feeds->values = arena_take(&job->arena, (data_set->size + 1) * sizeof(Value));
    size_t index = 0;
    for (const Json *one = json_item(data_set, 0); one; one = one->next, index++) {
        const Json *name = json_item(one, 0);
        if (!json_is(name, JSON_TEXT)) return job_fail(job, "unfeedable", NULL, "an input without a name");
        if (memchr(name->text, 0, name->size)) return job_fail(job, "unfeedable", NULL, "onnxruntime's C API takes no name with a zero byte");
        feeds->names[index] = name->text;
        if (!value_read(&job->arena, json_item(one, 1), &feeds->values[index], &trouble)) return job_trouble(job, &trouble);
    }
    return true;
}

bool job_prepare(Job *job, Arena *arena, const Feeds *feeds, OrtValue ***in) {
    Trouble trouble = {0};
    *in = arena_take(arena, (feeds->count + 1) * sizeof **in);
    for (size_t index = 0; index < feeds->count; index++) {
        const Value *value = &feeds->values[index];
        bool is_empty = value->kind == SEQUENCE_VALUE && !value->count;
        bool fine = is_empty ? empty_sequence(job->session, feeds->names[index], &(*in)[index], &trouble)
                             : value_feed(arena, value, ort_allocator, &(*in)[index], &trouble);
        if (fine) continue;
        job_release(*in, feeds->count);
        return job_trouble(job, &trouble);
    }
    return true;
}

void job_release(OrtValue **held, size_t count) {
    for (size_t index = 0; index < count; index++)
        if (held[index]) ORT(ReleaseValue)(held[index]);
}

typedef struct {
    Job *job;
    OrtStatus *status;
    bool ended;
} Flight;

static void ORT_CALL land(void *landing, OrtValue **out, size_t count, OrtStatus *status) {
    Flight *flight = landing;
    (void)out, (void)count;
    lock_take(flight->job->landing);
    flight->status = status;
    flight->ended = true;
    lock_wake(flight->job->landing);
    lock_give(flight->job->landing);
}

static OrtStatus *run_async(Job *job, const Feeds *feeds, const OrtValue *const *in, const char *const *names, size_t count, OrtValue **out) {
    Flight flight = {.job = job};
    OrtStatus *status = ORT(RunAsync)(job->session, NULL, feeds->names, in, feeds->count, names, count, out, land, &flight);
    lock_take(job->landing);
    while (!status && !flight.ended) lock_wait(job->landing);
    lock_give(job->landing);
    return status ? status : flight.status;
}

bool job_step(Job *job, const Feeds *feeds, OrtValue **in, const char *const *names, size_t count, OrtValue **out) {
    const OrtValue *const *given = (const OrtValue *const *)in;
    double began = now_ms();
    OrtStatus *status = job->landing ? run_async(job, feeds, given, names, count, out)
                                     : ORT(Run)(job->session, job->options, feeds->names, given, feeds->count, names, count, out);
    job->run_ms = now_ms() - began;
    return job_good(job, status);
}

bool job_collect(Job *job, Arena *arena, OrtValue **out, size_t count, Value **outputs) {
    Trouble trouble = {0};
    bool fine = true;
    *outputs = arena_take(arena, (count + 1) * sizeof(Value));
    for (size_t index = 0; fine && index < count; index++)
        fine = value_take(arena, out[index], ort_allocator, &(*outputs)[index], &trouble);
    job_release(out, count);
    return fine || job_trouble(job, &trouble);
}

bool job_run(Job *job, Arena *arena, const Feeds *feeds, const char *const *names, size_t count, Value **outputs) {
    OrtValue **in = NULL, **out = arena_take(arena, (count + 1) * sizeof *out);
    if (!job_prepare(job, arena, feeds, &in)) return false;
    bool fine = job_step(job, feeds, in, names, count, out);
    job_release(in, feeds->count);
    if (!fine) job_release(out, count);
    return fine && job_collect(job, arena, out, count, outputs);
}

bool job_run_in(Job *job, OrtSession *session, Arena *arena, const Feeds *feeds, Value **outputs) {
    OrtSession *judged = job->session;
    job->session = session;
    bool fine = job_run(job, arena, feeds, job->names, job->outputs, outputs);
    job->session = judged;
    return fine;
}

/* --- a plain run --- */

static void run_other(Job *job, const Feeds *feeds) {
    Feeds other = *feeds;
    other.values = arena_take(&job->arena, (feeds->count + 1) * sizeof(Value));
    if (!reversed_values(&job->arena, feeds->values, feeds->count, other.values)) return;
    job_further(job);
    Value *outputs = NULL;
    if (job_run(job, &job->arena, &other, job->names, job->outputs, &outputs)) {
        job->other = outputs;
        return;
    }
    if (!strcmp(job->status, "error")) job->other_error = arena_format(&job->arena, "%s: %s", job->kind, job->error);
    job_fail(job, "ok", NULL, NULL); /* the model may refuse them; the other runs go on */
}

bool job_run_sets(Job *job) {
    const Json *sets = json_get(job->message, "data_sets");
    Feeds first = {0};
    for (const Json *one = json_item(sets, 0); one; one = one->next) {
        Feeds feeds;
        job_enter(job, "run");
        if (!job_feeds(job, one, &feeds)) return false;
        if (!job_run(job, &job->arena, &feeds, job->names, job->outputs, &job->ran[job->sets_ran])) return false;
        if (job->sets_ran++) continue;
        first = feeds;
        job->first_run_ms = job->run_ms;
        if (job->is_profiled && !end_profile(job, job->session)) return false;
    }
    if (!job->sets_ran) return true;
    if (json_is(json_get(job->message, "other"), JSON_TRUE)) run_other(job, &first);
    if (json_get(job->message, "repeat") && !repeat_runs(job, &first)) return false;
    return !json_get(job->message, "latency") || time_runs(job, &first);
}

bool job_conclude(Job *job) { return place_nodes(job); }

static bool play(Job *job) {
    const char *scenario = json_text(json_get(job->message, "scenario"), "");
    for (const Json *one = job->message->first; one; one = one->next) {
        bool known = false;
        for (size_t index = 0; index < sizeof KNOWN / sizeof *KNOWN; index++) known |= !strcmp(one->key, KNOWN[index]);
        if (!known) return job_fail(job, "unsupported", NULL, arena_format(&job->arena, "the C agent does not know the key %.100s of a job", one->key));
    }
    if (!strcmp(json_text(json_get(job->message, "graph_optimization"), ""), "layout") && ort_minor < 21)
        return job_fail(job, "unfeedable", NULL, "this onnxruntime has no optimization level 'layout'");
    if (json_is(json_get(job->message, "model"), JSON_TEXT)) job->plan.model = json_text(json_get(job->message, "model"), "");
    else if (!model_fetch(job)) return false;
    const Json *sets = json_get(job->message, "data_sets");
    if (sets && !json_is(sets, JSON_ARRAY)) return job_fail(job, "unfeedable", NULL, "data sets that are no array");
    job->sets = sets ? sets->size : 0;
    job->ran = arena_take(&job->arena, (job->sets + 1) * sizeof(Value *));
    if (*scenario) return scenario_play(job, scenario);
    job->is_profiled = !records_assignment() && !json_get(job->message, "latency"); /* a profile costs time */
    job->plan.profile = job->is_profiled ? "profile" : NULL;
    bool done = job_create(job);
    job->plan.profile = NULL;
    return done && job_run_sets(job) && job_conclude(job);
}

static void finish(Job *job, double began, double processor) {
    double closing = now_ms(), rss;
    bool failed = !strcmp(job->status, "error") || job->other_error;
    job_close(job);
    double teardown = now_ms() - closing;
    const char *sick = failed ? target_sickness(&job->arena) : NULL;
    Message message = {0};
    put_format(&message, "[\"done\",%lld,{\"teardown_ms\":%.4f,\"took_ms\":%.4f,\"processor_ms\":%.4f", (long long)job->id,
               teardown, now_ms() - began, processor_ms() - processor);
    if ((rss = resident_mib()) >= 0) put_format(&message, ",\"rss_mib\":%.2f", rss);
    if (thread_count() > 0) put_format(&message, ",\"threads\":%d", thread_count());
    if (descriptor_count() > 0) put_format(&message, ",\"descriptors\":%d", descriptor_count());
    if (sick) put_then(&message, ",\"sick\":", sick);
    put(&message, "}]");
    printed_take(NULL, false); /* what was printed belongs to no later model */
    stream_send(&message);
    if (sick) {
        target_release();
        end_now(0);
    }
}

void job_serve(Received *received) {
    double began = now_ms(), processor = processor_ms();
    Job job = {.id = json_integer(json_item(received->message, 1), 0),
               .message = json_item(received->message, 2),
               .plan = {.job = json_item(received->message, 2), .without = -1},
               .phase = "create",
               .status = "ok",
               .create_ms = -1,
               .first_run_ms = -1};
    if (json_is(job.message, JSON_OBJECT)) play(&job);
    else job_fail(&job, "unfeedable", NULL, "a job that is no object");
    result_send(&job);
    finish(&job, began, processor);
    message_free(&job.facts);
    bytes_free(&job.repeats);
    bytes_free(&job.latency);
    arena_free(&job.arena);
}
