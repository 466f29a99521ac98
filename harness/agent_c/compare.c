/* How far values are apart, and other inputs made of given ones. */

#include "values.h"

#include <math.h>
#include <string.h>

enum { FLOAT = 1, FLOAT16 = 10, DOUBLE, COMPLEX64 = 14, COMPLEX128 };

static bool same_value(const Value *one, const Value *other) {
    if (one->kind != other->kind) return false;
    if (one->kind == NO_VALUE) return true;
    if (one->kind != TENSOR_VALUE) return one->count == other->count && same_values(one->items, other->items, one->count);
    if (one->type != other->type || one->rank != other->rank || one->size != other->size) return false;
    if (one->rank && memcmp(one->shape, other->shape, one->rank * sizeof(int64_t))) return false;
    if (one->type != TYPE_STRING) return !one->size || !memcmp(one->data, other->data, one->size);
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
    size_t bytes = (size_t)element_bits(value->type) / 8;
    for (size_t byte = bytes; byte--;) natural = natural << 8 | (uint8_t)at[index * bytes + byte];
    uint64_t sign = element_kind(value->type) == 'i' ? (uint64_t)1 << (8 * bytes - 1) : 0;
    return sign ? (double)(int64_t)((natural ^ sign) - sign) : (double)natural;
}

static double apart(const Value *one, const Value *other, bool relative) {
    if (same_value(one, other)) return 0;
    if (one->kind != other->kind || one->kind == NO_VALUE) return INFINITY;
    if (one->kind != TENSOR_VALUE)
        return one->count == other->count ? values_apart(one->items, other->items, one->count, relative) : INFINITY;
    if (one->type != other->type || one->rank != other->rank || one->size != other->size) return INFINITY;
    if (one->rank && memcmp(one->shape, other->shape, one->rank * sizeof(int64_t))) return INFINITY;
    char kind = element_kind(one->type);
    if (!kind || kind == 'O') return INFINITY;
    size_t bytes = (size_t)element_bits(one->type) / 8 / (kind == 'c' ? 2 : 1);
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
    if (value->type != TYPE_STRING) sha256_add(sums, value->data, value->size);
    for (size_t index = 0; value->type == TYPE_STRING && index < value->size; index++) {
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
    char kind = element_kind(one->type);
    if (kind != 'f' && kind != 'c') return same_value(one, other);
    size_t bytes = (size_t)element_bits(one->type) / 8 / (kind == 'c' ? 2 : 1);
    for (size_t index = 0; index < one->size / bytes; index++)
        if (number_at(one, index) != number_at(other, index)) return false;
    return true;
}

static Value reversed(Arena *arena, const Value *from) {
    Value to = *from;
    if (from->type == TYPE_STRING) {
        to.texts = arena_take(arena, (from->size + 1) * sizeof(Piece));
        for (size_t index = 0; index < from->size; index++) to.texts[index] = from->texts[from->size - 1 - index];
        return to;
    }
    size_t bytes = (size_t)element_bits(from->type) / 8;
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
            char kind = element_kind(from[index].type);
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
        size_t bytes = (size_t)element_bits(from[index].type) / 8;
        to[index] = from[index];
        if (from[index].kind != TENSOR_VALUE || element_kind(from[index].type) != 'f' || from[index].rank < 2 || !from[index].size) continue;
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
