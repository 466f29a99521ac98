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
