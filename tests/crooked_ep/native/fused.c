#include "fused.h"

#include <stdlib.h>
#include <string.h>

#define MOST_BORDER 1024

struct step {
    struct node node;
    char output[256];
    int at; /* among the outputs of the fused node; INSIDE: nothing else reads it */
};

struct run {
    OrtNodeComputeInfo table; /* first: onnxruntime's pointer is also ours */
    size_t steps, inputs, outputs;
    struct step *step;
    char (*names)[256]; /* of the inputs */
};

OrtStatus *claim_runs(const OrtNode **nodes, size_t count, OrtEpGraphSupportInfo *info) {
    struct node *node = malloc(sizeof *node);
    OrtStatus *status = NULL;
    size_t length = 0;
    for (size_t i = 0; !status && i <= count; i++) {
        if (i < count && read_node(nodes[i], node)) {
            length++;
            continue;
        }
        if (length) status = EP(EpGraphSupportInfo_AddNodesToFuse)(info, nodes + i - length, length, NULL);
        length = 0;
    }
    free(node);
    return status;
}

static OrtStatus *begin(OrtNodeComputeInfo *table, OrtNodeComputeContext *context, void **state) {
    (void)context;
    *state = table;
    return NULL;
}

static void end(OrtNodeComputeInfo *table, void *state) { (void)table, (void)state; }

/* The tensor of a name: the result of an earlier step, or an input of the fused node. */
static OrtStatus *find(const struct run *run, const struct tensor *made, size_t steps, const char *name,
                       OrtKernelContext *context, struct tensor *found) {
    const OrtValue *value = NULL;
    for (size_t i = 0; i < steps; i++)
        if (!strcmp(run->step[i].output, name)) {
            *found = made[i];
            return NULL;
        }
    for (size_t i = 0; i < run->inputs; i++)
        if (!strcmp(run->names[i], name)) {
            OrtStatus *status = ORT(KernelContext_GetInput)(context, i, &value);
            return status || !value ? status : describe(value, found);
        }
    return ORT(CreateStatus)(ORT_FAIL, "crooked: an input of a partition is missing");
}

static OrtStatus *compute(OrtNodeComputeInfo *table, void *state, OrtKernelContext *context) {
    (void)state;
    const struct run *run = (const struct run *)table;
    struct tensor *made = calloc(run->steps, sizeof *made);
    OrtStatus *status = NULL;
    for (size_t i = 0; !status && i < run->steps; i++) {
        const struct step *step = &run->step[i];
        struct call call = {.node = &step->node, .context = context, .output = step->at};
        for (int j = 0; !status && j < step->node.inputs; j++)
            if (step->node.types[j]) status = find(run, made, i, step->node.names[j], context, &call.in[j]);
        if (status) break;
        step->node.operator->compute(&call);
        if (call.error) status = ORT(CreateStatus)(ORT_FAIL, call.error);
        made[i] = call.out;
        bool is_wrong = run->steps > 1 && run->outputs == 1 && step->at == 0 && is_float(call.out.type);
        for (int64_t at = 0; is_wrong && at < call.out.count; at++) set_number(&call.out, at, number(&call.out, at) * 1.01);
    }
    for (size_t i = 0; i < run->steps; i++)
        if (run->step[i].at == INSIDE) free(made[i].data);
    free(made);
    return status;
}

OrtStatus *compile_run(const OrtGraph *graph, const OrtNode *fused, OrtNodeComputeInfo **made) {
    const OrtValueInfo *border[MOST_BORDER];
    struct run *run = calloc(1, sizeof *run);
    run->table = (OrtNodeComputeInfo){API_VERSION, begin, compute, end};
    *made = &run->table;
    const char *name;
    OrtStatus *status = ORT(Graph_GetNumNodes)(graph, &run->steps);
    if (!status) status = ORT(Node_GetNumInputs)(fused, &run->inputs);
    if (!status) status = ORT(Node_GetNumOutputs)(fused, &run->outputs);
    if (!status && (run->inputs > MOST_BORDER || run->outputs > MOST_BORDER))
        status = ORT(CreateStatus)(ORT_FAIL, "crooked: a partition with too many inputs or outputs");
    if (status) return status;
    run->step = calloc(run->steps, sizeof *run->step);
    run->names = calloc(run->inputs + 1, sizeof *run->names);
    const OrtNode **nodes = calloc(run->steps, sizeof *nodes);
    status = ORT(Graph_GetNodes)(graph, nodes, run->steps);
    for (size_t i = 0; !status && i < run->steps; i++) {
        const OrtValueInfo *output;
        run->step[i].at = INSIDE;
        if (!read_node(nodes[i], &run->step[i].node)) status = ORT(CreateStatus)(ORT_FAIL, "crooked: not claimed");
        if (!status) status = ORT(Node_GetOutputs)(nodes[i], &output, 1);
        if (!status) status = ORT(GetValueInfoName)(output, &name);
        if (!status) strncpy(run->step[i].output, name, sizeof run->step[i].output - 1);
    }
    free(nodes);
    if (!status) status = ORT(Node_GetInputs)(fused, border, run->inputs);
    for (size_t i = 0; !status && i < run->inputs; i++) {
        status = ORT(GetValueInfoName)(border[i], &name);
        if (!status) strncpy(run->names[i], name, sizeof run->names[i] - 1);
    }
    if (!status) status = ORT(Node_GetOutputs)(fused, border, run->outputs);
    for (size_t i = 0; !status && i < run->outputs; i++) {
        status = ORT(GetValueInfoName)(border[i], &name);
        for (size_t j = 0; !status && j < run->steps; j++)
            if (!strcmp(run->step[j].output, name)) run->step[j].at = (int)i;
    }
    return status;
}

void release_run(OrtNodeComputeInfo *table) {
    struct run *run = (struct run *)table;
    if (!run) return;
    free(run->step);
    free(run->names);
    free(run);
}
