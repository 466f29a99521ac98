/* The execution provider: one for each session. */

#ifndef EP_H
#define EP_H

#include "api.h"
#include "faults.h"

#define EP_NAME "CrookedExecutionProvider"

extern int registrations; /* of this library in this process, this one included */

/* Make the provider of a session; null `*made` with a status: its options are refused. */
OrtStatus *make_ep(const OrtSessionOptions *options, OrtEp **made);
void release_ep(OrtEp *ep);

#endif
