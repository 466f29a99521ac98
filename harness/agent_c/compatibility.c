/* What onnxruntime says of a compiled model, before anybody loads it: it fits the device, or it does not. */

#include "compiled.h"

#include <ctype.h>
#include <string.h>

static const char *said(Job *job, const char *text) {
    static const char *const words[] = {"EP_NOT_APPLICABLE", "EP_SUPPORTED_OPTIMAL", "EP_SUPPORTED_PREFER_RECOMPILATION", "EP_UNSUPPORTED"};
    const OrtEpDevice *device = target.device;
    int found = -1;
    OrtStatus *status = ORT(GetModelCompatibilityForEpDevices)(&device, 1, text, &found);
    if (status) return arena_format(&job->arena, "refused: %.100s", status_text(&job->arena, status, NULL));
    return found >= 0 && found < 4 ? words[found] : arena_format(&job->arena, "%d", found);
}

/* A description with another last digit of its first version, such as 1.2.4 for 1.2.3; without one, with all digits changed. */
static const char *of_another_version(Job *job, const char *text) {
    char *made = arena_text(&job->arena, text, strlen(text));
    for (char *at = made; *at;) {
        char *end = at;
        int parts = 0;
        while (isdigit((unsigned char)*end)) {
            while (isdigit((unsigned char)*end)) end++;
            parts++;
            if (*end != '.' || !isdigit((unsigned char)end[1])) break;
            end++;
        }
        if (parts > 1) return end[-1] = (char)('0' + (end[-1] - '0' + 1) % 10), made;
        at = end > at ? end : at + 1;
    }
    for (char *at = made; *at; at++)
        if (isdigit((unsigned char)*at)) *at = (char)('0' + (*at - '0' + 1) % 10);
    return made;
}

bool ask_compatibility(Job *job, const char *path) {
    char *info = NULL;
    if (!strcmp(json_text(json_get(json_get(job->message, "scenario_settings"), "asked"), ""), "after the last session is closed")) target_release();
    if (!target.device || !HAS(GetCompatibilityInfoFromModel)) {
        fact_text(job, "compatibility", "not known: this onnxruntime tells it for the devices of plugins alone, or not at all");
        return true;
    }
    if (!job_good(job, ORT(GetCompatibilityInfoFromModel)(runtime_path(&job->arena, path), target.chain[0], ort_allocator, &info))) return false;
    if (!info || !*info) return fact_text(job, "compatibility", "the provider says nothing about its compiled models"), true;
    const char *own = arena_text(&job->arena, info, strlen(info)), *stale = of_another_version(job, own);
    if (!job_good(job, ORT(AllocatorFree)(ort_allocator, info))) return false;
    const char *fresh = said(job, own), *damaged = said(job, arena_text(&job->arena, own, strlen(own) / 2)), *foreign = said(job, "of another provider");
    fact_text(job, "compatibility", arena_format(&job->arena, "fresh: %s; damaged: %s; foreign: %s", fresh, damaged, foreign));
    if (strcmp(stale, own)) fact_texts(job, "stale", (const char *[]){own, stale, said(job, stale)}, 3);
    if (!strcmp(fresh, "EP_UNSUPPORTED")) return job_fail(job, "error", "CompiledModelError", "a model that was compiled here and loads is called EP_UNSUPPORTED");
    const char *optimal = !strcmp(damaged, "EP_SUPPORTED_OPTIMAL") ? "damaged" : !strcmp(foreign, "EP_SUPPORTED_OPTIMAL") ? "foreign" : NULL;
    const char *words = "the description of a %s compiled model is called EP_SUPPORTED_OPTIMAL";
    return !optimal || job_fail(job, "error", "CompiledModelError", arena_format(&job->arena, words, optimal));
}
