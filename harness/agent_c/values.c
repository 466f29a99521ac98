#include "values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FLOAT = 1, STRING = 8, FLOAT16 = 10, DOUBLE, COMPLEX64 = 14, COMPLEX128, MOST_DIMENSIONS = 64, DEEPEST = 16, ALIGNED = 64 };

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
    if (value->type == STRING) {
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
        if (value->type != STRING) return numbers_feed(arena, value, made, trouble);
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
    value->size = value->type == STRING ? count : (size_t)(((uint64_t)count * (unsigned)TYPES[value->type].bits + 7) / 8);
    return true;
}

static bool tensor_take(Arena *arena, const OrtValue *from, Value *value, Trouble *trouble) {
    void *data = NULL;
    if (!tensor_about(arena, from, value, trouble)) return false;
    if (value->type == STRING) return texts_take(arena, from, value->size, value, trouble);
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
        if (value->type == STRING) put(message, "[");
        else put_binary(message, value->data, value->size);
        for (size_t index = 0; value->type == STRING && index < value->size; index++) {
            if (index) put(message, ",");
            put_sized(message, value->texts[index].at, value->texts[index].size);
        }
        put(message, value->type == STRING ? "]}" : "}");
    }
}

/* --- comparison --- */

static bool same_value(const Value *one, const Value *other) {
    if (one->kind != other->kind) return false;
    if (one->kind == NO_VALUE) return true;
    if (one->kind != TENSOR_VALUE) return one->count == other->count && same_values(one->items, other->items, one->count);
    if (one->type != other->type || one->rank != other->rank || one->size != other->size) return false;
    if (one->rank && memcmp(one->shape, other->shape, one->rank * sizeof(int64_t))) return false;
    if (one->type != STRING) return !one->size || !memcmp(one->data, other->data, one->size);
    for (size_t index = 0; index < one->size; index++) {
        const Piece *a = &one->texts[index], *b = &other->texts[index];
        if (a->size != b->size || memcmp(a->at, b->at, a->size)) return false;
    }
    return true;
}

bool same_values(const Value *one, const Value *other, size_t count) {
    for (size_t index = 0; index < count; index++)
        if (!same_value(&one[index], &other[index])) return false;
    return true;
}

static double half_number(uint16_t bits) {
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double size = exponent == 31 ? (fraction ? NAN : INFINITY)
                  : exponent     ? ldexp(1024 + fraction, exponent - 25)
                                 : ldexp(fraction, -24);
    return bits & 0x8000 ? -size : size;
}

/* Return a component of a tensor as a number; complex elements have two. */
static double number_at(const Value *value, size_t index) {
    const char *at = value->data;
    float single;
    double wide;
    uint64_t natural = 0;
    uint16_t half;
    if (value->type == FLOAT || value->type == COMPLEX64) return memcpy(&single, at + 4 * index, 4), (double)single;
    if (value->type == DOUBLE || value->type == COMPLEX128) return memcpy(&wide, at + 8 * index, 8), wide;
    if (value->type == FLOAT16) return memcpy(&half, at + 2 * index, 2), half_number(half);
    size_t bytes = (size_t)TYPES[value->type].bits / 8;
    for (size_t byte = bytes; byte--;) natural = natural << 8 | (uint8_t)at[index * bytes + byte];
    uint64_t sign = TYPES[value->type].kind == 'i' ? (uint64_t)1 << (8 * bytes - 1) : 0;
    return sign ? (double)(int64_t)((natural ^ sign) - sign) : (double)natural;
}

static double apart(const Value *one, const Value *other, bool relative) {
    if (same_value(one, other)) return 0;
    if (one->kind != other->kind || one->kind == NO_VALUE) return INFINITY;
    if (one->kind != TENSOR_VALUE)
        return one->count == other->count ? values_apart(one->items, other->items, one->count, relative) : INFINITY;
    if (one->type != other->type || one->rank != other->rank || one->size != other->size) return INFINITY;
    if (one->rank && memcmp(one->shape, other->shape, one->rank * sizeof(int64_t))) return INFINITY;
    char kind = TYPES[one->type].kind;
    if (!kind || kind == 'O') return INFINITY;
    size_t bytes = (size_t)TYPES[one->type].bits / 8 / (kind == 'c' ? 2 : 1);
    double most = 0, largest = 0;
    for (size_t index = 0; index < one->size / bytes; index++) {
        double a = number_at(one, index), b = number_at(other, index);
        if (!isfinite(a) || !isfinite(b)) {
            if (a != b && !(isnan(a) && isnan(b))) return INFINITY;
            continue;
        }
        most = fmax(most, fabs(a - b));
        largest = fmax(largest, fabs(a));
    }
    return relative ? most / (largest > 0 ? largest : 1) : most;
}

double values_apart(const Value *one, const Value *other, size_t count, bool relative) {
    double most = 0;
    for (size_t index = 0; index < count; index++) most = fmax(most, apart(&one[index], &other[index], relative));
    return most;
}

static void digest_value(Sha256 *sums, const Value *value) {
    uint64_t head[4] = {(uint64_t)value->kind, (uint64_t)value->type, value->rank, value->kind == TENSOR_VALUE ? value->size : value->count};
    sha256_add(sums, head, sizeof head);
    if (value->kind != TENSOR_VALUE) {
        for (size_t index = 0; index < value->count; index++) digest_value(sums, &value->items[index]);
        return;
    }
    sha256_add(sums, value->shape, value->rank * sizeof(int64_t));
    if (value->type != STRING) sha256_add(sums, value->data, value->size);
    for (size_t index = 0; value->type == STRING && index < value->size; index++) {
        sha256_add(sums, &value->texts[index].size, sizeof(size_t));
        sha256_add(sums, value->texts[index].at, value->texts[index].size);
    }
}

void values_digest(const Value *values, size_t count, char hex[65]) {
    Sha256 sums;
    sha256_begin(&sums);
    for (size_t index = 0; index < count; index++) digest_value(&sums, &values[index]);
    sha256_hex(&sums, hex);
}

/* --- other inputs --- */

/* Return whether two tensors have equal numbers, as numpy compares: NaN equals nothing, and -0.0 equals 0.0. */
static bool equal_numbers(const Value *one, const Value *other) {
    char kind = TYPES[one->type].kind;
    if (kind != 'f' && kind != 'c') return same_value(one, other);
    size_t bytes = (size_t)TYPES[one->type].bits / 8 / (kind == 'c' ? 2 : 1);
    for (size_t index = 0; index < one->size / bytes; index++)
        if (number_at(one, index) != number_at(other, index)) return false;
    return true;
}

static Value reversed(Arena *arena, const Value *from) {
    Value to = *from;
    if (from->type == STRING) {
        to.texts = arena_take(arena, (from->size + 1) * sizeof(Piece));
        for (size_t index = 0; index < from->size; index++) to.texts[index] = from->texts[from->size - 1 - index];
        return to;
    }
    size_t bytes = (size_t)TYPES[from->type].bits / 8;
    to.data = arena_take(arena, from->size + 1);
    for (size_t at = 0; at < from->size; at += bytes)
        memcpy((char *)to.data + at, (const char *)from->data + from->size - bytes - at, bytes);
    return to;
}

bool reversed_values(Arena *arena, const Value *from, size_t count, Value *to) {
    static const struct {
        const char *kinds;
        size_t rank;
    } rules[] = {{"fc", 2}, {"iu", 2}, {"fc", 1}, {"Ob", 1}};
    for (size_t rule = 0; rule < sizeof rules / sizeof *rules; rule++) {
        bool changed = false;
        for (size_t index = 0; index < count; index++) {
            char kind = TYPES[from[index].type].kind;
            to[index] = from[index];
            if (from[index].kind != TENSOR_VALUE || !kind || !strchr(rules[rule].kinds, kind)) continue;
            if (from[index].rank < rules[rule].rank) continue;
            Value other = reversed(arena, &from[index]);
            if (equal_numbers(&from[index], &other)) continue;
            to[index] = other;
            changed = true;
        }
        if (changed) return true;
    }
    return false;
}

bool faded_values(Arena *arena, const Value *from, size_t count, Value *to) {
    bool changed = false;
    for (size_t index = 0; index < count; index++) {
        size_t bytes = (size_t)TYPES[from[index].type].bits / 8;
        to[index] = from[index];
        if (from[index].kind != TENSOR_VALUE || TYPES[from[index].type].kind != 'f' || from[index].rank < 2 || !from[index].size) continue;
        char *data = to[index].data = arena_take(arena, from[index].size);
        memcpy(data, from[index].data, from[index].size);
        for (char *at = data; at < data + from[index].size; at += bytes) { /* by 7/8, which is exact; halves by 1/2 */
            float single;
            double wide;
            uint16_t half;
            if (bytes == 4) memcpy(&single, at, 4), single *= 0.875F, memcpy(at, &single, 4);
            else if (bytes == 8) memcpy(&wide, at, 8), wide *= 0.875, memcpy(at, &wide, 8);
            else if (memcpy(&half, at, 2), (half >> 10 & 31) % 31 > 1) half = (uint16_t)(half - 1024), memcpy(at, &half, 2);
        }
        changed = true;
    }
    return changed;
}
