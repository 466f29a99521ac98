/* Which provider ran each node: from the session's own record, or from a profile. */

#include "job.h"

#include <string.h>

enum { MOST_NAMED = 20000 };

static void add_node(Job *job, const char *provider, const char *name, const char *op, size_t group) {
    Node *node = arena_take(&job->arena, sizeof *node);
    *node = (Node){provider, name ? name : "", op, target_is(provider), group, job->nodes};
    job->nodes = node;
}

static bool assigned(Job *job) {
    const OrtSubgraph *const *graphs = NULL;
    size_t count = 0;
    if (!job_good(job, ORT(Session_GetEpGraphAssignmentInfo)(job->session, &graphs, &count))) return false;
    for (size_t group = 0; group < count; group++) {
        const OrtAssignedNode *const *nodes = NULL;
        const char *provider = NULL, *name = NULL, *op = NULL;
        size_t size = 0;
        if (!job_good(job, ORT(EpAssignedSubgraph_GetEpName)(graphs[group], &provider))) return false;
        if (!job_good(job, ORT(EpAssignedSubgraph_GetNodes)(graphs[group], &nodes, &size))) return false;
        for (size_t index = 0; index < size; index++) {
            if (!job_good(job, ORT(EpAssignedNode_GetName)(nodes[index], &name))) return false;
            if (!job_good(job, ORT(EpAssignedNode_GetOperatorType)(nodes[index], &op))) return false;
            add_node(job, arena_text(&job->arena, provider, strlen(provider)), arena_text(&job->arena, name, strlen(name)),
                     arena_text(&job->arena, op, strlen(op)), group);
        }
    }
    job->groups = count;
    if (count) job->source = "assignment";
    return true;
}

static bool seen(const Job *job, const char *name) {
    for (const Node *node = job->nodes; node; node = node->next)
        if (!strcmp(node->name, name)) return true;
    return false;
}

/* Read the nodes of a profile: an event for each run of a node; copies between devices are no nodes. */
static void read_profile(Job *job, const char *text, size_t size) {
    const char *why = NULL;
    const Json *events = json_read(&job->arena, text, size, "", 0, &why);
    for (const Json *event = json_item(events, 0); event; event = event->next) {
        const Json *arguments = json_get(event, "args");
        const char *provider = json_text(json_get(arguments, "provider"), ""), *op = json_text(json_get(arguments, "op_name"), "");
        const char *name = json_text(json_get(event, "name"), "");
        if (strcmp(json_text(json_get(event, "cat"), ""), "Node") || !*provider || !strncmp(op, "Memcpy", 6)) continue;
        const char *end = strstr(name, "_kernel_time");
        name = arena_text(&job->arena, name, end ? (size_t)(end - name) : strlen(name));
        if (!seen(job, name)) add_node(job, provider, name, op, job->groups++);
    }
    if (events) job->source = "profile";
}

bool end_profile(Job *job, OrtSession *session) {
    char *path = NULL;
    const char *text = NULL;
    size_t size = 0;
    if (!job_good(job, ORT(SessionEndProfiling)(session, ort_allocator, &path))) return false;
    if (file_read(&job->arena, path, &text, &size)) read_profile(job, text, size);
    file_delete(path);
    return job_good(job, ORT(AllocatorFree)(ort_allocator, path));
}

/* Make one more session, which writes a profile, and run it once. */
static bool run_profiled(Job *job) {
    const Json *first = json_item(json_get(job->message, "data_sets"), 0);
    OrtSession *judged = job->session;
    Trouble trouble = {0};
    Feeds feeds;
    Value *outputs = NULL;
    if (!first) return true;
    job_enter(job, "create");
    job->plan.profile = "profile";
    job->session = session_open(&job->arena, &job->plan, &trouble);
    job->plan.profile = NULL;
    bool fine = job->session || job_trouble(job, &trouble);
    if (fine) job_enter(job, "run");
    fine = fine && job_feeds(job, first, &feeds) && job_run(job, &job->arena, &feeds, job->names, job->outputs, &outputs) &&
           end_profile(job, job->session);
    job_close(job);
    job->session = judged;
    return fine;
}

bool place_nodes(Job *job) {
    if (records_assignment() && !assigned(job)) return false;
    return job->source || run_profiled(job);
}

/* Write operator type -> nodes, of a provider, or of all that are the target's or none of them. */
static void put_ops(Message *message, const Job *job, const char *provider, bool own) {
    const char *comma = "";
    put(message, "{");
    for (const Node *node = job->nodes, *other; node; node = node->next) {
        size_t count = 0;
        for (other = job->nodes; other; other = other->next) {
            if (strcmp(other->op, node->op) || (provider ? strcmp(other->provider, provider) != 0 : other->own != own)) continue;
            if (!count++ && other != node) break; /* it was counted before, or is none of these */
        }
        if (other || !count) continue;
        put_then(message, comma, node->op);
        put_format(message, ":%zu", count);
        comma = ",";
    }
    put(message, "}");
}

static void put_named(Message *message, const Job *job, const char *key, bool own) {
    bool some = false;
    put_format(message, ",\"%s\":[", key);
    for (const Node *node = job->nodes; node; node = node->next) {
        if (node->own != own) continue;
        put_then(message, some ? ",[" : "[", node->name);
        some = true;
        put_then(message, ",", node->op);
        put(message, "]");
    }
    put(message, "]");
}

void placement_put(Message *message, const Job *job) {
    size_t own = 0, rest = 0, partitions = 0, last = (size_t)-1;
    size_t others = 0;
    for (const Node *node = job->nodes; node; node = node->next) {
        own += node->own;
        rest += !node->own;
        partitions += node->own && node->group != last;
        last = node->group;
    }
    put_format(message, "{\"ep_nodes\":%zu,\"cpu_nodes\":%zu,\"partitions\":%zu,\"source\":\"%s\",\"ep_ops\":", own, rest,
               partitions, job->source ? job->source : "unknown");
    put_ops(message, job, NULL, true);
    put(message, ",\"cpu_ops\":");
    put_ops(message, job, NULL, false);
    if (own && rest && own + rest <= MOST_NAMED) {
        put_named(message, job, "ep_named", true);
        put_named(message, job, "cpu_named", false);
    }
    for (size_t index = 0; index < target.chain_size; index++) others += strcmp(target.chain[index], CPU_PROVIDER) != 0;
    for (int part = 0; others > 1 && part < 2; part++) {
        put(message, part ? "},\"providers\":{" : ",\"chain_ops\":{");
        const char *comma = "";
        for (size_t index = 0, count = 0; index < target.chain_size; index++, count = 0) {
            if (!strcmp(target.chain[index], CPU_PROVIDER)) continue;
            put_then(message, comma, target.chain[index]);
            put(message, ":");
            comma = ",";
            for (const Node *node = job->nodes; node; node = node->next) count += !strcmp(node->provider, target.chain[index]);
            if (part) put_format(message, "%zu", count);
            else put_ops(message, job, target.chain[index], true);
        }
    }
    if (others > 1) put_format(message, ",\"" CPU_PROVIDER "\":%zu}", rest);
    put(message, "}");
}
