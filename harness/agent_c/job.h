/* One job: its model, its session, its runs, and what they showed. */

#ifndef JOB_H
#define JOB_H

#include "session.h"
#include "stream.h"

/* What a session has run: groups of nodes that one provider got. */
typedef struct Node Node;
struct Node {
    const char *provider, *name, *op;
    size_t group;
    Node *next;
};

typedef struct Job Job;
struct Job {
    Arena arena;
    int64_t id;
    const Json *message; /* the job as it came */
    SessionPlan plan;
    OrtSession *session;
    const char **names; /* of the outputs */
    size_t outputs;
    const char *phase;
    double reported_ms, run_ms;
    bool is_profiled;

    /* The result. */
    const char *status, *kind, *error;
    double create_ms, first_run_ms;
    Value **ran; /* outputs of each data set */
    size_t sets, sets_ran;
    Value *other, *second;
    const char *other_error;
    Bytes facts, repeats, latency; /* JSON */
    Node *nodes;
    size_t groups;
    const char *source; /* NULL: nothing shows it */
};

typedef struct {
    const char **names;
    Value *values;
    size_t count;
} Feeds;

void job_serve(Received *received);

/* Steps, each false if the job has failed. */
bool job_fail(Job *job, const char *status, const char *kind, const char *error);
bool job_trouble(Job *job, Trouble *trouble);
void job_enter(Job *job, const char *phase);
void job_further(Job *job); /* report a further run, unless the latest report is recent */
bool job_create(Job *job);
void job_close(Job *job);
bool job_feeds(Job *job, const Json *data_set, Feeds *feeds);
bool job_run(Job *job, Arena *arena, const Feeds *feeds, const char *const *names, size_t count, Value **outputs);
/* The same in steps, for runs that are timed or repeated: the inputs in onnxruntime's form are released by the caller. */
bool job_prepare(Job *job, Arena *arena, const Feeds *feeds, OrtValue ***in);
bool job_step(Job *job, const Feeds *feeds, OrtValue **in, const char *const *names, size_t count, OrtValue **out);
bool job_collect(Job *job, Arena *arena, OrtValue **out, size_t count, Value **outputs); /* and release them */
void job_release(OrtValue **held, size_t count);
bool job_run_sets(Job *job);
bool job_conclude(Job *job);

bool scenario_play(Job *job, const char *name);
bool repeat_runs(Job *job, const Feeds *feeds);
bool time_runs(Job *job, const Feeds *feeds);
bool place_nodes(Job *job);
bool end_profile(Job *job, OrtSession *session);
void placement_put(Message *message, const Job *job);
bool model_fetch(Job *job); /* a model that comes in pieces */

#endif
