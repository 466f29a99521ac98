/* The runtime, a provider with its options, and how its sessions are made. */

#ifndef SESSION_H
#define SESSION_H

#include "values.h"

/* Why a target cannot be used: a cause of the protocol, or the option that is refused. */
typedef struct {
    const char *cause, *option, *reason;
} Refusal;

/* What a session differs by from a plain one of its job. */
typedef struct {
    const Json *job;               /* NULL for the probe */
    const char *model;             /* path, or bytes with a size */
    size_t model_size;             /* 0 for a path */
    const char *const *entries;    /* further configuration: keys and values in turn, then NULL; or NULL */
    const char *option, *setting;  /* one more provider option; NULL for none */
    bool on_cpu;                   /* the CPU EP in place of the target's */
    OrtStatus *(*adjust)(OrtSessionOptions *, void *with); /* changes the options last; or NULL */
    void *with;
    const char *profile;           /* prefix of a profile's path; NULL for none */
    int least_threads;             /* within an operator; 0: as the job asks */
    int without;                   /* option that is left out, -2 for all, -1 for none */
} SessionPlan;

/* The provider with its options. */
enum { MOST_SETTINGS = 64 };
typedef struct {
    const char *chain[MOST_SETTINGS + 2], *keys[MOST_SETTINGS + 1], *values[MOST_SETTINGS + 1];
    size_t chain_size, option_count;
    const Json *entries;
    const OrtEpDevice *device; /* of a plugin; NULL without one */
} Target;
extern Target target;

extern OrtAllocator *ort_allocator;
extern OrtEnv *ort_env;

bool runtime_load(Arena *arena, const char *asked, Refusal *refusal);
void environment_put(Message *message, bool with_target);
void processor_put(Message *message);
bool target_open(Arena *arena, const Json *config, Refusal *refusal);
const Json *target_config(void);
const char *runtime_version(void);
const char *runtime_library(void);
void *runtime_symbol(const char *name);
bool target_probe(Arena *arena, Refusal *refusal);
const char *target_sickness(Arena *arena); /* NULL if it still computes */
void target_release(void);
void target_unload(void);
OrtStatus *target_unregister(void); /* the plugin's library */
OrtStatus *library_register(Arena *arena, const char *name, const char *path);
const char *plugin_library(void); /* NULL without one */
bool target_is(const char *provider); /* of the chain, in any spelling */

OrtSession *session_open(Arena *arena, const SessionPlan *plan, Trouble *trouble);
OrtSessionOptions *session_options(Arena *arena, const SessionPlan *plan, Trouble *trouble);
const char *input_name(Arena *arena, OrtSession *session, size_t index, Trouble *trouble); /* NULL if that fails */
bool records_assignment(void);

/* Make the empty sequence of an input's type. */
bool empty_sequence(OrtSession *session, const char *name, OrtValue **made, Trouble *trouble);

/* Entry of a session's configuration: where the weights of a model without a path are. */
#define WEIGHTS_FOLDER "session.model_external_initializers_file_folder_path"

const char *status_text(Arena *arena, OrtStatus *status, const char **kind); /* and release it */

#endif
