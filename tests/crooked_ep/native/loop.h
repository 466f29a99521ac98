/* Faults that a loop shows: it is computed as a whole, or what follows a run that was ended early is wrong. */

#ifndef LOOP_H
#define LOOP_H

#include "ep.h"

/* Whether a node is claimed for the fault that computes a whole Loop. */
bool claims_loop(enum fault fault, const OrtNode *node);

/* The compiled Loop: as often as the input says, it adds up the first two inputs of floats. */
OrtStatus *compile_loop(const OrtNode *fused, OrtNodeComputeInfo **made);

/* Count a node that was computed; at the end of a run its nodes are counted afresh. */
void count_node(void);
void end_counting(void);

/* Whether a run has ended in the middle: loops of these tests have powers of two as lengths. */
bool was_cut(void);

#endif
