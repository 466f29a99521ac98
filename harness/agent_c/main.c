/* The agent: it serves one harness until that sends `stop` or is gone. docs/reference/agent-protocol.md has the rules. */

#include "job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEEDS_PYTHON(name) "\"" name "\":\"it is written for Python\","
static const char DECLINES[] =
    "{" NEEDS_PYTHON("make") NEEDS_PYTHON("evaluate") NEEDS_PYTHON("form") NEEDS_PYTHON("generate") NEEDS_PYTHON("scenario:generate") NEEDS_PYTHON("package")
    NEEDS_PYTHON("scenario:package") "\"tensor_folders\":\"the C agent takes tensors inside messages\","
    "\"native_stack\":\"the C agent reads no native stacks\"}";

static void refuse(const Refusal *refusal, bool with_target) {
    Message message = {0};
    Bytes printed = {0};
    printed_take(&printed, true);
    put_then(&message, refusal->option ? "[\"rejected\"," : "[\"unavailable\",", refusal->option ? refusal->option : refusal->cause);
    put_then(&message, ",", refusal->reason);
    put(&message, ",");
    put_sized(&message, printed.at ? printed.at : "", printed.size);
    put(&message, ",");
    environment_put(&message, with_target);
    put(&message, "]");
    stream_send(&message);
    bytes_free(&printed);
}

static void send_ready(void) {
    Message message = {0};
    put(&message, "[\"ready\",");
    environment_put(&message, true);
    put(&message, "]");
    printed_take(NULL, false);
    stream_send(&message);
}

/* Serve jobs until `stop` or the end of the stream. */
static void serve(void) {
    for (Received *received; (received = stream_receive(NULL)); received_free(received)) {
        if (!strcmp(received->name, "stop")) break;
        if (!strcmp(received->name, "job")) job_serve(received);
    }
}

int main(int argc, char **argv) {
    const char *asked = NULL;
    int code = 0;
    Arena arena = {0};
    Refusal refusal = {0};
    process_begin();
    argv = arguments(&arena, &argc, argv);
    for (int index = 1; index < argc; index++) {
        if (!strcmp(argv[index], "--child")) { /* of an agent that plays a scenario */
            printed_is_shared = true;
            continue;
        }
        if (!strcmp(argv[index], "--library") && index + 1 < argc) {
            asked = argv[++index];
            continue;
        }
        fprintf(stderr, "usage: %s [--library PATH-OF-ONNXRUNTIME]\n", argv[0]);
        return 2;
    }
    if (!stream_open(DECLINES, &code)) return code;
    if (!runtime_load(&arena, asked, &refusal)) {
        refuse(&refusal, false);
        return 0;
    }
    stream_send_plain("[\"imported\"]");
    Received *config = stream_receive(NULL); /* a spare process waits here until it is needed */
    if (!config) end_now(0);
    if (printed_is_shared && !strcmp(config->name, "life")) return life_serve(config->message);
    if (!strcmp(config->name, "config")) {
        const Json *settings = json_item(config->message, 1);
        limit_memory(json_integer(json_get(settings, "memory_limit_mb"), 0));
        if (!target_open(&arena, settings, &refusal) || !target_probe(&arena, &refusal)) {
            refuse(&refusal, true);
            end_now(0); /* what a provider does at exit is no matter of the refusal */
        }
        send_ready();
        serve();
    }
    stream_send_plain("[\"leaving\",\"teardown\"]");
    target_release();
    stream_send_plain("[\"leaving\",\"unload\"]");
    target_unload();
    stream_send_plain("[\"leaving\",\"exit\"]");
    received_free(config);
    arena_free(&arena);
    return 0;
}
