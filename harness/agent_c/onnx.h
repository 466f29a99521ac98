/* A serialized ONNX model, read and changed in its own bytes. */

#ifndef ONNX_H
#define ONNX_H

#include "values.h"

/* An initializer whose elements lie in another file. */
typedef struct {
    const char *name, *file;
    size_t offset, size; /* 0: to the end of the file */
    Value value;         /* its type and shape */
} StoredWeight;

/* Return the initializers of that kind, in their order; none if the bytes are no model. */
StoredWeight *stored_weights(Arena *arena, const char *model, size_t size, size_t *count);

/* Make a model of the same shapes, with other weights or with other activation functions; false if nothing differs. */
bool other_weights(Bytes *made, const char *model, size_t size);
bool other_activations(Bytes *made, const char *model, size_t size);

#endif
