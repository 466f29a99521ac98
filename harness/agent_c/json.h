/* JSON with the binary values of the agent protocol: read into a tree, written piece by piece. */

#ifndef JSON_H
#define JSON_H

#include "bytes.h"

typedef enum { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_NUMBER, JSON_TEXT, JSON_BYTES, JSON_ARRAY, JSON_OBJECT } JsonKind;

typedef struct Json Json;
struct Json {
    JsonKind kind;
    bool is_integer;
    int64_t integer;
    double number;
    const char *text; /* of a text, or the bytes of a binary value; texts end with a zero, and may contain zeros */
    size_t size;      /* bytes of these; items of an array or an object */
    const char *key;  /* in an object */
    size_t key_size;
    Json *first, *next;
};

/* Return the tree of a text, or NULL with the reason. `binary` holds what its binary values stand for. */
Json *json_read(Arena *arena, const char *text, size_t size, const char *binary, size_t binary_size, const char **why);

const Json *json_get(const Json *object, const char *key); /* NULL if there is none */
const Json *json_item(const Json *array, size_t index);
const Json *json_members(const Json *object); /* the first; NULL also if it is no object: others have no keys */
const char *json_text(const Json *value, const char *otherwise);
int64_t json_integer(const Json *value, int64_t otherwise);
double json_number(const Json *value, double otherwise);
bool json_is(const Json *value, JsonKind kind);

/* A message to be sent: JSON, and pieces of memory behind it that must last until then. */
typedef struct {
    const void *at;
    size_t size;
} Piece;
typedef struct {
    Bytes json;
    Piece *pieces;
    size_t count, room, binary_size;
} Message;

void put(Message *message, const char *plain);
#define put_format(message, ...) bytes_format(&(message)->json, __VA_ARGS__)
void put_text(Message *message, const char *text);
void put_then(Message *message, const char *plain, const char *text); /* something plain, then a text */
void put_texts(Message *message, const char *plain, const char *const *texts, size_t count);
void put_sized(Message *message, const char *text, size_t size);
void put_json(Message *message, const Json *value); /* as it came; what it has in binary must last, too */
void put_number(Message *message, double number); /* what is not finite becomes null */
void put_binary(Message *message, const void *data, size_t size);
void message_free(Message *message);

#endif
