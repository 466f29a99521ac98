/* What is told of the processor: a provider may compute in another way, or in another precision, on another one. */

#include "session.h"

#include <string.h>

/* Features for which a library chooses another arithmetic; harness/agent/system.py has the same. */
static const char *const FEATURES[] = {
    "amx_tile", "amx_bf16", "amx_fp16", "amx_int8", "avx512_bf16", "avx512_fp16", "avx512_vnni", "avx512f",
    "avx_vnni", "avx_ne_convert", "avx2", "fma", "f16c",
    "asimd", "asimdhp", "asimddp", "bf16", "i8mm", "sve", "sve2", "svebf16", "sme",
};

void processor_put(Message *message) {
    Arena arena = {0};
    const char *listed = processor_features(&arena), *found[sizeof FEATURES / sizeof *FEATURES];
    size_t count = 0;
    put_then(message, ",\"processor\":{\"model\":", processor_model(&arena));
    put_format(message, ",\"count\":%d", processor_count());
    if (listed) {
        const char *spaced = arena_format(&arena, " %s ", listed);
        for (size_t index = 0; index < sizeof FEATURES / sizeof *FEATURES; index++)
            if (strstr(spaced, arena_format(&arena, " %s ", FEATURES[index]))) found[count++] = FEATURES[index];
        put_texts(message, ",\"features\":", found, count);
    }
    put(message, "}");
    arena_free(&arena);
}
