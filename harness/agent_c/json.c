#include "json.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 100 };

typedef struct {
    Arena *arena;
    const char *at, *end, *binary, *why;
    size_t binary_size;
} Reader;

static Json *value_of(Reader *reader, int depth);

static Json *wrong(Reader *reader, const char *why) {
    if (!reader->why) reader->why = why;
    return NULL;
}

static char peek(Reader *reader) {
    while (reader->at < reader->end && strchr(" \t\r\n", *reader->at) && *reader->at) reader->at++;
    return reader->at < reader->end ? *reader->at : 0;
}

static int hex4(Reader *reader) {
    int value = 0;
    if (reader->end - reader->at < 4) return -1;
    for (int index = 0; index < 4; index++) {
        unsigned char digit = (unsigned char)*reader->at++;
        if (!isxdigit(digit)) return -1;
        value = value * 16 + (isdigit(digit) ? digit - '0' : tolower(digit) - 'a' + 10);
    }
    return value;
}

static char *encoded(char *to, uint32_t code) {
    static const uint32_t lead[] = {0, 0xC0, 0xE0, 0xF0};
    int more = (code >= 0x80) + (code >= 0x800) + (code >= 0x10000);
    *to++ = (char)(lead[more] | code >> 6 * more);
    while (more--) *to++ = (char)(0x80 | (code >> 6 * more & 63));
    return to;
}

static bool text_of(Reader *reader, const char **text, size_t *size) {
    const char *begin = ++reader->at, *quote = begin;
    while (quote < reader->end && *quote != '"') quote += *quote == '\\' && reader->end - quote > 1 ? 2 : 1;
    if (quote >= reader->end) return wrong(reader, "a text without its end");
    char *to = arena_take(reader->arena, (size_t)(quote - begin) + 1);
    *text = to;
    while (*reader->at != '"') {
        unsigned char next = (unsigned char)*reader->at++;
        if (next < 0x20) return wrong(reader, "a control character in a text");
        if (next != '\\') {
            *to++ = (char)next;
            continue;
        }
        char escaped = *reader->at++;
        const char *plain = strchr("\"\\/bfnrt", escaped);
        if (escaped && plain) {
            *to++ = "\"\\/\b\f\n\r\t"[plain - "\"\\/bfnrt"];
            continue;
        }
        int code = escaped == 'u' ? hex4(reader) : -1;
        if (code >= 0xD800 && code < 0xDC00 && reader->end - reader->at > 6 && !memcmp(reader->at, "\\u", 2)) {
            reader->at += 2;
            int low = hex4(reader);
            code = low >= 0xDC00 && low < 0xE000 ? 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00) : -1;
        }
        if (code < 0 || (code >= 0xD800 && code < 0xE000)) return wrong(reader, "a wrong escape in a text");
        to = encoded(to, (uint32_t)code);
    }
    *size = (size_t)(to - *text);
    reader->at++;
    return is_utf8(*text, *size) || wrong(reader, "a text that is no UTF-8");
}

static bool number_of(Reader *reader, Json *made) {
    char text[64];
    size_t size = 0;
    while (reader->at < reader->end && size < sizeof text - 1 && *reader->at && strchr("+-0123456789.eE", *reader->at))
        text[size++] = *reader->at++;
    text[size] = 0;
    char *end = text;
    made->kind = JSON_NUMBER;
    made->number = strtod(text, &end);
    if (!size || *end || !isfinite(made->number) || text[0] == '+' || text[0] == '.') return wrong(reader, "no number");
    made->is_integer = !strpbrk(text, ".eE") && size < 20;
    made->integer = made->is_integer ? strtoll(text, NULL, 10) : 0;
    return true;
}

/* Turn an object into the binary value for which it stands, if it does. */
static bool with_bytes(Reader *reader, Json *made) {
    Json *place = made->first;
    if (made->size != 1 || place->key_size != 6 || memcmp(place->key, "\0bytes", 6)) return true;
    const Json *offset = json_item(place, 0), *size = json_item(place, 1);
    if (!json_is(place, JSON_ARRAY) || place->size != 2 || !offset->is_integer || !size->is_integer) return true;
    if (offset->integer < 0 || size->integer < 0 || (uint64_t)offset->integer > reader->binary_size ||
        (uint64_t)size->integer > reader->binary_size - (uint64_t)offset->integer)
        return wrong(reader, "a binary value beyond the bytes of its message");
    made->kind = JSON_BYTES;
    made->text = reader->binary + offset->integer;
    made->size = (size_t)size->integer;
    return true;
}

static bool items_of(Reader *reader, Json *made, int depth) {
    bool is_object = *reader->at++ == '{';
    Json **last = &made->first;
    made->kind = is_object ? JSON_OBJECT : JSON_ARRAY;
    if (peek(reader) == (is_object ? '}' : ']')) {
        reader->at++;
        return true;
    }
    for (;;) {
        const char *key = NULL;
        size_t key_size = 0;
        if (is_object) {
            if (peek(reader) != '"') return wrong(reader, "an object without a key");
            if (!text_of(reader, &key, &key_size)) return false;
            if (peek(reader) != ':') return wrong(reader, "a key without a colon");
            reader->at++;
        }
        Json *item = value_of(reader, depth + 1);
        if (!item) return false;
        item->key = key;
        item->key_size = key_size;
        *last = item;
        last = &item->next;
        made->size++;
        char next = peek(reader);
        reader->at++;
        if (next == (is_object ? '}' : ']')) return !is_object || with_bytes(reader, made);
        if (next != ',') return wrong(reader, "an array or object without its end");
    }
}

static Json *value_of(Reader *reader, int depth) {
    static const struct {
        const char *word;
        JsonKind kind;
    } words[] = {{"null", JSON_NULL}, {"true", JSON_TRUE}, {"false", JSON_FALSE}};
    if (depth > DEEPEST) return wrong(reader, "too many levels");
    char next = peek(reader);
    Json *made = arena_take(reader->arena, sizeof *made);
    if (next == '{' || next == '[') return items_of(reader, made, depth) ? made : NULL;
    if (next == '"') {
        made->kind = JSON_TEXT;
        return text_of(reader, &made->text, &made->size) ? made : NULL;
    }
    for (size_t index = 0; index < sizeof words / sizeof *words; index++) {
        size_t size = strlen(words[index].word);
        if ((size_t)(reader->end - reader->at) >= size && !memcmp(reader->at, words[index].word, size)) {
            reader->at += size;
            made->kind = words[index].kind;
            return made;
        }
    }
    return number_of(reader, made) ? made : NULL;
}

Json *json_read(Arena *arena, const char *text, size_t size, const char *binary, size_t binary_size, const char **why) {
    Reader reader = {.arena = arena, .at = text, .end = text + size, .binary = binary, .binary_size = binary_size};
    Json *made = value_of(&reader, 0);
    if (made && peek(&reader)) made = wrong(&reader, "something after the value");
    if (made && reader.at != reader.end) made = wrong(&reader, "something after the value");
    *why = reader.why;
    return made;
}

const Json *json_get(const Json *object, const char *key) {
    if (!json_is(object, JSON_OBJECT)) return NULL;
    for (const Json *item = object->first; item; item = item->next)
        if (item->key_size == strlen(key) && !memcmp(item->key, key, item->key_size)) return item;
    return NULL;
}

const Json *json_item(const Json *array, size_t index) {
    const Json *item = array && (array->kind == JSON_ARRAY || array->kind == JSON_OBJECT) ? array->first : NULL;
    while (item && index--) item = item->next;
    return item;
}

const Json *json_members(const Json *object) { return json_is(object, JSON_OBJECT) ? object->first : NULL; }

const char *json_text(const Json *value, const char *otherwise) { return json_is(value, JSON_TEXT) ? value->text : otherwise; }

int64_t json_integer(const Json *value, int64_t otherwise) {
    return json_is(value, JSON_NUMBER) && value->is_integer ? value->integer : otherwise;
}

double json_number(const Json *value, double otherwise) { return json_is(value, JSON_NUMBER) ? value->number : otherwise; }

bool json_is(const Json *value, JsonKind kind) { return value && value->kind == kind; }

void put(Message *message, const char *plain) { bytes_add(&message->json, plain, strlen(plain)); }

void put_sized(Message *message, const char *text, size_t size) {
    Bytes clean = {0};
    utf8_clean(&clean, text, size);
    put(message, "\"");
    for (size_t at = 0, begin = 0; at <= clean.size; at++) {
        unsigned char next = at < clean.size ? (unsigned char)clean.at[at] : 0;
        if (at < clean.size && next >= 0x20 && next != '"' && next != '\\') continue;
        bytes_add(&message->json, clean.at ? clean.at + begin : "", at - begin);
        begin = at + 1;
        if (at < clean.size) put_format(message, next < 0x20 ? "\\u%04x" : "\\%c", next);
    }
    put(message, "\"");
    bytes_free(&clean);
}

void put_text(Message *message, const char *text) { put_sized(message, text ? text : "", text ? strlen(text) : 0); }

void put_then(Message *message, const char *plain, const char *text) {
    put(message, plain);
    put_text(message, text);
}

void put_texts(Message *message, const char *plain, const char *const *texts, size_t count) {
    put(message, plain);
    put(message, "[");
    for (size_t index = 0; index < count; index++) put_then(message, index ? "," : "", texts[index]);
    put(message, "]");
}

void put_number(Message *message, double number) {
    if (!isfinite(number)) put(message, "null");
    else put_format(message, "%.17g", number);
}

void put_binary(Message *message, const void *data, size_t size) {
    put_format(message, "{\"\\u0000bytes\":[%zu,%zu]}", message->binary_size, size);
    if (message->count == message->room) {
        message->room = message->room * 2 + 16;
        message->pieces = realloc(message->pieces, message->room * sizeof(Piece));
        if (!message->pieces) abort();
    }
    message->pieces[message->count++] = (Piece){data, size};
    message->binary_size += size;
}

void put_json(Message *message, const Json *value) {
    static const char *const words[] = {"null", "false", "true"};
    bool is_object = value->kind == JSON_OBJECT;
    if (value->kind == JSON_NUMBER) value->is_integer ? put_format(message, "%lld", (long long)value->integer) : put_number(message, value->number);
    else if (value->kind == JSON_TEXT) put_sized(message, value->text, value->size);
    else if (value->kind == JSON_BYTES) put_binary(message, value->text, value->size);
    else if (value->kind < JSON_NUMBER) put(message, words[value->kind]);
    else put(message, is_object ? "{" : "[");
    if (value->kind < JSON_ARRAY) return;
    for (const Json *item = value->first; item; item = item->next) {
        if (item != value->first) put(message, ",");
        if (is_object) put_sized(message, item->key, item->key_size), put(message, ":");
        put_json(message, item);
    }
    put(message, is_object ? "}" : "]");
}

void message_free(Message *message) {
    bytes_free(&message->json);
    free(message->pieces);
    *message = (Message){0};
}
