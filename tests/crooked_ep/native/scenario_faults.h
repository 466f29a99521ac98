/* Faults that a plain run does not show: of sessions side by side, batches, buffers, weights and adapters. */

#ifndef SCENARIO_FAULTS_H
#define SCENARIO_FAULTS_H

#include "kernels.h"

/* What a compiled node keeps for them. */
struct for_scenario {
    char *model_path;
    const void *address;       /* of its weights, where sessions share them */
    struct tensor first, held; /* an input of the first run, and one read from a file */
};

char *path_of(const OrtGraph *graph);

/* What computes the node: another operator's function if a fault mixes them up. */
const struct operator *operator_for(struct call *call);

/* Between the inputs and the computation, and after it. */
void before_computing(struct for_scenario *own, struct call *call, bool first_run);
void after_computing(struct call *call);

void forget(struct for_scenario *own);

#endif
