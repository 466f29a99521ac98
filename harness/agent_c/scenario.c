/* Other uses of a session: those that C plays. The greeting declines the others, each with its reason. */

#include "job.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool finish(Job *job) { return job_create(job) && job_run_sets(job) && job_conclude(job); }

static bool from_bytes(Job *job) {
    const char *data = NULL, *path = job->plan.model;
    size_t size = 0;
    if (ort_minor < 21) return job_fail(job, "unsupported", NULL, "onnxruntime before 1.21 does not find the weights of a model without path");
    if (!file_read(&job->arena, path, &data, &size) || !size) return job_fail(job, "error", "NoSuchFile", arena_format(&job->arena, "%s cannot be read", path));
    job->plan.entries = (const char *[]){WEIGHTS_FOLDER, absolute_path(&job->arena, folder_of(&job->arena, path)), NULL};
    job->plan.model = data;
    job->plan.model_size = size;
    fact(job, "\"model_bytes\":%zu", size);
    return finish(job);
}

static bool cpu_fallback_disabled(Job *job) {
    for (size_t index = 0; index < target.chain_size; index++)
        if (!strcmp(target.chain[index], CPU_PROVIDER)) return job_fail(job, "unsupported", NULL, "the target names " CPU_PROVIDER " itself");
    job->plan.entries = (const char *[]){"session.disable_cpu_ep_fallback", "1", NULL};
    if (!job_create(job)) {
        bool refused = job->error && strstr(job->error, "fallback to") && strstr(job->error, "CPU EP");
        return refused ? job_fail(job, "unsupported", NULL, job->error) : false;
    }
    fact(job, "\"refused\":false");
    return job_run_sets(job) && job_conclude(job);
}

static bool separate_outputs(Job *job) {
    double most = 0;
    Watch watch;
    if (!job_create(job) || !watch_begin(&watch, job)) return false;
    for (size_t set = 0; set < job->sets; set++) {
        Value *alone = arena_take(&job->arena, (job->outputs + 1) * sizeof(Value)), *single = NULL;
        for (size_t index = 0; index < job->outputs; index++) {
            job_further(job);
            if (!job_run(job, &job->arena, &watch.seen[set].feeds, &job->names[index], 1, &single)) return false;
            alone[index] = single[0];
            most = fmax(most, values_apart(&watch.seen[set].tally.first[index], single, 1, true));
        }
        job->ran[set] = alone;
    }
    fact(job, "\"outputs\":%zu,\"equal_to_together\":%s", job->outputs, most > 0 ? "false" : "true");
    if (most > 0) fact_number(job, "difference", most);
    return job_conclude(job);
}

static bool dynamic_shapes(Job *job) {
    bool twice = json_integer(json_get(json_get(job->message, "repeat"), "runs"), 1) > 1;
    const char *first = "", *again = "";
    Tally tally;
    long differing = 0;
    if (!job_create(job)) return false;
    for (const Json *one = json_item(json_get(job->message, "data_sets"), 0); one; one = one->next) {
        Feeds feeds;
        Value *more = NULL;
        const char *comma = job->sets_ran ? "," : "";
        job_enter(job, "run");
        if (!job_feeds(job, one, &feeds) || !job_run(job, &job->arena, &feeds, job->names, job->outputs, &job->ran[job->sets_ran])) return false;
        if (job->first_run_ms < 0) job->first_run_ms = job->run_ms;
        first = arena_format(&job->arena, "%s%s%.4f", first, comma, job->run_ms);
        tally = (Tally){.first = job->ran[job->sets_ran], .runs = 1};
        if (twice) {
            job_further(job);
            if (!job_run(job, &job->arena, &feeds, job->names, job->outputs, &more)) return false;
            tally_add(job, &tally, &(Arena){0}, more);
            differing += tally.differing;
            if (!job->sets_ran) tally_report(job, &tally, 1);
        }
        again = arena_format(&job->arena, "%s%s%.4f", again, comma, twice ? job->run_ms : -1.0);
        job->sets_ran++;
    }
    if (job->sets_ran) fact(job, "\"run_ms\":[%s],\"again_ms\":[%s],\"differing_again\":%ld", first, again, differing);
    return job_conclude(job);
}

static int by_size(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

static double median(double *figures, size_t count) {
    qsort(figures, count, sizeof *figures, by_size);
    return count % 2 ? figures[count / 2] : (figures[count / 2 - 1] + figures[count / 2]) / 2;
}

static void put_series(Job *job, const char *name, const double *figures, size_t count) {
    enum { POINTS = 64 };
    size_t shown = count < POINTS ? count : POINTS;
    for (size_t index = 0; index < count; index++)
        if (figures[index] < 0) return;
    if (count < 2) return;
    fact(job, "\"%s\":[", name);
    for (size_t index = 0; index < shown; index++)
        put_format(&job->facts, "%s%.2f", index ? "," : "", figures[count <= POINTS ? index : (size_t)(0.5 + (double)index * (double)(count - 1) / (POINTS - 1))]);
    put(&job->facts, "]");
}

static bool sessions(Job *job) {
    enum { OPENED, RSS, THREADS, FILES, RUNS, SERIES, MOST = 100000 };
    const Json *settings = json_get(job->message, "scenario_settings");
    int64_t wanted = json_integer(json_get(settings, "count"), 1);
    double budget_ms = json_number(json_get(settings, "budget_s"), 60) * 1e3, began = now_ms(), closing = 0, apart = 0, *series[SERIES];
    size_t made = 0, ran = 0, differing = 0;
    bool over = false;
    Watch watch;
    if (wanted < 1 || wanted > MOST) return job_fail(job, "unfeedable", NULL, "a number of sessions out of range");
    for (size_t index = 0; index < SERIES; index++) series[index] = arena_take(&job->arena, (size_t)wanted * sizeof(double));
    for (long before = 0, now = 0;; before = now, now = 0) {
        job->create_ms = -1;
        if (!job_create(job)) return false;
        series[OPENED][made++] = job->create_ms;
        if (made == 1 && !watch_begin(&watch, job)) return false;
        for (size_t set = 0; set < job->sets; now += watch.seen[set++].tally.differing) {
            if (made == 1) continue;
            job_enter(job, "run");
            if (!watch_run(&watch, set, "")) return false;
        }
        differing += now > before;
        over = made > 1 && now_ms() - began > budget_ms;
        if (over || made == (size_t)wanted) break;
        job_enter(job, "teardown");
        double start = now_ms();
        job_close(job);
        closing = fmax(closing, now_ms() - start);
        series[RSS][made - 1] = resident_mib();
        series[THREADS][made - 1] = thread_count();
        series[FILES][made - 1] = descriptor_count();
        job_enter(job, "create");
    }
    for (; !over && ran < made; series[RUNS][ran++] = resident_mib())
        if (!watch_run(&watch, 0, "")) return false;
    size_t closed = made - 1, middle = closed / 2;
    const double *rss = series[RSS];
    double first_ms = series[OPENED][0], median_ms = median(series[OPENED], made);
    for (size_t set = 0; set < job->sets; set++) apart = fmax(apart, watch.seen[set].tally.apart);
    fact(job, "\"count\":%zu,\"create_first_ms\":%.4f,\"create_max_ms\":%.4f,\"teardown_max_ms\":%.4f", made, first_ms,
                 series[OPENED][closed], closing); /* they are sorted */
    fact(job, "\"create_median_ms\":%.4f,\"differing_sessions\":%zu", median_ms, differing);
    fact_number(job, "difference", apart);
    if (closed && rss[0] >= 0)
        fact(job, "\"rss_first_mib\":%.2f,\"rss_last_mib\":%.2f,\"growth_mib\":%.3f", rss[0], rss[closed - 1],
                     (rss[closed - 1] - rss[middle]) / (double)(closed - 1 - middle > 1 ? closed - 1 - middle : 1));
    put_series(job, "rss_mib", rss, closed);
    put_series(job, "run_rss_mib", series[RUNS], ran);
    put_series(job, "threads", series[THREADS], closed);
    put_series(job, "descriptors", series[FILES], closed);
    job->create_ms = first_ms;
    return job_conclude(job);
}

/* Options of the provider change while its session is open: hints, so the answers have to stay the same. */
static bool set_option(Watch *watch, const Json *key, const Json *value, bool documented, const char **told) {
    Job *job = watch->job;
    const char *name = json_text(key, ""), *setting = json_text(value, "");
    job_enter(job, "run");
    *told = arena_format(&job->arena, "%.60s=%.60s", name, setting);
    OrtStatus *status = ORT(SetEpDynamicOptions)(job->session, &name, &setting, 1);
    if (status) {
        const char *error = arena_format(&job->arena, "%s is refused: %s", *told, status_text(&job->arena, status, NULL));
        return documented ? job_fail(job, "error", "DynamicOptionRefusedError", error) : job_fail(job, "unsupported", NULL, error);
    }
    return watch_all(watch, job->session, *told);
}

bool dynamic_options(Job *job) {
    enum { MOST = 64 };
    const Json *settings = json_get(job->message, "scenario_settings"), *options = json_get(settings, "options");
    const char *told[MOST], *unknown = "ep.dynamic.ep_harness_unknown", *one = "1";
    size_t count = 0;
    bool fine = true;
    Watch watch;
    if (!json_item(options, 0)) return job_fail(job, "unsupported", NULL, "no documented option of this provider can change in an open session");
    if (!HAS(SetEpDynamicOptions)) return job_lacks(job, "SetEpDynamicOptions, 1.20 is the first with it");
    if (!job_create(job) || !watch_begin(&watch, job)) return false;
    for (const Json *option = json_item(options, 0); option; option = option->next) {
        const Json *values = json_item(option, 1);
        for (size_t index = 1; fine && count < MOST && index <= 3; index++) { /* the first is the default, with which a session begins */
            const Json *value = json_item(values, index < 3 ? index : 0);
            if (value) fine = set_option(&watch, json_item(option, 0), value, json_is(json_get(settings, "documented"), JSON_TRUE), &told[count]), count++;
        }
    }
    fact_texts(job, "set", told, count);
    if (!fine) return false;
    OrtStatus *status = ORT(SetEpDynamicOptions)(job->session, &unknown, &one, 1);
    fact_text(job, "unknown", status ? "refused" : "taken");
    if (status) ORT(ReleaseStatus)(status);
    else if (!strcmp(json_text(json_get(settings, "unknown"), ""), "refused"))
        return job_fail(job, "error", "UnknownOptionTakenError", arena_format(&job->arena, "the unknown key %s was taken without a word", unknown));
    if (*watch.only) fact_text(job, "differs_after", watch.only);
    watch.only = "";
    return watch_conclude(&watch, "equal_to_before");
}

bool scenario_play(Job *job, const char *name) {
    static const struct {
        const char *name;
        bool (*play)(Job *);
    } played[] = {{"from_bytes", from_bytes},
                  {"cpu_fallback_disabled", cpu_fallback_disabled},
                  {"separate_outputs", separate_outputs},
                  {"dynamic_shapes", dynamic_shapes},
                  {"interleaved", interleaved},
                  {"concurrent", concurrent},
                  {"async_runs", async_runs},
                  {"sessions", sessions},
                  {"io_binding", io_binding},
                  {"buffers", buffers},
                  {"graph_capture", graph_capture},
                  {"initializers", initializers},
                  {"adapters", adapters},
                  {"ort_format", ort_format},
                  {"ep_context", ep_context},
                  {"compile", compile},
                  {"lifecycle", lifecycle},
                  {"terminate", terminate},
                  {"profiling", profiling},
                  {"dynamic_options", dynamic_options}};
    for (size_t index = 0; index < sizeof played / sizeof *played; index++)
        if (!strcmp(played[index].name, name)) return played[index].play(job);
    return job_fail(job, "unsupported", NULL, arena_format(&job->arena, "the C agent has no scenario %.100s", name));
}
