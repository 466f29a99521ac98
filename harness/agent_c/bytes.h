/* Memory, byte buffers, checksums and texts: what every other part stands on. */

#ifndef BYTES_H
#define BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Memory that is freed together: of a message, or of a job. */
typedef struct Block Block;
typedef struct {
    Block *blocks;
} Arena;

void *arena_take(Arena *arena, size_t size); /* zeroed; never NULL: no memory ends the process */
char *arena_text(Arena *arena, const char *text, size_t size);
char *arena_format(Arena *arena, const char *format, ...);
void arena_join(Arena *arena, Arena *other); /* the memory of the other becomes that of the first */
void arena_free(Arena *arena);

/* Bytes that grow. */
typedef struct {
    char *at;
    size_t size, room;
} Bytes;

void bytes_add(Bytes *bytes, const void *data, size_t size);
void bytes_format(Bytes *bytes, const char *format, ...);
void bytes_free(Bytes *bytes);

uint32_t crc32_of(uint32_t crc, const void *data, size_t size); /* begins with 0; that of zip */

typedef struct {
    uint32_t state[8];
    uint64_t total;
    uint8_t block[64];
} Sha256;

void sha256_begin(Sha256 *sums);
void sha256_add(Sha256 *sums, const void *data, size_t size);
void sha256_hex(Sha256 *sums, char hex[65]);

void base64_add(Bytes *lines, const uint8_t *data, size_t size); /* one line, with its line feed */
bool base64_read(Bytes *data, const char *line, size_t size, bool *ended);

void utf8_clean(Bytes *text, const char *data, size_t size); /* what is no UTF-8 becomes U+FFFD */
bool is_utf8(const char *data, size_t size);

#endif
