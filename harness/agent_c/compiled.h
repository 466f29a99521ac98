/* Compiled models: files with EPContext nodes, as onnxruntime's EP context design describes them. */

#ifndef COMPILED_H
#define COMPILED_H

#include "child.h"

size_t contexts_in(const char *path); /* EPContext nodes in a model; 0 if there is no such file */
size_t bytes_in(const char *folder);
bool nothing_compiled(Job *job); /* the job has failed: the provider compiles none */
const char *session_refusal(Job *job, const SessionPlan *plan); /* why no session can be made; NULL if one can */
bool ask_compatibility(Job *job, const char *path);

/* How a model is compiled: from a file or bytes, to a file, bytes or a callback, with its compiled parts inside or beside. */
typedef struct {
    const char *source, *sink;
    bool embedded;
    const char *more; /* words, after those of the others */
    OrtStatus *(*prepare)(OrtCompilation *, void *with); /* or NULL */
    void *with;
} Way;

/* A model that is compiled in one way after the other. */
enum { MOST_WAYS = 6, WAY_FIGURES = 5, LOAD_MS = WAY_FIGURES - 1 };
typedef struct {
    Job *job;
    Watch watch;
    const char *scratch, *last; /* the folder, and the last result */
    const char *ways[MOST_WAYS], *figures[WAY_FIGURES]; /* of the ways that are done */
    size_t done;
} Compiling;

/* Compile a copy of the model beside the folder `installed` in `base`, move the result into it, and delete the copy. Returns the
 * words of the way; `error` is onnxruntime's, if it is not compiled, and NULL otherwise. NULL: the job has failed. */
const char *compile_model(Compiling *all, const Way *way, const char *base, double figures[WAY_FIGURES], const char **error);
bool load_compiled(Compiling *all, const char *path, const char *words, const char *const *changes, Served *served);
const char *became(Compiling *all, const char *path, const char *const *changes); /* of a changed one; NULL if the job has failed */
void note_way(Compiling *all, const char *words, const double figures[WAY_FIGURES]);
bool blame_compiled(Job *job, const char *words);
extern const char LOADS_SAME[];

bool play_callbacks(Compiling *all);
bool run_from_callback(Job *job, const Json *settings); /* in a fresh process */
#define CONTEXT_DATA "context_data" /* setting of the scenario there */

#endif
