#include "capture.h"

#include <stdlib.h>
#include <string.h>

void begin_capture(struct captures *captures, const OrtRunOptions *options) {
    const char *id = captures->enabled ? ORT(GetRunConfigEntry)(options, "gpu_graph_id") : NULL;
    captures->id = id ? atoi(id) : -1;
    captures->nodes = 0;
}

void record(struct captures *captures, const struct call *call) {
    if (captures->id < 0 || captures->nodes++) return;
    captures->now = *call;
    captures->now.context = NULL; /* its output is made */
}

/* Buffers between nodes are gone after a run, so that of several nodes is not captured. */
void end_capture(struct captures *captures) {
    if (captures->id < 0 || captures->nodes != 1 || is_captured(captures, captures->id)) return;
    for (int i = 0; i < MOST_CAPTURES; i++) {
        struct captured *one = &captures->made[i];
        if (one->made) continue;
        *one = (struct captured){.made = true, .id = captures->id, .call = captures->now};
        for (int j = 0; j < MOST_INPUTS; j++) {
            const struct tensor *x = &one->call.in[j];
            size_t bytes = x->data ? (size_t)x->count * element_size(x->type) : 0;
            if (x->data) one->copies[j] = memcpy(malloc(bytes + 1), x->data, bytes);
        }
        return;
    }
}

static struct captured *find(const struct captures *captures, int id) {
    for (int i = 0; i < MOST_CAPTURES; i++)
        if (captures->made[i].made && captures->made[i].id == id) return (struct captured *)&captures->made[i];
    return NULL;
}

bool is_captured(const struct captures *captures, int id) { return find(captures, id); }

OrtStatus *replay(struct captures *captures, int id, enum fault fault) {
    struct captured *one = find(captures, id);
    if (!one) return ORT(CreateStatus)(ORT_EP_FAIL, "crooked: no graph is captured under this id");
    struct call call = one->call;
    if (fault == FAULT_replay_of_first && captures->made[0].made)
        memcpy(call.in, captures->made[0].call.in, sizeof call.in);
    for (int i = 0; i < MOST_INPUTS && fault == FAULT_replay_keeps_inputs; i++) call.in[i].data = one->copies[i];
    call.node->operator->compute(&call);
    return NULL;
}

void release_captured(struct captures *captures, int id) {
    struct captured *one = find(captures, id);
    if (!one) return;
    for (int i = 0; i < MOST_INPUTS; i++) free(one->copies[i]);
    one->made = false;
}

void release_all_captured(struct captures *captures) {
    for (int i = 0; i < MOST_CAPTURES; i++)
        if (captures->made[i].made) release_captured(captures, captures->made[i].id);
}
