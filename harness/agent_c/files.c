/* Whole files, by the descriptors that each system's C library has. */

#include "platform.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LARGEST_STEP = 1 << 30 };

bool printed_is_shared;

static bool is_regular(int file, int64_t *size) {
    struct stat about;
    if (file < 0 || fstat(file, &about)) return false;
    *size = (int64_t)about.st_size;
    return S_ISREG(about.st_mode);
}

int64_t file_size(const char *path) {
    int64_t size;
    int file = file_open(path, O_RDONLY);
    bool is_one = is_regular(file, &size);
    if (file >= 0) close(file);
    return is_one ? size : -1;
}

bool is_file(const char *path) { return file_size(path) >= 0; }

bool file_append(const char *path, const void *data, size_t size, bool first) {
    int64_t before;
    int file = file_open(path, O_WRONLY | (first ? O_CREAT | O_TRUNC : O_APPEND));
    bool is_one = is_regular(file, &before);
    for (const char *at = data; is_one && size;) {
        long done = (long)write(file, at, size < LARGEST_STEP ? size : LARGEST_STEP);
        if (done <= 0) break;
        at += done;
        size -= (size_t)done;
    }
    if (file >= 0 && close(file)) return false;
    return is_one && !size;
}

bool file_read(Arena *arena, const char *path, const char **data, size_t *size) {
    int64_t whole = 0;
    int file = file_open(path, O_RDONLY);
    bool is_one = is_regular(file, &whole);
    char *to = is_one ? arena_take(arena, (size_t)whole + 1) : NULL;
    for (*size = 0; is_one && *size < (size_t)whole;) {
        size_t left = (size_t)whole - *size;
        long got = (long)read(file, to + *size, left < LARGEST_STEP ? left : LARGEST_STEP);
        if (got <= 0) break;
        *size += (size_t)got;
    }
    if (file >= 0) close(file);
    *data = to;
    return is_one && *size == (size_t)whole;
}

bool file_copy(const char *from, const char *to) {
    const char *data = NULL;
    size_t size = 0;
    Arena arena = {0};
    bool done = file_read(&arena, from, &data, &size) && file_append(to, data, size, true);
    arena_free(&arena);
    return done;
}

const char *folder_of(Arena *arena, const char *path) {
    size_t length = strlen(path);
    while (length && path[length - 1] != '/' && path[length - 1] != PATH_SEPARATOR[0]) length--;
    return length ? arena_text(arena, path, length) : "./";
}

void tree_delete(const char *path) {
    Arena arena = {0};
    size_t count = 0;
    char **names = folder_names(&arena, path, &count);
    for (size_t index = 0; index < count; index++) {
        const char *inner = arena_format(&arena, "%s/%s", path, names[index]);
        file_delete(inner);
        tree_delete(inner); /* nothing, if it was a file */
    }
    folder_delete(path);
    arena_free(&arena);
}
