#include "ep.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "context.h"
#include "fused.h"
#include "kernels.h"
#include "loop.h"
#include "memory.h"
#include "profiler.h"
#include "scenario_faults.h"

struct ep {
    OrtEp table; /* first: onnxruntime's pointer is also ours */
    enum fault fault; /* what its option says */
    bool of_graph;    /* the option is "graph": the fault is the one that has the name of the model's graph */
    bool adds;        /* an Add is in its model; without one, faults after CREATE wait, for a process with a model that works */
    bool efficient, was_efficient; /* what a dynamic option says, and has said */
    bool fp16;        /* results are rounded to float16 */
    struct captures captures;
    struct context_options context;
    int contexts; /* compiled nodes that were written */
    char *only;       /* name of the one node that a wrong value acts at; NULL: at all of them */
};

/* A compiled node. */
struct compiled {
    OrtNodeComputeInfo table;
    struct for_scenario scenario;
    struct ep *ep;
    enum fault fault; /* of its session, unless that acts at another node */
    struct node node;
    bool from_context; /* it was read from a compiled model */
    int at[MOST_INPUTS]; /* place among the inputs of the fused node; -1: left out */
    int runs;
    struct tensor first_output, first_input; /* of the first run, for faults that keep them */
};

static atomic_int sessions;
static struct tensor shared_constant;

static const char *get_name(const OrtEp *ep) {
    (void)ep;
    return EP_NAME;
}

static OrtStatus *invalid(const char *message) { return ORT(CreateStatus)(ORT_INVALID_ARGUMENT, message); }

static OrtStatus *act_with_add(const struct ep *ep, enum place place) { return ep->adds ? act(ep->fault, place) : NULL; }

/* ---- What is claimed: each node by itself, but for one fault ---- */

static OrtStatus *get_capability(OrtEp *table, const OrtGraph *graph, OrtEpGraphSupportInfo *info) {
    struct ep *ep = (struct ep *)table;
    size_t count;
    const char *name;
    OrtStatus *status = ORT(Graph_GetNumNodes)(graph, &count);
    if (!status) status = ORT(Graph_GetName)(graph, &name);
    if (status || !count) return status;
    if (ep->of_graph && fault_named(name) != FAULT_unknown) ep->fault = fault_named(name);
    const OrtNode **nodes = calloc(count, sizeof *nodes);
    struct node *node = malloc(sizeof *node);
    status = ORT(Graph_GetNodes)(graph, nodes, count);
    for (size_t i = 0; !status && i < count; i++) {
        const char *operator;
        status = ORT(Node_GetOperatorType)(nodes[i], &operator);
        if (!status && !strcmp(operator, "Add")) ep->adds = true;
    }
    if (!status) status = act_with_add(ep, CAPABILITY);
    bool claimed = false, as_one = ep->fault == FAULT_wrong_as_one;
    if (!status && as_one) status = claim_runs(nodes, count, info);
    for (size_t i = 0; !status && !as_one && i < count && ep->fault != FAULT_claims_nothing; i++) {
        bool computes = ep->fault == FAULT_loop_goes_on ? claims_loop(ep->fault, nodes[i])
                                                        : is_context(nodes[i]) || read_node(nodes[i], node);
        if (!computes || (claimed && ep->fault == FAULT_claims_first)) continue;
        status = EP(EpGraphSupportInfo_AddNodesToFuse)(info, &nodes[i], 1, NULL);
        claimed = true;
    }
    free(node);
    free(nodes);
    return status;
}

/* ---- Tensors of a run ---- */

OrtStatus *describe(const OrtValue *value, struct tensor *tensor) {
    OrtTensorTypeAndShapeInfo *info = NULL;
    int type;
    size_t rank;
    OrtStatus *status = ORT(GetTensorTypeAndShape)(value, &info);
    if (!status) status = ORT(GetTensorElementType)(info, &type);
    if (!status) status = ORT(GetDimensionsCount)(info, &rank);
    if (!status && rank > MOST_DIMS) status = invalid("crooked: too many dimensions");
    if (!status) status = ORT(GetDimensions)(info, tensor->dims, rank);
    if (info) ORT(ReleaseTensorTypeAndShapeInfo)(info);
    if (!status) status = ORT(GetTensorMutableData)((OrtValue *)value, &tensor->data);
    if (status) return status;
    tensor->type = (enum element)type;
    tensor->rank = (int)rank;
    tensor->count = product(tensor->dims, 0, (int)rank);
    static char nothing[8];
    if (!tensor->data) tensor->data = nothing; /* null says: left out */
    return NULL;
}

bool make_output(struct call *call, enum element type, int rank, const int64_t *dims) {
    OrtValue *value = NULL;
    if (!call->context) return call->out.data != NULL; /* a replay */
    if (rank > MOST_DIMS) {
        call->error = "too many dimensions";
        return false;
    }
    if (call->output == INSIDE) {
        call->out = (struct tensor){.type = type, .rank = rank, .count = product(dims, 0, rank)};
        memcpy(call->out.dims, dims, (size_t)rank * sizeof *dims);
        call->out.data = calloc((size_t)call->out.count + 1, element_size(type));
        return true;
    }
    OrtStatus *status = ORT(KernelContext_GetOutput)(call->context, (size_t)call->output, dims, (size_t)rank, &value);
    if (!status && !value) return false; /* no other node reads it */
    if (!status) status = describe(value, &call->out);
    if (!status && call->out.type == type) {
        if (call->out.count && is_float(type)) call->last_before = number(&call->out, call->out.count - 1);
        return true;
    }
    if (status) ORT(ReleaseStatus)(status);
    call->error = "no output can be made";
    return false;
}

static size_t bytes_of(const struct tensor *tensor) { return (size_t)tensor->count * element_size(tensor->type); }

/* Keep the first tensor given; later put it in the place of one of the same size. */
static void repeat_first(struct tensor *first, struct tensor *now) {
    if (!first->data) {
        *first = *now;
        first->data = memcpy(malloc(bytes_of(now) + 1), now->data, bytes_of(now));
    } else if (bytes_of(first) == bytes_of(now) && now->type == first->type) {
        now->data = first->data;
    }
}

/* ---- Faults of any operator ---- */

static void spoil_inputs(struct compiled *compiled, struct call *call) {
    if (compiled->node.inputs < 2 || !call->in[1].data) return;
    if (CROOKED(second_input_stale)) repeat_first(&compiled->first_input, &call->in[1]);
    if (CROOKED(shared_constants)) repeat_first(&shared_constant, &call->in[1]);
}

static void spoil_output(struct compiled *compiled, struct call *call) {
    struct tensor *y = &call->out;
    if (!y->count || !is_float(y->type)) return;
    if (CROOKED(stale)) {
        void *own = y->data;
        repeat_first(&compiled->first_output, y);
        memmove(own, y->data, bytes_of(y));
    }
    if (CROOKED(odd_sizes) && y->count % 2) set_number(y, y->count - 1, 77);
    if (CROOKED(every_fifth_run) && compiled->runs % 5 == 0) set_number(y, 0, 77);
    if (CROOKED(second_session) && sessions > 1) set_number(y, 0, 77);
    if (CROOKED(not_written)) memset(y->data, 0x2a, bytes_of(y));
    if (CROOKED(one_nan)) set_number(y, 0, NAN);
    if (CROOKED(context_wrong) && compiled->from_context) set_number(y, 0, 77);
    if (CROOKED(second_registration_wrong) && registrations > 1) set_number(y, 0, 77);
    if (CROOKED(copy_disturbs) && getenv("CROOKED_EP_DISTURBED")) set_number(y, 0, 77);
    if (CROOKED(hint_changes_answer) && compiled->ep->efficient) set_number(y, 0, 77);
    if (CROOKED(hint_stays) && compiled->ep->was_efficient && !compiled->ep->efficient) set_number(y, 0, 77);
    if (CROOKED(wrong_after_cut) && was_cut()) set_number(y, 0, 77);
    bool fp16 = compiled->ep->fp16 && !CROOKED(precision_ignored);
    for (int64_t at = 0; at < y->count; at++) {
        double value = number(y, at);
        if (CROOKED(random_digits)) value *= 1 + 0.01 * rand() / RAND_MAX;
        if (CROOKED(in_bf16)) value = rounded_to(BFLOAT16, value);
        if (CROOKED(denormals_lost) && fpclassify((float)value) == FP_SUBNORMAL) value = 0;
        if (fp16) value = rounded_to(FLOAT16, value);
        set_number(y, at, value);
    }
    struct tensor *x = &call->in[0];
    if (CROOKED(overwrites_input) && x->count && is_float(x->type)) set_number(x, 0, 77);
}

/* ---- Compiled nodes ---- */

static OrtStatus *create_state(OrtNodeComputeInfo *table, OrtNodeComputeContext *context, void **state) {
    (void)context;
    *state = table;
    return NULL;
}

static void release_state(OrtNodeComputeInfo *table, void *state) { (void)table, (void)state; }

/* Take memory of the session, and keep it. */
static void keep_scratch(OrtKernelContext *context) {
    OrtMemoryInfo *info = NULL;
    OrtAllocator *allocator = NULL;
    OrtStatus *status = ORT(CreateMemoryInfo_V2)("Cpu", MEMORY_CPU, 0, 0, 0, 0, 0, &info);
    if (!status) status = ORT(KernelContext_GetAllocator)(context, info, &allocator);
    if (!status) allocator->Alloc(allocator, 100);
    if (status) ORT(ReleaseStatus)(status);
}

static OrtStatus *compute(OrtNodeComputeInfo *table, void *state, OrtKernelContext *context) {
    (void)state;
    struct compiled *compiled = (struct compiled *)table;
    struct call call = {.node = &compiled->node, .fault = compiled->fault, .context = context};
    int64_t began_ns = now_ns();
    OrtStatus *status = act_with_add(compiled->ep, RUN);
    for (int i = 0; !status && i < compiled->node.inputs; i++) {
        const OrtValue *value = NULL;
        if (compiled->at[i] < 0) continue;
        status = ORT(KernelContext_GetInput)(context, (size_t)compiled->at[i], &value);
        if (!status && value) status = describe(value, &call.in[i]);
    }
    if (status) return status;
    compiled->runs++;
    count_node();
    spoil_inputs(compiled, &call);
    before_computing(&compiled->scenario, &call, compiled->runs == 1);
    operator_for(&call)->compute(&call);
    if (compiled->fault == FAULT_computes_twice) operator_for(&call)->compute(&call);
    if (compiled->fault == FAULT_scratch_kept) keep_scratch(context);
    if (call.error) return invalid(call.error);
    spoil_output(compiled, &call);
    after_computing(&call);
    record(&compiled->ep->captures, &call);
    add_event(&compiled->ep->table, compiled->fault, compiled->node.operator->name, began_ns);
    return act_with_add(compiled->ep, RUN_END);
}

/* Name the inputs as the EPContext node does: onnxruntime gives equal weights one name when it loads a model. */
static OrtStatus *rename_inputs(const OrtNode *context, struct node *node) {
    const OrtValueInfo *inputs[MOST_INPUTS];
    size_t count;
    OrtStatus *status = ORT(Node_GetNumInputs)(context, &count);
    if (!status && count > MOST_INPUTS) status = invalid("crooked: too many inputs");
    if (!status) status = ORT(Node_GetInputs)(context, inputs, count);
    for (int i = 0; !status && i < node->inputs; i++) {
        const char *name;
        if (node->places[i] < 0 || (size_t)node->places[i] >= count) continue;
        status = ORT(GetValueInfoName)(inputs[node->places[i]], &name);
        if (!status) snprintf(node->names[i], sizeof node->names[i], "%s", name);
    }
    return status;
}

static OrtStatus *load_one(struct ep *ep, const OrtGraph *graph, const OrtNode *node, struct compiled *compiled) {
    OrtStatus *status = read_context(graph, node, &ep->context, ep->fault, &compiled->node);
    if (!status) status = rename_inputs(node, &compiled->node);
    if (status) return status;
    compiled->from_context = true;
    ep->adds |= !strcmp(compiled->node.operator->name, "Add");
    return act_with_add(ep, LOAD_CONTEXT);
}

static OrtStatus *compile_one(struct ep *ep, const OrtGraph *graph, const OrtNode *fused, struct compiled *compiled) {
    const OrtNode *node;
    const OrtValueInfo *inputs[MOST_INPUTS];
    const char *own_name = NULL;
    size_t count;
    OrtStatus *status = ORT(Graph_GetNodes)(graph, &node, 1);
    if (status) return status;
    if (is_context(node)) status = load_one(ep, graph, node, compiled);
    else if (!read_node(node, &compiled->node)) status = invalid("crooked: not a node that was claimed");
    if (status) return status;
    compiled->scenario.model_path = path_of(graph);
    status = ORT(Node_GetNumInputs)(fused, &count);
    if (!status && count > MOST_INPUTS) status = invalid("crooked: too many inputs");
    if (!status) status = ORT(Node_GetInputs)(fused, inputs, count);
    for (int i = 0; !status && i < compiled->node.inputs; i++) {
        compiled->at[i] = -1;
        for (size_t j = 0; !status && compiled->node.types[i] && j < count; j++) {
            const char *name;
            status = ORT(GetValueInfoName)(inputs[j], &name);
            if (!status && !strcmp(name, compiled->node.names[i])) compiled->at[i] = (int)j;
        }
        if (!status && compiled->node.types[i] && compiled->at[i] < 0) status = invalid("crooked: an input is missing");
    }
    if (!status) status = ORT(Node_GetName)(node, &own_name);
    if (!compiled->from_context) memcpy(compiled->node.places, compiled->at, sizeof compiled->at);
    compiled->ep = ep;
    compiled->fault = ep->only && own_name && strcmp(ep->only, own_name) ? FAULT_none : ep->fault;
    compiled->table = (OrtNodeComputeInfo){API_VERSION, create_state, compute, release_state};
    return status;
}

static OrtStatus *compile(OrtEp *table, const OrtGraph **graphs, const OrtNode **fused, size_t count,
                          OrtNodeComputeInfo **infos, OrtNode **ep_context) {
    struct ep *ep = (struct ep *)table;
    OrtStatus *status = act_with_add(ep, COMPILE);
    for (size_t i = 0; !status && i < count; i++) {
        if (ep->fault == FAULT_loop_goes_on) {
            status = compile_loop(fused[i], &infos[i]);
            continue;
        }
        if (ep->fault == FAULT_wrong_as_one) {
            status = compile_run(graphs[i], fused[i], &infos[i]);
            continue;
        }
        struct compiled *compiled = calloc(1, sizeof *compiled);
        status = compile_one(ep, graphs[i], fused[i], compiled);
        infos[i] = &compiled->table;
        if (!status && ep->context.enabled && !compiled->from_context)
            status = write_context(&compiled->node, graphs[i], fused[i], ep->contexts++, &ep->context, ep->fault,
                                   &ep_context[i]);
    }
    return status;
}

static void release_node_compute_infos(OrtEp *table, OrtNodeComputeInfo **infos, size_t count) {
    act_with_add((struct ep *)table, RELEASE_NODES);
    for (size_t i = 0; i < count && ((struct ep *)table)->fault == FAULT_loop_goes_on; i++) {
        free(infos[i]);
        infos[i] = NULL;
    }
    for (size_t i = 0; i < count && ((struct ep *)table)->fault == FAULT_wrong_as_one; i++) {
        release_run(infos[i]);
        infos[i] = NULL;
    }
    for (size_t i = 0; i < count; i++) {
        struct compiled *compiled = (struct compiled *)infos[i];
        if (!compiled) continue;
        forget(&compiled->scenario);
        free(compiled->first_output.data);
        free(compiled->first_input.data);
        free(compiled);
    }
}

static OrtStatus *on_run_start(OrtEp *table, const OrtRunOptions *options) {
    begin_capture(&((struct ep *)table)->captures, options);
    return NULL;
}

static OrtStatus *on_run_end(OrtEp *table, const OrtRunOptions *options, bool synchronize) {
    (void)options, (void)synchronize;
    end_capture(&((struct ep *)table)->captures);
    end_counting();
    return NULL;
}

static bool captures_graphs(const OrtEp *table) { return ((const struct ep *)table)->captures.enabled; }

static bool has_captured(const OrtEp *table, int id) { return is_captured(&((const struct ep *)table)->captures, id); }

static OrtStatus *replay_graph(OrtEp *table, int id) {
    struct ep *ep = (struct ep *)table;
    return replay(&ep->captures, id, ep->fault);
}

static OrtStatus *release_graph(OrtEp *table, int id) {
    release_captured(&((struct ep *)table)->captures, id);
    return NULL;
}

static OrtStatus *set_dynamic_options(OrtEp *table, const char *const *keys, const char *const *values, size_t count) {
    struct ep *ep = (struct ep *)table;
    OrtStatus *status = act_with_add(ep, DYNAMIC_OPTIONS);
    for (size_t i = 0; !status && i < count; i++) {
        if (strcmp(keys[i], "ep.dynamic.workload_type")) return invalid("crooked: unknown dynamic option");
        ep->efficient = !strcmp(values[i], "Efficient");
        ep->was_efficient |= ep->efficient;
        if (!ep->efficient && strcmp(values[i], "Default")) return invalid("crooked: workload_type is Default or Efficient");
    }
    return status;
}

static OrtStatus *get_callback_support(const OrtEp *table, uint32_t *flags) {
    (void)table;
    *flags = READS_BY_CALLBACK | WRITES_BY_CALLBACK;
    return NULL;
}

/* ---- A session ---- */

/* Options come as entries "ep.<name in small letters>.<option>" among those of the session. */
static OrtStatus *read_options(const OrtSessionOptions *options, struct ep *ep) {
    static const char prefix[] = "ep.crookedexecutionprovider.", context[] = "ep.context_";
    OrtKeyValuePairs *pairs = NULL;
    const char *const *keys, *const *values;
    size_t count;
    OrtStatus *status = ORT(GetSessionOptionsConfigEntries)(options, &pairs);
    if (status) return status;
    ORT(GetKeyValuePairs)(pairs, &keys, &values, &count);
    for (size_t i = 0; !status && i < count; i++) {
        if (!strncmp(keys[i], context, sizeof context - 1))
            read_context_option(keys[i] + sizeof context - 1, values[i], &ep->context);
        if (strncmp(keys[i], prefix, sizeof prefix - 1)) continue;
        const char *key = keys[i] + sizeof prefix - 1;
        if (!strcmp(key, "fault")) {
            ep->of_graph = !strcmp(values[i], "graph");
            ep->fault = ep->of_graph ? FAULT_none : fault_named(values[i]);
            if (ep->fault == FAULT_unknown) status = invalid("crooked: option fault: there is no such fault");
        } else if (!strcmp(key, "precision")) {
            ep->fp16 = !strcmp(values[i], "fp16");
            if (!ep->fp16 && strcmp(values[i], "fp32")) status = invalid("crooked: option precision is fp32 or fp16");
        } else if (!strcmp(key, "enable_graph_capture")) {
            ep->captures.enabled = !strcmp(values[i], "1");
        } else if (!strcmp(key, "only")) {
            ep->only = strcpy(malloc(strlen(values[i]) + 1), values[i]);
        } else {
            status = invalid("crooked: unknown option; the options are fault, enable_graph_capture, only and precision");
        }
    }
    ORT(ReleaseKeyValuePairs)(pairs);
    return status;
}

static const char *get_compatibility(OrtEp *ep, const OrtGraph *graph) {
    (void)ep, (void)graph;
    return compatibility_info();
}

OrtStatus *make_ep(const OrtSessionOptions *options, OrtEp **made) {
    struct ep *ep = calloc(1, sizeof *ep);
    ep->fault = environment_fault;
    ep->table.ort_version_supported = API_VERSION;
    if (ort_version >= PROFILER_VERSION) {
        ep->table.ort_version_supported = PROFILER_VERSION;
        ep->table.CreateProfiler = create_profiler;
    }
    if (ort_version >= CAPTURE_VERSION) {
        ep->table.ort_version_supported = CAPTURE_VERSION;
        ep->table.OnRunStart = on_run_start;
        ep->table.IsGraphCaptureEnabled = captures_graphs;
        ep->table.IsGraphCaptured = has_captured;
        ep->table.ReplayGraph = replay_graph;
        ep->table.ReleaseCapturedGraph = release_graph;
    }
    if (ort_version >= CALLBACKS_VERSION) {
        ep->table.ort_version_supported = CALLBACKS_VERSION;
        ep->table.GetEpContextDataCallbackSupport = get_callback_support;
    }
    ep->captures.id = -1;
    ep->table.GetName = get_name;
    ep->table.GetCapability = get_capability;
    ep->table.Compile = compile;
    ep->table.ReleaseNodeComputeInfos = release_node_compute_infos;
    ep->table.GetCompiledModelCompatibilityInfo = get_compatibility;
    ep->table.OnRunEnd = on_run_end;
    ep->table.SetDynamicOptions = set_dynamic_options;
    OrtStatus *status = read_options(options, ep);
    if (!status) status = read_callbacks(options, &ep->context);
    if (!status && ep->fault == FAULT_other_device)
        status = EP(EpDevice_AddAllocatorInfo)(first_device, second_memory);
    if (!status && ep->fault) process_fault = ep->fault;
    if (!status) status = act(ep->fault, CREATE);
    if (status) {
        free(ep->only);
        free(ep);
        return status;
    }
    sessions++;
    *made = &ep->table;
    return NULL;
}

void release_ep(OrtEp *table) {
    struct ep *ep = (struct ep *)table;
    act_with_add(ep, RELEASE_EP);
    if (ep->fault == FAULT_shared_memory_wiped) wipe_shared();
    sessions--;
    release_all_captured(&ep->captures);
    free(ep->only);
    free(ep);
}
