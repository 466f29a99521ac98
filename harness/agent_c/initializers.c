/* The scenario `initializers`: weights come from memory, while the file beside the model is absent or has other contents, and
 * several sessions share one copy. It shows a provider that reads the file, or takes a weight's address for its content. */

#include "job.h"
#include "onnx.h"

#include <math.h>
#include <string.h>

enum { SHARING = 2 };

typedef struct {
    Job *job;
    Watch watch;
    StoredWeight *weights;
    size_t count, files, tried;
    const char **names, **file_names, **data; /* of the weights, and of the files with their contents */
    size_t *sizes;
    OrtValue **values; /* NULL: the agent has no such element type */
    const char *not_tried[2];
    size_t left_out;
} Weights;

static OrtStatus *give_values(OrtSessionOptions *settings, void *with) {
    const Weights *all = with;
    return ORT(AddExternalInitializers)(settings, all->names, (const OrtValue *const *)all->values, all->count);
}

static OrtStatus *give_shared(OrtSessionOptions *settings, void *with) {
    const Weights *all = with;
    OrtStatus *status = NULL;
    for (size_t index = 0; index < all->count && !status; index++) status = ORT(AddInitializer)(settings, all->names[index], all->values[index]);
    return status;
}

static OrtStatus *give_files(OrtSessionOptions *settings, void *with) {
    const Weights *all = with;
    Arena *arena = &all->job->arena;
    const OrtChar **names = arena_take(arena, all->files * sizeof *names);
    char **data = arena_take(arena, all->files * sizeof *data);
    for (size_t index = 0; index < all->files; index++) {
        names[index] = name_for_runtime(arena, all->file_names[index]);
        data[index] = (char *)(uintptr_t)all->data[index];
    }
    return ORT(AddExternalInitializersFromFilesInMemory)(settings, names, data, all->sizes, all->files);
}

/* Find the files of the weights, and read them. */
static bool read_files(Weights *all) {
    Job *job = all->job;
    const char *folder = folder_of(&job->arena, job->plan.model);
    for (size_t index = 0; index < all->count; index++) {
        const char *name = all->weights[index].file;
        size_t known = 0;
        all->names[index] = all->weights[index].name;
        while (known < all->files && strcmp(all->file_names[known], name)) known++;
        if (known < all->files) continue;
        if (!stays_inside(name, strlen(name))) return job_fail(job, "unsupported", NULL, "weights lie in a file outside the folder of the model");
        if (!file_read(&job->arena, arena_format(&job->arena, "%s%s", folder, name), &all->data[known], &all->sizes[known]))
            return job_fail(job, "error", "NoSuchFile", arena_format(&job->arena, "%.200s cannot be read", name));
        all->file_names[all->files++] = name;
    }
    return true;
}

/* Make a value of each weight; none at all if one is of a type that the agent does not have. */
static bool make_values(Weights *all) {
    Job *job = all->job;
    OrtValue **values = arena_take(&job->arena, (all->count + 1) * sizeof *values);
    for (size_t index = 0; index < all->count; index++) {
        StoredWeight *weight = &all->weights[index];
        Trouble trouble = {0};
        size_t file = 0;
        while (strcmp(all->file_names[file], weight->file)) file++;
        size_t most = all->sizes[file] > weight->offset ? all->sizes[file] - weight->offset : 0;
        if (!value_size(&weight->value) || weight->value.size > most) {
            job_release(values, index);
            return true;
        }
        weight->value.data = (void *)(uintptr_t)(all->data[file] + weight->offset);
        if (!value_feed(&job->arena, &weight->value, ort_allocator, &values[index], &trouble)) {
            job_release(values, index);
            return job_trouble(job, &trouble);
        }
    }
    all->values = values;
    return true;
}

/* Write files of the same sizes with other contents: the same numbers in reverse order, or zeros. */
static bool write_others(Weights *all, const char *folder) {
    Job *job = all->job;
    for (size_t index = 0; index < all->files; index++) {
        size_t size = all->sizes[index], whole = size / 8 * 8;
        char *other = arena_text(&job->arena, all->data[index], size), *path = path_in(&job->arena, folder, all->file_names[index]);
        for (size_t at = 0; at < whole; at += 8) memcpy(other + at, all->data[index] + whole - 8 - at, 8);
        if (!memcmp(other, all->data[index], size)) memset(other, 0, size);
        if (!path || !file_append(path, other, size, true)) return job_fail(job, "unfeedable", NULL, "the agent's folder takes no files");
    }
    return true;
}

static bool try_session(Weights *all, const char *model, OrtStatus *(*give)(OrtSessionOptions *, void *), const char *where) {
    Job *job = all->job;
    SessionPlan plan = job->plan;
    plan.model = model, plan.adjust = give, plan.with = all;
    job_enter(job, "create");
    OrtSession *session = job_open(job, &plan);
    bool fine = session && watch_all(&all->watch, session, where);
    if (session) ORT(ReleaseSession)(session);
    all->tried++;
    return fine || job_blame(job, "WeightsFromMemoryError", where);
}

static bool try_all(Weights *all, const char *folder) {
    Job *job = all->job;
    const struct {
        bool can;
        OrtStatus *(*give)(OrtSessionOptions *, void *);
        const char *what, *why;
    } ways[] = {{all->values != NULL, give_values, "with weights as values", "weights as values: the agent lacks the element type of a weight"},
                {HAS(AddExternalInitializersFromFilesInMemory), give_files, "with the weights' file in memory",
                 "onnxruntime before 1.18 has no AddExternalInitializersFromFilesInMemory"}};
    const char *model = arena_format(&job->arena, "%s/model.onnx", folder);
    if (!file_copy(job->plan.model, model)) return job_fail(job, "unfeedable", NULL, "the agent's folder takes no files");
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        if (!ways[way].can) {
            all->not_tried[all->left_out++] = ways[way].why;
            continue;
        }
        if (!try_session(all, model, ways[way].give, arena_format(&job->arena, "%s, the file absent", ways[way].what))) return false;
        if (!write_others(all, folder)) return false;
        if (!try_session(all, model, ways[way].give, arena_format(&job->arena, "%s, other contents in the file", ways[way].what))) return false;
        for (size_t index = 0; index < all->files; index++) file_delete(arena_format(&job->arena, "%s/%s", folder, all->file_names[index]));
    }
    return true;
}

/* Run sessions that share one copy of the weights, all open, and then the last one alone. */
static bool share(Weights *all) {
    Job *job = all->job;
    SessionPlan plan = job->plan;
    OrtSession *open[SHARING] = {NULL};
    double grown[SHARING];
    const char *where = "with weights that sessions share";
    bool fine = true;
    plan.adjust = give_shared, plan.with = all;
    for (size_t count = 0; fine && count < SHARING; count++) {
        double before = resident_mib();
        job_enter(job, "create");
        fine = (open[count] = job_open(job, &plan)) != NULL;
        grown[count] = before < 0 ? 0 : fmax(0, resident_mib() - before);
        for (size_t index = 0; fine && index <= count; index++) fine = watch_all(&all->watch, open[index], where);
    }
    job_enter(job, "teardown");
    if (open[0]) ORT(ReleaseSession)(open[0]);
    fine = fine && watch_all(&all->watch, open[SHARING - 1], "with weights shared with a session that is closed");
    for (size_t index = 1; index < SHARING; index++)
        if (open[index]) ORT(ReleaseSession)(open[index]);
    if (!fine) return job_blame(job, "WeightsFromMemoryError", where);
    all->tried++;
    fact(job, "\"shared_mib\":[%.2f,%.2f]", grown[0], grown[1]);
    return true;
}

static bool play(Weights *all) {
    Job *job = all->job;
    double before = resident_mib();
    if (!job_create(job) || !watch_begin(&all->watch, job)) return false;
    fact(job, "\"weights\":%zu,\"file_mib\":%.2f", all->count, before < 0 ? 0 : fmax(0, resident_mib() - before));
    if (!read_files(all) || !make_values(all)) return false;
    const char *folder = scratch_begin(job);
    bool fine = folder && try_all(all, folder);
    scratch_end(job);
    fine = fine && (!all->values || share(all));
    if (all->values) job_release(all->values, all->count);
    return fine;
}

bool initializers(Job *job) {
    const char *model = NULL;
    size_t size = 0;
    Weights all = {.job = job};
    if (!file_read(&job->arena, job->plan.model, &model, &size)) return job_fail(job, "error", "NoSuchFile", arena_format(&job->arena, "%s cannot be read", job->plan.model));
    all.weights = stored_weights(&job->arena, model, size, &all.count);
    size_t room = (all.count + 1) * sizeof(void *);
    all.names = arena_take(&job->arena, room), all.file_names = arena_take(&job->arena, room), all.data = arena_take(&job->arena, room);
    all.sizes = arena_take(&job->arena, room);
    if (!play(&all)) return false;
    if (!all.tried) return job_fail(job, "unsupported", NULL, all.not_tried[0]);
    fact(job, "\"ways\":%zu", all.tried);
    if (all.left_out) fact_texts(job, "not_tried", all.not_tried, all.left_out);
    return watch_conclude(&all.watch, "equal_to_file");
}
