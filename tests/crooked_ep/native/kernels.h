/* The operators: which nodes are claimed, and plain loops that compute them. */

#ifndef KERNELS_H
#define KERNELS_H

#include "faults.h"
#include "node.h"

enum { INSIDE = -1 };

/* One computation of a node. */
struct call {
    const struct node *node;
    enum fault fault;
    struct tensor in[MOST_INPUTS];
    struct tensor out;
    double last_before; /* the last element of the output's buffer before it is written */
    OrtKernelContext *context;
    int output; /* its place among those of the fused node; INSIDE: memory of our own, which the caller frees */
    const char *error; /* what is wrong with the inputs, if anything */
};

struct operator {
    const char *name;
    bool (*claims)(const struct node *);
    void (*compute)(struct call *);
};

/* Whether a fault is switched on, for the one call in scope. */
#define CROOKED(name) (call->fault == FAULT_##name)

/* Null: not one of this library's. */
const struct operator *find_operator(const char *name);

/* Have onnxruntime allocate the output, `call->out`; false: it cannot, or nothing reads the output. */
bool make_output(struct call *call, enum element type, int rank, const int64_t *dims);

#endif
