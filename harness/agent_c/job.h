/* One job: its model, its session, its runs, and what they showed. */

#ifndef JOB_H
#define JOB_H

#include "session.h"
#include "stream.h"

/* What a session has run: groups of nodes that one provider got. */
typedef struct Node Node;
struct Node {
    const char *provider, *name, *op;
    bool own; /* on a provider of the target */
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
    Lock *landing; /* of runs with RunAsync; NULL for Run */
    OrtRunOptions *options; /* of runs; NULL for none */

    /* The result. */
    const char *status, *kind, *cause, *error;
    double create_ms, first_run_ms;
    Value **ran; /* outputs of each data set */
    size_t sets, sets_ran;
    Value *other, *second;
    const char *other_error;
    Message facts; /* of the scenario, without their braces */
    Bytes repeats, latency; /* JSON */
    Node *nodes;
    size_t groups;
    const char *source; /* NULL: nothing shows it */
    const Json *served; /* what a fresh process tells in place of this one; NULL for none */
};

typedef struct {
    const char **names;
    Value *values;
    size_t count;
} Feeds;

void job_serve(Received *received);

/* A fact of the scenario: its key and value as JSON; or a text, texts, a number that may be infinite. */
#define fact(job, ...)                                          \
    do {                                                        \
        if ((job)->facts.json.size) put(&(job)->facts, ",");    \
        put_format(&(job)->facts, __VA_ARGS__);                 \
    } while (0)
void fact_text(Job *job, const char *key, const char *text);
void fact_texts(Job *job, const char *key, const char *const *texts, size_t count);
void fact_number(Job *job, const char *key, double number);

/* Steps, each false if the job has failed. */
bool job_fail(Job *job, const char *status, const char *kind, const char *error);
bool job_trouble(Job *job, Trouble *trouble);
bool job_good(Job *job, OrtStatus *status); /* and release it */
void job_enter(Job *job, const char *phase);
void job_further(Job *job); /* report a further run, unless the latest report is recent */
bool job_blame(Job *job, const char *kind, const char *where); /* an error is that of a step of the scenario */
OrtSession *job_open(Job *job, const SessionPlan *plan); /* one more session; NULL if the job has failed */
bool job_create(Job *job);
void job_close(Job *job);
bool job_feeds(Job *job, const Json *data_set, Feeds *feeds);
bool job_run(Job *job, Arena *arena, const Feeds *feeds, const char *const *names, size_t count, Value **outputs);
bool job_run_in(Job *job, OrtSession *session, Arena *arena, const Feeds *feeds, Value **outputs); /* in another session */
/* The same in steps, for runs that are timed or repeated: the inputs in onnxruntime's form are released by the caller. */
bool job_prepare(Job *job, Arena *arena, const Feeds *feeds, OrtValue ***in);
bool job_step(Job *job, const Feeds *feeds, OrtValue **in, const char *const *names, size_t count, OrtValue **out);
bool job_collect(Job *job, Arena *arena, OrtValue **out, size_t count, Value **outputs); /* and release them */
void job_release(OrtValue **held, size_t count);
bool job_run_sets(Job *job);
bool job_conclude(Job *job);

/* Outputs of further runs beside those of the first one. */
typedef struct {
    Value *first;
    Value *furthest; /* NULL: all have the same bits */
    double most, apart; /* the largest difference, and that of the furthest as a share of its largest value */
    long runs, differing;
    struct Digest *digests; /* of the outputs with other bits, and of the first ones */
} Tally;

void tally_report(Job *job, const Tally *tally, long sessions); /* of the first data set */
bool tally_add(Job *job, Tally *tally, Arena *arena, Value *outputs); /* whether they are the furthest, and the arena is the job's */

/* Results of a scenario beside those of a run alone, for each data set, and behind them for other inputs, if there are any. */
typedef struct {
    Feeds feeds;
    Tally tally;
} Seen;
typedef struct {
    Job *job;
    size_t total; /* data sets, and the other inputs */
    Seen *seen;
    double wanders;   /* how far a second run alone is off */
    const char *only; /* where the furthest result came about */
} Watch;

bool watch_begin(Watch *watch, Job *job); /* run all alone, in the job's session */
bool watch_others(Watch *watch); /* add the other inputs, and run them alone */
bool watch_run(Watch *watch, size_t set, const char *where);
bool watch_all(Watch *watch, OrtSession *session, const char *where); /* all data sets, in another session */
void watch_look(Watch *watch, size_t set, Arena *arena, Value *outputs, const char *where);  /* and free the arena */
bool watch_end(Watch *watch, const char *kind, const char *where); /* the rest of the facts, and of the job */
bool watch_conclude(Watch *watch, const char *equal); /* the same where there are no other inputs */

bool scenario_play(Job *job, const char *name);
bool interleaved(Job *job), concurrent(Job *job), async_runs(Job *job), io_binding(Job *job), buffers(Job *job), graph_capture(Job *job);
bool initializers(Job *job), adapters(Job *job), ort_format(Job *job), ep_context(Job *job), compile(Job *job), lifecycle(Job *job);
int life_serve(const Json *message); /* in the process that `lifecycle` watches: its exit code */
bool terminate(Job *job), profiling(Job *job), dynamic_options(Job *job);
bool repeat_runs(Job *job, const Feeds *feeds);
bool time_runs(Job *job, const Feeds *feeds);
bool time_steps(Job *job, bool (*step)(void *), void *with, const char *io); /* as the job asks for it */
bool place_nodes(Job *job);
void result_send(const Job *job);
bool end_profile(Job *job, OrtSession *session);
void placement_put(Message *message, const Job *job);
bool model_fetch(Job *job); /* a model that comes in pieces */
bool stays_inside(const char *name, size_t length); /* of its folder: relative, with `/`, and no part of it leads up */
char *path_in(Arena *arena, const char *folder, const char *name); /* with its folders made; NULL if that fails */
const char *scratch_begin(Job *job); /* a folder for files of a scenario; NULL if the job has failed */
void scratch_end(Job *job); /* and all that is in it */
bool job_lacks(Job *job, const char *what); /* the job has failed: this onnxruntime has no such part of the API */

#endif
