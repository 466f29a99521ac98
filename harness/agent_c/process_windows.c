/* Another process of this program, on Windows. */

#ifdef _WIN32
#define _WIN32_WINNT 0x0A00
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include "platform_own.h"

static wchar_t *own_variables; /* as this process began with them, for another one */

void process_keep_variables(void) {
    SetEnvironmentVariableW(L"EP_HARNESS_HELLO", NULL); /* it was for this process alone */
    own_variables = GetEnvironmentStringsW(); /* what a provider sets is for no other */
}

struct Process {
    HANDLE process, in, out;
};

Process *process_start(Arena *arena, const char *const *given) {
    wchar_t path[32768];
    STARTUPINFOW how = {.cb = sizeof how, .dwFlags = STARTF_USESTDHANDLES, .hStdError = GetStdHandle(STD_ERROR_HANDLE)};
    PROCESS_INFORMATION made = {0};
    SECURITY_ATTRIBUTES inherited = {.nLength = sizeof inherited, .bInheritHandle = TRUE};
    Process *process = arena_take(arena, sizeof *process);
    GetModuleFileNameW(NULL, path, sizeof path / sizeof *path);
    const char *words = "agent";
    for (; *given; given++) words = arena_format(arena, "%s \"%s\"", words, *given); /* none ends in a backslash */
    SetHandleInformation(how.hStdError, HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT);
    bool started = CreatePipe(&how.hStdInput, &process->in, &inherited, 0) && CreatePipe(&process->out, &how.hStdOutput, &inherited, 0);
    SetHandleInformation(process->in, HANDLE_FLAG_INHERIT, 0);
    SetHandleInformation(process->out, HANDLE_FLAG_INHERIT, 0);
    started = started && CreateProcessW(path, to_wide(arena, words), NULL, NULL, TRUE, CREATE_UNICODE_ENVIRONMENT, own_variables, NULL, &how, &made);
    if (how.hStdInput) CloseHandle(how.hStdInput);
    if (how.hStdOutput) CloseHandle(how.hStdOutput);
    process->process = made.hProcess;
    if (started) return CloseHandle(made.hThread), process;
    if (process->in) CloseHandle(process->in);
    if (process->out) CloseHandle(process->out);
    return NULL;
}

size_t process_read(void *process, void *data, size_t size) {
    DWORD got = 0;
    return ReadFile(((Process *)process)->out, data, (DWORD)size, &got, NULL) ? got : 0;
}

bool process_write(Process *process, const void *data, size_t size) { return handle_write(process->in, data, size); }
void process_kill(Process *process) { TerminateProcess(process->process, 1); }

int64_t process_end(Process *process) {
    DWORD code = 0;
    CloseHandle(process->in);
    CloseHandle(process->out);
    WaitForSingleObject(process->process, INFINITE);
    GetExitCodeProcess(process->process, &code);
    CloseHandle(process->process);
    return code;
}

const char *end_in_words(Arena *arena, int64_t end) { return arena_format(arena, end >> 31 ? "exit code 0x%llX" : "exit code %lld", (long long)end); }
void end_as(int64_t end) { TerminateProcess(GetCurrentProcess(), (UINT)end); }
#else
typedef int no_windows_process; /* ISO C wants something in each file */
#endif
