/* The profiler of sessions: one kernel event for each node that is computed. From onnxruntime 1.25 on. */

#ifndef PROFILER_H
#define PROFILER_H

#include "ep.h"

enum { PROFILER_VERSION = 25 };

/* Make the profiler of a session; onnxruntime releases it. */
OrtStatus *create_profiler(OrtEp *ep, struct OrtEpProfilerImpl **made);

/* Now, for the start of an event. */
int64_t now_ns(void);

/* Add an event that began then and ends now to the profile of a session, if it has one. */
void add_event(const OrtEp *ep, enum fault fault, const char *name, int64_t began_ns);

#endif
