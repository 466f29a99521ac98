/* Inputs and outputs of a session, bound in the memory that the session wants for each. */

#ifndef BIND_H
#define BIND_H

#include "job.h"

/* Where an input or output is to lie. */
typedef struct {
    const char *name, *on; /* "cpu", or the name of a device's memory */
    OrtAllocator *allocator; /* of the device; NULL for the CPU's memory */
} Place;

typedef struct {
    Job *job;
    OrtSession *session;
    OrtIoBinding *binding;
    OrtRunOptions *options; /* NULL for none */
    Place *in, *out;
    size_t ins;
    OrtValue **fed; /* the inputs that are bound */
    Feeds feeds;
    const char **in_on, **out_on; /* facts: where each one lay */
    size_t to_device, to_bytes, from_device, from_bytes;
    const char *reason; /* why a value that could be on a device is not; NULL if there is none */
} Bound;

bool bound_open(Bound *bound, Job *job, OrtSession *session); /* false also for values that are not bound */
bool bound_feed(Bound *bound, const Feeds *feeds); /* bind copies of these inputs */
bool bound_refill(Bound *bound, const Feeds *feeds); /* write these into the same buffers */
bool bound_to_places(Bound *bound); /* onnxruntime makes each output where it is to lie */
bool bound_to_values(Bound *bound, OrtValue *const *values);
bool bound_run(Bound *bound); /* and wait until the device has finished */
bool bound_take(Bound *bound, Arena *arena, Value **outputs); /* of the last run */
void bound_close(Bound *bound);

OrtValue *place_value(Job *job, Arena *arena, const Place *place, const Value *content); /* NULL if the job has failed */
bool value_read_back(Job *job, Arena *arena, const OrtValue *from, Value *value, const char **on); /* from wherever it lies */

#endif
