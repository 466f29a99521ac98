/* An empty sequence, which the C API cannot make: a model of one node makes it. */

#include "session.h"

#include <string.h>

enum { OPSET = 15, IR = 8, ATTRIBUTE_INT = 2, DEEPEST = 8 };

static void number(Bytes *bytes, unsigned field, uint64_t value) {
    uint8_t parts[12] = {(uint8_t)(field << 3 & 127)};
    size_t size = 1;
    if (field > 15) parts[0] |= 128, parts[size++] = (uint8_t)(field >> 4);
    for (; value > 127; value >>= 7) parts[size++] = (uint8_t)(value | 128);
    parts[size++] = (uint8_t)value;
    bytes_add(bytes, parts, size);
}

static void part(Bytes *bytes, unsigned field, const void *data, size_t size) {
    Bytes head = {0};
    number(&head, field, size);
    head.at[0] |= 2; /* bytes follow */
    bytes_add(bytes, head.at, head.size);
    bytes_add(bytes, data, size);
    bytes_free(&head);
}

static void part_of(Bytes *bytes, unsigned field, Bytes *inner) {
    part(bytes, field, inner->at ? inner->at : "", inner->size);
    bytes_free(inner);
}

/* Write a TypeProto; return ONNX's number of its element type, 0 for a type that has no such values. */
static int type_of(Bytes *bytes, const OrtTypeInfo *info, int depth) {
    const OrtTensorInfo *tensor = NULL;
    const OrtTypeInfo *view = NULL;
    OrtTypeInfo *contained = NULL;
    int kind = 0, element = 0;
    Bytes inner = {0}, outer = {0};
    OrtStatus *status = ORT(GetOnnxTypeFromTypeInfo)(info, &kind);
    if (!status && kind == VALUE_TENSOR) {
        status = ORT(CastTypeInfoToTensorInfo)(info, &tensor);
        if (!status && tensor) status = ORT(GetTensorElementType)(tensor, &element);
        number(&outer, 1, (uint64_t)element);
        part_of(bytes, 1, &outer);
    } else if (!status && depth < DEEPEST && (kind == VALUE_SEQUENCE || kind == VALUE_OPTIONAL)) {
        bool is_sequence = kind == VALUE_SEQUENCE;
        status = is_sequence ? ORT(CastTypeInfoToSequenceTypeInfo)(info, &view) : ORT(CastTypeInfoToOptionalTypeInfo)(info, &view);
        if (!status && view) status = is_sequence ? ORT(GetSequenceElementType)(view, &contained) : ORT(GetOptionalContainedTypeInfo)(view, &contained);
        if (!status && contained) element = type_of(&inner, contained, depth + 1);
        if (contained) ORT(ReleaseTypeInfo)(contained);
        part_of(&outer, 1, &inner);
        part_of(bytes, is_sequence ? 4 : 9, &outer);
    }
    if (status) ORT(ReleaseStatus)(status);
    return status || element > 23 ? 0 : element; /* from 24 on the numbers of the API are not ONNX's */
}

static void model_of(Bytes *model, const char *op, Bytes *attribute, const Bytes *type) {
    Bytes node = {0}, graph = {0}, output = {0}, opset = {0};
    part(&node, 2, "y", 1);
    part(&node, 4, op, strlen(op));
    part_of(&node, 5, attribute);
    part(&output, 1, "y", 1);
    part(&output, 2, type->at, type->size);
    part_of(&graph, 1, &node);
    part(&graph, 2, "g", 1);
    part_of(&graph, 12, &output);
    number(&opset, 2, OPSET);
    number(model, 1, IR);
    part_of(model, 8, &opset);
    part_of(model, 7, &graph);
}

static OrtStatus *run_model(const Bytes *model, OrtValue **made) {
    static const char *const output = "y";
    OrtSessionOptions *settings = NULL;
    OrtSession *session = NULL;
    OrtStatus *status = ORT(CreateSessionOptions)(&settings);
    if (!status) status = ORT(SetIntraOpNumThreads)(settings, 1);
    if (!status) status = ORT(CreateSessionFromArray)(ort_env, model->at, model->size, settings, &session);
    if (!status) status = ORT(Run)(session, NULL, NULL, NULL, 0, &output, 1, made);
    if (session) ORT(ReleaseSession)(session);
    if (settings) ORT(ReleaseSessionOptions)(settings);
    return status;
}

static OrtStatus *input_type(OrtSession *session, const char *name, OrtTypeInfo **info) {
    size_t count = 0;
    bool found = false;
    OrtStatus *status = ORT(SessionGetInputCount)(session, &count);
    for (size_t index = 0; index < count && !status && !found; index++) {
        char *input = NULL;
        status = ORT(SessionGetInputName)(session, index, ort_allocator, &input);
        if (status) break;
        found = !strcmp(input, name);
        status = ORT(AllocatorFree)(ort_allocator, input);
        if (!status && found) status = ORT(SessionGetInputTypeInfo)(session, index, info);
    }
    return status;
}

bool empty_sequence(OrtSession *session, const char *name, OrtValue **made, Trouble *trouble) {
    OrtTypeInfo *info = NULL;
    Bytes type = {0}, attribute = {0}, model = {0};
    int kind = 0, element = 0;
    trouble->status = input_type(session, name, &info);
    if (!trouble->status && info) trouble->status = ORT(GetOnnxTypeFromTypeInfo)(info, &kind);
    if (!trouble->status && info) element = type_of(&type, info, 0);
    if (element && kind == VALUE_SEQUENCE) {
        part(&attribute, 1, "dtype", 5);
        number(&attribute, 3, (uint64_t)element);
        number(&attribute, 20, ATTRIBUTE_INT);
        model_of(&model, "SequenceEmpty", &attribute, &type);
    }
    if (model.size && !trouble->status) trouble->status = run_model(&model, made);
    else if (!trouble->status) trouble->unfeedable = "an empty sequence for an input that takes none";
    if (info) ORT(ReleaseTypeInfo)(info);
    bytes_free(&type);
    bytes_free(&attribute);
    bytes_free(&model);
    return !trouble->status && !trouble->unfeedable;
}
