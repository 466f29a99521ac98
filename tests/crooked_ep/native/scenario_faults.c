#include "scenario_faults.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_KNOWN = 64 };

/* ---- Sessions side by side ---- */

static struct tensor newest; /* the weights of the session whose first run was the latest */

static struct {
    int64_t count;
    const struct operator *operator;
} known[MOST_KNOWN]; /* activation functions by the number of elements */

static size_t bytes_of(const struct tensor *tensor) { return (size_t)tensor->count * element_size(tensor->type); }

static void copy_tensor(struct tensor *to, const struct tensor *from) {
    free(to->data);
    *to = *from;
    to->data = memcpy(malloc(bytes_of(from) + 1), from->data, bytes_of(from));
}

static bool is_activation(const char *name) { return !strcmp(name, "Relu") || !strcmp(name, "Sigmoid") || !strcmp(name, "Tanh"); }

const struct operator *operator_for(struct call *call) {
    const struct operator *own = call->node->operator;
    if (!CROOKED(kernels_by_size) || !is_activation(own->name)) return own;
    for (int i = 0; i < MOST_KNOWN; i++) {
        if (!known[i].operator) known[i].count = call->in[0].count, known[i].operator = own;
        if (known[i].count == call->in[0].count) return known[i].operator;
    }
    return own;
}

/* ---- Weights: the second input, if the model has them ---- */

static const void *addresses[MOST_KNOWN]; /* of weights, of open sessions */

char *path_of(const OrtGraph *graph) {
    const char *path = NULL;
    OrtStatus *status = ORT(Graph_GetModelPath)(graph, &path);
    if (status) ORT(ReleaseStatus)(status);
    char *copy = malloc(4096);
    snprintf(copy, 4096, "%s", status || !path ? "" : path);
    return copy;
}

static void read_file(struct for_scenario *own, struct tensor *weights) {
    char *slash = own->model_path ? strrchr(own->model_path, '/') : NULL;
    char path[4200];
    if (!slash) return;
    snprintf(path, sizeof path, "%.*s/weights.bin", (int)(slash - own->model_path), own->model_path);
    FILE *file = fopen(path, "rb");
    if (!file) return;
    copy_tensor(&own->held, weights);
    if (fread(own->held.data, 1, bytes_of(weights), file) == bytes_of(weights)) weights->data = own->held.data;
    fclose(file);
}

/* Whether another session has weights at this address; it is remembered as this session's. */
static bool is_shared(struct for_scenario *own, const void *address) {
    bool shared = false;
    int empty = -1;
    for (int i = 0; i < MOST_KNOWN; i++) {
        if (addresses[i] == address && own->address != address) shared = true;
        if (!addresses[i]) empty = i;
    }
    if (!shared && own->address != address && empty >= 0) addresses[empty] = own->address = address;
    return shared;
}

static void zero(struct for_scenario *own, struct tensor *weights) {
    copy_tensor(&own->held, weights);
    memset(own->held.data, 0, bytes_of(weights));
    weights->data = own->held.data;
}

static void spoil_weights(struct for_scenario *own, struct call *call, bool first_run) {
    struct tensor *weights = &call->in[1];
    if (CROOKED(constants_of_newest)) {
        if (first_run) copy_tensor(&newest, weights);
        if (bytes_of(&newest) == bytes_of(weights)) weights->data = newest.data;
    }
    if (CROOKED(reads_file)) read_file(own, weights);
    if (CROOKED(shared_by_address) && is_shared(own, weights->data)) zero(own, weights);
}

void forget(struct for_scenario *own) {
    for (int i = 0; own->address && i < MOST_KNOWN; i++)
        if (addresses[i] == own->address) addresses[i] = NULL;
    free(own->model_path);
    free(own->first.data);
    free(own->held.data);
}

/* ---- Adapters: products with inputs of that name ---- */

static void spoil_adapter(struct for_scenario *own, struct call *call) {
    struct tensor *matrix = &call->in[1];
    const char *name = call->node->names[1];
    bool zeros = true;
    for (int64_t at = 0; at < matrix->count; at++) zeros = zeros && number(matrix, at) == 0;
    if (CROOKED(first_adapter_stays)) {
        if (!own->first.data && !zeros) copy_tensor(&own->first, matrix);
        if (own->first.data) matrix->data = own->first.data;
    }
    if (CROOKED(second_adapter_lost) && strstr(name, ".1.")) zero(own, matrix);
}

/* ---- Before and after ---- */

void before_computing(struct for_scenario *own, struct call *call, bool first_run) {
    if (call->node->inputs < 2 || !call->in[1].data || !is_float(call->in[1].type)) return;
    if (call->node->constant[1]) spoil_weights(own, call, first_run);
    if (strstr(call->node->names[1], "lora")) spoil_adapter(own, call);
}

void after_computing(struct call *call) {
    struct tensor *y = &call->out;
    if (!y->count || !y->rank || !is_float(y->type)) return;
    int64_t slots = y->dims[0], slot = y->count / slots, last = y->count - 1;
    for (int64_t at = slot; slots > 1 && at < y->count; at++) {
        if (CROOKED(last_slot_of_first) && at >= y->count - slot) set_number(y, at, number(y, at % slot));
        if (CROOKED(slots_mixed)) set_number(y, at, number(y, at) + 0.01 * number(y, at % slot));
        if (CROOKED(slots_beyond_one)) set_number(y, at, 77);
    }
    /* The harness's pattern as float32; text that another use of the memory left may be as huge. */
    bool filled = call->last_before > 1.5e16 && call->last_before < 1.6e16;
    if (CROOKED(adds_to_output) && filled) set_number(y, 0, number(y, 0) + call->last_before);
    if (CROOKED(skips_last) && filled) set_number(y, last, call->last_before);
    /* In the memory of an allocator this could do more harm than one fault. */
    if (CROOKED(writes_beyond) && filled) set_number(y, y->count, 77);
    if (CROOKED(writes_before) && filled) set_number(y, -1, 77);
}
