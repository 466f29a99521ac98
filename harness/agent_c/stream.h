/* The stream between harness and agent: hello, greeting, frames, and the messages that wait. */

#ifndef STREAM_H
#define STREAM_H

#include "json.h"
#include "platform.h"

typedef struct Received Received;
struct Received {
    Arena arena;
    Bytes data;
    const Json *message;
    const char *name;
    Received *next;
};

/* Where frames come from: a function that reads, which returns 0 at the end, and what it has read ahead. */
typedef struct {
    size_t (*read)(void *from, void *data, size_t size);
    void *from;
    size_t buffered, taken;
    char buffer[1 << 16];
} Source;

Received *frame_read(Source *source, const char **why); /* NULL with the reason; an empty one at the end */
long line_read(Source *source, char *line, size_t room); /* its size; -1 at the end of the source, -2 if it is too long */
void frame_write(Bytes *frame, const Message *message); /* in binary mode */

/* Take the hello, and greet. False ends the process: there is no harness that speaks as this agent does. */
bool stream_open(const char *declines_json, int *exit_code);

/* Return the next message, or NULL at the end of the stream. `only` is a name to wait for; others keep their order. */
Received *stream_receive(const char *only);
void received_free(Received *received);

void stream_send(Message *message); /* and free it */
#define stream_send_plain(...)             \
    do {                                   \
        Message plain = {0};               \
        put_format(&plain, __VA_ARGS__);   \
        stream_send(&plain);               \
    } while (0)

#endif
