/* The scenario `profiling`: two sessions side by side write a profile each, and a third one writes none. Events are compared with
 * the runs of their own file alone, so no clock but the session's decides. */

#include "job.h"

#include <math.h>
#include <string.h>

enum { SIDES = 2, MOST_KINDS = 32 };
static const int RUNS[SIDES] = {2, 3}; /* of all data sets: what is booked to the other session shows */
static const double SLACK_US = 100, SLACK = 0.05; /* by which an event may lie beyond its run: devices have clocks of their own */

/* Events of one category and provider. */
typedef struct {
    const char *category, *provider;
    long count;
} Kind;

typedef struct {
    const Json *events;
    Kind kinds[MOST_KINDS];
    size_t kinds_seen;
    long runs;
} Profile;

static bool blame(Job *job, const char *words) { return job_fail(job, "error", "ProfileError", words); }

static bool is_event(const Json *event) { return !strcmp(json_text(json_get(event, "ph"), ""), "X"); }
static bool is_run(const Json *event) { return is_event(event) && !strcmp(json_text(json_get(event, "name"), ""), "model_run"); }
static double time_of(const Json *event) { return json_number(json_get(event, "ts"), 0); }
static double duration_of(const Json *event) { return json_number(json_get(event, "dur"), 0); }

static bool is_counted(const Json *event) {
    const char *category = json_text(json_get(event, "cat"), "");
    return is_event(event) && (!strcmp(category, "Node") || !strcmp(category, "Kernel"));
}

static Kind *kind_in(Profile *profile, const char *category, const char *provider) {
    size_t index = 0;
    while (index < profile->kinds_seen && (strcmp(profile->kinds[index].category, category) || strcmp(profile->kinds[index].provider, provider))) index++;
    if (index == profile->kinds_seen && index < MOST_KINDS) profile->kinds[profile->kinds_seen++] = (Kind){category, provider, 0};
    return &profile->kinds[index < MOST_KINDS ? index : MOST_KINDS - 1];
}

static bool read_profile(Job *job, OrtSession *session, Profile *profile) {
    char *path = NULL;
    const char *text = NULL, *why = "it cannot be read";
    size_t size = 0;
    *profile = (Profile){0};
    if (!job_good(job, ORT(SessionEndProfiling)(session, ort_allocator, &path))) return false;
    if (file_read(&job->arena, path, &text, &size)) profile->events = json_read(&job->arena, text, size, "", 0, &why);
    file_delete(path);
    if (!job_good(job, ORT(AllocatorFree)(ort_allocator, path))) return false;
    if (!profile->events) return blame(job, arena_format(&job->arena, "the profile is no JSON: %s", why));
    for (const Json *event = json_item(profile->events, 0); event; event = event->next) {
        profile->runs += is_run(event);
        if (is_counted(event)) kind_in(profile, json_text(json_get(event, "cat"), ""), json_text(json_get(json_get(event, "args"), "provider"), ""))->count++;
    }
    return true;
}

static long count_of(const Profile *profile, const char *category) {
    long count = 0;
    for (size_t index = 0; index < profile->kinds_seen; index++) count += strcmp(profile->kinds[index].category, category) ? 0 : profile->kinds[index].count;
    return count;
}

static bool lies_in_a_run(const Profile *profile, const Json *event) {
    for (const Json *run = json_item(profile->events, 0); run; run = run->next) {
        double slack = fmax(SLACK_US, SLACK * duration_of(run)), end = time_of(run) + duration_of(run);
        if (is_run(run) && time_of(run) - slack <= time_of(event) && time_of(event) + duration_of(event) <= end + slack) return true;
    }
    return false;
}

/* Check that there are so many runs, which took so long together, and that each event lies in one. */
static bool check(Job *job, const Profile *profile, long runs, double spent_us) {
    double told_us = 0;
    const char *words = "the profile of a session that ran %ld times has %ld runs";
    if (profile->runs != runs) return blame(job, arena_format(&job->arena, words, runs, profile->runs));
    for (const Json *event = json_item(profile->events, 0); event; event = event->next) told_us += is_run(event) ? duration_of(event) : 0;
    words = "the profile's runs took %g us, the calls of them %g us";
    if (told_us > spent_us * (1 + SLACK) + SLACK_US * (double)runs) return blame(job, arena_format(&job->arena, words, told_us, spent_us));
    for (const Json *event = json_item(profile->events, 0); event; event = event->next) {
        if (!is_event(event)) continue;
        const char *name = json_text(json_get(event, "name"), "");
        words = "the profile's event %.80s has the time %g us and the duration %g us";
        if (duration_of(event) < 0 || time_of(event) < 0) return blame(job, arena_format(&job->arena, words, name, time_of(event), duration_of(event)));
        words = "the profile's event %.80s, of %g us at %g us, lies in none of the session's runs";
        if (is_counted(event) && !lies_in_a_run(profile, event)) return blame(job, arena_format(&job->arena, words, name, duration_of(event), time_of(event)));
    }
    return true;
}

/* Compare what two sessions of the same model booked in different numbers of runs. */
static bool check_sides(Job *job, Profile *sides) {
    for (size_t index = 0; index < sides[1].kinds_seen; index++) kind_in(&sides[0], sides[1].kinds[index].category, sides[1].kinds[index].provider);
    for (size_t index = 0; index < sides[0].kinds_seen; index++) {
        const Kind *one = &sides[0].kinds[index], *other = kind_in(&sides[1], one->category, one->provider);
        /* A kernel may also be compiled or filled in a first run, so its events need not be in proportion. */
        bool is_node = !strcmp(one->category, "Node");
        if (is_node ? one->count * RUNS[1] == other->count * RUNS[0] : 0 < one->count && one->count <= other->count) continue;
        const char *words = "of two sessions, the one with %d runs has %ld %s events of %.60s, the one with %d has %ld", *who = *one->provider ? one->provider : "the provider";
        return blame(job, arena_format(&job->arena, words, RUNS[0], one->count, is_node ? "node" : "kernel", who, RUNS[1], other->count));
    }
    return true;
}

typedef struct {
    Watch watch;
    OrtSession *sessions[1 + SIDES];
    double spent_us[1 + SIDES];
} Side;

static bool run_all(Side *all, int which) {
    Job *job = all->watch.job;
    OrtSession *judged = job->session;
    bool fine = true;
    job->session = all->sessions[which];
    for (size_t set = 0; fine && set < job->sets; set++) {
        fine = watch_run(&all->watch, set, "");
        all->spent_us[which] += job->run_ms * 1e3;
    }
    job->session = judged;
    return fine;
}

static bool play(Side *all, Profile *profiles) {
    static const int turns[] = {1, 2, 0, 1, 2};
    Job *job = all->watch.job;
    all->sessions[0] = job->session;
    for (int side = 0; side < SIDES; side++) {
        SessionPlan plan = job->plan;
        plan.profile = arena_format(&job->arena, "side-%d", side);
        job_enter(job, "create");
        if (!(all->sessions[1 + side] = job_open(job, &plan))) return false;
    }
    for (size_t turn = 0; turn < sizeof turns / sizeof *turns; turn++)
        if (!run_all(all, turns[turn])) return false;
    /* The first one stops, and the other one goes on. */
    return read_profile(job, all->sessions[1], &profiles[0]) && run_all(all, 2) && run_all(all, 1) && read_profile(job, all->sessions[2], &profiles[1]);
}

bool profiling(Job *job) {
    Side all = {0};
    Profile profiles[SIDES];
    if (!job_create(job) || !watch_begin(&all.watch, job)) return false;
    bool fine = play(&all, profiles);
    for (int side = 0; side < SIDES; side++)
        if (all.sessions[1 + side]) ORT(ReleaseSession)(all.sessions[1 + side]);
    if (!fine) return false;
    fact(job, "\"runs\":[%ld,%ld]", profiles[0].runs, profiles[1].runs);
    fact(job, "\"node_events\":[%ld,%ld]", count_of(&profiles[0], "Node"), count_of(&profiles[1], "Node"));
    fact(job, "\"kernel_events\":[%ld,%ld]", count_of(&profiles[0], "Kernel"), count_of(&profiles[1], "Kernel"));
    for (int side = 0; side < SIDES; side++) /* the runs after the first profile's end are not in it, but in the time spent */
        if (!check(job, &profiles[side], RUNS[side] * (long)job->sets, all.spent_us[1 + side])) return false;
    return check_sides(job, profiles) && watch_conclude(&all.watch, "equal_to_unprofiled");
}
