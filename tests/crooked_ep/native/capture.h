/* Graph capture: what a run of one node computed is recorded under an id, and replayed in the same buffers.
 *
 * onnxruntime asks before each run whether its id is captured, and then replays instead of running. */

#ifndef CAPTURE_H
#define CAPTURE_H

#include "kernels.h"

#define MOST_CAPTURES 8

enum { CAPTURE_VERSION = 27 }; /* the first release of onnxruntime with ReleaseCapturedGraph */

struct captures {
    bool enabled;
    int id; /* of the run that goes on; -1: it is not captured */
    int nodes; /* that it has computed */
    struct call now;
    struct captured {
        bool made;
        int id;
        struct call call;
        void *copies[MOST_INPUTS]; /* of the inputs, as they were */
    } made[MOST_CAPTURES];
};

void begin_capture(struct captures *captures, const OrtRunOptions *options);
void record(struct captures *captures, const struct call *call);
void end_capture(struct captures *captures);

bool is_captured(const struct captures *captures, int id);
OrtStatus *replay(struct captures *captures, int id, enum fault fault);
void release_captured(struct captures *captures, int id);
void release_all_captured(struct captures *captures);

#endif
