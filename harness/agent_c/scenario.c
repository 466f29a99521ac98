/* Other uses of a session: those that C plays. The greeting declines the others, each with its reason. */

#include "job.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool finish(Job *job) { return job_create(job) && job_run_sets(job) && job_conclude(job); }

static bool from_bytes(Job *job) {
    const char *data = NULL, *path = job->plan.model;
    size_t size = 0, length = strlen(path);
    if (ort_minor < 21) return job_fail(job, "unsupported", NULL, "onnxruntime before 1.21 does not find the weights of a model without path");
    if (!file_read(&job->arena, path, &data, &size) || !size) return job_fail(job, "error", "NoSuchFile", arena_format(&job->arena, "%s cannot be read", path));
    while (length && path[length - 1] != '/' && path[length - 1] != PATH_SEPARATOR[0]) length--;
    job->plan.key = "session.model_external_initializers_file_folder_path";
    job->plan.value = absolute_path(&job->arena, length ? arena_text(&job->arena, path, length) : ".");
    job->plan.model = data;
    job->plan.model_size = size;
    bytes_format(&job->facts, "{\"model_bytes\":%zu}", size);
    return finish(job);
}

static bool cpu_fallback_disabled(Job *job) {
    const char *const *chain = NULL;
    for (size_t index = 0, count = target_chain(&chain); index < count; index++)
        if (!strcmp(chain[index], CPU_PROVIDER)) return job_fail(job, "unsupported", NULL, "the target names " CPU_PROVIDER " itself");
    job->plan.key = "session.disable_cpu_ep_fallback";
    job->plan.value = "1";
    if (!job_create(job)) {
        bool refused = job->error && strstr(job->error, "fallback to") && strstr(job->error, "CPU EP");
        return refused ? job_fail(job, "unsupported", NULL, job->error) : false;
    }
    bytes_format(&job->facts, "{\"refused\":false}");
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
    bytes_format(&job->facts, "{\"outputs\":%zu,\"equal_to_together\":%s", job->outputs, most > 0 ? "false" : "true");
    if (most > 0) bytes_format(&job->facts, isfinite(most) ? ",\"difference\":%.17g" : ",\"difference\":\"inf\"", most);
    bytes_format(&job->facts, "}");
    return job_conclude(job);
}

static bool dynamic_shapes(Job *job) {
    bool twice = json_integer(json_get(json_get(job->message, "repeat"), "runs"), 1) > 1;
    const char *again = "";
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
        bytes_format(&job->facts, "%s%.4f", *comma ? comma : "{\"run_ms\":[", job->run_ms);
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
    if (job->sets_ran) bytes_format(&job->facts, "],\"again_ms\":[%s],\"differing_again\":%ld}", again, differing);
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

static void put_series(Bytes *facts, const char *name, const double *figures, size_t count) {
    enum { POINTS = 64 };
    size_t shown = count < POINTS ? count : POINTS;
    for (size_t index = 0; index < count; index++)
        if (figures[index] < 0) return;
    if (count < 2) return;
    bytes_format(facts, ",\"%s\":[", name);
    for (size_t index = 0; index < shown; index++)
        bytes_format(facts, "%s%.2f", index ? "," : "", figures[count <= POINTS ? index : (size_t)(0.5 + (double)index * (double)(count - 1) / (POINTS - 1))]);
    bytes_format(facts, "]");
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
    Bytes *facts = &job->facts;
    for (size_t set = 0; set < job->sets; set++) apart = fmax(apart, watch.seen[set].tally.apart);
    bytes_format(facts, "{\"count\":%zu,\"create_first_ms\":%.4f,\"create_max_ms\":%.4f,\"teardown_max_ms\":%.4f", made, first_ms,
                 series[OPENED][closed], closing); /* they are sorted */
    bytes_format(facts, ",\"create_median_ms\":%.4f,\"differing_sessions\":%zu", median_ms, differing);
    bytes_format(facts, isfinite(apart) ? ",\"difference\":%.17g" : ",\"difference\":1.7976931348623157e308", apart);
    if (closed && rss[0] >= 0)
        bytes_format(facts, ",\"rss_first_mib\":%.2f,\"rss_last_mib\":%.2f,\"growth_mib\":%.3f", rss[0], rss[closed - 1],
                     (rss[closed - 1] - rss[middle]) / (double)(closed - 1 - middle > 1 ? closed - 1 - middle : 1));
    put_series(facts, "rss_mib", rss, closed);
    put_series(facts, "run_rss_mib", series[RUNS], ran);
    put_series(facts, "threads", series[THREADS], closed);
    put_series(facts, "descriptors", series[FILES], closed);
    bytes_format(facts, "}");
    job->create_ms = first_ms;
    return job_conclude(job);
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
                  {"sessions", sessions}};
    for (size_t index = 0; index < sizeof played / sizeof *played; index++)
        if (!strcmp(played[index].name, name)) return played[index].play(job);
    return job_fail(job, "unsupported", NULL, arena_format(&job->arena, "the C agent has no scenario %.100s", name));
}
