/* Callbacks for the data of a compiled model: the application takes what a provider would write beside it, and gives it back when
 * the model is loaded. Such an application encrypts the data; a file in spite of the callback is readable for anybody. */

#include "compiled.h"

#include <stdatomic.h>
#include <string.h>

static const char NOT_SUPPORTED[] = "does not support the registered EPContext data"; /* onnxruntime, of a provider without them */
static const char WORDS[] = "from file to file, embed_mode 0, data to a callback";

typedef OrtStatus *(ORT_CALL *SetRead)(OrtSessionOptions *, ReadNamed, void *);
typedef OrtStatus *(ORT_CALL *SetWrite)(OrtCompilation *, WriteNamed, void *);

static SetRead read_setter(void) {
    if (HAS(SessionOptionsSetEpContextDataReadFunc)) return ORT(SessionOptionsSetEpContextDataReadFunc);
    return (SetRead)ORT(GetExperimentalFunction)("OrtApi_SessionOptions_SetEpContextDataReadFunc_SinceV28");
}

static SetWrite write_setter(void) {
    if (HAS(ModelCompilationOptions_SetEpContextDataWriteFunc)) return COMPILE(ModelCompilationOptions_SetEpContextDataWriteFunc);
    return (SetWrite)ORT(GetExperimentalFunction)("OrtCompileApi_ModelCompilationOptions_SetEpContextDataWriteFunc_SinceV28");
}

/* --- what the application does; onnxruntime may call it in several threads --- */

typedef struct {
    const char *folder; /* of the data */
    bool inverted;
    atomic_int asked;
} Data;

/* The name of data is the provider's, and need not be one of a file. */
static const char *file_of(Arena *arena, const Data *data, const char *name) {
    Sha256 sums;
    char hex[65];
    sha256_begin(&sums);
    sha256_add(&sums, name, strlen(name));
    sha256_hex(&sums, hex);
    return arena_format(arena, "%s/%s", data->folder, hex);
}

static OrtStatus *ORT_CALL take(void *with, const char *name, const void *content, size_t size) {
    Arena arena = {0};
    bool taken = file_append(file_of(&arena, with, name), content, size, true);
    arena_free(&arena);
    return taken ? NULL : ORT(CreateStatus)(1, "the agent's folder takes no files");
}

static OrtStatus *ORT_CALL give(void *with, const char *name, OrtAllocator *allocator, void **to, size_t *size) {
    Data *data = with;
    Arena arena = {0};
    const char *content = NULL;
    atomic_fetch_add(&data->asked, 1);
    OrtStatus *status = file_read(&arena, file_of(&arena, data, name), &content, size)
                            ? ORT(AllocatorAlloc)(allocator, *size, to)
                            : ORT(CreateStatus)(1, "the provider has written no data of that name");
    for (size_t at = 0; !status && at < *size; at++) ((char *)*to)[at] = (char)(data->inverted ? ~content[at] : content[at]);
    arena_free(&arena);
    return status;
}

static OrtStatus *ORT_CALL fail_to_take(void *with, const char *name, const void *content, size_t size) {
    (void)with, (void)name, (void)content, (void)size;
    return ORT(CreateStatus)(1, "the application refuses");
}

static OrtStatus *ORT_CALL fail_to_give(void *with, const char *name, OrtAllocator *allocator, void **to, size_t *size) {
    (void)with, (void)name, (void)allocator, (void)to, (void)size;
    return ORT(CreateStatus)(1, "the application refuses");
}

static OrtStatus *to_application(OrtCompilation *asked, void *data) { return write_setter()(asked, data ? take : fail_to_take, data); }
static OrtStatus *from_application(OrtSessionOptions *settings, void *data) { return read_setter()(settings, data ? give : fail_to_give, data); }

/* --- what is to come of it --- */

static bool blame(Job *job, const char *words) { return blame_compiled(job, arena_format(&job->arena, "compiled %s: %s", WORDS, words)); }

static const char *compile_to(Compiling *all, Data *data, const char *base, double figures[WAY_FIGURES], const char **error) {
    const Way way = {"file", "file", false, ", data to a callback", to_application, data};
    return compile_model(all, &way, base, figures, error);
}

/* Tell the names of files beside a compiled model; NULL if there are none. */
static const char *files_in(Arena *arena, const char *base) {
    size_t count = 0;
    const char *found = NULL;
    char **names = folder_names(arena, arena_format(arena, "%s/installed", base), &count);
    for (size_t index = 0; index < count; index++)
        if (strcmp(names[index], "compiled.onnx")) found = arena_format(arena, "%s%s%s", found ? found : "", found ? ", " : "", names[index]);
    return found;
}

static const char *settings_of(Job *job, const Data *data, bool inverted) {
    Message settings = {0};
    put_then(&settings, "{\"" CONTEXT_DATA "\":", data->folder);
    put(&settings, inverted ? ",\"inverted\":true}" : ",\"inverted\":false}");
    const char *text = arena_text(&job->arena, settings.json.at, settings.json.size);
    message_free(&settings);
    return text;
}

/* Load the result in a fresh process, with the data as they are, and inverted. */
static bool load_by_callback(Compiling *all, const Data *data, const char *path, size_t written, double *load_ms) {
    Job *job = all->job;
    Served served;
    const char *changes[] = {"scenario", "\"compile\"", "scenario_settings", settings_of(job, data, false), NULL};
    if (!load_compiled(all, path, WORDS, changes, &served)) return false;
    int64_t asked = json_integer(json_get(json_get(served.result, "scenario"), "asked"), 0);
    if (!asked) return blame(job, "it loads, and the application is not asked for the data");
    fact_text(job, "callbacks", arena_format(&job->arena, "%zu written, %lld read", written, (long long)asked));
    *load_ms = served.create_ms;
    changes[3] = settings_of(job, data, true);
    const char *inverted = became(all, path, changes);
    if (!inverted) return false;
    if (!strcmp(inverted, LOADS_SAME)) return blame(job, "it computes the same with every bit of the data inverted");
    fact_text(job, "callbacks_inverted", inverted);
    return true;
}

/* Errors of the application must not be lost, nor files be written instead. */
static bool fail_both(Compiling *all, const char *base, const char *path) {
    Job *job = all->job;
    double figures[WAY_FIGURES];
    const char *error, *failing = arena_format(&job->arena, "%s/failing", base);
    if (!compile_to(all, NULL, failing, figures, &error)) return false;
    if (!error) return blame(job, "the error of a callback that fails is lost");
    const char *files = files_in(&job->arena, failing);
    if (files) return blame(job, arena_format(&job->arena, "the provider also writes %s", files));
    SessionPlan plan = job->plan;
    plan.model = path, plan.model_size = 0, plan.adjust = from_application, plan.with = NULL;
    job_enter(job, "create");
    return session_refusal(job, &plan) || blame(job, "the error of a callback that fails is lost when it is loaded");
}

bool play_callbacks(Compiling *all) {
    Job *job = all->job;
    double figures[WAY_FIGURES];
    size_t written = 0;
    const char *error, *base = arena_format(&job->arena, "%s/callbacks", all->scratch);
    Data data = {.folder = arena_format(&job->arena, "%s/data", all->scratch)};
    if (!HAS(GetExperimentalFunction) || !write_setter()) {
        fact_text(job, "callbacks", arena_format(&job->arena, "onnxruntime %s has none in C, 1.28 is the first", runtime_version()));
        return true;
    }
    if (!make_folder(data.folder)) return job_fail(job, "unfeedable", NULL, "the agent's folder takes no folders");
    if (!compile_to(all, &data, base, figures, &error)) return false;
    if (error && strstr(error, NOT_SUPPORTED)) return fact_text(job, "callbacks", arena_format(&job->arena, "refused: %s", error)), true;
    if (error) return blame_compiled(job, arena_format(&job->arena, "compiling %s: %s", WORDS, error));
    const char *path = arena_format(&job->arena, "%s/installed/compiled.onnx", base), *files = files_in(&job->arena, base);
    folder_names(&job->arena, data.folder, &written);
    if (files && !written && !HAS(SessionOptionsSetEpContextDataReadFunc)) { /* such an onnxruntime does not ask providers */
        fact_text(job, "callbacks", arena_format(&job->arena, "not used: the provider writes %s", files));
        return true;
    }
    if (files) return blame(job, arena_format(&job->arena, "the provider also writes %s", files));
    if (!contexts_in(path)) return nothing_compiled(job);
    if (!written) return fact_text(job, "callbacks", "not used: the provider has no data beside the model"), true;
    if (!load_by_callback(all, &data, path, written, &figures[LOAD_MS]) || !fail_both(all, base, path)) return false;
    note_way(all, WORDS, figures);
    return true;
}

bool run_from_callback(Job *job, const Json *settings) {
    Data data = {.folder = json_text(json_get(settings, CONTEXT_DATA), ""), .inverted = json_is(json_get(settings, "inverted"), JSON_TRUE)};
    job->plan.adjust = from_application;
    job->plan.with = &data;
    bool ran = job_create(job) && job_run_sets(job);
    job->plan.adjust = NULL;
    fact(job, "\"asked\":%d", atomic_load(&data.asked));
    return ran;
}
