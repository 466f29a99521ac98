#include "values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DIMENSIONS = 64, DEEPEST = 16, ALIGNED = 64 };

/* Element types by the number of the C API, which from 24 on is not ONNX's: name, bits, and numpy's kind; 0 where
 * numpy has no such type. */
static const struct {
    const char *name;
    int bits;
    char kind;
} TYPES[] = {
    {"", 0, 0}, {"float32", 32, 'f'}, {"uint8", 8, 'u'}, {"int8", 8, 'i'}, {"uint16", 16, 'u'}, {"int16", 16, 'i'}, {"int32", 32, 'i'},
    {"int64", 64, 'i'}, {"string", 0, 'O'}, {"bool", 8, 'b'}, {"float16", 16, 'f'}, {"float64", 64, 'f'}, {"uint32", 32, 'u'},
    {"uint64", 64, 'u'}, {"complex64", 64, 'c'}, {"complex128", 128, 'c'}, {"bfloat16", 16, 0}, {"float8e4m3fn", 8, 0},
    {"float8e4m3fnuz", 8, 0}, {"float8e5m2", 8, 0}, {"float8e5m2fnuz", 8, 0}, {"uint4", 4, 0}, {"int4", 4, 0}, {"float4e2m1", 4, 0},
    {"uint2", 2, 0}, {"int2", 2, 0}, {"float8e8m0", 8, 0}};
enum { KNOWN_TYPES = sizeof TYPES / sizeof *TYPES, NEWEST = 24 };

int element_bits(int type) { return TYPES[type].bits; }
char element_kind(int type) { return TYPES[type].kind; }

static bool makes_by_onnx = true;

void learn_numbers(OrtAllocator *allocator) {
    int64_t shape = 4;
    size_t size = 0;
    OrtValue *made = NULL;
    OrtStatus *status = HAS(GetTensorSizeInBytes) ? ORT(CreateTensorAsOrtValue)(allocator, &shape, 1, NEWEST, &made) : NULL;
    if (!status && made) status = ORT(GetTensorSizeInBytes)(made, &size);
    makes_by_onnx = size != 1; /* four elements of uint2 fill a byte */
    if (made) ORT(ReleaseValue)(made);
    if (status) ORT(ReleaseStatus)(status);
}

/* Return the number by which the runtime makes a tensor: 1.27 takes ONNX's numbers there, and tells the API's. */
static int number_to_make(int type) {
    if (!makes_by_onnx || type < NEWEST) return type;
    return type == NEWEST + 2 ? NEWEST : type + 1;
}

static bool unfed(Trouble *trouble, const char *why) {
    trouble->unfeedable = why;
    return false;
}

/* --- from messages --- */

static bool elements_of(const int64_t *shape, size_t rank, size_t *count) {
    *count = 1;
    for (size_t axis = 0; axis < rank; axis++)
        if (shape[axis] == 0) *count = 0;
    for (size_t axis = 0; *count && axis < rank; axis++) {
        if (shape[axis] < 0 || (uint64_t)shape[axis] > ((uint64_t)1 << 40) / *count) return false;
        *count *= (size_t)shape[axis];
    }
    return true;
}

bool value_size(Value *value) {
    size_t count = 0;
    if (value->type <= 0 || value->type >= NEWEST || !TYPES[value->type].bits || !elements_of(value->shape, value->rank, &count)) return false;
    value->size = (size_t)(((uint64_t)count * (unsigned)TYPES[value->type].bits + 7) / 8);
    return true;
}

static bool tensor_read(Arena *arena, const Json *wire, Value *value, Trouble *trouble) {
    const char *dtype = json_text(json_get(wire, "dtype"), "");
    const Json *shape = json_get(wire, "shape"), *data = json_get(wire, "data");
    size_t count = 0, axis = 0;
    for (value->type = KNOWN_TYPES - 1; value->type && strcmp(TYPES[value->type].name, dtype);) value->type--;
    if (!value->type || !*dtype) return unfed(trouble, "a tensor of an unknown element type");
    if (!json_is(shape, JSON_ARRAY) || shape->size > MOST_DIMENSIONS) return unfed(trouble, "a tensor without a shape");
    value->kind = TENSOR_VALUE;
    value->rank = shape->size;
    value->shape = arena_take(arena, (shape->size + 1) * sizeof(int64_t));
    for (const Json *one = shape->first; one; one = one->next) value->shape[axis++] = json_integer(one, -1);
    for (axis = 0; axis < value->rank; axis++)
        if (value->shape[axis] < 0) return unfed(trouble, "a tensor with a negative dimension");
    if (!elements_of(value->shape, value->rank, &count)) return unfed(trouble, "a tensor that is too large");
    if (value->type == TYPE_STRING) {
        if (!json_is(data, JSON_ARRAY) || data->size != count) return unfed(trouble, "texts that do not fit their shape");
        value->texts = arena_take(arena, (count + 1) * sizeof(Piece));
        for (const Json *one = data->first; one; one = one->next) {
            if (!json_is(one, JSON_TEXT)) return unfed(trouble, "a tensor of texts with something else");
            value->texts[value->size++] = (Piece){one->text, one->size};
        }
        return true;
    }
    value->size = (size_t)(((uint64_t)count * (unsigned)TYPES[value->type].bits + 7) / 8);
    if (!json_is(data, JSON_BYTES) || data->size != value->size) return unfed(trouble, "bytes that do not fit their shape");
    value->data = (void *)(uintptr_t)data->text;
    return true;
}

static bool read_value(Arena *arena, const Json *wire, Value *value, Trouble *trouble, int depth) {
    const Json *items = json_get(wire, "sequence"), *keys = json_get(wire, "keys");
    if (json_is(wire, JSON_NULL)) return true;
    if (!json_is(wire, JSON_OBJECT) || depth > DEEPEST) return unfed(trouble, "an input that is no value");
    if (json_is(items, JSON_ARRAY)) {
        value->kind = SEQUENCE_VALUE;
        value->items = arena_take(arena, (items->size + 1) * sizeof(Value));
        for (const Json *one = items->first; one; one = one->next)
            if (!read_value(arena, one, &value->items[value->count++], trouble, depth + 1)) return false;
        return true;
    }
    if (!keys) return tensor_read(arena, wire, value, trouble);
    value->kind = MAP_VALUE;
    value->count = 2;
    value->items = arena_take(arena, 2 * sizeof(Value));
    return tensor_read(arena, keys, &value->items[0], trouble) &&
           tensor_read(arena, json_get(wire, "values"), &value->items[1], trouble);
}

bool value_read(Arena *arena, const Json *wire, Value *value, Trouble *trouble) {
    return read_value(arena, wire, value, trouble, 0);
}

/* --- to onnxruntime --- */

static bool good(Trouble *trouble, OrtStatus *status) {
    trouble->status = status;
    return !status;
}

bool value_room(const Value *like, OrtAllocator *allocator, OrtValue **made, Trouble *trouble) {
    return good(trouble, ORT(CreateTensorAsOrtValue)(allocator, like->shape, like->rank, number_to_make(like->type), made));
}

bool value_over(void *data, const Value *like, OrtValue **made, Trouble *trouble) {
    OrtMemoryInfo *memory = NULL;
    if (!good(trouble, ORT(CreateCpuMemoryInfo)(0, 0, &memory))) return false;
    OrtStatus *status = ORT(CreateTensorWithDataAsOrtValue)(memory, data, like->size, like->shape, like->rank, number_to_make(like->type), made);
    ORT(ReleaseMemoryInfo)(memory);
    return good(trouble, status);
}

/* A tensor over memory of the arena: one that onnxruntime makes has no address if it has no elements, which OpenVINO
 * refuses. Each feed has a copy, so that a provider that writes into its inputs changes no later run. */
static bool numbers_feed(Arena *arena, const Value *value, OrtValue **made, Trouble *trouble) {
    char *data = arena_take(arena, value->size + ALIGNED);
    data += (ALIGNED - (uintptr_t)data % ALIGNED) % ALIGNED;
    if (value->size) memcpy(data, value->data, value->size);
    return value_over(data, value, made, trouble);
}

bool value_feed(Arena *arena, const Value *value, OrtAllocator *allocator, OrtValue **made, Trouble *trouble) {
    if (value->kind == NO_VALUE) return unfed(trouble, "onnxruntime's C API takes no empty optional: Run of 1.32 crashes on one");
    if (value->kind == TENSOR_VALUE) {
        if (value->type != TYPE_STRING) return numbers_feed(arena, value, made, trouble);
        if (!good(trouble, ORT(CreateTensorAsOrtValue)(allocator, value->shape, value->rank, value->type, made))) return false;
        for (size_t index = 0; index < value->size; index++) {
            char *to = NULL;
            const Piece *text = &value->texts[index];
            if (!good(trouble, ORT(GetResizedStringTensorElementBuffer)(*made, index, text->size, &to))) return false;
            if (text->size) memcpy(to, text->at, text->size);
        }
        return true;
    }
    if (!value->count) return unfed(trouble, "an empty sequence inside another value");
    OrtValue **items = arena_take(arena, value->count * sizeof *items);
    bool fine = true;
    for (size_t index = 0; fine && index < value->count; index++)
        fine = value_feed(arena, &value->items[index], allocator, &items[index], trouble);
    int kind = value->kind == MAP_VALUE ? VALUE_MAP : VALUE_SEQUENCE;
    fine = fine && good(trouble, ORT(CreateValue)((const OrtValue *const *)items, value->count, kind, made));
    for (size_t index = 0; index < value->count; index++)
        if (items[index]) ORT(ReleaseValue)(items[index]);
    return fine;
}

static bool texts_take(Arena *arena, const OrtValue *from, size_t count, Value *value, Trouble *trouble) {
    size_t size = 0;
    if (count && !good(trouble, ORT(GetStringTensorDataLength)(from, &size))) return false;
    char *all = arena_take(arena, size + 1);
    size_t *offsets = arena_take(arena, (count + 1) * sizeof *offsets);
    if (count && !good(trouble, ORT(GetStringTensorContent)(from, all, size, offsets, count))) return false;
    offsets[count] = size;
    value->texts = arena_take(arena, (count + 1) * sizeof(Piece));
    for (size_t index = 0; index < count; index++)
        value->texts[index] = (Piece){all + offsets[index], offsets[index + 1] - offsets[index]};
    value->size = count;
    return true;
}

bool tensor_about(Arena *arena, const OrtValue *from, Value *value, Trouble *trouble) {
    OrtTensorInfo *info = NULL;
    size_t count = 0;
    bool fine = good(trouble, ORT(GetTensorTypeAndShape)(from, &info)) &&
                good(trouble, ORT(GetTensorElementType)(info, &value->type)) &&
                good(trouble, ORT(GetDimensionsCount)(info, &value->rank)) &&
                good(trouble, ORT(GetTensorShapeElementCount)(info, &count));
    if (fine) {
        value->shape = arena_take(arena, (value->rank + 1) * sizeof(int64_t));
        fine = good(trouble, ORT(GetDimensions)(info, value->shape, value->rank));
    }
    if (info) ORT(ReleaseTensorTypeAndShapeInfo)(info);
    if (!fine) return false;
    if (value->type <= 0 || value->type >= KNOWN_TYPES) return unfed(trouble, "an output of an unknown element type");
    value->kind = TENSOR_VALUE;
    value->size = value->type == TYPE_STRING ? count : (size_t)(((uint64_t)count * (unsigned)TYPES[value->type].bits + 7) / 8);
    return true;
}

static bool tensor_take(Arena *arena, const OrtValue *from, Value *value, Trouble *trouble) {
    void *data = NULL;
    if (!tensor_about(arena, from, value, trouble)) return false;
    if (value->type == TYPE_STRING) return texts_take(arena, from, value->size, value, trouble);
    value->data = arena_take(arena, value->size + 1);
    if (!good(trouble, ORT(GetTensorMutableData)((OrtValue *)(uintptr_t)from, &data))) return false;
    if (value->size) memcpy(value->data, data, value->size);
    return true;
}

static bool take_value(Arena *arena, const OrtValue *from, OrtAllocator *allocator, Value *value, Trouble *trouble,
                       int depth) {
    int kind = 0, has = 1;
    if (!from) return true;
    if (!good(trouble, ORT(HasValue)(from, &has))) return false;
    if (!has) return true;
    if (!good(trouble, ORT(GetValueType)(from, &kind))) return false;
    if (kind == VALUE_TENSOR) return tensor_take(arena, from, value, trouble);
    if ((kind != VALUE_SEQUENCE && kind != VALUE_MAP) || depth > DEEPEST)
        return unfed(trouble, "an output that is neither tensor, sequence nor map");
    value->kind = kind == VALUE_MAP ? MAP_VALUE : SEQUENCE_VALUE;
    if (kind == VALUE_MAP) value->count = 2;
    else if (!good(trouble, ORT(GetValueCount)(from, &value->count))) return false;
    value->items = arena_take(arena, (value->count + 1) * sizeof(Value));
    for (size_t index = 0; index < value->count; index++) {
        OrtValue *item = NULL;
        bool fine = good(trouble, ORT(GetValue)(from, (int)index, allocator, &item)) &&
                    take_value(arena, item, allocator, &value->items[index], trouble, depth + 1);
        if (item) ORT(ReleaseValue)(item);
        if (!fine) return false;
    }
    return true;
}

bool value_take(Arena *arena, const OrtValue *from, OrtAllocator *allocator, Value *value, Trouble *trouble) {
    return take_value(arena, from, allocator, value, trouble, 0);
}

/* --- to messages --- */

void value_put(Message *message, const Value *value) {
    if (value->kind == NO_VALUE) {
        put(message, "null");
    } else if (value->kind == SEQUENCE_VALUE) {
        put(message, "{\"sequence\":[");
        for (size_t index = 0; index < value->count; index++) {
            if (index) put(message, ",");
            value_put(message, &value->items[index]);
        }
        put(message, "]}");
    } else if (value->kind == MAP_VALUE) {
        put(message, "{\"keys\":");
        value_put(message, &value->items[0]);
        put(message, ",\"values\":");
        value_put(message, &value->items[1]);
        put(message, "}");
    } else {
        put_format(message, "{\"dtype\":\"%s\",\"shape\":[", TYPES[value->type].name);
        for (size_t axis = 0; axis < value->rank; axis++)
            put_format(message, axis ? ",%lld" : "%lld", (long long)value->shape[axis]);
        put(message, "],\"data\":");
        if (value->type == TYPE_STRING) put(message, "[");
        else put_binary(message, value->data, value->size);
        for (size_t index = 0; value->type == TYPE_STRING && index < value->size; index++) {
            if (index) put(message, ",");
            put_sized(message, value->texts[index].at, value->texts[index].size);
        }
        put(message, value->type == TYPE_STRING ? "]}" : "}");
    }
}
