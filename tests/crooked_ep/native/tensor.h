/* Tensors in host memory: element types, shapes, and reading and writing one element. */

#ifndef TENSOR_H
#define TENSOR_H

#include "api.h"

#define MOST_DIMS 8

struct tensor {
    enum element type;
    int rank;
    int64_t dims[MOST_DIMS];
    int64_t count;
    void *data; /* null: an optional input that is left out */
};

/* Bytes of an element; 0: text and other types that are not plain numbers. */
size_t element_size(enum element type);

/* Element `at` as a number. `set_number` rounds to nearest, ties to even, and converts to integers as C does. */
double number(const struct tensor *tensor, int64_t at);
void set_number(struct tensor *tensor, int64_t at, double value);
int64_t integer(const struct tensor *tensor, int64_t at); /* of INT32, INT64 and BOOL */
void set_integer(struct tensor *tensor, int64_t at, int64_t value);

bool is_float(enum element type);

/* Round to the nearest value of float16 or bfloat16, ties to even. */
double rounded_to(enum element type, double value);

/* Steps, in elements, of a tensor that is broadcast to a shape: 0 where it has length 1. */
void broadcast_steps(const struct tensor *tensor, int rank, int64_t steps[MOST_DIMS]);

/* The shape that two shapes broadcast to; false: they do not. */
bool broadcast_dims(const struct tensor *a, const struct tensor *b, int *rank, int64_t dims[MOST_DIMS]);

/* Go to the next index of a shape, last dimension first. */
void advance(int rank, const int64_t dims[], int64_t index[]);

int64_t product(const int64_t *dims, int from, int to);

#endif
