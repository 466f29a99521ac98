#include "child.h"

#include <stdlib.h>
#include <string.h>

enum { CHECK_MS = 20, GRACE_MS = 5000 };

struct Child {
    Job *job;
    Process *process;
    Source source;
};

/* The child that has a limit of time. */
static struct {
    Lock *lock;
    Process *process;
    double until;
    bool is_watched;
} limited;

static void watch_limit(void) {
    for (;; sleep_ms(CHECK_MS)) {
        lock_take(limited.lock);
        if (limited.process && now_ms() > limited.until) process_kill(limited.process);
        lock_give(limited.lock);
    }
}

Child *child_start(Job *job) {
    static const char hello[] = "ep-harness {\"protocols\":[1],\"token\":\"0\",\"modes\":[\"binary\"],\"connect\":\"\"}\n";
    static char line[1 << 16];
    const char *arguments[] = {"--child", "--library", runtime_library(), NULL};
    Child *child = arena_take(&job->arena, sizeof *child);
    child->job = job;
    child->process = process_start(&job->arena, arguments);
    if (!child->process) goto none;
    child->source = (Source){.read = process_read, .from = child->process};
    process_write(child->process, hello, sizeof hello - 1);
    if (line_read(&child->source, line, sizeof line) >= 0 && !strncmp(line, "ep-agent ", 9)) return child;
    process_kill(child->process);
    process_end(child->process);
none:
    job_fail(job, "unsupported", NULL, "this system does not let the agent start a further process");
    return NULL;
}

void child_send(Child *child, Message *message) {
    Bytes frame = {0};
    frame_write(&frame, message);
    process_write(child->process, frame.at, frame.size); /* if it has died, what is read from it tells */
    bytes_free(&frame);
    message_free(message);
}

const Json *child_receive(Child *child) {
    const char *why = "";
    Received *received = frame_read(&child->source, &why);
    if (!received) return NULL;
    const Json *message = received->message;
    arena_join(&child->job->arena, &received->arena);
    received_free(received);
    return message;
}

void child_limit(Child *child, int ms) {
    if (!limited.lock) limited.lock = lock_new();
    lock_take(limited.lock);
    limited.process = child->process;
    limited.until = now_ms() + ms;
    if (!limited.is_watched) limited.is_watched = thread_start(watch_limit);
    lock_give(limited.lock);
}

int64_t child_end(Child *child) {
    int64_t end = process_end(child->process);
    if (!limited.lock) return end;
    lock_take(limited.lock);
    limited.process = NULL;
    lock_give(limited.lock);
    return end;
}

/* --- a job for a child --- */

void put_job(Message *message, const Json *from, const char *model, const char *const *changes) {
    put_then(message, "{\"model\":", model);
    for (const char *const *change = changes; change && *change; change += 2) {
        put(message, ",");
        put_text(message, change[0]);
        put(message, ":");
        put(message, change[1]);
    }
    for (const Json *field = from->first; field; field = field->next) {
        bool changed = !strcmp(field->key, "model") || !strncmp(field->key, "scenario", 8);
        for (const char *const *change = changes; change && *change; change += 2) changed |= !strcmp(field->key, change[0]);
        if (changed) continue;
        put(message, ",");
        put_text(message, field->key);
        put(message, ":");
        put_json(message, field);
    }
    put(message, "}");
}

static const char *kept_phase(const char *phase) {
    static const char *const phases[] = {"create", "run", "teardown"};
    for (size_t index = 0; index < 3; index++)
        if (!strcmp(phases[index], phase)) return phases[index];
    return "run";
}

static bool take_values(Job *job, const Json *wires, Value **values) {
    Trouble trouble = {0};
    *values = arena_take(&job->arena, (wires->size + 1) * sizeof **values);
    size_t count = 0;
    for (const Json *wire = wires->first; wire; wire = wire->next)
        if (!value_read(&job->arena, wire, &(*values)[count++], &trouble)) return job_trouble(job, &trouble);
    return true;
}

static bool take_result(Job *job, const Json *result, Served *served) {
    const Json *outputs = json_get(result, "outputs"), *second = json_get(result, "second");
    *served = (Served){.status = json_text(json_get(result, "status"), "error"),
                       .phase = kept_phase(json_text(json_get(result, "phase"), "")),
                       .kind = json_text(json_get(result, "kind"), NULL),
                       .message = json_text(json_get(result, "message"), ""),
                       .create_ms = json_number(json_get(json_get(result, "timings_ms"), "create"), 0),
                       .result = result};
    size_t count = 0;
    served->outputs = arena_take(&job->arena, ((outputs ? outputs->size : 0) + 1) * sizeof *served->outputs);
    for (const Json *set = json_item(outputs, 0); set; set = set->next)
        if (!take_values(job, set, &served->outputs[count++])) return false;
    return !second || take_values(job, second, &served->second);
}

/* Follow a child until it has served, or is at its end. */
static bool follow(Child *child, Served *served) {
    Job *job = child->job;
    for (const Json *message; (message = child_receive(child));) {
        const char *name = json_text(json_item(message, 0), "");
        if (!strcmp(name, "imported") || !strcmp(name, "ready")) {
            job_enter(job, "create");
        } else if (!strcmp(name, "phase")) {
            job_enter(job, kept_phase(json_text(json_item(message, 2), "")));
        } else if (!strcmp(name, "result")) {
            if (!take_result(job, json_item(message, 2), served)) return false;
            job_enter(job, "teardown");
        } else if (!strcmp(name, "done")) {
            return true;
        } else {
            const char *cause = json_text(json_item(message, 1), ""), *reason = json_text(json_item(message, 2), "");
            return job_fail(job, "error", "FreshProcessError", arena_format(&job->arena, "a fresh process cannot use the target: %s: %s", cause, reason));
        }
    }
    served->died = "";
    return true;
}

bool child_serve(Job *job, const char *model, const char *const *changes, bool may_die, Served *served) {
    *served = (Served){0};
    job_enter(job, "create");
    Child *child = child_start(job);
    if (!child) return false;
    Message config = {0}, asked = {0}, stop = {0};
    put(&config, "[\"config\",");
    put_json(&config, target_config());
    put(&config, "]");
    child_send(child, &config);
    put(&asked, "[\"job\",0,");
    put_job(&asked, job->message, model, changes);
    put(&asked, "]");
    child_send(child, &asked);
    bool fine = follow(child, served);
    if (fine && !served->died) put(&stop, "[\"stop\"]"), child_send(child, &stop);
    child_limit(child, fine ? GRACE_MS : 0); /* its exit is no matter of the job */
    int64_t end = child_end(child);
    if (!fine || !served->died) return fine;
    const char *words = end_in_words(&job->arena, end);
    if (end && !may_die) end_as(end);
    if (!end) return job_fail(job, "error", "FreshProcessError", "the fresh process ended without a message");
    served->died = arena_format(&job->arena, "the process died: %s", words);
    served->status = "died";
    served->message = served->died;
    return true;
}
