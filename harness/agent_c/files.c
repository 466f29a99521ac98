/* Whole files, by the descriptors that each system's C library has. */

#include "platform.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LARGEST_STEP = 1 << 30 };

static bool is_regular(int file, int64_t *size) {
    struct stat about;
    if (file < 0 || fstat(file, &about)) return false;
    *size = (int64_t)about.st_size;
    return S_ISREG(about.st_mode);
}

bool is_file(const char *path) {
    int64_t size;
    int file = file_open(path, O_RDONLY);
    bool is_one = is_regular(file, &size);
    if (file >= 0) close(file);
    return is_one;
}

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
