#ifdef _WIN32
#define _WIN32_WINNT 0x0A00 /* Windows 10: onnxruntime needs no less */
#define WIN32_LEAN_AND_MEAN
#include <winsock2.h> /* before windows.h */
#include <windows.h>

#include <fcntl.h>
#include <io.h>
#include <psapi.h>
#include <shellapi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "platform_own.h"

enum { LONGEST_PLAIN = 247, MOST = 16384 };

static HANDLE input, output;
static SOCKET wire = INVALID_SOCKET;

/* --- texts: UTF-8 here, UTF-16 there --- */

wchar_t *to_wide(Arena *arena, const char *text) {
    int size = MultiByteToWideChar(CP_UTF8, 0, text, -1, NULL, 0);
    wchar_t *made = arena_take(arena, (size_t)(size + 1) * sizeof *made);
    MultiByteToWideChar(CP_UTF8, 0, text, -1, made, size);
    return made;
}

const OrtChar *name_for_runtime(Arena *arena, const char *name) { return to_wide(arena, name); }

static char *to_utf8(Arena *arena, const wchar_t *text) {
    int size = WideCharToMultiByte(CP_UTF8, 0, text, -1, NULL, 0, NULL, NULL);
    char *made = arena_take(arena, (size_t)size + 1);
    WideCharToMultiByte(CP_UTF8, 0, text, -1, made, size, NULL, NULL);
    return made;
}

static wchar_t *full_path(Arena *arena, const char *path) {
    wchar_t *given = to_wide(arena, path);
    DWORD room = GetFullPathNameW(given, 0, NULL, NULL);
    wchar_t *made = arena_take(arena, (room + 1) * sizeof *made);
    return room && GetFullPathNameW(given, room, made, NULL) ? made : given;
}

/* A path as the system takes it, however long it is. */
const OrtChar *runtime_path(Arena *arena, const char *path) {
    wchar_t *full = full_path(arena, path);
    size_t size = wcslen(full);
    if (size <= LONGEST_PLAIN || !wcsncmp(full, L"\\\\?\\", 4)) return full;
    bool is_share = !wcsncmp(full, L"\\\\", 2);
    wchar_t *made = arena_take(arena, (size + 9) * sizeof *made);
    wcscpy(made, is_share ? L"\\\\?\\UNC" : L"\\\\?\\");
    return wcscat(made, is_share ? full + 1 : full);
}

char *absolute_path(Arena *arena, const char *path) {
    const char *home = variable(arena, "USERPROFILE");
    bool at_home = path[0] == '~' && (path[1] == '/' || path[1] == '\\') && home;
    return to_utf8(arena, full_path(arena, at_home ? arena_format(arena, "%s%s", home, path + 1) : path));
}

const char *self_folder(Arena *arena) {
    wchar_t path[32768];
    DWORD size = GetModuleFileNameW(NULL, path, sizeof path / sizeof *path - 1);
    while (size && path[size - 1] != '\\') size--;
    path[size] = 0;
    return to_utf8(arena, path);
}

const char *variable(Arena *arena, const char *name) {
    const wchar_t *found = _wgetenv(to_wide(arena, name));
    return found ? to_utf8(arena, found) : NULL;
}

char **arguments(Arena *arena, int *count, char **given) {
    wchar_t **words = CommandLineToArgvW(GetCommandLineW(), count);
    if (!words) return given;
    char **made = arena_take(arena, ((size_t)*count + 1) * sizeof *made);
    for (int index = 0; index < *count; index++) made[index] = to_utf8(arena, words[index]);
    LocalFree(words);
    return made;
}

/* --- the stream --- */

static LONG WINAPI tell_exception(EXCEPTION_POINTERS *raised) {
    char line[80];
    DWORD done, size = (DWORD)wsprintfA(line, "\nep-harness agent: ended by 0x%08X\n", (unsigned)raised->ExceptionRecord->ExceptionCode);
    WriteFile(GetStdHandle(STD_ERROR_HANDLE), line, size, &done, NULL);
    TerminateProcess(GetCurrentProcess(), raised->ExceptionRecord->ExceptionCode);
    return EXCEPTION_EXECUTE_HANDLER;
}

/* What a provider starts ends with this process: its job has no other holder. */
void limit_memory(int64_t mib) {
    static HANDLE job;
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits = {.ProcessMemoryLimit = mib > 0 ? (SIZE_T)mib << 20 : 0};
    limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE | (mib > 0 ? JOB_OBJECT_LIMIT_PROCESS_MEMORY : 0);
    bool is_new = !job;
    if (is_new) job = CreateJobObjectW(NULL, NULL);
    SetInformationJobObject(job, JobObjectExtendedLimitInformation, &limits, sizeof limits);
    if (is_new) AssignProcessToJobObject(job, GetCurrentProcess());
}

void process_begin(void) { /* the end of the stream tells it; a pipe breaks when the harness ends */
    ULONG stack = 1 << 16; /* for what is done after an overflow */
    SetErrorMode(SEM_FAILCRITICALERRORS | SEM_NOGPFAULTERRORBOX | SEM_NOOPENFILEERRORBOX);
    SetUnhandledExceptionFilter(tell_exception);
    SetThreadStackGuarantee(&stack);
    SetConsoleCtrlHandler(NULL, TRUE); /* on Ctrl-C the harness stops its agents */
    limit_memory(0);
    _setmode(2, _O_BINARY);
    input = GetStdHandle(STD_INPUT_HANDLE);
    output = GetStdHandle(STD_OUTPUT_HANDLE);
}

bool stream_connect(int port) {
    WSADATA about;
    BOOL one = TRUE;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (!WSAStartup(MAKEWORD(2, 2), &about)) wire = WSASocketW(AF_INET, SOCK_STREAM, 0, NULL, 0, WSA_FLAG_NO_HANDLE_INHERIT);
    if (wire == INVALID_SOCKET || connect(wire, (struct sockaddr *)&address, sizeof address)) return false;
    setsockopt(wire, IPPROTO_TCP, TCP_NODELAY, (const char *)&one, sizeof one);
    return true;
}

static HANDLE keep_own(HANDLE standard) {
    HANDLE own = NULL;
    DuplicateHandle(GetCurrentProcess(), standard, GetCurrentProcess(), &own, 0, FALSE, DUPLICATE_SAME_ACCESS);
    return own;
}

void stream_leave_standard(void) {
    process_keep_variables();
    if (wire == INVALID_SOCKET) {
        input = keep_own(input);
        output = keep_own(output);
        int nothing = _open("NUL", _O_RDONLY);
        _dup2(nothing, 0);
        _close(nothing);
        SetStdHandle(STD_INPUT_HANDLE, (HANDLE)_get_osfhandle(0));
    }
    _dup2(2, 1);
    SetStdHandle(STD_OUTPUT_HANDLE, GetStdHandle(STD_ERROR_HANDLE)); /* the runtime's own C library looks here */
}

bool handle_write(void *to, const void *data, size_t size) {
    const char *at = data;
    for (DWORD done = 0; size; at += done, size -= done)
        if (!WriteFile(to, at, size > 1 << 20 ? 1 << 20 : (DWORD)size, &done, NULL) || !done) return false;
    return true;
}

size_t stream_read(void *data, size_t size) {
    DWORD got = 0;
    if (wire != INVALID_SOCKET) {
        int received = recv(wire, data, (int)size, 0);
        return received > 0 ? (size_t)received : 0;
    }
    return ReadFile(input, data, (DWORD)size, &got, NULL) ? got : 0;
}

bool stream_write(const void *data, size_t size) {
    const char *at = data;
    if (wire == INVALID_SOCKET) return handle_write(output, data, size);
    for (int sent = 0; size; at += sent, size -= (size_t)sent)
        if ((sent = send(wire, at, size > 1 << 20 ? 1 << 20 : (int)size, 0)) <= 0) return false;
    return true;
}

/* --- threads and time --- */

struct Lock {
    SRWLOCK mutex;
    CONDITION_VARIABLE changed;
};

Lock *lock_new(void) { /* all zero is what both begin with */
    Lock *lock = calloc(1, sizeof *lock);
    if (!lock) abort();
    return lock;
}

void lock_take(Lock *lock) { AcquireSRWLockExclusive(&lock->mutex); }
void lock_give(Lock *lock) { ReleaseSRWLockExclusive(&lock->mutex); }
void lock_wait(Lock *lock) { SleepConditionVariableSRW(&lock->changed, &lock->mutex, INFINITE, 0); }
void lock_wake(Lock *lock) { WakeAllConditionVariable(&lock->changed); }

static DWORD WINAPI run_thread(void *function) {
    void (*wanted)(void);
    memcpy(&wanted, &function, sizeof wanted);
    wanted();
    return 0;
}

bool thread_start(void (*function)(void)) {
    void *given;
    memcpy(&given, &function, sizeof given);
    HANDLE thread = CreateThread(NULL, 0, run_thread, given, 0, NULL);
    return thread && CloseHandle(thread);
}

void sleep_ms(int ms) { Sleep((DWORD)ms); }
void end_now(int code) { TerminateProcess(GetCurrentProcess(), (UINT)code); }

double now_ms(void) {
    LARGE_INTEGER ticks, per_s;
    QueryPerformanceFrequency(&per_s);
    QueryPerformanceCounter(&ticks);
    return (double)ticks.QuadPart * 1e3 / (double)per_s.QuadPart;
}

static double in_ms(FILETIME time) { return ((double)time.dwHighDateTime * 4294967296.0 + time.dwLowDateTime) / 1e4; }

double processor_ms(void) {
    FILETIME begun, ended, kernel = {0}, user = {0};
    GetProcessTimes(GetCurrentProcess(), &begun, &ended, &kernel, &user);
    return in_ms(kernel) + in_ms(user);
}

static double memory_mib(bool peak) {
    PROCESS_MEMORY_COUNTERS counted = {.cb = sizeof counted};
    if (!K32GetProcessMemoryInfo(GetCurrentProcess(), &counted, sizeof counted)) return -1;
    return (double)(peak ? counted.PeakWorkingSetSize : counted.WorkingSetSize) / 1048576;
}

double resident_mib(void) { return memory_mib(false); }
double peak_mib(bool reset) { return reset ? -1 : memory_mib(true); }

int thread_count(void) { return -1; } /* it takes a list of all processes of the machine */

int descriptor_count(void) {
    DWORD count = 0;
    return GetProcessHandleCount(GetCurrentProcess(), &count) ? (int)count : -1;
}

/* --- the machine --- */

const char *processor_model(Arena *arena) {
    const char *model = variable(arena, "PROCESSOR_IDENTIFIER");
    return model ? model : "";
}

const char *processor_features(Arena *arena) {
    (void)arena;
    return NULL; /* Windows has no list of them */
}

int processor_count(void) { return (int)GetActiveProcessorCount(ALL_PROCESSOR_GROUPS); }

NTSYSAPI LONG NTAPI RtlGetVersion(RTL_OSVERSIONINFOW *);

const char *system_name(void) {
    static char name[64];
    RTL_OSVERSIONINFOW about = {.dwOSVersionInfoSize = sizeof about};
    RtlGetVersion(&about); /* GetVersionEx returns what a manifest asks for */
    const char *wine = GetProcAddress(GetModuleHandleW(L"ntdll.dll"), "wine_get_version") ? " (wine)" : "";
    snprintf(name, sizeof name, "Windows-%lu.%lu.%lu%s", about.dwMajorVersion, about.dwMinorVersion, about.dwBuildNumber, wine);
    return name;
}

const char *machine_name(void) {
    SYSTEM_INFO about;
    GetNativeSystemInfo(&about);
    WORD kind = about.wProcessorArchitecture;
    return kind == PROCESSOR_ARCHITECTURE_AMD64 ? "AMD64" : kind == PROCESSOR_ARCHITECTURE_ARM64 ? "ARM64" : "x86";
}

void *library_open(Arena *arena, const char *path, const char **why) {
    DWORD flags = LOAD_LIBRARY_SEARCH_DEFAULT_DIRS;
    wchar_t text[512] = L"";
    bool has_folder = strpbrk(path, "/\\") != NULL;
    if (has_folder) flags |= LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR; /* what it needs may lie beside it */
    HMODULE library = LoadLibraryExW(has_folder ? full_path(arena, path) : to_wide(arena, path), NULL, flags);
    DWORD error = library ? 0 : GetLastError();
    FormatMessageW(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS, NULL, error, 0, text, 511, NULL);
    text[wcscspn(text, L"\r\n")] = 0;
    *why = library ? "" : arena_format(arena, "%s: error %lu: %s", path, error, to_utf8(arena, text));
    return library;
}

int libraries_loaded(const char *path, bool *has) {
    HMODULE some[1];
    DWORD needed = 0;
    Arena arena = {0};
    *has = GetModuleHandleW(full_path(&arena, path)) != NULL;
    arena_free(&arena);
    return K32EnumProcessModules(GetCurrentProcess(), some, sizeof some, &needed) ? (int)(needed / sizeof *some) : -1;
}

void *library_symbol(void *library, const char *name) {
    FARPROC found = GetProcAddress(library, name);
    void *symbol;
    memcpy(&symbol, &found, sizeof symbol);
    return symbol;
}

/* --- files --- */

int file_open(const char *path, int flags) {
    Arena arena = {0};
    int file = _wopen(runtime_path(&arena, path), flags | _O_BINARY | _O_NOINHERIT, _S_IREAD | _S_IWRITE);
    arena_free(&arena);
    return file;
}

/* The standard error is a file that may be for writing only; this folder has it under its name. */
void printed_take(Bytes *text, bool keep) {
    HANDLE printed = GetStdHandle(STD_ERROR_HANDLE);
    LARGE_INTEGER size = {0};
    char data[MOST];
    fflush(stdout);
    fflush(stderr);
    if (printed_is_shared || GetFileType(printed) != FILE_TYPE_DISK || !GetFileSizeEx(printed, &size)) return;
    int file = text && size.QuadPart ? file_open("output.txt", _O_RDONLY) : -1, got = 0;
    if (file >= 0 && size.QuadPart > MOST) _lseeki64(file, size.QuadPart - MOST, SEEK_SET);
    if (file >= 0) got = _read(file, data, MOST);
    if (file >= 0) _close(file);
    if (got > 0) utf8_clean(text, data, (size_t)got);
    if (!keep && size.QuadPart && SetFilePointerEx(printed, (LARGE_INTEGER){0}, NULL, FILE_BEGIN)) SetEndOfFile(printed);
}

bool make_folder(const char *path) {
    Arena arena = {0};
    bool made = CreateDirectoryW(runtime_path(&arena, path), NULL) || GetLastError() == ERROR_ALREADY_EXISTS;
    arena_free(&arena);
    return made;
}

void file_delete(const char *path) {
    Arena arena = {0};
    DeleteFileW(runtime_path(&arena, path));
    arena_free(&arena);
}

bool path_move(const char *from, const char *to) {
    Arena arena = {0};
    bool moved = MoveFileW(runtime_path(&arena, from), runtime_path(&arena, to));
    arena_free(&arena);
    return moved;
}

void folder_delete(const char *path) {
    Arena arena = {0};
    RemoveDirectoryW(runtime_path(&arena, path));
    arena_free(&arena);
}

char **folder_names(Arena *arena, const char *path, size_t *count) {
    WIN32_FIND_DATAW one;
    char **names = NULL;
    for (int round = 0; round < 2; round++) { /* count, then take */
        size_t room = round ? *count : 0;
        HANDLE search = FindFirstFileW(runtime_path(arena, arena_format(arena, "%s\\*", path)), &one);
        if (round) names = arena_take(arena, (room + 1) * sizeof *names);
        *count = 0;
        if (search == INVALID_HANDLE_VALUE) break;
        do {
            if (!wcscmp(one.cFileName, L".") || !wcscmp(one.cFileName, L"..")) continue;
            if (round && *count < room) names[*count] = to_utf8(arena, one.cFileName);
            if (!round || *count < room) (*count)++;
        } while (FindNextFileW(search, &one));
        FindClose(search);
    }
    return names;
}
#else
typedef int nothing_for_windows; /* ISO C wants something in each file */
#endif
