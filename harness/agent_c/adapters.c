/* The scenario `adapters`: LoRA adapters change from run to run in one session. Inputs of a data set whose names begin with a
 * prefix are the matrices of its adapters. */

#include "job.h"

#include <string.h>

#define PREFIX "ep_harness.lora." /* the number of the adapter follows, a dot, and the matrix */
enum { MOST_ADAPTERS = 16 };

/* --- onnxruntime's format: a flat buffer of tables, each with its place relative to where that is named --- */

static void put_word(Bytes *to, size_t word) { bytes_add(to, &(uint32_t){(uint32_t)word}, 4); }

/* Let a place that was left open point to the end of what is written so far. */
static void point(Bytes *to, size_t at) {
    uint32_t distance = (uint32_t)(to->size - at);
    memcpy(to->at + at, &distance, 4);
}

static void align(Bytes *to, size_t beyond) { /* the next word ends at a multiple of 8, or begins at one of 4 */
    while ((to->size + beyond) % (beyond ? 8 : 4)) bytes_add(to, "", 1);
}

static void put_parameter(Bytes *to, const char *name, const Value *value) {
    size_t table = to->size;
    put_word(to, table - 8); /* back to the table of fields */
    put_word(to, 0), put_word(to, 0), put_word(to, (size_t)value->type), put_word(to, 0); /* name, dimensions, type, data */
    point(to, table + 4);
    put_word(to, strlen(name));
    bytes_add(to, name, strlen(name) + 1);
    align(to, 4);
    point(to, table + 8);
    put_word(to, value->rank);
    bytes_add(to, value->shape, value->rank * sizeof *value->shape);
    align(to, 4);
    point(to, table + 16);
    put_word(to, value->size);
    bytes_add(to, value->data, value->size);
    align(to, 0);
}

/* Write the adapter of a number; false if the data set has none. */
static bool write_adapter(Bytes *to, const Feeds *feeds, const char *number) {
    size_t count = 0, length = strlen(number), first;
    static const uint16_t fields[] = {12, 20, 4, 8, 12, 16}; /* both kinds of tables have four */
    put_word(to, 20);
    bytes_add(to, "TORT", 4);
    bytes_add(to, fields, sizeof fields);
    put_word(to, 12);
    put_word(to, 1), put_word(to, 1), put_word(to, 1), put_word(to, 4); /* versions of format, adapter and model; parameters */
    for (size_t index = 0; index < feeds->count; index++) count += !strncmp(feeds->names[index], number, length);
    put_word(to, count);
    first = to->size;
    for (size_t index = 0; index < count; index++) put_word(to, 0);
    for (size_t index = 0, done = 0; index < feeds->count; index++) {
        if (strncmp(feeds->names[index], number, length)) continue;
        point(to, first + 4 * done++);
        put_parameter(to, feeds->names[index], &feeds->values[index]);
    }
    return count > 0;
}

/* --- runs --- */

typedef struct {
    OrtLoraAdapter *adapters[MOST_ADAPTERS];
    Bytes bytes[MOST_ADAPTERS];
    size_t count, size;
} Active;

/* Load the adapters of a data set, in the order of their numbers, and take their matrices out of the inputs. */
static bool load(Job *job, Feeds *feeds, Active *active) {
    Feeds rest = {arena_take(&job->arena, (feeds->count + 1) * sizeof(char *)), arena_take(&job->arena, (feeds->count + 1) * sizeof(Value)), 0};
    const char *last = "";
    for (const char *next = NULL; active->count < MOST_ADAPTERS; last = next, next = NULL, active->count++) {
        for (size_t index = 0; index < feeds->count; index++) {
            const char *name = feeds->names[index], *dot = strncmp(name, PREFIX, strlen(PREFIX)) ? NULL : strchr(name + strlen(PREFIX), '.');
            const char *number = dot ? arena_text(&job->arena, name, (size_t)(dot - name) + 1) : NULL;
            if (number && strcmp(number, last) > 0 && (!next || strcmp(number, next) < 0)) next = number;
        }
        if (!next || !write_adapter(&active->bytes[active->count], feeds, next)) break;
        const Bytes *bytes = &active->bytes[active->count];
        active->size += bytes->size;
        if (!job_good(job, ORT(CreateLoraAdapterFromArray)(bytes->at, bytes->size, NULL, &active->adapters[active->count]))) return false;
        if (!job_good(job, ORT(RunOptionsAddActiveLoraAdapter)(job->options, active->adapters[active->count]))) return false;
    }
    for (size_t index = 0; index < feeds->count; index++)
        if (strncmp(feeds->names[index], PREFIX, strlen(PREFIX))) rest.names[rest.count] = feeds->names[index], rest.values[rest.count++] = feeds->values[index];
    *feeds = rest;
    return true;
}

static bool run_set(Job *job, const Json *data_set, Active *active) {
    Feeds feeds;
    bool fine = job_feeds(job, data_set, &feeds) && job_good(job, ORT(CreateRunOptions)(&job->options)) && load(job, &feeds, active);
    if (fine) job_enter(job, "run");
    fine = fine && job_run(job, &job->arena, &feeds, job->names, job->outputs, &job->ran[job->sets_ran]);
    if (job->first_run_ms < 0) job->first_run_ms = job->run_ms;
    if (job->options) ORT(ReleaseRunOptions)(job->options);
    job->options = NULL;
    for (size_t index = 0; index < MOST_ADAPTERS; index++) {
        if (active->adapters[index]) ORT(ReleaseLoraAdapter)(active->adapters[index]);
        bytes_free(&active->bytes[index]);
    }
    return fine;
}

bool adapters(Job *job) {
    const char *counts = "", *sizes = "";
    if (!HAS(CreateLoraAdapterFromArray)) return job_lacks(job, "adapters, 1.20 is the first with them");
    if (!job_create(job)) return false;
    for (const Json *one = json_item(json_get(job->message, "data_sets"), 0); one; one = one->next, job->sets_ran++) {
        Active active = {0};
        const char *comma = *counts ? "," : "";
        if (!run_set(job, one, &active)) return false;
        counts = arena_format(&job->arena, "%s%s%zu", counts, comma, active.count);
        sizes = arena_format(&job->arena, "%s%s%zu", sizes, comma, active.size);
    }
    fact(job, "\"adapters\":[%s],\"adapter_bytes\":[%s]", counts, sizes);
    return job_conclude(job);
}
