#include "node.h"

#include <string.h>

#include "kernels.h"

/* Whether a call of the API succeeded. */
static bool done(OrtStatus *status) {
    if (status) ORT(ReleaseStatus)(status);
    return !status;
}

static bool read(const OrtNode *from, const char *name, int type, void *data, size_t bytes, size_t *needed) {
    const OrtOpAttr *attribute = NULL;
    if (!done(ORT(Node_GetAttributeByName)(from, name, &attribute)) || !attribute) return false;
    return done(ORT(ReadOpAttr)(attribute, type, data, bytes, needed));
}

static int64_t read_int(const OrtNode *from, const char *name, int64_t otherwise) {
    int64_t value;
    size_t needed;
    return read(from, name, ATTRIBUTE_INT, &value, sizeof value, &needed) ? value : otherwise;
}

static float read_float(const OrtNode *from, const char *name, float otherwise) {
    float value;
    size_t needed;
    return read(from, name, ATTRIBUTE_FLOAT, &value, sizeof value, &needed) ? value : otherwise;
}

static struct ints read_ints(const OrtNode *from, const char *name) {
    struct ints ints = {0};
    size_t needed = 0;
    if (read(from, name, ATTRIBUTE_INTS, ints.at, sizeof ints.at, &needed)) ints.count = (int)(needed / 8);
    return ints;
}

static bool read_value(const OrtValueInfo *value, enum element *type, int *rank, char name[256]) {
    const char *text = "";
    const OrtTypeInfo *info;
    const OrtTensorTypeAndShapeInfo *tensor = NULL;
    int element;
    size_t dims;
    *type = 0;
    *rank = 0;
    name[0] = 0;
    if (!value || !done(ORT(GetValueInfoName)(value, &text)) || !*text) return true; /* left out */
    if (strlen(text) > 255) return false;
    strcpy(name, text);
    if (!done(ORT(GetValueInfoTypeInfo)(value, &info)) || !info) return false;
    if (!done(ORT(CastTypeInfoToTensorInfo)(info, &tensor)) || !tensor) return false;
    if (!done(ORT(GetTensorElementType)(tensor, &element)) || !done(ORT(GetDimensionsCount)(tensor, &dims))) return false;
    *type = (enum element)element;
    *rank = (int)dims;
    return dims <= MOST_DIMS;
}

bool read_node(const OrtNode *from, struct node *node) {
    const char *operator, *domain;
    const OrtValueInfo *inputs[MOST_INPUTS], *outputs[1];
    size_t input_count, output_count, needed;
    int unused_rank;
    char unused_name[256];
    memset(node, 0, sizeof *node);
    if (!done(ORT(Node_GetOperatorType)(from, &operator)) || !done(ORT(Node_GetDomain)(from, &domain)) ||
        !done(ORT(Node_GetSinceVersion)(from, &node->since)) || !done(ORT(Node_GetNumInputs)(from, &input_count)) ||
        !done(ORT(Node_GetNumOutputs)(from, &output_count)))
        return false;
    node->operator = *domain && strcmp(domain, "ai.onnx") ? NULL : find_operator(operator);
    if (!node->operator || input_count > MOST_INPUTS || output_count != 1) return false;
    if (!done(ORT(Node_GetInputs)(from, inputs, input_count)) || !done(ORT(Node_GetOutputs)(from, outputs, 1))) return false;
    node->inputs = (int)input_count;
    for (int i = 0; i < node->inputs; i++)
        if (!read_value(inputs[i], &node->types[i], &node->ranks[i], node->names[i]) ||
            (*node->names[i] && !done(ORT(ValueInfo_IsConstantInitializer)(inputs[i], &node->constant[i]))))
            return false;
    if (!read_value(outputs[0], &node->output_type, &unused_rank, unused_name)) return false;

    int64_t none = INT64_MIN;
    node->axis = read_int(from, "axis", none);
    node->has_axis = node->axis != none;
    node->to = read_int(from, "to", 0);
    node->group = read_int(from, "group", 1);
    node->trans_a = read_int(from, "transA", 0);
    node->trans_b = read_int(from, "transB", 0);
    node->keepdims = read_int(from, "keepdims", 1);
    node->noop_with_empty_axes = read_int(from, "noop_with_empty_axes", 0);
    node->allowzero = read_int(from, "allowzero", 0);
    node->ceil_mode = read_int(from, "ceil_mode", 0);
    node->alpha = read_float(from, "alpha", 1);
    node->beta = read_float(from, "beta", 1);
    node->pads = read_ints(from, "pads");
    node->strides = read_ints(from, "strides");
    node->dilations = read_ints(from, "dilations");
    node->kernel_shape = read_ints(from, "kernel_shape");
    node->perm = read_ints(from, "perm");
    node->axes = read_ints(from, "axes");
    if (!read(from, "auto_pad", ATTRIBUTE_STRING, node->auto_pad, sizeof node->auto_pad - 1, &needed))
        strcpy(node->auto_pad, "NOTSET");
    return node->operator->claims(node);
}
