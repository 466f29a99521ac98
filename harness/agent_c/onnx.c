#include "onnx.h"

#include <stdlib.h>
#include <string.h>

/* Field numbers of onnx.proto: of ModelProto, GraphProto, NodeProto and TensorProto; wire types of protobuf. */
enum { GRAPH = 7, NODE = 1, INITIALIZER = 5, OP_TYPE = 4, DOMAIN = 7 };
enum { DIMS = 1, DATA_TYPE = 2, FLOATS = 4, NAME = 8, RAW = 9, DOUBLES = 10, EXTERNAL = 13 };
enum { VARINT = 0, FIXED64 = 1, LENGTH = 2, FIXED32 = 5, MOST_DIMENSIONS = 64 };

typedef struct {
    const char *at, *end;
} Span;
typedef struct {
    unsigned number, kind;
    uint64_t integer;
    Span content, whole;
} Field;

static bool take_varint(Span *from, uint64_t *value) {
    *value = 0;
    for (int shift = 0; from->at < from->end && shift < 70; shift += 7) {
        uint8_t byte = (uint8_t)*from->at++;
        if (shift < 64) *value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return true;
    }
    return false;
}

/* Take the next field; false at the end, and where there is no message of protobuf. */
static bool take_field(Span *from, Field *field) {
    uint64_t key = 0, size = 0;
    field->whole = *from;
    if (!take_varint(from, &key)) return false;
    field->number = (unsigned)(key >> 3), field->kind = key & 7;
    if (field->kind == VARINT) {
        if (!take_varint(from, &field->integer)) return false;
    } else if (field->kind == LENGTH) {
        if (!take_varint(from, &size)) return false;
    } else if (field->kind == FIXED64 || field->kind == FIXED32) {
        size = field->kind == FIXED64 ? 8 : 4;
    } else {
        return false;
    }
    if (size > (uint64_t)(from->end - from->at)) return false;
    field->content = (Span){from->at, from->at + size};
    field->whole.end = from->at += size;
    return true;
}

static bool is_text(Span span, const char *text) { return (size_t)(span.end - span.at) == strlen(text) && !memcmp(span.at, text, strlen(text)); }

static char *text_of(Arena *arena, Span span) { return arena_text(arena, span.at, (size_t)(span.end - span.at)); }

/* --- weights in other files --- */

static void take_dimensions(Value *value, const Field *field) {
    uint64_t one = field->integer;
    Span packed = field->content;
    for (bool more = field->kind == VARINT || take_varint(&packed, &one); more && value->rank < MOST_DIMENSIONS; more = field->kind == LENGTH && take_varint(&packed, &one))
        value->shape[value->rank++] = (int64_t)one;
}

static void take_place(Arena *arena, StoredWeight *weight, Span entry) {
    const char *parts[2] = {"", ""}; /* key and value of a StringStringEntryProto */
    for (Field field; take_field(&entry, &field);)
        if (field.kind == LENGTH && (field.number == 1 || field.number == 2)) parts[field.number - 1] = text_of(arena, field.content);
    if (!strcmp(parts[0], "location")) weight->file = parts[1];
    if (!strcmp(parts[0], "offset")) weight->offset = (size_t)strtoull(parts[1], NULL, 10);
    if (!strcmp(parts[0], "length")) weight->size = (size_t)strtoull(parts[1], NULL, 10);
}

static StoredWeight weight_of(Arena *arena, Span tensor) {
    StoredWeight weight = {.name = "", .value = {.kind = TENSOR_VALUE, .shape = arena_take(arena, MOST_DIMENSIONS * sizeof(int64_t))}};
    for (Field field; take_field(&tensor, &field);) {
        if (field.number == NAME) weight.name = text_of(arena, field.content);
        if (field.number == DATA_TYPE) weight.value.type = (int)field.integer;
        if (field.number == DIMS) take_dimensions(&weight.value, &field);
        if (field.number == EXTERNAL && field.kind == LENGTH) take_place(arena, &weight, field.content);
    }
    return weight;
}

StoredWeight *stored_weights(Arena *arena, const char *model, size_t size, size_t *count) {
    StoredWeight *found = NULL;
    size_t room = 0;
    Span whole = {model, model + size};
    *count = 0;
    for (Field part; take_field(&whole, &part);) {
        if (part.number != GRAPH || part.kind != LENGTH) continue;
        for (Field field; take_field(&part.content, &field);) {
            if (field.number != INITIALIZER || field.kind != LENGTH) continue;
            StoredWeight weight = weight_of(arena, field.content);
            if (!weight.file) continue;
            if (*count == room) {
                StoredWeight *more = arena_take(arena, (room = 2 * room + 16) * sizeof *more);
                if (*count) memcpy(more, found, *count * sizeof *more);
                found = more;
            }
            found[(*count)++] = weight;
        }
    }
    return found;
}

/* --- models of the same shapes --- */

static void put_varint(Bytes *to, uint64_t value) {
    for (; value > 127; value >>= 7) bytes_add(to, &(uint8_t){(uint8_t)(value | 128)}, 1);
    bytes_add(to, &(uint8_t){(uint8_t)value}, 1);
}

static void put_bytes(Bytes *to, unsigned number, const char *content, size_t size) {
    put_varint(to, number << 3 | LENGTH);
    put_varint(to, size);
    bytes_add(to, content, size);
}

/* Write the graph of a model, each of its parts of one kind changed. */
static bool changed_graph(Bytes *made, const char *model, size_t size, unsigned number, bool (*change)(Bytes *, Span)) {
    Span whole = {model, model + size};
    bool changed = false;
    for (Field part; take_field(&whole, &part);) {
        if (part.number != GRAPH || part.kind != LENGTH) {
            bytes_add(made, part.whole.at, (size_t)(part.whole.end - part.whole.at));
            continue;
        }
        Bytes graph = {0};
        for (Field field; take_field(&part.content, &field);) {
            Bytes other = {0};
            bool differs = field.number == number && field.kind == LENGTH && change(&other, field.content);
            if (differs) put_bytes(&graph, number, other.at, other.size);
            else bytes_add(&graph, field.whole.at, (size_t)(field.whole.end - field.whole.at));
            changed |= differs;
            bytes_free(&other);
        }
        put_bytes(made, GRAPH, graph.at, graph.size);
        bytes_free(&graph);
    }
    return changed && whole.at == whole.end;
}

static bool change_node(Bytes *made, Span node) {
    static const char *const others[][2] = {{"Relu", "Sigmoid"}, {"Sigmoid", "Tanh"}, {"Tanh", "Sigmoid"}};
    bool changed = false, is_onnx = true;
    for (Field field; take_field(&node, &field);) {
        const char *other = NULL;
        for (size_t index = 0; field.number == OP_TYPE && index < sizeof others / sizeof *others; index++)
            if (is_text(field.content, others[index][0])) other = others[index][1];
        if (field.number == DOMAIN) is_onnx = is_text(field.content, "") || is_text(field.content, "ai.onnx");
        if (other) put_bytes(made, OP_TYPE, other, strlen(other));
        else bytes_add(made, field.whole.at, (size_t)(field.whole.end - field.whole.at));
        changed |= other != NULL;
    }
    return changed && is_onnx;
}

/* Reverse the elements of a float matrix, or let them fade if that changes nothing; vectors may decide shapes, and stay. */
static bool change_weight(Bytes *made, Span tensor) {
    Arena arena = {0};
    StoredWeight weight = weight_of(&arena, tensor);
    int type = weight.value.type; /* 1 float32, 10 float16, 11 float64, by ONNX's numbers */
    bool changed = false, is_matrix = weight.value.rank >= 2 && (type == 1 || type == 10 || type == 11);
    for (Field field; is_matrix && take_field(&tensor, &field);) {
        bool holds = field.number == RAW || (field.number == FLOATS && type == 1) || (field.number == DOUBLES && type == 11);
        Value from = weight.value, to;
        from.data = (void *)(uintptr_t)field.content.at;
        from.size = (size_t)(field.content.end - field.content.at);
        bool whole = from.size % (type == 11 ? 8 : type == 1 ? 4 : 2) == 0;
        if (holds && whole && field.kind == LENGTH && (reversed_values(&arena, &from, 1, &to) || faded_values(&arena, &from, 1, &to))) {
            put_bytes(made, field.number, to.data, to.size);
            changed |= memcmp(to.data, from.data, from.size) != 0;
        } else {
            bytes_add(made, field.whole.at, (size_t)(field.whole.end - field.whole.at));
        }
    }
    arena_free(&arena);
    return changed;
}

bool other_weights(Bytes *made, const char *model, size_t size) { return changed_graph(made, model, size, INITIALIZER, change_weight); }
bool other_activations(Bytes *made, const char *model, size_t size) { return changed_graph(made, model, size, NODE, change_node); }
