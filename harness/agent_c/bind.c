#include "bind.h"

#include <math.h>
#include <string.h>
#include <strings.h>

/* --- memory --- */

static bool is_host(const char *memory) {
    size_t size = strlen(memory);
    return !strncasecmp(memory, "cpu", 3) || (size >= 3 && !strcasecmp(memory + size - 3, "cpu")) || (size >= 6 && !strcasecmp(memory + size - 6, "pinned"));
}

/* Copy four bytes to a memory and back: not each provider lets the C API do so. */
static OrtStatus *try_memory(OrtAllocator *allocator) {
    int64_t one = 1;
    OrtValue *here = NULL, *there = NULL;
    void *data = NULL;
    OrtStatus *status = ORT(CreateTensorAsOrtValue)(ort_allocator, &one, 1, 1, &here);
    if (!status) status = ORT(GetTensorMutableData)(here, &data);
    if (!status) memset(data, 0, sizeof(float)), status = ORT(CreateTensorAsOrtValue)(allocator, &one, 1, 1, &there);
    if (!status) status = ORT(CopyTensors)(ort_env, (const OrtValue *const *)&here, &there, NULL, 1);
    if (!status) status = ORT(CopyTensors)(ort_env, (const OrtValue *const *)&there, &here, NULL, 1);
    job_release((OrtValue *[]){here, there}, 2);
    return status;
}

static bool find_place(Bound *bound, const OrtMemoryInfo *memory, Place *place) {
    Job *job = bound->job;
    const char *name = "cpu";
    if (memory && !job_good(job, ORT(MemoryInfoGetName)(memory, &name))) return false;
    place->on = "cpu";
    if (is_host(name)) return true;
    OrtStatus *status = ORT(CreateAllocator)(bound->session, memory, &place->allocator);
    if (!status) status = try_memory(place->allocator);
    if (!status) {
        place->on = arena_text(&job->arena, name, strlen(name));
        return true;
    }
    bound->reason = status_text(&job->arena, status, NULL);
    if (place->allocator) ORT(ReleaseAllocator)(place->allocator);
    place->allocator = NULL;
    return true;
}

static bool find_places(Bound *bound, size_t count, bool outputs, Place *places) {
    Job *job = bound->job;
    const OrtMemoryInfo **memory = arena_take(&job->arena, (count + 1) * sizeof *memory);
    if (!HAS(SessionGetMemoryInfoForInputs)) bound->reason = "onnxruntime before 1.23 does not tell the memory of values in C";
    else if (!job_good(job, outputs ? ORT(SessionGetMemoryInfoForOutputs)(bound->session, memory, count)
                                    : ORT(SessionGetMemoryInfoForInputs)(bound->session, memory, count)))
        return false;
    for (size_t index = 0; index < count; index++)
        if (!find_place(bound, memory[index], &places[index])) return false;
    return true;
}

static bool is_bindable(Bound *bound, size_t index) {
    Job *job = bound->job;
    OrtTypeInfo *info = NULL;
    const OrtTensorInfo *tensor = NULL;
    int kind = 0, type = 0;
    bool fine = job_good(job, ORT(SessionGetOutputTypeInfo)(bound->session, index, &info)) && job_good(job, ORT(GetOnnxTypeFromTypeInfo)(info, &kind));
    if (fine && kind == VALUE_TENSOR)
        fine = job_good(job, ORT(CastTypeInfoToTensorInfo)(info, &tensor)) && job_good(job, ORT(GetTensorElementType)(tensor, &type));
    if (info) ORT(ReleaseTypeInfo)(info);
    if (!fine || (kind == VALUE_TENSOR && type != TYPE_STRING)) return fine;
    return job_fail(job, "unsupported", NULL, arena_format(&job->arena, "the agent binds tensors of numbers alone (output %.60s)", job->names[index]));
}

bool bound_open(Bound *bound, Job *job, OrtSession *session) {
    *bound = (Bound){.job = job, .session = session};
    for (size_t index = 0; index < job->outputs; index++)
        if (!is_bindable(bound, index)) return false;
    if (!job_good(job, ORT(SessionGetInputCount)(session, &bound->ins)) || !job_good(job, ORT(CreateIoBinding)(session, &bound->binding))) return false;
    bound->in = arena_take(&job->arena, (bound->ins + 1) * sizeof(Place));
    bound->out = arena_take(&job->arena, (job->outputs + 1) * sizeof(Place));
    bound->out_on = arena_take(&job->arena, (job->outputs + 1) * sizeof(char *));
    for (size_t index = 0; index < bound->ins; index++) {
        Trouble trouble = {0};
        if (!(bound->in[index].name = input_name(&job->arena, session, index, &trouble))) return job_trouble(job, &trouble);
    }
    for (size_t index = 0; index < job->outputs; index++) bound->out[index].name = job->names[index];
    if (!find_places(bound, bound->ins, false, bound->in) || !find_places(bound, job->outputs, true, bound->out)) return false;
    bool somewhere = bound->reason != NULL;
    for (size_t index = 0; index < bound->ins; index++) somewhere |= bound->in[index].allocator != NULL;
    for (size_t index = 0; index < job->outputs; index++) somewhere |= bound->out[index].allocator != NULL;
    if (!somewhere) bound->reason = "the session wants its inputs and outputs in the CPU's memory";
    return true;
}

void bound_close(Bound *bound) {
    if (bound->binding) ORT(ReleaseIoBinding)(bound->binding);
    if (bound->fed) job_release(bound->fed, bound->feeds.count);
    if (bound->options) ORT(ReleaseRunOptions)(bound->options);
    for (size_t index = 0; bound->in && index < bound->ins; index++)
        if (bound->in[index].allocator) ORT(ReleaseAllocator)(bound->in[index].allocator);
    for (size_t index = 0; bound->out && index < bound->job->outputs; index++)
        if (bound->out[index].allocator) ORT(ReleaseAllocator)(bound->out[index].allocator);
    *bound = (Bound){0};
}

OrtValue *place_value(Job *job, Arena *arena, const Place *place, const Value *content) {
    Trouble trouble = {0};
    OrtValue *here = NULL, *there = NULL;
    if (!value_feed(arena, content, ort_allocator, &here, &trouble)) return job_trouble(job, &trouble), NULL;
    if (!place->allocator) return here;
    bool fine = value_room(content, place->allocator, &there, &trouble) || job_trouble(job, &trouble);
    fine = fine && job_good(job, ORT(CopyTensors)(ort_env, (const OrtValue *const *)&here, &there, NULL, 1));
    ORT(ReleaseValue)(here);
    if (fine) return there;
    if (there) ORT(ReleaseValue)(there);
    return NULL;
}

bool value_read_back(Job *job, Arena *arena, const OrtValue *from, Value *value, const char **on) {
    const OrtMemoryInfo *memory = NULL;
    Trouble trouble = {0};
    OrtValue *here = NULL;
    const char *name = "";
    if (!job_good(job, ORT(GetTensorMemoryInfo)(from, &memory)) || !job_good(job, ORT(MemoryInfoGetName)(memory, &name))) return false;
    *on = is_host(name) ? "cpu" : arena_text(&job->arena, name, strlen(name));
    if (is_host(name)) return value_take(arena, from, ort_allocator, value, &trouble) || job_trouble(job, &trouble);
    bool fine = (tensor_about(arena, from, value, &trouble) && value_room(value, ort_allocator, &here, &trouble)) || job_trouble(job, &trouble);
    fine = fine && job_good(job, ORT(CopyTensors)(ort_env, &from, &here, NULL, 1));
    fine = fine && (value_take(arena, here, ort_allocator, value, &trouble) || job_trouble(job, &trouble));
    if (here) ORT(ReleaseValue)(here);
    return fine;
}

/* --- binding --- */

static const Place *place_of(const Bound *bound, const char *name) {
    static const Place host = {"", "cpu", NULL};
    for (size_t index = 0; index < bound->ins; index++)
        if (!strcmp(bound->in[index].name, name)) return &bound->in[index];
    return &host;
}

bool bound_feed(Bound *bound, const Feeds *feeds) {
    Job *job = bound->job;
    if (bound->fed) job_release(bound->fed, bound->feeds.count);
    bound->feeds = *feeds;
    bound->fed = arena_take(&job->arena, (feeds->count + 1) * sizeof *bound->fed);
    bound->in_on = arena_take(&job->arena, (feeds->count + 1) * sizeof(char *));
    bound->to_device = bound->to_bytes = 0;
    for (size_t index = 0; index < feeds->count; index++) {
        const Value *value = &feeds->values[index];
        const Place *place = place_of(bound, feeds->names[index]);
        if (value->kind != TENSOR_VALUE || value->type == TYPE_STRING)
            return job_fail(job, "unsupported", NULL, arena_format(&job->arena, "the agent binds tensors of numbers alone (input %.60s)", feeds->names[index]));
        bound->fed[index] = place_value(job, &job->arena, place, value);
        if (!bound->fed[index] || !job_good(job, ORT(BindInput)(bound->binding, feeds->names[index], bound->fed[index]))) return false;
        bound->in_on[index] = arena_format(&job->arena, "%.60s: %s", feeds->names[index], place->on);
        if (place->allocator) bound->to_device++, bound->to_bytes += value->size;
    }
    return true;
}

bool bound_refill(Bound *bound, const Feeds *feeds) {
    Job *job = bound->job;
    for (size_t index = 0; index < feeds->count; index++) {
        static const Place host = {"", "cpu", NULL};
        bool on_device = place_of(bound, feeds->names[index])->allocator;
        Arena arena = {0};
        void *data = NULL;
        OrtValue *here = on_device ? place_value(job, &arena, &host, &feeds->values[index]) : NULL;
        bool fine = on_device ? here && job_good(job, ORT(CopyTensors)(ort_env, (const OrtValue *const *)&here, &bound->fed[index], NULL, 1))
                              : job_good(job, ORT(GetTensorMutableData)(bound->fed[index], &data));
        if (fine && !on_device && feeds->values[index].size) memcpy(data, feeds->values[index].data, feeds->values[index].size);
        if (here) ORT(ReleaseValue)(here);
        arena_free(&arena);
        if (!fine) return false;
    }
    return true;
}

bool bound_to_places(Bound *bound) {
    Job *job = bound->job;
    OrtMemoryInfo *host = NULL;
    if (!job_good(job, ORT(CreateCpuMemoryInfo)(0, 0, &host))) return false;
    bool fine = true;
    for (size_t index = 0; fine && index < job->outputs; index++) {
        const OrtMemoryInfo *memory = host;
        OrtAllocator *allocator = bound->out[index].allocator;
        if (allocator) fine = job_good(job, ORT(AllocatorGetInfo)(allocator, &memory));
        fine = fine && job_good(job, ORT(BindOutputToDevice)(bound->binding, job->names[index], memory));
    }
    ORT(ReleaseMemoryInfo)(host);
    return fine;
}

bool bound_to_values(Bound *bound, OrtValue *const *values) {
    for (size_t index = 0; index < bound->job->outputs; index++)
        if (!job_good(bound->job, ORT(BindOutput)(bound->binding, bound->job->names[index], values[index]))) return false;
    return true;
}

bool bound_run(Bound *bound) {
    double began = now_ms();
    OrtStatus *status = ORT(RunWithBinding)(bound->session, bound->options, bound->binding);
    if (!status) status = ORT(SynchronizeBoundOutputs)(bound->binding);
    bool fine = job_good(bound->job, status), awaited = true;
    /* WebGPU still computes then; only a copy waits for it (onnxruntime-ep-webgpu 0.4.0). */
    for (size_t index = 0; index < bound->job->outputs; index++) awaited &= strncasecmp(bound->out[index].on, "webgpu", 6) != 0;
    if (fine && !awaited) {
        Arena arena = {0};
        Value *outputs = NULL;
        fine = bound_take(bound, &arena, &outputs);
        arena_free(&arena);
    }
    bound->job->run_ms = now_ms() - began;
    return fine;
}

bool bound_take(Bound *bound, Arena *arena, Value **outputs) {
    Job *job = bound->job;
    OrtValue **values = NULL;
    size_t count = 0;
    if (!job_good(job, ORT(GetBoundOutputValues)(bound->binding, ort_allocator, &values, &count))) return false;
    bool fine = count == job->outputs || job_fail(job, "error", "Fail", "the run filled fewer outputs than are bound");
    *outputs = arena_take(arena, (count + 1) * sizeof **outputs);
    bound->from_device = bound->from_bytes = 0;
    for (size_t index = 0; fine && index < count; index++) {
        const char *on = "";
        fine = value_read_back(job, arena, values[index], &(*outputs)[index], &on);
        bound->out_on[index] = arena_format(&job->arena, "%.60s: %s", job->names[index], on);
        if (strcmp(on, "cpu")) bound->from_device++, bound->from_bytes += (*outputs)[index].size;
    }
    job_release(values, count);
    return job_good(job, ORT(AllocatorFree)(ort_allocator, values)) && fine;
}

/* --- the scenario `io_binding` --- */

static bool step(void *bound) { return bound_run(bound); }

static bool repeat_bound(Bound *bound) {
    Job *job = bound->job;
    const Json *asked = json_get(job->message, "repeat");
    Tally tally = {.first = job->ran[0], .runs = 1};
    bool fine = true;
    if (!asked) return true;
    for (int64_t run = 1; fine && run < json_integer(json_get(asked, "runs"), 1); run++) {
        Arena arena = {0};
        Value *outputs = NULL;
        job_further(job);
        fine = bound_run(bound) && bound_take(bound, &arena, &outputs);
        if (fine) tally_add(job, &tally, &arena, outputs);
        arena_free(&arena);
    }
    if (fine) tally_report(job, &tally, 1);
    return fine;
}

static bool time_bound(Bound *bound) {
    Job *job = bound->job;
    Value *last = NULL;
    if (!json_get(job->message, "latency")) return true;
    if (!time_steps(job, step, bound, "bound") || !bound_take(bound, &job->arena, &last)) return false;
    if (!job->second && !same_values(job->ran[0], last, job->outputs)) job->second = last;
    return true;
}

static bool run_bound(Bound *bound, double *apart) {
    Job *job = bound->job;
    for (const Json *one = json_item(json_get(job->message, "data_sets"), 0); one; one = one->next) {
        Feeds feeds;
        Value *plain = NULL;
        job_enter(job, "run");
        if (!job_feeds(job, one, &feeds) || !bound_feed(bound, &feeds) || !bound_to_places(bound) || !bound_run(bound)) return false;
        if (job->first_run_ms < 0) job->first_run_ms = job->run_ms;
        if (!bound_take(bound, &job->arena, &job->ran[job->sets_ran])) return false;
        if (!job->sets_ran && (!repeat_bound(bound) || !time_bound(bound))) return false;
        job_enter(job, "run");
        if (!job_run(job, &job->arena, &feeds, job->names, job->outputs, &plain)) return false;
        *apart = fmax(*apart, values_apart(plain, job->ran[job->sets_ran++], job->outputs, true));
    }
    return true;
}

bool io_binding(Job *job) {
    Bound bound = {0};
    double apart = 0;
    bool fine = job_create(job) && bound_open(&bound, job, job->session) && run_bound(&bound, &apart);
    if (fine) {
        fact(job, "\"on_device\":%s", bound.to_device || bound.from_device ? "true" : "false");
        fact_texts(job, "inputs_on", bound.in_on, bound.feeds.count);
        fact_texts(job, "outputs_on", bound.out_on, job->outputs);
        fact(job, "\"copies_to_device\":%zu,\"bytes_to_device\":%zu", bound.to_device, bound.to_bytes);
        fact(job, "\"copies_from_device\":%zu,\"bytes_from_device\":%zu", bound.from_device, bound.from_bytes);
        fact(job, "\"equal_to_plain\":%s", apart > 0 ? "false" : "true");
        if (apart > 0) fact_number(job, "difference", apart);
    }
    if (bound.reason) fact_text(job, "reason", bound.reason);
    bound_close(&bound);
    return fine && job_conclude(job);
}
