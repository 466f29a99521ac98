/* A model that comes in pieces: each file is asked for, checked by SHA-256, and written below the process's folder. */

#include "job.h"

#include <stdio.h>
#include <string.h>

enum { MOST_FILES = 65536 };

static bool unfed(Job *job, const char *why, const char *name) {
    return job_fail(job, "unfeedable", NULL, arena_format(&job->arena, "the model did not arrive: %s: %.200s", why, name));
}

bool stays_inside(const char *name, size_t length) {
    if (!length || memchr(name, 0, length) || strpbrk(name, "\\:")) return false;
    for (const char *part = name; part;) {
        const char *end = strchr(part, '/');
        size_t size = end ? (size_t)(end - part) : strlen(part);
        if (PATH_SEPARATOR[0] != '/' && size && strchr(". ", part[size - 1])) return false; /* it would be another name */
        if (!size || (size == 1 && part[0] == '.') || (size == 2 && !memcmp(part, "..", 2))) return false;
        part = end ? end + 1 : NULL;
    }
    return true;
}

char *path_in(Arena *arena, const char *folder, const char *name) {
    char *path = arena_format(arena, "%s/%s", folder, name);
    for (char *slash = path + strlen(folder) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = 0;
        if (!make_folder(path)) return NULL;
    }
    return path;
}

static bool fetch_file(Job *job, const char *folder, const Json *file) {
    const Json *name = json_item(file, 0);
    int64_t size = json_integer(json_item(file, 1), -1), at = 0;
    const char *digest = json_text(json_item(file, 2), "");
    Sha256 sums;
    char hex[65];
    sha256_begin(&sums);
    if (!json_is(name, JSON_TEXT) || !stays_inside(name->text, name->size) || size < 0) return unfed(job, "a name that is none of a file in its folder", json_text(name, ""));
    char *path = path_in(&job->arena, folder, name->text);
    if (!path || !file_append(path, "", 0, true)) return unfed(job, "it cannot be written", name->text);
    while (at < size) {
        Message ask = {0};
        put_format(&ask, "[\"need\",%lld,", (long long)job->id);
        put_text(&ask, name->text);
        put_format(&ask, ",%lld]", (long long)at);
        stream_send(&ask);
        Received *piece = stream_receive("model");
        if (!piece) end_now(0);
        const Json *data = json_item(piece->message, 4);
        bool fits = json_is(data, JSON_BYTES) && data->size && data->size <= (uint64_t)(size - at) &&
                    json_integer(json_item(piece->message, 1), -1) == job->id && json_integer(json_item(piece->message, 3), -1) == at &&
                    !strcmp(json_text(json_item(piece->message, 2), ""), name->text);
        bool written = fits && file_append(path, data->text, data->size, false);
        if (written) {
            sha256_add(&sums, data->text, data->size);
            at += (int64_t)data->size;
        }
        received_free(piece);
        if (!written) return unfed(job, fits ? "it cannot be written" : "a piece is missing", name->text);
    }
    sha256_hex(&sums, hex);
    return !strcmp(hex, digest) || unfed(job, "its SHA-256 is another", name->text);
}

bool model_fetch(Job *job) {
    static char kept[65];
    static char *kept_path;
    static Arena lasting;
    static unsigned number;
    const Json *model = json_get(job->message, "model"), *files = json_get(model, "files");
    const char *digest = json_text(json_get(model, "digest"), "");
    if (!json_is(files, JSON_ARRAY) || !files->size || files->size > MOST_FILES) return unfed(job, "it names no files", "");
    if (kept_path && strlen(digest) == 64 && !strcmp(kept, digest) && is_file(kept_path)) {
        job->plan.model = kept_path;
        return true;
    }
    char *folder = arena_format(&job->arena, "model-%u", number++);
    if (!make_folder(folder)) return unfed(job, "there is no folder for it", folder);
    for (const Json *file = files->first; file; file = file->next)
        if (!fetch_file(job, folder, file)) return false;
    job->plan.model = absolute_path(&job->arena, arena_format(&job->arena, "%s/%s", folder, json_text(json_item(files->first, 0), "")));
    if (strlen(digest) == 64) {
        arena_free(&lasting);
        kept_path = arena_text(&lasting, job->plan.model, strlen(job->plan.model));
        memcpy(kept, digest, sizeof kept);
    }
    return true;
}

const char *scratch_begin(Job *job) {
    const char *folder = absolute_path(&job->arena, "scratch");
    tree_delete(folder);
    if (make_folder(folder)) return folder;
    job_fail(job, "unfeedable", NULL, "the agent's folder takes no files");
    return NULL;
}

void scratch_end(Job *job) { tree_delete(absolute_path(&job->arena, "scratch")); }
