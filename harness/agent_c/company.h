/* Other models of the same shapes beside a model, made from it: sessions whose kernels or weights a provider may mix up. */

#ifndef COMPANY_H
#define COMPANY_H

#include "job.h"

typedef struct {
    const char *what; /* how it differs */
    char *model;
    size_t size;
    SessionPlan plan; /* of its sessions */
    Value *expected; /* what the CPU EP computes with the first data set */
} Companion;

enum { MOST_COMPANIONS = 2 };

/* Make those that the CPU EP runs. */
size_t companions_of(Job *job, const Feeds *feeds, Companion made[MOST_COMPANIONS]);
bool share_allocators(Watch *watch); /* run the model beside them, in memory that their sessions share */
OrtSession *companion_open(Job *job, const Companion *companion); /* on the target; NULL if the job has failed */

#endif
