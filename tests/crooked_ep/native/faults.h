/* Faults on a switch: their names, and where each acts. The table is faults.def. */

#ifndef FAULTS_H
#define FAULTS_H

#include "api.h"

enum place {
    KERNEL, OUTPUT, TERMINATE, DYNAMIC_OPTIONS, PROFILING, CAPTURE, CONTEXT, COPY, LOAD, REGISTER, DEVICES, CREATE, CAPABILITY, COMPILE,
    LOAD_CONTEXT, RUN, RUN_END, RELEASE_NODES, RELEASE_EP, RELEASE_FACTORY, UNLOAD, REGISTRATION, UNREGISTER, COMPANY,
    INTERLEAVED, BATCH_SLOTS, BUFFERS, INITIALIZERS, ADAPTERS, MODEL_COMPILER, NPU_BUFFERS /* in the run of a scenario alone */
};

enum fault {
    FAULT_none,
#define FAULT(name, ...) FAULT_##name,
#include "faults.def"
#undef FAULT
    FAULT_unknown
};

/* The fault of this name; FAULT_unknown: there is none. An empty name, null and "none" are FAULT_none. */
enum fault fault_named(const char *name);

enum place place_of(enum fault fault);

/* Do what a fault does at a place; null unless a status is to be returned. */
OrtStatus *act(enum fault fault, enum place place);

/* The fault of CROOKED_EP_FAULT: of the library, and of sessions without the option. */
extern enum fault environment_fault;

/* The fault with which the process ends: that of the environment, or of the newest session. */
extern enum fault process_fault;

#endif
