/* Scenarios that write another form of a model, and run that: `ep_context` and `ort_format`. */

#include "compiled.h"

#include <math.h>
#include <string.h>

size_t contexts_in(const char *path) {
    static const char node[] = "\x22\x09" "EPContext"; /* the field op_type of a NodeProto, 9 bytes */
    enum { SIZE = sizeof node - 1 };
    const char *data = NULL, *end;
    size_t size = 0, count = 0;
    Arena arena = {0};
    if (file_read(&arena, path, &data, &size))
        for (end = data + size; (data = memchr(data, node[0], (size_t)(end - data))); data++)
            count += end - data >= SIZE && !memcmp(data, node, SIZE);
    arena_free(&arena);
    return count;
}

size_t bytes_in(const char *folder) {
    Arena arena = {0};
    size_t count = 0, total = 0;
    char **names = folder_names(&arena, folder, &count);
    while (count--) {
        int64_t size = file_size(arena_format(&arena, "%s/%s", folder, names[count]));
        if (size > 0) total += (size_t)size;
    }
    arena_free(&arena);
    return total;
}

bool nothing_compiled(Job *job) {
    size_t own = 0, all = 0;
    if (!job_conclude(job)) return false;
    for (const Node *node = job->nodes; node; node = node->next) own += node->own, all++;
    const char *words = "no EPContext node was written: the provider runs %zu of %zu nodes, and compiles none";
    return job_fail(job, "unsupported", NULL, arena_format(&job->arena, words, own, all));
}

const char *session_refusal(Job *job, const SessionPlan *plan) {
    Trouble trouble = {0};
    OrtSession *made = session_open(&job->arena, plan, &trouble);
    if (made) ORT(ReleaseSession)(made);
    return made ? NULL : status_text(&job->arena, trouble.status, NULL);
}

/* Compile the model in a session of this process, run and close it. */
static bool compile_to(Job *job, const char *path) {
    job->plan.entries = (const char *[]){"ep.context_enable", "1", "ep.context_embed_mode", "1", "ep.context_file_path", path, NULL};
    bool made = job_create(job);
    job->plan.entries = NULL;
    if (!made) { /* if a plain session fails, too, the model or the provider is the cause */
        const char *plain = strcmp(job->status, "error") ? "" : session_refusal(job, &job->plan);
        return plain ? false : job_fail(job, "unsupported", NULL, arena_format(&job->arena, "the provider compiles no EP context: %s", job->error));
    }
    for (const Json *one = json_item(json_get(job->message, "data_sets"), 0); one; one = one->next, job->sets_ran++) {
        Feeds feeds;
        job_enter(job, "run");
        if (!job_feeds(job, one, &feeds) || !job_run(job, &job->arena, &feeds, job->names, job->outputs, &job->ran[job->sets_ran])) return false;
    }
    if (!contexts_in(path)) return nothing_compiled(job);
    job_enter(job, "teardown");
    job_close(job);
    return true;
}

static bool load_afresh(Job *job, const char *folder, const char *path) {
    Served served;
    double apart = 0;
    size_t count = 0;
    folder_names(&job->arena, folder, &count);
    fact(job, "\"create_cold_ms\":%.4f,\"context_bytes\":%zu,\"embedded\":%s", job->create_ms, bytes_in(folder), count == 1 ? "true" : "false");
    if (!child_serve(job, path, NULL, false, &served)) return false;
    job->create_ms = served.create_ms;
    job->first_run_ms = json_number(json_get(json_get(served.result, "timings_ms"), "first_run"), -1);
    job->phase = served.phase;
    if (strcmp(served.status, "ok")) return job_fail(job, served.status, served.kind, arena_format(&job->arena, "in a fresh process: %s", served.message));
    for (size_t set = 0; set < job->sets; set++) apart = fmax(apart, values_apart(job->ran[set], served.outputs[set], job->outputs, true));
    fact(job, "\"create_warm_ms\":%.4f,\"equal_to_compiled\":%s", served.create_ms, apart > 0 ? "false" : "true");
    if (apart > 0) fact_number(job, "difference", apart);
    job->served = served.result;
    return true;
}

bool ep_context(Job *job) {
    const char *folder = scratch_begin(job);
    const char *path = folder ? arena_format(&job->arena, "%s/context.onnx", folder) : NULL;
    bool fine = path && compile_to(job, path) && load_afresh(job, folder, path);
    scratch_end(job);
    return fine;
}

/* --- ORT format --- */

static OrtStatus *write_optimized(OrtSessionOptions *settings, void *path) {
    Arena arena = {0};
    OrtStatus *status = ORT(SetOptimizedModelFilePath)(settings, runtime_path(&arena, path));
    arena_free(&arena);
    return status;
}

static bool convert(Job *job, char *path) {
    /* It inserts operators that only the CPU EP has; onnxruntime's converter leaves it out, too, for another machine. */
    const char *disabled = target.chain_size == 1 && !strcmp(target.chain[0], CPU_PROVIDER) ? NULL : "NchwcTransformer";
    const char *entries[] = {"session.save_model_format", "ORT", disabled ? "optimization.disable_specified_optimizers" : NULL, disabled, NULL};
    SessionPlan plan = job->plan;
    plan.entries = entries, plan.on_cpu = true, plan.adjust = write_optimized, plan.with = path;
    double began = now_ms();
    const char *refused = session_refusal(job, &plan);
    if (refused) { /* if a plain session fails, too, the format is not the cause */
        OrtSession *plain = job_open(job, &job->plan);
        if (plain) ORT(ReleaseSession)(plain);
        return plain ? job_fail(job, "unsupported", NULL, arena_format(&job->arena, "onnxruntime does not write this model in ORT format: %s", refused)) : false;
    }
    fact_text(job, "converted_with", CPU_PROVIDER);
    fact_text(job, "level", json_text(json_get(job->message, "graph_optimization"), "all"));
    fact(job, "\"convert_ms\":%.4f,\"model_bytes\":%lld,\"ort_bytes\":%lld", now_ms() - began, (long long)file_size(job->plan.model), (long long)file_size(path));
    fact_texts(job, "disabled_optimizers", &disabled, disabled ? 1 : 0);
    return true;
}

bool ort_format(Job *job) {
    const char *folder = scratch_begin(job);
    char *path = folder ? arena_format(&job->arena, "%s/model.ort", folder) : NULL;
    bool fine = path && convert(job, path);
    if (fine) job->plan.model = path;
    fine = fine && job_create(job) && job_run_sets(job) && job_conclude(job);
    scratch_end(job);
    return fine;
}
