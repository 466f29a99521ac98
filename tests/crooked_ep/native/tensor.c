#include "tensor.h"

#include <math.h>
#include <string.h>

size_t element_size(enum element type) {
    switch (type) {
    case UINT8: case INT8: case BOOL: return 1;
    case UINT16: case INT16: case FLOAT16: case BFLOAT16: return 2;
    case FLOAT: case INT32: case UINT32: return 4;
    case DOUBLE: case INT64: case UINT64: return 8;
    default: return 0;
    }
}

bool is_float(enum element type) { return type == FLOAT || type == DOUBLE; }

static double from_half(uint16_t bits) {
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double size = exponent == 31 ? (fraction ? NAN : INFINITY)
                  : exponent     ? ldexp(1024 + fraction, exponent - 25)
                                 : ldexp(fraction, -24);
    return bits >> 15 ? -size : size;
}

static uint16_t to_half(double value) {
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    double size = fabs(value);
    if (isnan(value)) return sign | 0x7e00;
    if (size >= 65520) return sign | 0x7c00; /* half way to 2^16, which would be even */
    int exponent;
    frexp(size, &exponent);
    if (!size) return sign;
    if (exponent < -13) return sign | (uint16_t)nearbyint(ldexp(size, 24)); /* subnormal, or the least normal */
    /* A fraction that rounds up to 2048 carries into the exponent. */
    return sign | (uint16_t)((exponent + 13) * 1024 + (int)nearbyint(ldexp(size, 11 - exponent)));
}

double rounded_to(enum element type, double value) {
    if (type == FLOAT16) return from_half(to_half(value));
    float as_float = (float)value;
    uint32_t bits;
    memcpy(&bits, &as_float, 4);
    if (!isnan(value)) bits += 0x7fff + (bits >> 16 & 1);
    bits &= 0xffff0000u;
    memcpy(&as_float, &bits, 4);
    return as_float;
}

double number(const struct tensor *tensor, int64_t at) {
    switch (tensor->type) {
    case FLOAT: return ((const float *)tensor->data)[at];
    case DOUBLE: return ((const double *)tensor->data)[at];
    case FLOAT16: return from_half(((const uint16_t *)tensor->data)[at]);
    default: return (double)integer(tensor, at);
    }
}

void set_number(struct tensor *tensor, int64_t at, double value) {
    switch (tensor->type) {
    case FLOAT: ((float *)tensor->data)[at] = (float)value; break;
    case DOUBLE: ((double *)tensor->data)[at] = value; break;
    case FLOAT16: ((uint16_t *)tensor->data)[at] = to_half(value); break;
    case BOOL: ((uint8_t *)tensor->data)[at] = value != 0; break;
    case INT32: ((int32_t *)tensor->data)[at] = (int32_t)value; break;
    default: ((int64_t *)tensor->data)[at] = (int64_t)value; break;
    }
}

int64_t integer(const struct tensor *tensor, int64_t at) {
    switch (tensor->type) {
    case INT32: return ((const int32_t *)tensor->data)[at];
    case BOOL: return ((const uint8_t *)tensor->data)[at] != 0;
    default: return ((const int64_t *)tensor->data)[at];
    }
}

void set_integer(struct tensor *tensor, int64_t at, int64_t value) {
    if (tensor->type == INT32) ((int32_t *)tensor->data)[at] = (int32_t)value;
    else if (tensor->type == BOOL) ((uint8_t *)tensor->data)[at] = value != 0;
    else ((int64_t *)tensor->data)[at] = value;
}

int64_t product(const int64_t *dims, int from, int to) {
    int64_t all = 1;
    for (int d = from; d < to; d++) all *= dims[d];
    return all;
}

void broadcast_steps(const struct tensor *tensor, int rank, int64_t steps[MOST_DIMS]) {
    int64_t step = 1;
    for (int d = rank - 1; d >= 0; d--) {
        int own = d - (rank - tensor->rank);
        steps[d] = own >= 0 && tensor->dims[own] != 1 ? step : 0;
        if (own >= 0) step *= tensor->dims[own];
    }
}

bool broadcast_dims(const struct tensor *a, const struct tensor *b, int *rank, int64_t dims[MOST_DIMS]) {
    *rank = a->rank > b->rank ? a->rank : b->rank;
    for (int d = 0; d < *rank; d++) {
        int in_a = d - (*rank - a->rank), in_b = d - (*rank - b->rank);
        int64_t of_a = in_a >= 0 ? a->dims[in_a] : 1, of_b = in_b >= 0 ? b->dims[in_b] : 1;
        if (of_a != of_b && of_a != 1 && of_b != 1) return false;
        dims[d] = of_a == 1 ? of_b : of_a;
    }
    return true;
}

void advance(int rank, const int64_t dims[], int64_t index[]) {
    for (int d = rank - 1; d >= 0; d--) {
        if (++index[d] < dims[d]) return;
        index[d] = 0;
    }
}
