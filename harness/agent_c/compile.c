/* The scenario `compile`: onnxruntime's compiler from and to everything, and where the result loads. An installer compiles a model,
 * moves the result, and deletes the source; each compiled model is then loaded by a fresh process. */

#include "company.h"
#include "compiled.h"
#include "onnx.h"

#include <stdlib.h>
#include <string.h>

static const Way WAYS[] = {{"file", "file", false, "", NULL, NULL},
                           {"file", "file", true, "", NULL, NULL},
                           {"bytes", "file", true, "", NULL, NULL},
                           {"file", "bytes", true, "", NULL, NULL},
                           {"file", "callback", true, "", NULL, NULL}};

enum { DAMAGE = 64 };
static const double TOLD = 1e-3;
static const char FORBIDS[] = "session.disable_model_compile", BEST[] = "session.fail_on_suboptimal_compiled_model";
const char LOADS_SAME[] = "it loads, and computes the same";

static const char *const FIGURES[WAY_FIGURES] = {"compile_ms", "processor_ms", "peak_mib", "compiled_bytes", "load_ms"};

bool blame_compiled(Job *job, const char *words) { return job_fail(job, "error", "CompiledModelError", words); }

/* --- one way --- */

static OrtStatus *ORT_CALL take_part(void *to, const void *data, size_t size) {
    bytes_add(to, data, size);
    return NULL;
}

static OrtStatus *run_compiler(Job *job, OrtCompilation *asked, const char *model, const Way *way, const char *path) {
    const char *data = NULL, *sink = way->sink;
    size_t size = 0, made_size = 0, weights = 0;
    void *made = NULL;
    Bytes parts = {0};
    bool is_file = !strcmp(sink, "file"), is_stream = !strcmp(sink, "callback") && HAS(ModelCompilationOptions_SetOutputModelWriteFunc);
    if (!file_read(&job->arena, model, &data, &size)) return ORT(CreateStatus)(1, "the copy of the model cannot be read");
    stored_weights(&job->arena, data, size, &weights);
    bool from_bytes = !strcmp(way->source, "bytes") && !weights; /* one with such weights has to know its folder */
    OrtStatus *status = from_bytes ? COMPILE(ModelCompilationOptions_SetInputModelFromBuffer)(asked, data, size)
                                   : COMPILE(ModelCompilationOptions_SetInputModelPath)(asked, runtime_path(&job->arena, model));
    if (!status && is_file) status = COMPILE(ModelCompilationOptions_SetOutputModelPath)(asked, runtime_path(&job->arena, path));
    else if (!status && is_stream) status = COMPILE(ModelCompilationOptions_SetOutputModelWriteFunc)(asked, take_part, &parts);
    else if (!status) status = COMPILE(ModelCompilationOptions_SetOutputModelBuffer)(asked, ort_allocator, &made, &made_size);
    if (!status) status = COMPILE(ModelCompilationOptions_SetEpContextEmbedMode)(asked, way->embedded);
    if (!status && way->prepare) status = way->prepare(asked, way->with);
    if (!status) status = COMPILE(CompileModel)(ort_env, asked);
    if (!status && !is_file && !file_append(path, is_stream ? parts.at : made, is_stream ? parts.size : made_size, true))
        status = ORT(CreateStatus)(1, "the result cannot be written");
    bytes_free(&parts);
    OrtStatus *freed = made ? ORT(AllocatorFree)(ort_allocator, made) : NULL;
    if (freed) ORT(ReleaseStatus)(freed);
    return status;
}

/* Copy the model into a folder, with its external data. */
static const char *copy_model(Job *job, const char *folder) {
    const char *data = NULL, *copy = arena_format(&job->arena, "%s/model.onnx", folder), *home = folder_of(&job->arena, job->plan.model);
    size_t size = 0, count = 0;
    if (!file_read(&job->arena, job->plan.model, &data, &size) || !file_append(copy, data, size, true)) return NULL;
    const StoredWeight *weights = stored_weights(&job->arena, data, size, &count);
    for (size_t index = 0; index < count; index++) {
        const char *name = weights[index].file;
        const char *to = stays_inside(name, strlen(name)) ? path_in(&job->arena, folder, name) : NULL;
        if (!to || (!is_file(to) && !file_copy(arena_format(&job->arena, "%s%s", home, name), to))) return NULL;
    }
    return copy;
}

void note_way(Compiling *all, const char *words, const double figures[WAY_FIGURES]) {
    for (size_t index = 0; index < WAY_FIGURES; index++)
        all->figures[index] = arena_format(&all->job->arena, "%s%s%.2f", all->done ? all->figures[index] : "", all->done ? "," : "", figures[index]);
    all->ways[all->done++] = words;
}

bool load_compiled(Compiling *all, const char *path, const char *words, const char *const *changes, Served *served) {
    Job *job = all->job;
    if (!child_serve(job, path, changes, false, served)) return false;
    if (strcmp(served->status, "ok")) {
        job_enter(job, served->phase); /* where it failed, and not where its process ended */
        return blame_compiled(job, arena_format(&job->arena, "compiled %s, moved, loaded by a fresh process: %s", words, served->message));
    }
    const char *where = arena_format(&job->arena, "in a model compiled %s", words);
    for (size_t set = 0; set < job->sets; set++) watch_look(&all->watch, set, &(Arena){0}, served->outputs[set], where);
    return true;
}

const char *compile_model(Compiling *all, const Way *way, const char *base, double figures[WAY_FIGURES], const char **error) {
    Job *job = all->job;
    Trouble trouble = {0};
    const char *work = arena_format(&job->arena, "%s/build", base), *out = arena_format(&job->arena, "%s/out", work), *model;
    if (!make_folder(base) || !make_folder(work) || !make_folder(out) || !(model = copy_model(job, work)))
        return job_fail(job, "unfeedable", NULL, "the model cannot be copied"), NULL;
    job_enter(job, "create");
    bool peak = peak_mib(true) >= 0;
    double began = now_ms(), processor = processor_ms();
    OrtCompilation *asked = NULL;
    OrtSessionOptions *settings = session_options(&job->arena, &job->plan, &trouble);
    OrtStatus *status = settings ? COMPILE(CreateModelCompilationOptionsFromSessionOptions)(ort_env, settings, &asked) : trouble.status;
    if (!status) status = run_compiler(job, asked, model, way, arena_format(&job->arena, "%s/compiled.onnx", out));
    if (asked) COMPILE(ReleaseModelCompilationOptions)(asked);
    if (settings) ORT(ReleaseSessionOptions)(settings);
    figures[0] = now_ms() - began, figures[1] = processor_ms() - processor, figures[2] = peak ? peak_mib(false) : 0;
    *error = status ? status_text(&job->arena, status, NULL) : NULL;
    const char *installed = arena_format(&job->arena, "%s/installed", base);
    if (!path_move(out, installed)) return job_fail(job, "unfeedable", NULL, "the result cannot be moved"), NULL;
    tree_delete(work);
    figures[3] = (double)bytes_in(installed);
    return arena_format(&job->arena, "from %s to %s, embed_mode %d%s", way->source, way->sink, way->embedded, way->more);
}

static bool compile_way(Compiling *all, size_t way) {
    Job *job = all->job;
    double figures[WAY_FIGURES];
    Served served;
    const char *error, *base = arena_format(&job->arena, "%s/%zu", all->scratch, way), *words = compile_model(all, &WAYS[way], base, figures, &error);
    if (!words) return false;
    if (error && !way) return job_fail(job, "unsupported", NULL, arena_format(&job->arena, "the provider compiles no model: %s", error));
    if (error) return blame_compiled(job, arena_format(&job->arena, "compiling %s: %s", words, error));
    all->last = arena_format(&job->arena, "%s/installed/compiled.onnx", base);
    if (!contexts_in(all->last)) return nothing_compiled(job);
    if (!load_compiled(all, all->last, words, NULL, &served)) return false;
    figures[LOAD_MS] = served.create_ms;
    note_way(all, words, figures);
    if (all->done == 1) fact(job, "\"contexts\":%zu", contexts_in(all->last));
    return true;
}

/* --- the last result, elsewhere --- */

static bool load_with_entries(Compiling *all) {
    Job *job = all->job;
    const Json *given = json_get(job->message, "entries");
    Message entries = {0};
    Served served;
    put_format(&entries, "{\"%s\":\"1\",\"%s\":\"1\"", FORBIDS, BEST);
    for (const Json *one = json_members(given); one; one = one->next) {
        put_then(&entries, ",", one->key);
        put(&entries, ":");
        put_json(&entries, one);
    }
    put(&entries, "}");
    const char *changes[] = {"entries", arena_text(&job->arena, entries.json.at, entries.json.size), NULL};
    message_free(&entries);
    return load_compiled(all, all->last, arena_format(&job->arena, "before, with %s and %s", FORBIDS, BEST), changes, &served);
}

const char *became(Compiling *all, const char *path, const char *const *changes) {
    Job *job = all->job;
    Served served;
    if (!child_serve(job, path, changes, true, &served)) return NULL;
    if (served.died) return served.died;
    if (strcmp(served.status, "ok")) return arena_format(&job->arena, "refused: %s", served.message);
    double apart = 0;
    for (size_t set = 0; set < job->sets; set++) {
        double one = values_apart(all->watch.seen[set].tally.first, served.outputs[set], job->outputs, true);
        if (one > apart) apart = one;
    }
    return apart <= TOLD ? LOADS_SAME : "it loads, and computes something else";
}

/* Tell what a fresh process makes of a compiled model with other contents; NULL if the job has failed. */
static const char *loaded(Compiling *all, const char *content, size_t size) {
    const char *changed = arena_format(&all->job->arena, "%schanged.onnx", folder_of(&all->job->arena, all->last));
    if (!file_append(changed, content, size, true)) return job_fail(all->job, "unfeedable", NULL, "the agent's folder takes no files"), NULL;
    return became(all, changed, NULL);
}

static const char *find(const char *in, size_t size, const char *what, size_t length) {
    for (const char *at = in, *end = in + size; length && (at = memchr(at, what[0], (size_t)(end - at))); at++)
        if ((size_t)(end - at) >= length && !memcmp(at, what, length)) return at;
    return NULL;
}

static bool damage(Compiling *all) {
    const char *data = NULL;
    size_t size = 0;
    if (!file_read(&all->job->arena, all->last, &data, &size)) return blame_compiled(all->job, "the result cannot be read");
    const char *part = find(data, size, "ep_cache_context", 16);
    char *content = arena_text(&all->job->arena, data, size);
    size_t middle = ((part ? (size_t)(part - data) : 0) + size) / 2;
    for (size_t at = middle; at < size && at < middle + DAMAGE; at++) content[at] = (char)~content[at];
    const char *found = loaded(all, content, size);
    if (found) fact_text(all->job, "damaged", found);
    return found != NULL;
}

/* Let a fresh process ask what is said of the result: some providers crash there. */
static bool check_compatibility(Compiling *all, const Json **stale) {
    static const char *const when[] = {"beside a session", "after the last session is closed"};
    Job *job = all->job;
    const Json *facts = NULL;
    bool fine = true;
    for (size_t index = 0; fine && index < 2; index++) {
        Served served;
        Message settings = {0};
        put_then(&settings, "{\"compatibility_of\":", all->last);
        put_then(&settings, ",\"asked\":", when[index]);
        put(&settings, "}");
        const char *changes[] = {"data_sets", "[]", "scenario", "\"compile\"", "scenario_settings", arena_text(&job->arena, settings.json.at, settings.json.size), NULL};
        message_free(&settings);
        if (!child_serve(job, all->last, changes, true, &served)) return false;
        if (served.result) facts = json_get(served.result, "scenario");
        const char *words = "asking whether a compiled model fits the device, %s: %s";
        if (strcmp(served.status, "ok")) fine = blame_compiled(job, arena_format(&job->arena, words, when[index], served.message));
    }
    *stale = json_get(facts, "stale");
    const Json *said = json_get(facts, "compatibility");
    if (said) fact_text(job, "compatibility", json_text(said, ""));
    return fine;
}

/* Load a compiled model whose description names another version, and hold that against what it is called. */
static bool check_stale(Compiling *all, const Json *described) {
    Job *job = all->job;
    const Json *own = json_item(described, 0), *stale = json_item(described, 1);
    const char *called = json_text(json_item(described, 2), ""), *data = NULL;
    size_t size = 0;
    if (!json_is(own, JSON_TEXT) || !json_is(stale, JSON_TEXT) || own->size != stale->size || !file_read(&job->arena, all->last, &data, &size)) return true;
    if (!find(data, size, own->text, own->size)) return true;
    char *content = arena_text(&job->arena, data, size);
    for (const char *at; (at = find(content, size, own->text, own->size));) memcpy(content + (at - content), stale->text, stale->size);
    const char *found = loaded(all, content, size);
    if (!found) return false;
    fact_text(job, "stale", arena_format(&job->arena, "%s; %s", called, found));
    if (strncmp(called, "EP_SUPPORTED", 12) || !strcmp(found, LOADS_SAME)) return true;
    return blame_compiled(job, arena_format(&job->arena, "a compiled model that names another version is called %s, and then: %s", called, found));
}

/* --- two models with shared contexts --- */

static OrtSession *open_sharing(Job *job, const SessionPlan *from, const char *model, const char *to, bool is_last) {
    const char *entries[] = {"ep.share_ep_contexts", "1", to ? "ep.context_enable" : NULL, "1", "ep.context_embed_mode", "0", "ep.context_file_path", to,
                             is_last ? "ep.stop_share_ep_contexts" : NULL, "1", NULL};
    SessionPlan plan = *from;
    plan.entries = entries;
    if (model) plan.model = model, plan.model_size = 0;
    job_enter(job, "create");
    return job_open(job, &plan);
}

/* Load both in an order, and run the first of them; return why that fails, or NULL. */
static const char *load_both(Compiling *all, const char *const paths[2], bool own_first, const char *words) {
    Job *job = all->job;
    OrtSession *open[2] = {NULL};
    bool fine = true;
    for (int index = 0; fine && index < 2; index++) {
        int which = own_first ? index : 1 - index;
        fine = (open[which] = open_sharing(job, &job->plan, paths[which], NULL, false)) != NULL;
    }
    fine = fine && watch_all(&all->watch, open[0], words);
    for (int index = 0; index < 2; index++)
        if (open[index]) ORT(ReleaseSession)(open[index]);
    const char *error = fine ? NULL : job->error;
    if (!fine) job_fail(job, "ok", NULL, NULL); /* it is told, or blamed */
    return error;
}

static bool share(Compiling *all) {
    Job *job = all->job;
    Companion companions[MOST_COMPANIONS];
    const char *data = NULL, *failed[2], *folder = arena_format(&job->arena, "%s/shared", all->scratch);
    const char *const paths[2] = {arena_format(&job->arena, "%s/own_ctx.onnx", folder), arena_format(&job->arena, "%s/other_ctx.onnx", folder)};
    size_t size = 0, weights = 0;
    if (file_read(&job->arena, job->plan.model, &data, &size)) stored_weights(&job->arena, data, size, &weights);
    if (weights || !companions_of(job, &all->watch.seen[0].feeds, companions) || !make_folder(folder)) return true;
    for (int index = 0; index < 2; index++) {
        SessionPlan *plan = index ? &companions[0].plan : &job->plan;
        OrtSession *made = open_sharing(job, plan, NULL, paths[index], index == 1);
        if (!made) {
            fact_text(job, "shared", arena_format(&job->arena, "refused: %s", job->error));
            return !job_fail(job, "ok", NULL, NULL);
        }
        ORT(ReleaseSession)(made);
    }
    if (!contexts_in(paths[0]) || !contexts_in(paths[1])) return fact_text(job, "shared", "nothing was compiled"), true;
    for (int order = 0; order < 2; order++)
        failed[order] = load_both(all, paths, !order, arena_format(&job->arena, "with contexts shared with another model, loaded %s", order ? "second" : "first"));
    if (!failed[0] != !failed[1]) {
        const char *words = "with contexts shared with another model, loaded %s: %s, and not in the other order";
        return blame_compiled(job, arena_format(&job->arena, words, failed[0] ? "first" : "second", failed[0] ? failed[0] : failed[1]));
    }
    fact_text(job, "shared", failed[0] ? arena_format(&job->arena, "refused: %s", failed[0]) : "loaded in both orders");
    return true;
}

static bool play(Compiling *all) {
    Job *job = all->job;
    const Json *stale = NULL;
    SessionPlan elsewhere = job->plan, forbidden = job->plan;
    for (size_t way = 0; way < sizeof WAYS / sizeof *WAYS; way++)
        if (!compile_way(all, way)) return false;
    if (!play_callbacks(all)) return false;
    elsewhere.model = all->last, elsewhere.on_cpu = true;
    forbidden.entries = (const char *[]){FORBIDS, "1", NULL};
    if (!load_with_entries(all)) return false;
    const char *refused = session_refusal(job, &elsewhere);
    fact_text(job, "without_ep", refused ? refused : "it loads");
    if (!damage(all)) return false;
    refused = session_refusal(job, &forbidden);
    fact_text(job, "compiling_forbidden", refused ? arena_format(&job->arena, "refused: %s", refused) : "the provider takes nodes anyway");
    return share(all) && check_compatibility(all, &stale) && check_stale(all, stale);
}

bool compile(Job *job) {
    const Json *settings = json_get(job->message, "scenario_settings"); /* these two in a fresh process */
    const char *asked = json_text(json_get(settings, "compatibility_of"), NULL);
    Compiling all = {.job = job};
    if (asked) return ask_compatibility(job, asked);
    if (json_get(settings, CONTEXT_DATA)) return run_from_callback(job, settings);
    if (!HAS(GetCompileApi)) return job_lacks(job, "compiler of models in C, 1.22 is the first with it");
    if (!job_create(job) || !watch_begin(&all.watch, job) || !(all.scratch = scratch_begin(job))) return false;
    bool fine = play(&all);
    scratch_end(job);
    if (all.done) fact_texts(job, "ways", all.ways, all.done);
    for (size_t index = 0; all.done && index < WAY_FIGURES; index++) fact(job, "\"%s\":[%s]", FIGURES[index], all.figures[index]);
    return fine && watch_conclude(&all.watch, "equal_to_plain");
}
