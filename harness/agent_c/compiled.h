/* Compiled models: files with EPContext nodes, as onnxruntime's EP context design describes them. */

#ifndef COMPILED_H
#define COMPILED_H

#include "child.h"

size_t contexts_in(const char *path); /* EPContext nodes in a model; 0 if there is no such file */
size_t bytes_in(const char *folder);
bool nothing_compiled(Job *job); /* the job has failed: the provider compiles none */
const char *session_refusal(Job *job, const SessionPlan *plan); /* why no session can be made; NULL if one can */
bool ask_compatibility(Job *job, const char *path);

#endif
