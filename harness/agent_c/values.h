/* Values: from the form of messages to onnxruntime's, and back. */

#ifndef VALUES_H
#define VALUES_H

#include "json.h"
#include "ort.h"

typedef enum { NO_VALUE, TENSOR_VALUE, SEQUENCE_VALUE, MAP_VALUE } ValueKind;

/* A value in the agent's own memory. */
typedef struct Value Value;
struct Value {
    ValueKind kind;
    int type; /* ONNX's number of the element type */
    size_t rank, size, count; /* bytes of the elements, or the number of texts; items of a sequence */
    int64_t *shape;
    void *data;
    Piece *texts;
    Value *items; /* of a sequence; keys and values of a map */
};

/* What became of a step: NULL, or a reason. */
typedef struct {
    const char *unfeedable; /* the API cannot take or return it */
    OrtStatus *status;      /* an error of onnxruntime */
} Trouble;

int element_bits(int type); /* 0 for texts */
char element_kind(int type); /* numpy's; 0 where it has no such type */
void learn_numbers(OrtAllocator *allocator); /* how the runtime numbers its newest element types */
bool value_size(Value *value); /* set the bytes of a tensor of numbers by its type and shape; false if it is none */
bool value_read(Arena *arena, const Json *wire, Value *value, Trouble *trouble);
bool value_feed(Arena *arena, const Value *value, OrtAllocator *allocator, OrtValue **made, Trouble *trouble);
bool tensor_about(Arena *arena, const OrtValue *from, Value *value, Trouble *trouble); /* its type, shape and size */
bool value_room(const Value *like, OrtAllocator *allocator, OrtValue **made, Trouble *trouble); /* a tensor without content */
bool value_over(void *data, const Value *like, OrtValue **made, Trouble *trouble); /* a tensor over memory of the caller */
bool value_take(Arena *arena, const OrtValue *from, OrtAllocator *allocator, Value *value, Trouble *trouble);
void value_put(Message *message, const Value *value);

bool same_values(const Value *one, const Value *other, size_t count);
double values_apart(const Value *one, const Value *other, size_t count, bool relative); /* infinite if no number says */
void values_digest(const Value *values, size_t count, char hex[65]);

/* Make the other inputs: elements in reverse order; false if nothing changes. */
bool reversed_values(Arena *arena, const Value *from, size_t count, Value *to);
/* The same for inputs whose results may differ little: floating matrices and beyond, smaller than they were. */
bool faded_values(Arena *arena, const Value *from, size_t count, Value *to);

#endif
