/* Another process of this program, on POSIX systems. */

#ifndef _WIN32
#include "platform_own.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static char **own_variables; /* as this process began with them, for another one; its first entry says who is the parent */

/* The hello was for this process alone, and what a provider sets is for no other. */
void process_keep_variables(void) {
    static Arena lasting;
    size_t count = 0, kept = 1;
    while (environ[count]) count++;
    own_variables = arena_take(&lasting, (count + 2) * sizeof *own_variables);
    own_variables[0] = arena_format(&lasting, "EP_HARNESS_PARENT=%ld", (long)getpid());
    for (size_t index = 0; index < count; index++)
        if (strncmp(environ[index], "EP_HARNESS_HELLO=", 17) && strncmp(environ[index], "EP_HARNESS_PARENT=", 18))
            own_variables[kept++] = arena_text(&lasting, environ[index], strlen(environ[index]));
}

struct Process {
    pid_t id;
    int in, out;
};


Process *process_start(Arena *arena, const char *const *arguments) {
    char path[PATH_MAX] = "";
    int in[2] = {-1, -1}, out[2] = {-1, -1};
    Process *made = arena_take(arena, sizeof *made);
    posix_spawn_file_actions_t actions;
    const char *words[16] = {path};
    for (int index = 0; index < 14 && arguments[index]; index++) words[index + 1] = arguments[index];
    posix_spawn_file_actions_init(&actions);
    bool started = readlink("/proc/self/exe", path, sizeof path - 1) > 0 && !pipe(in) && !pipe(out);
    for (int end = 0; end < 2 && started; end++) fcntl(in[end], F_SETFD, FD_CLOEXEC), fcntl(out[end], F_SETFD, FD_CLOEXEC);
    if (started) {
        posix_spawn_file_actions_adddup2(&actions, in[0], 0);
        posix_spawn_file_actions_adddup2(&actions, out[1], 1);
        started = !posix_spawn(&made->id, path, &actions, NULL, (char *const *)(uintptr_t)words, own_variables);
    }
    posix_spawn_file_actions_destroy(&actions);
    made->in = in[1], made->out = out[0];
    if (in[0] >= 0) close(in[0]);
    if (out[1] >= 0) close(out[1]);
    if (started) return made;
    if (in[1] >= 0) close(in[1]);
    if (out[0] >= 0) close(out[0]);
    return NULL;
}

size_t process_read(void *process, void *data, size_t size) {
    ssize_t got;
    while ((got = read(((Process *)process)->out, data, size)) < 0 && errno == EINTR) continue;
    return got > 0 ? (size_t)got : 0;
}

bool process_write(Process *process, const void *data, size_t size) { return descriptor_write(process->in, data, size); }
void process_kill(Process *process) { kill(process->id, SIGKILL); }

int64_t process_end(Process *process) {
    int status = 0;
    close(process->in);
    close(process->out);
    while (waitpid(process->id, &status, 0) < 0 && errno == EINTR) continue;
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

const char *end_in_words(Arena *arena, int64_t end) {
    static const struct {
        int number;
        const char *name;
    } names[] = {{SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"}, {SIGFPE, "SIGFPE"}, {SIGILL, "SIGILL"}, {SIGKILL, "SIGKILL"},
                 {SIGPIPE, "SIGPIPE"}, {SIGSEGV, "SIGSEGV"}, {SIGSYS, "SIGSYS"}, {SIGTERM, "SIGTERM"}, {SIGTRAP, "SIGTRAP"}};
    for (size_t index = 0; index < sizeof names / sizeof *names; index++)
        if (end == -names[index].number) return names[index].name;
    return arena_format(arena, end < 0 ? "signal %lld" : "exit code %lld", (long long)(end < 0 ? -end : end));
}

void end_as(int64_t end) {
    if (end < 0) {
        signal((int)-end, SIG_DFL);
        kill(getpid(), (int)-end);
        sleep_ms(1000); /* the signal may come to another thread */
    }
    _exit(end < 0 ? 1 : (int)end);
}
#else
typedef int no_posix_process; /* ISO C wants something in each file */
#endif
