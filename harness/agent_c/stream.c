#include "stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_LINE = 65536, LINE_BYTES = 2997, GRACE_MS = 3000 };
#define MOST_JSON ((uint64_t)32 << 20)
#define MOST_BINARY ((uint64_t)5 << 28) /* 1.25 GiB */

static size_t read_stream(void *from, void *data, size_t size) {
    (void)from;
    return stream_read(data, size);
}

static Source harness; /* filled later: an initial value would put its empty buffer into the program */
static bool binary_mode, is_over;
static Lock *lock, *writing;
static Received *first, **last = &first;

static bool fill(Source *source) {
    if (source->taken < source->buffered) return true;
    source->taken = 0;
    source->buffered = source->read(source->from, source->buffer, sizeof source->buffer);
    return source->buffered > 0;
}

static bool read_exactly(Source *source, char *to, size_t size) {
    while (size) {
        if (!fill(source)) return false;
        size_t step = source->buffered - source->taken < size ? source->buffered - source->taken : size;
        memcpy(to, source->buffer + source->taken, step);
        source->taken += step;
        to += step;
        size -= step;
    }
    return true;
}

long line_read(Source *source, char *line, size_t room) {
    size_t size = 0;
    for (;;) {
        if (!fill(source)) return -1;
        char next = source->buffer[source->taken++];
        if (next == '\n') break;
        if (size + 1 >= room) return -2;
        line[size++] = next;
    }
    if (size && line[size - 1] == '\r') size--;
    line[size] = 0;
    return (long)size;
}

/* Connect where the hello asks for it; an empty address stands for the standard streams. */
static bool take_stream(const char *address, const char **why) {
    int port = 0;
    char rest = 0;
    if (!*address) return true;
    *why = "the address to connect to is not tcp://127.0.0.1:PORT";
    if (sscanf(address, "tcp://127.0.0.1:%5d%c", &port, &rest) != 1 || port <= 0 || port > 65535) return false;
    *why = "nothing listens at the address to connect to";
    harness.buffered = harness.taken = 0;
    return stream_connect(port);
}

static bool greet(const Json *hello, const char *declines_json) {
    const char *token = json_text(json_get(hello, "token"), "");
    const Json *modes = json_get(hello, "modes");
    const char *mode = json_text(json_item(modes, 0), "binary");
    binary_mode = strcmp(mode, "line") != 0;
    Message text = {0};
    put_then(&text, "ep-agent {\"protocol\":1,\"token\":", token);
    put_format(&text, ",\"mode\":\"%s\",\"agent\":\"c\",\"declines\":", binary_mode ? "binary" : "line");
    put(&text, declines_json);
    put(&text, "}\n");
    bool done = stream_write(text.json.at, text.json.size);
    message_free(&text);
    return done;
}

static void read_messages(void);

bool stream_open(const char *declines_json, int *exit_code) {
    static char line[LONGEST_LINE];
    const char *given = getenv("EP_HARNESS_HELLO"), *why = "";
    harness.read = read_stream;
    long size = given ? (long)strlen(given) : line_read(&harness, line, sizeof line);
    const char *hello = given ? given : line;
    Arena arena = {0};
    *exit_code = 1;
    if (size < 0 || strncmp(hello, "ep-harness {", 12)) {
        fprintf(stderr, "ep-harness agent: what came is no hello\n");
        return false;
    }
    Json *values = json_read(&arena, hello + 11, (size_t)size - 11, "", 0, &why);
    bool speaks = false, opened = values && take_stream(json_text(json_get(values, "connect"), ""), &why);
    const Json *protocols = json_get(values, "protocols");
    for (const Json *one = json_item(protocols, 0); one; one = one->next) speaks |= json_integer(one, 0) == 1;
    if (!opened) fprintf(stderr, "ep-harness agent: %s\n", why);
    else if (greet(values, declines_json) && speaks) *exit_code = 0;
    arena_free(&arena);
    if (*exit_code) return false;
    stream_leave_standard();
    lock = lock_new();
    writing = lock_new();
    if (!thread_start(read_messages)) abort();
    return true;
}

Received *frame_read(Source *source, const char **why) {
    char line[LONGEST_LINE], mode, rest;
    unsigned long long json = 0, binary = 0;
    unsigned crc = 0;
    long size = line_read(source, line, 64);
    *why = size == -1 ? "" : "what came is no frame";
    if (size < 0 || sscanf(line, "#%c %llu %llu %8x%c", &mode, &json, &binary, &crc, &rest) != 4) return NULL;
    if ((mode != 'b' && mode != 'l') || strchr(line, '-') || strchr(line, '+')) return NULL;
    *why = "a frame beyond the limits";
    if (json > MOST_JSON || binary > MOST_BINARY) return NULL;
    Received *made = calloc(1, sizeof *made);
    if (!made) abort();
    char *data = NULL;
    size_t total = (size_t)(json + binary);
    *why = "";
    if (mode == 'b') {
        char end = 0;
        data = arena_take(&made->arena, total + 1);
        if (!read_exactly(source, data, total) || !read_exactly(source, &end, 1)) goto failed;
        *why = "a frame without its end";
        if (end != '\n') goto failed;
    } else {
        bool ended = false;
        do {
            *why = "";
            size = line_read(source, line, sizeof line);
            if (size == -1) goto failed;
            *why = "a frame that is no base64";
            if (size <= 0 || size > 4000 || !base64_read(&made->data, line, (size_t)size, &ended)) goto failed;
        } while (made->data.size < total);
        data = made->data.at;
        if (made->data.size != total) goto failed;
    }
    *why = "a frame that was changed";
    if (crc32_of(0, data, total) != crc) goto failed;
    made->message = json_read(&made->arena, data, (size_t)json, data + json, (size_t)binary, why);
    if (!made->message) goto failed;
    made->name = json_text(json_item(made->message, 0), NULL);
    *why = "a message without a name";
    if (!json_is(made->message, JSON_ARRAY) || !made->name) goto failed;
    return made;
failed:
    received_free(made);
    return NULL;
}

static void read_messages(void) {
    const char *why = "";
    for (;;) {
        Received *made = frame_read(&harness, &why);
        lock_take(lock);
        if (made) {
            *last = made;
            last = &made->next;
        } else {
            is_over = true;
        }
        lock_wake(lock);
        lock_give(lock);
        if (!made) break;
    }
    if (*why) {
        fprintf(stderr, "ep-harness agent: %s\n", why);
        end_now(1);
    }
    sleep_ms(GRACE_MS); /* the harness has gone: whatever this process is doing, it ends */
    end_now(0);
}

Received *stream_receive(const char *only) {
    lock_take(lock);
    for (;;) {
        for (Received **at = &first; *at; at = &(*at)->next) {
            Received *found = *at;
            if ((only != NULL) != !strcmp(found->name, "model") || (only && strcmp(found->name, only))) continue;
            *at = found->next;
            if (last == &found->next) last = at;
            lock_give(lock);
            return found;
        }
        if (is_over) break;
        lock_wait(lock);
    }
    lock_give(lock);
    return NULL;
}

void received_free(Received *received) {
    if (!received) return;
    arena_free(&received->arena);
    bytes_free(&received->data);
    free(received);
}

static void send_lines(const Message *message) {
    Bytes lines = {0}, whole = {0};
    bytes_add(&whole, message->json.at, message->json.size);
    for (size_t index = 0; index < message->count; index++) bytes_add(&whole, message->pieces[index].at, message->pieces[index].size);
    for (size_t at = 0; at < whole.size; at += LINE_BYTES) {
        base64_add(&lines, (const uint8_t *)whole.at + at, whole.size - at < LINE_BYTES ? whole.size - at : LINE_BYTES);
        if (lines.size < 1 << 20 && at + LINE_BYTES < whole.size) continue;
        stream_write(lines.at, lines.size);
        lines.size = 0;
    }
    bytes_free(&lines);
    bytes_free(&whole);
}

static void write_head(char head[96], char mode, const Message *message) {
    uint32_t crc = crc32_of(0, message->json.at, message->json.size);
    for (size_t index = 0; index < message->count; index++)
        crc = crc32_of(crc, message->pieces[index].at, message->pieces[index].size);
    snprintf(head, 96, "#%c %zu %zu %08x\n", mode, message->json.size, message->binary_size, (unsigned)crc);
}

void frame_write(Bytes *frame, const Message *message) {
    char head[96];
    write_head(head, 'b', message);
    bytes_add(frame, head, strlen(head));
    bytes_add(frame, message->json.at, message->json.size);
    for (size_t index = 0; index < message->count; index++) bytes_add(frame, message->pieces[index].at, message->pieces[index].size);
    bytes_add(frame, "\n", 1);
}

void stream_send(Message *message) {
    char head[96];
    write_head(head, binary_mode ? 'b' : 'l', message);
    lock_take(writing);
    if (binary_mode) {
        Bytes small = {0}; /* one write for what is small */
        bytes_add(&small, head, strlen(head));
        bytes_add(&small, message->json.at, message->json.size);
        for (size_t index = 0; index < message->count; index++) {
            const Piece *piece = &message->pieces[index];
            if (small.size + piece->size > 1 << 20) {
                stream_write(small.at, small.size);
                small.size = 0;
                stream_write(piece->at, piece->size);
            } else {
                bytes_add(&small, piece->at, piece->size);
            }
        }
        bytes_add(&small, "\n", 1);
        stream_write(small.at, small.size);
        bytes_free(&small);
    } else {
        stream_write(head, strlen(head));
        send_lines(message);
    }
    lock_give(writing);
    message_free(message);
}
