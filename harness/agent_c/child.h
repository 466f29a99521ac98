/* Another agent on the same target, in a process of its own, which this one has started: the same program and messages. */

#ifndef CHILD_H
#define CHILD_H

#include "job.h"

typedef struct Child Child;

Child *child_start(Job *job); /* NULL if the job has failed: this system starts no process */
void child_send(Child *child, Message *message); /* and free it */
const Json *child_receive(Child *child); /* NULL at its end; it lasts as long as the job */
void child_limit(Child *child, int ms); /* kill it after so long */
int64_t child_end(Child *child); /* wait for its end */

/* Write a job for another model, with other fields, and without its scenario: `changes` are keys and JSON in turn, then NULL. */
void put_job(Message *message, const Json *from, const char *model, const char *const *changes);

/* What a child made of a job. */
typedef struct {
    const char *status, *phase, *kind, *message;
    double create_ms;
    Value **outputs, *second; /* of each data set, and those of `second`, if there are any */
    const Json *result;
    const char *died; /* how, where it may; NULL if it gave a result */
} Served;

/* Let a child serve such a job. If it dies, this process ends in the same way, unless `died` is to tell it. */
bool child_serve(Job *job, const char *model, const char *const *changes, bool may_die, Served *served);

#endif
