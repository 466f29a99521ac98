/* An empty sequence, which the C API cannot make: a model of one node makes it. */

#include "session.h"

#include <string.h>

enum { IN_NODE = 38, IN_TYPE = 59, LARGEST_ELEMENT = 23 }; /* from 24 on the numbers of the API are not ONNX's */

/* y = SequenceEmpty<dtype>() at opset 15, IR 8; the element type is in the node's attribute and in the output's type. */
static const uint8_t MODEL[] = "\x08\x08\x42\x02\x10\x0f\x3a\x34\x0a\x20\x12\x01y\x22\x0dSequenceEmpty\x2a\x0c\x0a\x05" "dtype\x18\x01\xa0\x01\x02"
                               "\x12\x01g\x62\x0d\x0a\x01y\x12\x08\x22\x06\x0a\x04\x0a\x02\x08\x01";

/* Find the element type of an input that is a sequence of tensors; 0 for any other. */
static OrtStatus *element_of(OrtSession *session, const char *name, int *element) {
    size_t count = 0;
    OrtStatus *status = ORT(SessionGetInputCount)(session, &count);
    for (size_t index = 0; index < count && !status; index++) {
        const OrtTypeInfo *sequence = NULL;
        const OrtTensorInfo *tensor = NULL;
        OrtTypeInfo *info = NULL, *item = NULL;
        char *input = NULL;
        if ((status = ORT(SessionGetInputName)(session, index, ort_allocator, &input))) break;
        bool found = !strcmp(input, name);
        status = ORT(AllocatorFree)(ort_allocator, input);
        if (!found) continue;
        if (!status) status = ORT(SessionGetInputTypeInfo)(session, index, &info);
        if (!status) status = ORT(CastTypeInfoToSequenceTypeInfo)(info, &sequence);
        if (!status && sequence) status = ORT(GetSequenceElementType)(sequence, &item);
        if (!status && item) status = ORT(CastTypeInfoToTensorInfo)(item, &tensor);
        if (!status && tensor) status = ORT(GetTensorElementType)(tensor, element);
        if (item) ORT(ReleaseTypeInfo)(item);
        if (info) ORT(ReleaseTypeInfo)(info);
    }
    return status;
}

bool empty_sequence(OrtSession *session, const char *name, OrtValue **made, Trouble *trouble) {
    static const char *const output = "y";
    int element = 0;
    Arena arena = {0};
    uint8_t model[sizeof MODEL];
    trouble->status = element_of(session, name, &element);
    if (trouble->status) return false;
    if (element <= 0 || element > LARGEST_ELEMENT) trouble->unfeedable = "an empty sequence for an input that takes none";
    memcpy(model, MODEL, sizeof MODEL);
    model[IN_NODE] = model[IN_TYPE] = (uint8_t)element;
    SessionPlan plan = {.model = (const char *)model, .model_size = sizeof MODEL - 1, .without = -1};
    OrtSession *maker = trouble->unfeedable ? NULL : session_open(&arena, &plan, trouble);
    if (maker) trouble->status = ORT(Run)(maker, NULL, NULL, NULL, 0, &output, 1, made);
    if (maker) ORT(ReleaseSession)(maker);
    arena_free(&arena);
    return *made != NULL;
}
