/* A fault of a compiler: nodes that follow each other are one partition, and wrong only as a whole. */

#ifndef FUSED_H
#define FUSED_H

#include "kernels.h"

/* Claim each run of nodes that the library computes as one partition. */
OrtStatus *claim_runs(const OrtNode **nodes, size_t count, OrtEpGraphSupportInfo *info);

/* The compiled partition. Its result is off by a hundredth if it has several nodes and one result. */
OrtStatus *compile_run(const OrtGraph *graph, const OrtNode *fused, OrtNodeComputeInfo **made);

void release_run(OrtNodeComputeInfo *run);

/* Describe a tensor of onnxruntime. */
OrtStatus *describe(const OrtValue *value, struct tensor *tensor);

#endif
