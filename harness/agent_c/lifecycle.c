/* The scenario `lifecycle`: a plugin library is registered, used and unregistered, again and again. Each order of the steps has a
 * fresh process, whose end counts, too. */

#include "child.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const ORDERS[] = {"in_rounds", "left_registered", "registered_twice", "two_libraries", "unregistered_in_use"};
enum { MISUSE = 4, MISUSE_MS = 10000, SERIES = 5 }; /* a hang after the application's mistake is nobody's fault */
static const char *const NAMES[SERIES] = {"register_ms", "unregister_ms", "round_rss_mib", "round_descriptors", "round_libraries"};

typedef struct {
    Job *job;
    int order;
    const char *told, *once, *step, *failed_at, *error; /* steps so far in words; those of a round */
    long rounds, differing;
    double apart;
    Value **outputs;
    int64_t end;
    const char *series[SERIES], *stays;
    const char *second_library, *second_registration;
} Course;

static const char *add(Course *course, const char *to, const char *what) { return arena_format(&course->job->arena, "%s%s%s", to, *to ? ", " : "", what); }

static const char *in_words(Course *course, const char *name) {
    char *words = arena_text(&course->job->arena, name, strlen(name));
    for (char *at = words; (at = strchr(at, '_'));) *at = ' ';
    return words;
}

static void note_step(Course *course, const char *name) {
    static const char *const creating[] = {"register", "register again", "register a copy", "session"};
    const char *phase = !strcmp(name, "run") || !strcmp(name, "run after it") ? "run" : "teardown";
    for (size_t index = 0; index < sizeof creating / sizeof *creating; index++)
        if (!strcmp(creating[index], name)) phase = "create";
    course->step = name;
    course->told = add(course, course->told, name);
    job_enter(course->job, course->order == MISUSE ? "create" : phase); /* its limit is the longest */
}

static void note_round(Course *course, const Json *figures) {
    const Json *stays = json_get(figures, "stays");
    if (!course->rounds++) course->once = course->told;
    course->told = ""; /* the same steps again */
    for (size_t index = 0; index < SERIES; index++) {
        const Json *figure = json_get(figures, NAMES[index]);
        if (!figure) continue;
        const char *before = course->series[index];
        course->series[index] = arena_format(&course->job->arena, figure->is_integer ? "%s%s%.0f" : "%s%s%.4f", before ? before : "", before ? "," : "", figure->number);
    }
    if (stays) course->stays = json_is(stays, JSON_TRUE) ? "true" : "false";
}

static bool note_outputs(Course *course, const Json *message) {
    Job *job = course->job;
    const Json *sets = json_item(message, 3);
    Trouble trouble = {0};
    size_t set = 0;
    course->apart = json_number(json_item(message, 1), INFINITY);
    course->differing = (long)json_integer(json_item(message, 2), 0);
    course->outputs = arena_take(&job->arena, (job->sets + 1) * sizeof *course->outputs);
    for (const Json *one = json_item(sets, 0); one && set < job->sets; one = one->next, set++) {
        size_t index = 0;
        course->outputs[set] = arena_take(&job->arena, (one->size + 1) * sizeof(Value));
        for (const Json *wire = one->first; wire; wire = wire->next)
            if (!value_read(&job->arena, wire, &course->outputs[set][index++], &trouble)) return job_trouble(job, &trouble);
    }
    return true;
}

static bool note(Course *course, const Json *message) {
    const char *kind = json_text(json_item(message, 0), ""), *first = json_text(json_item(message, 1), "");
    if (!strcmp(kind, "step")) note_step(course, first);
    else if (!strcmp(kind, "round")) note_round(course, json_item(message, 1));
    else if (!strcmp(kind, "failed")) course->error = first, course->failed_at = course->step;
    else if (!strcmp(kind, "told") && !strcmp(first, "second_library")) course->second_library = json_text(json_item(message, 2), "");
    else if (!strcmp(kind, "told")) course->second_registration = json_text(json_item(message, 2), "");
    else if (!strcmp(kind, "outputs")) return note_outputs(course, message);
    return true;
}

/* Start the process and follow it to its end. */
static bool take(Course *course) {
    Job *job = course->job;
    Message order = {0};
    bool fine = true;
    int64_t rounds = json_integer(json_get(json_get(job->message, "scenario_settings"), "rounds"), 1);
    Child *child = child_start(job);
    if (!child) return false;
    put_format(&order, "[\"life\",\"%s\",%lld,", ORDERS[course->order], (long long)(course->order ? 1 : rounds));
    put_json(&order, target_config());
    put(&order, ",");
    put_job(&order, job->message, job->plan.model, NULL);
    put(&order, "]");
    child_send(child, &order);
    if (course->order == MISUSE) child_limit(child, MISUSE_MS);
    for (const Json *message; fine && (message = child_receive(child));) fine = note(course, message);
    course->end = child_end(child);
    return fine;
}

/* Return the steps and how the process ended. */
static const char *all_told(Course *course) {
    const char *rounds = course->rounds ? arena_format(&course->job->arena, "%ld x (%s)", course->rounds, course->once) : "";
    const char *told = *course->told ? add(course, rounds, course->told) : rounds;
    const char *end = end_in_words(&course->job->arena, course->end);
    if (course->error) told = add(course, told, course->error);
    return arena_format(&course->job->arena, "%s: %s", in_words(course, ORDERS[course->order]), add(course, told, end));
}

static const char *where(Course *course) {
    const char *step = course->failed_at ? course->failed_at : course->step;
    bool in_round = !course->order && strcmp(step, "exit") != 0;
    const char *round = in_round ? arena_format(&course->job->arena, " of round %ld", course->rounds + 1) : "";
    return arena_format(&course->job->arena, "at %s%s, %s", step, round, in_words(course, ORDERS[course->order]));
}

static void tell_facts(Course *course) {
    Job *job = course->job;
    if (!course->order) {
        fact(job, "\"rounds\":%ld,\"differing_rounds\":%ld", course->rounds, course->differing);
        fact_number(job, "difference", course->apart);
        for (size_t index = 0; index < SERIES; index++)
            if (course->series[index]) fact(job, "\"%s\":[%s]", NAMES[index], course->series[index]);
        if (course->stays) fact(job, "\"stays_loaded\":%s", course->stays);
    }
    if (course->second_library) fact_text(job, "second_library", course->second_library);
    if (course->second_registration) fact_text(job, "second_registration", course->second_registration);
}

bool lifecycle(Job *job) {
    enum { ALL = sizeof ORDERS / sizeof *ORDERS };
    const char *told[ALL];
    size_t done = 0;
    double furthest = -1;
    bool fine = true;
    Value **worst = NULL;
    if (!plugin_library()) return job_fail(job, "unsupported", NULL, "the provider is a part of onnxruntime, not a library that is registered");
    for (; fine && done < ALL; done++) {
        Course course = {.job = job, .order = (int)done, .told = "", .once = "", .step = "start"};
        fine = take(&course);
        told[done] = all_told(&course);
        tell_facts(&course);
        if (!fine || done == MISUSE) continue;
        if (course.error) fine = job_fail(job, "error", "LifecycleError", arena_format(&job->arena, "%s: %s", where(&course), course.error));
        else if (course.end) fine = job_fail(job, "error", "ProcessDied", arena_format(&job->arena, "%s: %s", end_in_words(&job->arena, course.end), where(&course)));
        else if (course.apart > furthest) furthest = course.apart, worst = course.outputs;
    }
    fact_texts(job, "steps", told, done);
    if (!fine) return false;
    job_enter(job, "create");
    if (!job_create(job)) return false;
    for (; worst && job->sets_ran < job->sets; job->sets_ran++) job->ran[job->sets_ran] = worst[job->sets_ran];
    return job_conclude(job);
}
