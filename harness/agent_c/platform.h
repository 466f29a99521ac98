/* What differs between systems: threads, files, processes, and the library of a runtime. */

#ifndef PLATFORM_H
#define PLATFORM_H

#include "bytes.h"

#ifdef _WIN32
#define PATH_SEPARATOR "\\"
typedef wchar_t OrtChar;
#else
#define PATH_SEPARATOR "/"
typedef char OrtChar;
#endif

const OrtChar *runtime_path(Arena *arena, const char *path); /* a path as onnxruntime takes it */

/* The process: what it was given, in UTF-8, and how it ends with what started it. */
void process_begin(void);
char **arguments(Arena *arena, int *count, char **given);
const char *variable(Arena *arena, const char *name); /* NULL if it is not set */

/* The stream of messages; read returns 0 at its end, write false. */
bool stream_connect(int port); /* to this machine, in place of the standard streams */
size_t stream_read(void *data, size_t size);
bool stream_write(const void *data, size_t size);
void stream_leave_standard(void); /* what a provider prints goes elsewhere from here on */

typedef struct Lock Lock;
Lock *lock_new(void);
void lock_take(Lock *lock);
void lock_give(Lock *lock);
void lock_wait(Lock *lock); /* until `lock_wake`; the lock is taken */
void lock_wake(Lock *lock);
bool thread_start(void (*function)(void));
void sleep_ms(int ms);
void end_now(int code); /* whatever the other threads do */

double now_ms(void);
double processor_ms(void);
double resident_mib(void); /* -1 where it is unknown */
double peak_mib(bool reset);
int thread_count(void);
int descriptor_count(void);
void limit_memory(int64_t mib);
int processor_count(void);
const char *system_name(void);
const char *machine_name(void);

void *library_open(Arena *arena, const char *path, const char **why);
void *library_symbol(void *library, const char *name);

/* Files: what was printed, models that came in pieces, profiles. */
void printed_take(Bytes *text, bool keep);
int file_open(const char *path, int flags); /* those of open(); a negative number if it fails */
bool make_folder(const char *path);
bool file_append(const char *path, const void *data, size_t size, bool first);
bool file_read(Arena *arena, const char *path, const char **data, size_t *size);
void file_delete(const char *path);
bool is_file(const char *path);
char *absolute_path(Arena *arena, const char *path);
const char *self_folder(Arena *arena);

#endif
