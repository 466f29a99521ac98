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
const OrtChar *name_for_runtime(Arena *arena, const char *name); /* a file's name alone */

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
int processor_count(void); /* how many this process may use */
const char *processor_model(Arena *arena);
const char *processor_features(Arena *arena); /* as Linux lists them, between spaces; NULL where it is unknown */
const char *system_name(void);
const char *machine_name(void);

void *library_open(Arena *arena, const char *path, const char **why);
int libraries_loaded(const char *path, bool *has); /* how many, and whether that one is; -1 where it is unknown */
void *library_symbol(void *library, const char *name);

/* Another process of this program. It ends with this one, and its standard streams are pipes to this one. */
typedef struct Process Process;
Process *process_start(Arena *arena, const char *const *arguments); /* beside its name, then NULL; NULL if the system starts none */
size_t process_read(void *process, void *data, size_t size);
bool process_write(Process *process, const void *data, size_t size);
void process_kill(Process *process);
int64_t process_end(Process *process); /* wait for it: its exit code, or minus its signal */
const char *end_in_words(Arena *arena, int64_t end);
void end_as(int64_t end); /* end this process in the same way */

/* Files: what was printed, models that came in pieces, profiles. */
extern bool printed_is_shared; /* with the parent of this process, which takes it */
void printed_take(Bytes *text, bool keep);
int file_open(const char *path, int flags); /* those of open(); a negative number if it fails */
bool make_folder(const char *path);
bool file_append(const char *path, const void *data, size_t size, bool first);
bool file_read(Arena *arena, const char *path, const char **data, size_t *size);
void file_delete(const char *path);
bool file_copy(const char *from, const char *to);
bool is_file(const char *path);
int64_t file_size(const char *path); /* -1 if it is none */
bool path_move(const char *from, const char *to);
const char *folder_of(Arena *arena, const char *path); /* with its separator; "./" if it has none */
char **folder_names(Arena *arena, const char *path, size_t *count);
void folder_delete(const char *path); /* an empty one */
void tree_delete(const char *path);
char *absolute_path(Arena *arena, const char *path);
const char *self_folder(Arena *arena);

#endif
