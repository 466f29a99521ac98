/* The result of a job, as a message. */

#include "job.h"

#include <string.h>

static void put_values(Message *message, const Value *values, size_t count) {
    put(message, "[");
    for (size_t index = 0; index < count; index++) {
        if (index) put(message, ",");
        value_put(message, &values[index]);
    }
    put(message, "]");
}

static void put_providers(Message *message, const char *key) {
    const char *all[MOST_SETTINGS + 1];
    size_t count = target.chain_size;
    memcpy(all, target.chain, count * sizeof *all);
    if (strcmp(all[count - 1], CPU_PROVIDER)) all[count++] = CPU_PROVIDER; /* onnxruntime adds it */
    put_texts(message, key, all, count);
}

static void put_part(Message *message, const char *key, const Bytes *json) {
    if (!json->size) return;
    put_format(message, ",\"%s\":", key);
    bytes_add(&message->json, json->at, json->size);
}

/* Pass on what a fresh process tells: all but what this one tells of itself. */
static void put_served(Message *message, const Json *result) {
    static const char *const own[] = {"status", "phase", "output", "timings_ms", "scenario"};
    for (const Json *field = result->first; field; field = field->next) {
        bool is_own = false;
        for (size_t index = 0; index < sizeof own / sizeof *own; index++) is_own |= !strcmp(field->key, own[index]);
        if (is_own) continue;
        put_then(message, ",", field->key);
        put(message, ":");
        put_json(message, field);
    }
}

void result_send(const Job *job) {
    Message message = {0};
    Bytes printed = {0};
    printed_take(&printed, true);
    put_format(&message, "[\"result\",%lld,{\"status\":\"%s\",\"phase\":\"%s\",\"output\":", (long long)job->id, job->status, job->phase);
    put_sized(&message, printed.at ? printed.at : "", printed.size);
    bytes_free(&printed);
    put(&message, ",\"timings_ms\":{");
    if (job->create_ms >= 0) put_format(&message, "\"create\":%.4f", job->create_ms);
    if (job->first_run_ms >= 0) put_format(&message, ",\"first_run\":%.4f", job->first_run_ms);
    put(&message, "}");
    if (job->error) put_then(&message, ",\"message\":", *job->error ? job->error : "no reason");
    if (job->kind) put_then(&message, ",\"kind\":", job->kind);
    if (job->cause) put_then(&message, ",\"cause\":", job->cause);
    if (job->served) put_served(&message, job->served);
    else if (job->names) {
        put_texts(&message, ",\"names\":", job->names, job->outputs);
        put_providers(&message, ",\"providers\":");
    }
    if (job->facts.json.size) {
        put(&message, ",\"scenario\":{");
        bytes_add(&message.json, job->facts.json.at, job->facts.json.size);
        put(&message, "}");
    }
    if (!strcmp(job->status, "ok") && !job->served) {
        put_providers(&message, ",\"providers_after\":");
        put(&message, ",\"outputs\":[");
        for (size_t index = 0; index < job->sets_ran; index++) {
            if (index) put(&message, ",");
            put_values(&message, job->ran[index], job->outputs);
        }
        put(&message, "]");
        if (job->other) put(&message, ",\"other\":"), put_values(&message, job->other, job->outputs);
        if (job->second) put(&message, ",\"second\":"), put_values(&message, job->second, job->outputs);
        put_part(&message, "repeats", &job->repeats);
        put_part(&message, "latency", &job->latency);
        put(&message, ",\"placement\":");
        placement_put(&message, job);
    }
    if (job->other_error) put_then(&message, ",\"other_error\":", job->other_error);
    put(&message, "}]");
    enum { MOST_JSON = 32 << 20, MOST_BINARY = 1 << 30 };
    if (message.json.size > MOST_JSON || message.binary_size > MOST_BINARY) {
        message_free(&message);
        const char *why = "the outputs do not fit into a message of 1 GiB";
        stream_send_plain("[\"result\",%lld,{\"status\":\"unfeedable\",\"message\":\"%s\"}]", (long long)job->id, why);
        return;
    }
    stream_send(&message);
}
