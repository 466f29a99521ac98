/* A node of a graph: its operator, attributes and element types, copied while the graph is there. */

#ifndef NODE_H
#define NODE_H

#include "api.h"
#include "tensor.h"

#define MOST_INPUTS 32

struct call;
struct operator;

struct ints {
    int count;
    int64_t at[2 * MOST_DIMS];
};

struct node {
    const struct operator *operator;
    int since; /* opset in which this version of the operator begins */
    int inputs;
    enum element types[MOST_INPUTS]; /* 0: left out */
    int ranks[MOST_INPUTS];          /* as declared; 0 also where no shape is declared */
    char names[MOST_INPUTS][256];
    int places[MOST_INPUTS];    /* among the inputs of the fused node that is compiled; -1: left out */
    bool constant[MOST_INPUTS]; /* a weight of the model */
    enum element output_type;
    int outputs;

    bool has_axis;
    int64_t axis, to, group, trans_a, trans_b, keepdims, noop_with_empty_axes, allowzero, ceil_mode;
    float alpha, beta;
    struct ints pads, strides, dilations, kernel_shape, perm, axes;
    char auto_pad[16];
};

/* Read a node; false: the library does not compute it. */
bool read_node(const OrtNode *from, struct node *node);

#endif
