#include "bytes.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct Block {
    Block *next;
    size_t room, used;
    max_align_t data[];
};

enum { BLOCK = 64 << 10, ALIGN = 64 };

static void no_memory(size_t size) {
    fprintf(stderr, "ep-harness: no memory for %zu bytes\n", size);
    abort();
}

void *arena_take(Arena *arena, size_t size) {
    if (size > SIZE_MAX / 4) no_memory(size);
    size_t rounded = (size + ALIGN - 1) / ALIGN * ALIGN;
    Block *block = arena->blocks;
    if (!block || block->room - block->used < rounded) {
        size_t room = rounded > BLOCK / 4 ? rounded : BLOCK;
        if (!(block = calloc(1, sizeof(Block) + room))) no_memory(room);
        block->room = room;
        if (room > BLOCK && arena->blocks) { /* the block before goes on */
            block->next = arena->blocks->next;
            arena->blocks->next = block;
        } else {
            block->next = arena->blocks;
            arena->blocks = block;
        }
    }
    void *data = (char *)block->data + block->used;
    block->used += rounded;
    return data;
}

char *arena_text(Arena *arena, const char *text, size_t size) {
    char *copy = arena_take(arena, size + 1);
    if (size) memcpy(copy, text, size);
    return copy;
}

char *arena_format(Arena *arena, const char *format, ...) {
    va_list list;
    va_start(list, format);
    int size = vsnprintf(NULL, 0, format, list);
    va_end(list);
    char *text = arena_take(arena, size < 0 ? 1 : (size_t)size + 1);
    va_start(list, format);
    if (size >= 0) vsnprintf(text, (size_t)size + 1, format, list);
    va_end(list);
    return text;
}

void arena_join(Arena *arena, Arena *other) {
    Block **end = &arena->blocks;
    while (*end) end = &(*end)->next;
    *end = other->blocks;
    other->blocks = NULL;
}

void arena_free(Arena *arena) {
    while (arena->blocks) {
        Block *block = arena->blocks;
        arena->blocks = block->next;
        free(block);
    }
}

static char *more(Bytes *bytes, size_t size) {
    if (bytes->room - bytes->size < size) {
        size_t room = bytes->room * 2 + size + 256;
        char *at = room < size ? NULL : realloc(bytes->at, room);
        if (!at) no_memory(room);
        bytes->at = at;
        bytes->room = room;
    }
    char *end = bytes->at + bytes->size;
    bytes->size += size;
    return end;
}

void bytes_add(Bytes *bytes, const void *data, size_t size) {
    if (size) memcpy(more(bytes, size), data, size);
}

void bytes_format(Bytes *bytes, const char *format, ...) {
    va_list list;
    va_start(list, format);
    int size = vsnprintf(NULL, 0, format, list);
    va_end(list);
    if (size < 0) return;
    char *at = more(bytes, (size_t)size + 1);
    va_start(list, format);
    vsnprintf(at, (size_t)size + 1, format, list);
    va_end(list);
    bytes->size--;
}

void bytes_free(Bytes *bytes) {
    free(bytes->at);
    *bytes = (Bytes){0};
}

uint32_t crc32_of(uint32_t crc, const void *data, size_t size) {
    static uint32_t table[8][256];
    if (!table[0][1]) {
        for (uint32_t index = 0; index < 256; index++) {
            uint32_t value = index;
            for (int bit = 0; bit < 8; bit++) value = value & 1 ? value >> 1 ^ 0xEDB88320u : value >> 1;
            table[0][index] = value;
        }
        for (int row = 1; row < 8; row++)
            for (int index = 0; index < 256; index++)
                table[row][index] = table[row - 1][index] >> 8 ^ table[0][table[row - 1][index] & 255];
    }
    const uint8_t *at = data;
    crc = ~crc;
    for (; size >= 8; size -= 8, at += 8) {
        uint32_t low = crc ^ ((uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24);
        crc = table[7][low & 255] ^ table[6][low >> 8 & 255] ^ table[5][low >> 16 & 255] ^ table[4][low >> 24] ^
              table[3][at[4]] ^ table[2][at[5]] ^ table[1][at[6]] ^ table[0][at[7]];
    }
    while (size--) crc = crc >> 8 ^ table[0][(crc ^ *at++) & 255];
    return ~crc;
}

static uint32_t turned(uint32_t value, int by) { return value >> by | value << (32 - by); }

/* The first 32 bits behind the point of the cube roots of the first 64 primes, which SHA-256 adds. */
static const uint32_t *cube_roots(void) {
    static uint32_t bits[64];
    for (unsigned number = 2, found = 0; !bits[63]; number++) {
        unsigned factor = 2;
        while (number % factor) factor++;
        if (factor == number) bits[found++] = (uint32_t)ldexp(fmod(cbrt(number), 1), 32);
    }
    return bits;
}

static void sha256_block(Sha256 *sums, const uint8_t *block) {
    const uint32_t *k = cube_roots();
    uint32_t w[64], s[8];
    for (int t = 0; t < 16; t++)
        w[t] = (uint32_t)block[4 * t] << 24 | (uint32_t)block[4 * t + 1] << 16 | (uint32_t)block[4 * t + 2] << 8 | block[4 * t + 3];
    for (int t = 16; t < 64; t++) {
        uint32_t a = w[t - 15], b = w[t - 2];
        w[t] = w[t - 16] + w[t - 7] + (turned(a, 7) ^ turned(a, 18) ^ a >> 3) + (turned(b, 17) ^ turned(b, 19) ^ b >> 10);
    }
    memcpy(s, sums->state, sizeof s);
    for (int t = 0; t < 64; t++) {
        uint32_t one = s[7] + (turned(s[4], 6) ^ turned(s[4], 11) ^ turned(s[4], 25)) + ((s[4] & s[5]) ^ (~s[4] & s[6])) + k[t] + w[t];
        uint32_t two = (turned(s[0], 2) ^ turned(s[0], 13) ^ turned(s[0], 22)) + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += one;
        s[0] = one + two;
    }
    for (int t = 0; t < 8; t++) sums->state[t] += s[t];
}

void sha256_begin(Sha256 *sums) {
    static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(sums->state, start, sizeof start);
    sums->total = 0;
}

void sha256_add(Sha256 *sums, const void *data, size_t size) {
    const uint8_t *at = data;
    while (size) {
        size_t held = sums->total % 64, step = 64 - held < size ? 64 - held : size;
        memcpy(sums->block + held, at, step);
        sums->total += step;
        at += step;
        size -= step;
        if (sums->total % 64 == 0) sha256_block(sums, sums->block);
    }
}

void sha256_hex(Sha256 *sums, char hex[65]) {
    uint64_t bits = sums->total * 8;
    uint8_t end[8];
    for (int t = 0; t < 8; t++) end[t] = (uint8_t)(bits >> (56 - 8 * t));
    sha256_add(sums, "\x80", 1);
    while (sums->total % 64 != 56) sha256_add(sums, "", 1);
    sha256_add(sums, end, 8);
    for (int t = 0; t < 8; t++) snprintf(hex + 8 * t, 9, "%08x", (unsigned)sums->state[t]);
}

static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_add(Bytes *lines, const uint8_t *data, size_t size) {
    for (size_t at = 0; at < size; at += 3) {
        uint32_t group = (uint32_t)data[at] << 16;
        if (at + 1 < size) group |= (uint32_t)data[at + 1] << 8;
        if (at + 2 < size) group |= data[at + 2];
        char four[4] = {DIGITS[group >> 18], DIGITS[group >> 12 & 63], at + 1 < size ? DIGITS[group >> 6 & 63] : '=',
                        at + 2 < size ? DIGITS[group & 63] : '='};
        bytes_add(lines, four, 4);
    }
    bytes_add(lines, "\n", 1);
}

bool base64_read(Bytes *data, const char *line, size_t size, bool *ended) {
    if (size % 4 || *ended) return false;
    for (size_t at = 0; at < size; at += 4) {
        uint32_t group = 0;
        int digits = 0;
        for (int index = 0; index < 4; index++) {
            const char *digit = line[at + index] ? strchr(DIGITS, line[at + index]) : NULL;
            if (digit && digits == index) {
                group |= (uint32_t)(digit - DIGITS) << (18 - 6 * index);
                digits++;
            } else if (line[at + index] != '=' || index < 2 || at + 4 != size) {
                return false;
            }
        }
        uint8_t three[3] = {(uint8_t)(group >> 16), (uint8_t)(group >> 8), (uint8_t)group};
        bytes_add(data, three, (size_t)digits - 1);
        *ended = digits < 4;
    }
    return true;
}

/* Bytes of the character at the beginning; 0 if it is none. */
static size_t character(const uint8_t *at, size_t size) {
    if (at[0] < 0x80) return 1;
    size_t length = at[0] >= 0xF0 ? 4 : at[0] >= 0xE0 ? 3 : 2;
    if (at[0] < 0xC2 || at[0] > 0xF4 || length > size) return 0;
    for (size_t index = 1; index < length; index++)
        if ((at[index] & 0xC0) != 0x80) return 0;
    if ((at[0] == 0xE0 && at[1] < 0xA0) || (at[0] == 0xED && at[1] > 0x9F)) return 0;
    if ((at[0] == 0xF0 && at[1] < 0x90) || (at[0] == 0xF4 && at[1] > 0x8F)) return 0;
    return length;
}

void utf8_clean(Bytes *text, const char *data, size_t size) {
    for (size_t at = 0; at < size;) {
        size_t length = character((const uint8_t *)data + at, size - at);
        if (length) bytes_add(text, data + at, length);
        else bytes_add(text, "\xEF\xBF\xBD", 3);
        at += length ? length : 1;
    }
}

bool is_utf8(const char *data, size_t size) {
    for (size_t at = 0; at < size;) {
        size_t length = character((const uint8_t *)data + at, size - at);
        if (!length) return false;
        at += length;
    }
    return true;
}
