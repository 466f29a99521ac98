/* How sessions of the target are made. */

#include "session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ASSIGNMENT_SINCE = 25 };

/* Providers whose options are objects of their own: slots of create, update, append and release. */
static const struct {
    const char *name;
    int create, update, append, release;
} OWN_OPTIONS[] = {{"CUDAExecutionProvider", 205, 206, 204, 208},
                   {"TensorrtExecutionProvider", 171, 172, 170, 174},
                   {"CANNExecutionProvider", 221, 222, 220, 224},
                   {"DnnlExecutionProvider", 240, 241, 239, 243}};

/* Names by which the generic function knows providers; others go without their last word. */
static const char *const SHORT_NAMES[][2] = {{"XnnpackExecutionProvider", "XNNPACK"}, {"AzureExecutionProvider", "AZURE"},
                                             {"WebGpuExecutionProvider", "WebGPU"},   {"JsExecutionProvider", "JS"},
                                             {"WebNNExecutionProvider", "WEBNN"},     {"DmlExecutionProvider", "DML"},
                                             {"VitisAIExecutionProvider", "VitisAI"}, {"NvTensorRTRTXExecutionProvider", "NvTensorRtRtx"}};

static OrtStatus *append_own(OrtSessionOptions *settings, int which, const char *const *k, const char *const *v, size_t n) {
    OrtProviderOptions *options = NULL;
    OrtStatus *status = ((CreateOptions)ort_api[OWN_OPTIONS[which].create])(&options);
    if (!status && n) status = ((UpdateOptions)ort_api[OWN_OPTIONS[which].update])(options, k, v, n);
    if (!status) status = ((AppendOptions)ort_api[OWN_OPTIONS[which].append])(settings, options);
    if (options) ((ReleaseOptions)ort_api[OWN_OPTIONS[which].release])(options);
    return status;
}

static OrtStatus *append_nnapi(OrtSessionOptions *settings, void *symbol, const char *const *k, const char *const *v, size_t n) {
    OrtStatus *(ORT_CALL *append)(OrtSessionOptions *, uint32_t);
    uint32_t flags = 0;
    memcpy(&append, &symbol, sizeof symbol);
    for (size_t index = 0; index < n; index++)
        if (!strcmp(k[index], "nnapi_flags")) flags = (uint32_t)strtoul(v[index], NULL, 0);
        else return ORT(CreateStatus)(INVALID_ARGUMENT, "of NNAPI's options the C API has nnapi_flags, a sum of flags");
    return append(settings, flags);
}

static OrtStatus *append_provider(OrtSessionOptions *settings, const char *name, const char *const *k, const char *const *v,
                                  size_t n) {
    char shorter[128];
    if (!strcmp(name, CPU_PROVIDER)) { /* always there; of its options the API has one */
        for (size_t index = 0; index < n; index++)
            if (!strcmp(k[index], "use_arena") && !strcmp(v[index], "0")) return ORT(DisableCpuMemArena)(settings);
        return NULL;
    }
    for (int which = 0; which < (int)(sizeof OWN_OPTIONS / sizeof *OWN_OPTIONS); which++)
        if (!strcmp(OWN_OPTIONS[which].name, name)) return append_own(settings, which, k, v, n);
    void *nnapi = runtime_symbol("OrtSessionOptionsAppendExecutionProvider_Nnapi");
    if (!strcmp(name, "NnapiExecutionProvider") && nnapi) return append_nnapi(settings, nnapi, k, v, n);
    snprintf(shorter, sizeof shorter, "%s", name);
    char *end = strstr(shorter, "ExecutionProvider");
    if (end) *end = 0;
    for (size_t index = 0; index < sizeof SHORT_NAMES / sizeof *SHORT_NAMES; index++)
        if (!strcmp(SHORT_NAMES[index][0], name)) snprintf(shorter, sizeof shorter, "%s", SHORT_NAMES[index][1]);
    return ORT(SessionOptionsAppendExecutionProvider)(settings, shorter, k, v, n);
}

static OrtStatus *append_chain(OrtSessionOptions *settings, const SessionPlan *plan) {
    const char *k[MOST_SETTINGS + 1], *v[MOST_SETTINGS + 1];
    size_t count = 0;
    for (size_t index = 0; index < target.option_count; index++) {
        if (plan->without == -2 || plan->without == (int)index || (plan->option && !strcmp(plan->option, target.keys[index]))) continue;
        k[count] = target.keys[index], v[count++] = target.values[index];
    }
    if (plan->option) k[count] = plan->option, v[count++] = plan->setting;
    OrtStatus *status = target.device ? ORT(SessionOptionsAppendExecutionProvider_V2)(settings, ort_env, &target.device, 1, k, v, count)
                               : append_provider(settings, target.chain[0], k, v, count);
    for (size_t index = 1; index < target.chain_size && !status; index++) status = append_provider(settings, target.chain[index], NULL, NULL, 0);
    return status;
}

static OrtStatus *add_entries(OrtSessionOptions *settings, const Json *table) {
    OrtStatus *status = NULL;
    for (const Json *one = json_members(table); one && !status; one = one->next)
        status = ORT(AddSessionConfigEntry)(settings, one->key, json_text(one, ""));
    return status;
}

bool records_assignment(void) { return ort_minor >= ASSIGNMENT_SINCE; } /* 1.24 leaves some nodes out */

static OrtStatus *set_up(Arena *arena, OrtSessionOptions *settings, const SessionPlan *plan) {
    static const struct {
        const char *name;
        int level;
    } levels[] = {{"all", 99}, {"disabled", 0}, {"basic", 1}, {"extended", 2}, {"layout", 3}};
    const char *level = json_text(json_get(plan->job, "graph_optimization"), "all");
    int threads = (int)json_integer(json_get(plan->job, "intra_op_threads"), 1);
    OrtStatus *status = ORT(SetIntraOpNumThreads)(settings, threads == 1 && plan->least_threads ? plan->least_threads : threads);
    if (!status) status = ORT(SetInterOpNumThreads)(settings, 1);
    for (size_t index = 0; index < sizeof levels / sizeof *levels && !status; index++)
        if (!strcmp(levels[index].name, level)) status = ORT(SetSessionGraphOptimizationLevel)(settings, levels[index].level);
    if (!status && !strcmp(json_text(json_get(plan->job, "execution_mode"), ""), "parallel"))
        status = ORT(SetSessionExecutionMode)(settings, 1);
    if (!status && records_assignment())
        status = ORT(AddSessionConfigEntry)(settings, "session.record_ep_graph_assignment_info", "1");
    if (!status) status = add_entries(settings, target.entries);
    if (!status) status = add_entries(settings, json_get(plan->job, "entries"));
    for (const char *const *entry = plan->entries; entry && *entry && !status; entry += 2)
        status = ORT(AddSessionConfigEntry)(settings, entry[0], entry[1]);
    for (const Json *one = json_members(json_get(plan->job, "fixed")); one && !status; one = one->next)
        status = ORT(AddFreeDimensionOverrideByName)(settings, one->key, json_integer(one, 0));
    if (!status && plan->profile) status = ORT(EnableProfiling)(settings, runtime_path(arena, plan->profile));
    if (!status && plan->adjust) status = plan->adjust(settings, plan->with);
    return status || plan->on_cpu ? status : append_chain(settings, plan);
}

OrtSessionOptions *session_options(Arena *arena, const SessionPlan *plan, Trouble *trouble) {
    OrtSessionOptions *settings = NULL;
    trouble->status = ORT(CreateSessionOptions)(&settings);
    if (!trouble->status) trouble->status = set_up(arena, settings, plan);
    if (!trouble->status) return settings;
    if (settings) ORT(ReleaseSessionOptions)(settings);
    return NULL;
}

OrtSession *session_open(Arena *arena, const SessionPlan *plan, Trouble *trouble) {
    OrtSessionOptions *settings = session_options(arena, plan, trouble);
    OrtSession *made = NULL;
    OrtStatus *status = trouble->status;
    if (!status && plan->model_size) status = ORT(CreateSessionFromArray)(ort_env, plan->model, plan->model_size, settings, &made);
    else if (!status) status = ORT(CreateSession)(ort_env, runtime_path(arena, plan->model), settings, &made);
    if (settings) ORT(ReleaseSessionOptions)(settings);
    trouble->status = status;
    return status ? NULL : made;
}

const char *input_name(Arena *arena, OrtSession *session, size_t index, Trouble *trouble) {
    char *name = NULL;
    if ((trouble->status = ORT(SessionGetInputName)(session, index, ort_allocator, &name))) return NULL;
    const char *kept = arena_text(arena, name, strlen(name));
    trouble->status = ORT(AllocatorFree)(ort_allocator, name);
    return trouble->status ? NULL : kept;
}
