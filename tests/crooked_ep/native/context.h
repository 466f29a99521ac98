/* Compiled models: a node as bytes inside an EPContext node, or in a file beside the model. */

#ifndef CONTEXT_H
#define CONTEXT_H

#include "faults.h"
#include "node.h"

/* What a session says about compiled models. */
struct context_options {
    bool enabled, embedded;
    char path[4096]; /* where the compiled model is written or, loaded from memory, lies; may be empty */
    WriteContext write; /* of the application, in place of files; null for files */
    ReadContext read;
    void *write_state, *read_state;
};

/* Read one entry of a session, without its "ep.context_". */
void read_context_option(const char *key, const char *value, struct context_options *options);

/* Read the application's callbacks, if this runtime has them. */
OrtStatus *read_callbacks(const OrtSessionOptions *session, struct context_options *options);

/* Whether a node is a compiled one of this library. */
bool is_context(const OrtNode *node);

/* Make the EPContext node that stands for a fused one; `number` counts the nodes that this session has written. */
OrtStatus *write_context(const struct node *node, const OrtGraph *graph, const OrtNode *fused, int number,
                         const struct context_options *options, enum fault fault, OrtNode **made);

/* Read the node that an EPContext node stands for. */
OrtStatus *read_context(const OrtGraph *graph, const OrtNode *from, const struct context_options *options,
                        enum fault fault, struct node *node);

/* The text by which onnxruntime asks whether a compiled model fits, and the answer. */
const char *compatibility_info(void);
int compatibility_of(const char *info);

/* The version of this library: CROOKED_EP_VERSION, or "0.1.0". Compiled models of another 0.1 are slower,
 * those of any other are refused. */
const char *library_version(void);

#endif
