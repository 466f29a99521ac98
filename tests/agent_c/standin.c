/* A stand-in of libonnxruntime 1.20: it runs graphs of Constant, Identity, Relu, Neg, Abs, Sqrt, Add, Sub, Mul, and
 * Loop over one value. Every other function of the C API returns an error. For a C library for which no onnxruntime
 * is published. */

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FAIL = 1, INVALID = 2, NO_SUCH_FILE = 3, NOT_IMPLEMENTED = 9, FLOAT = 1, NAMES = 8, NODES = 16, RANK = 8, SLOTS = 512 };

typedef struct {
    int code;
    char text[200];
} Status;

typedef struct {
    int64_t shape[RANK];
    size_t rank, count;
    int type;
    void *data, *owned;
} Value;

typedef struct Session Session;
typedef struct {
    char op[32], name[64], in[3][64], out[64];
    int ins;
    Value *constant;
    Session *body;
} Node;

struct Session {
    Node nodes[NODES];
    char ins[NAMES][64], outs[NAMES][64], weights[NAMES][64];
    int64_t ranks[NAMES]; /* of the inputs; -1 for any */
    Value *weight[NAMES];
    size_t node_count, in_count, out_count, weight_count;
    char profile[512];
};

static const size_t SIZES[] = {0, 4, 1, 1, 2, 2, 4, 8, 0, 1, 2, 8, 4, 8, 8, 16, 2, 1, 1, 1, 1};

static Status *failed(int code, const char *text) {
    Status *made = calloc(1, sizeof *made);
    made->code = code;
    snprintf(made->text, sizeof made->text, "%s", text);
    return made;
}

static Status *fine(void) { return NULL; }
static Status *missing(void) { return failed(NOT_IMPLEMENTED, "the stand-in has no such function"); }
static int error_code(const Status *status) { return status->code; }
static const char *error_message(const Status *status) { return status->text; }

static Status *some_object(void **made) {
    static char object;
    *made = &object;
    return NULL;
}

static Status *create_env(int level, const char *name, void **made) {
    (void)level, (void)name;
    return some_object(made);
}

static Status *memory_info(int allocator, int kind, void **made) {
    (void)allocator, (void)kind;
    return some_object(made);
}

static void nothing(void *object) { (void)object; }

/* --- values --- */

static Status *with_data(void *info, void *data, size_t size, const int64_t *shape, size_t rank, int type, Value **value) {
    (void)info;
    if (rank > RANK || type <= 0 || type >= (int)(sizeof SIZES / sizeof *SIZES) || !SIZES[type])
        return failed(NOT_IMPLEMENTED, "the stand-in has no such tensor");
    Value *made = calloc(1, sizeof *made);
    made->rank = rank;
    made->type = type;
    made->count = 1;
    for (size_t axis = 0; axis < rank; axis++) made->count *= (size_t)(made->shape[axis] = shape[axis]);
    made->data = data ? data : (made->owned = calloc(made->count + 1, SIZES[type]));
    if (data && size < made->count * SIZES[type]) {
        free(made);
        return failed(FAIL, "too few bytes");
    }
    return *value = made, NULL;
}

static Status *new_tensor(void *allocator, const int64_t *shape, size_t rank, int type, Value **value) {
    return with_data(allocator, NULL, 0, shape, rank, type, value);
}

static void release_value(Value *value) {
    if (value) free(value->owned);
    free(value);
}

/* --- the model: fields of protobuf --- */

typedef struct {
    const uint8_t *at, *end;
    uint64_t number;
} Span;

static uint64_t varint(Span *span) {
    uint64_t value = 0;
    for (int shift = 0; span->at < span->end && shift < 64; shift += 7) {
        uint8_t byte = *span->at++;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) break;
    }
    return value;
}

/* Take the next field of a message; what has no bytes of its own is empty. */
static int next_field(Span *span, Span *content) {
    if (span->at >= span->end) return 0;
    uint64_t key = varint(span), size = 0, number = 0;
    if ((key & 7) == 0) number = varint(span);
    else if ((key & 7) == 2) size = varint(span);
    else size = (key & 7) == 1 ? 8 : 4;
    if (size > (uint64_t)(span->end - span->at)) return 0;
    *content = (Span){span->at, span->at + size, number};
    span->at += size;
    return (int)(key >> 3);
}

static void copy_text(char text[64], Span from) { snprintf(text, 64, "%.*s", (int)(from.end - from.at), (const char *)from.at); }

/* A TensorProto; the bytes of one outside of the model are in a file of its folder. */
static Value *read_tensor(Span from, char name[64], const char *folder) {
    int64_t shape[RANK];
    size_t rank = 0, offset = 0;
    int type = 0;
    char key[64] = "", text[64] = "", path[1024] = "";
    Span content, part, raw = {0};
    Value *made = NULL;
    for (int field; (field = next_field(&from, &content));) {
        if (field == 1 && rank < RANK && content.at == content.end) shape[rank++] = (int64_t)content.number;
        for (part = content; field == 1 && rank < RANK && part.at < part.end;) shape[rank++] = (int64_t)varint(&part);
        if (field == 2) type = (int)content.number;
        if (field == 4 || field == 5 || field == 7 || field == 9) raw = content; /* float, int32, int64, raw */
        if (field == 8) copy_text(name, content);
        if (field != 13) continue;
        while ((field = next_field(&content, &part))) copy_text(field == 1 ? key : text, part);
        if (!strcmp(key, "location")) snprintf(path, sizeof path, "%s%s", folder, text);
        if (!strcmp(key, "offset")) offset = strtoull(text, NULL, 10);
    }
    Status *status = with_data(NULL, NULL, 0, shape, rank, type, &made);
    free(status);
    FILE *file = made && *path ? fopen(path, "rb") : NULL;
    if (file) fseek(file, (long)offset, SEEK_SET);
    if (file && fread(made->data, SIZES[type], made->count, file) != made->count) memset(made->data, 0, made->count * SIZES[type]);
    if (file) fclose(file);
    size_t size = (size_t)(raw.end - raw.at);
    if (made && size == made->count * SIZES[type]) memcpy(made->data, raw.at, size);
    else for (size_t at = 0; made && type == 7 && at < made->count && raw.at < raw.end; at++) ((int64_t *)made->data)[at] = (int64_t)varint(&raw);
    if (made && type == 9 && raw.at < raw.end && size != made->count) *(char *)made->data = (char)*raw.at;
    return made;
}

static bool read_graph(Session *made, Span from, const char *folder);

static void read_node(Node *node, Span from, const char *folder) {
    char op[64] = "", ignored[64];
    Span content, part;
    for (int field; (field = next_field(&from, &content));) {
        if (field == 1 && node->ins < 3) copy_text(node->in[node->ins++], content);
        if (field == 2) copy_text(node->out, content);
        if (field == 3) copy_text(node->name, content);
        if (field == 4) copy_text(op, content), snprintf(node->op, sizeof node->op, "%.31s", op);
        while (field == 5 && (field = next_field(&content, &part))) {
            if (field == 5) node->constant = read_tensor(part, ignored, folder);
            if (field == 6 && (node->body = calloc(1, sizeof *node->body)) && !read_graph(node->body, part, folder)) node->op[0] = 0;
            field = 5;
        }
    }
}

/* A ValueInfoProto: its name, and the rank of a tensor whose shape is given. */
static int64_t value_info(char text[64], Span from) {
    int64_t rank = -1;
    Span content, tensor, shape, ignored;
    for (int field; (field = next_field(&from, &content));) {
        if (field == 1) copy_text(text, content);
        if (field != 2 || next_field(&content, &tensor) != 1) continue;
        while ((field = next_field(&tensor, &shape)))
            if (field == 2)
                for (rank = 0; next_field(&shape, &ignored);) rank++;
    }
    return rank;
}

static bool is_known(const Node *node) {
    static const char *const known[] = {"Constant", "Identity", "Relu", "Neg", "Abs", "Sqrt", "Add", "Sub", "Mul", "Loop"};
    for (size_t which = 0; which < sizeof known / sizeof *known; which++)
        if (!strcmp(node->op, known[which])) return true;
    return false;
}

static bool read_graph(Session *made, Span from, const char *folder) {
    Span content;
    for (int field; (field = next_field(&from, &content));) {
        if (field == 1 && made->node_count < NODES) read_node(&made->nodes[made->node_count++], content, folder);
        if (field == 5 && made->weight_count < NAMES) {
            Value *weight = read_tensor(content, made->weights[made->weight_count], folder);
            if (!weight) return false;
            made->weight[made->weight_count++] = weight;
        }
        if (field == 11 && made->in_count < NAMES) {
            made->ranks[made->in_count] = value_info(made->ins[made->in_count], content);
            made->in_count++;
        }
        if (field == 12 && made->out_count < NAMES) value_info(made->outs[made->out_count++], content);
    }
    for (size_t index = 0; index < made->node_count; index++) {
        Node *node = &made->nodes[index];
        if (!is_known(node)) return false;
        if (!*node->name) snprintf(node->name, sizeof node->name, "%.31s_%zu", node->op, index);
    }
    return made->node_count > 0;
}

static Status *session_of(const void *data, size_t size, const char *folder, const char *profile, Session **session) {
    Session *made = calloc(1, sizeof *made);
    Span model = {data, (const uint8_t *)data + size, 0}, content;
    bool done = false;
    for (int field; (field = next_field(&model, &content));)
        if (field == 7) done = read_graph(made, content, folder);
    snprintf(made->profile, sizeof made->profile, "%s", profile);
    *session = done ? made : NULL;
    if (done) return NULL;
    free(made);
    return failed(NOT_IMPLEMENTED, "the stand-in has no such operator");
}

static Status *from_array(void *env, const void *data, size_t size, const char *settings, Session **session) {
    (void)env;
    return session_of(data, size, "", settings, session);
}

static Status *from_path(void *env, const char *path, const char *settings, Session **session) {
    static char data[1 << 20];
    (void)env;
    FILE *file = fopen(path, "rb");
    if (!file) return failed(NO_SUCH_FILE, "no such model");
    size_t size = fread(data, 1, sizeof data, file);
    fclose(file);
    char folder[1024];
    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    *(slash ? slash + 1 : folder) = 0;
    return session_of(data, size, folder, settings, session);
}

/* Session options are the prefix of a profile. */
static Status *create_options(char **made) {
    *made = calloc(1, 512);
    return NULL;
}

static Status *enable_profiling(char *settings, const char *prefix) {
    snprintf(settings, 512, "%.400s_standin.json", prefix);
    return NULL;
}

static Status *in_count(const Session *session, size_t *count) { return *count = session->in_count, NULL; }
static Status *out_count(const Session *session, size_t *count) { return *count = session->out_count, NULL; }

static Status *in_name(const Session *session, size_t index, void *allocator, char **name) {
    (void)allocator;
    return *name = strdup(session->ins[index]), NULL;
}

static Status *out_name(const Session *session, size_t index, void *allocator, char **name) {
    (void)allocator;
    return *name = strdup(session->outs[index]), NULL;
}

static Status *in_type(const Session *session, size_t index, void **made) {
    (void)session, (void)index;
    return some_object(made);
}

static Status *end_profiling(Session *session, void *allocator, char **path) {
    (void)allocator;
    FILE *file = fopen(session->profile, "w");
    if (!file) return failed(FAIL, "no profile");
    fprintf(file, "[");
    for (size_t index = 0; index < session->node_count; index++)
        fprintf(file, "%s{\"cat\":\"Node\",\"name\":\"%s_kernel_time\",\"ts\":%zu,\"dur\":1,\"args\":{\"op_name\":\"%s\","
                "\"provider\":\"CPUExecutionProvider\",\"node_index\":\"%zu\"}}",
                index ? ",\n" : "", session->nodes[index].name, index, session->nodes[index].op, index);
    fprintf(file, "]\n");
    fclose(file);
    return *path = strdup(session->profile), NULL;
}

/* --- values and runs --- */

static Status *data_of(Value *value, void **data) { return *data = value->data, NULL; }
static Status *shape_info(Value *value, Value **info) { return *info = value, NULL; }
static Status *tensor_info(void *type, Value **info) {
    static Value any = {.type = FLOAT, .rank = 1, .shape = {-1}};
    (void)type;
    return *info = &any, NULL;
}
static Status *element_type(const Value *info, int *type) { return *type = info->type, NULL; }
static Status *rank_of(const Value *info, size_t *rank) { return *rank = info->rank, NULL; }
static Status *count_of(const Value *info, size_t *count) { return *count = info->count, NULL; }
static Status *dimensions(const Value *info, int64_t *shape, size_t rank) {
    memcpy(shape, info->shape, rank * sizeof *shape);
    return NULL;
}
static Status *kind_of(const void *value, int *kind) {
    (void)value;
    return *kind = 1, NULL; /* a tensor */
}
static Status *has_value(const void *value, int *has) {
    (void)value;
    return *has = 1, NULL;
}

static float computed(const char *op, float a, float b) {
    switch (op[0]) {
        case 'R': return a > 0 ? a : 0;
        case 'N': return -a;
        case 'A': return op[1] == 'b' ? fabsf(a) : a + b;
        case 'M': return a * b;
        default: return op[1] == 'q' ? sqrtf(a) : a - b;
    }
}

static Status *copy_of(const Value *from, Value **made) {
    Status *status = with_data(NULL, NULL, 0, from->shape, from->rank, from->type, made);
    if (!status) memcpy((*made)->data, from->data, from->count * SIZES[from->type]);
    return status;
}

static Status *run_graph(Session *session, const Value *const *in, Value **out);

static Status *loop(Node *node, const Value *const *given, Value **made) {
    int64_t number = 0;
    bool on = true;
    Value turn = {.count = 1, .type = 7, .data = &number}, going = {.count = 1, .type = 9, .data = &on};
    Status *status = copy_of(given[2], made);
    for (; !status && number < *(int64_t *)given[0]->data; number++) {
        const Value *in[] = {&turn, &going, *made};
        Value *out[2] = {0};
        status = run_graph(node->body, in, out);
        release_value(out[0]);
        if (status) break;
        release_value(*made);
        *made = out[1];
    }
    return status;
}

static Status *step(Node *node, const Value *const *given, Value **made) {
    if (node->constant) return copy_of(node->constant, made);
    if (node->body) return given[0] && given[2] ? loop(node, given, made) : failed(FAIL, "an input of Loop is missing");
    if (!given[0] || (node->ins > 1 && (!given[1] || given[1]->count != given[0]->count)))
        return failed(FAIL, "an input is missing, or of another shape");
    Status *status = copy_of(given[0], made);
    if (status || node->op[0] == 'I') return status;
    if (given[0]->type != FLOAT) return failed(NOT_IMPLEMENTED, "the stand-in computes in float32");
    const float *a = given[0]->data, *b = node->ins > 1 ? given[1]->data : a;
    float *to = (*made)->data;
    for (size_t at = 0; at < given[0]->count; at++) to[at] = computed(node->op, a[at], b[at]);
    return NULL;
}

/* Run a graph on its inputs in order; so come its outputs. */
static Status *run_graph(Session *session, const Value *const *in, Value **out) {
    const Value *known[NODES + 2 * NAMES];
    const char *names[NODES + 2 * NAMES];
    Value *made[NODES] = {0};
    size_t count = 0;
    Status *status = NULL;
    for (size_t index = 0; index < session->in_count; index++) names[count] = session->ins[index], known[count++] = in[index];
    for (size_t index = 0; index < session->weight_count; index++)
        names[count] = session->weights[index], known[count++] = session->weight[index];
    for (size_t index = 0; index < session->node_count && !status; index++) {
        Node *node = &session->nodes[index];
        const Value *given[3] = {0};
        for (int which = 0; which < node->ins; which++)
            for (size_t at = 0; at < count; at++)
                if (*names[at] && !strcmp(names[at], node->in[which])) given[which] = known[at];
        status = step(node, given, &made[index]);
        names[count] = node->out;
        known[count++] = made[index];
    }
    for (size_t index = 0; index < session->out_count && !status; index++)
        for (size_t at = 0; at < count; at++)
            if (!strcmp(names[at], session->outs[index])) status = copy_of(known[at], &out[index]);
    for (size_t index = 0; index < session->node_count; index++) release_value(made[index]);
    return status;
}

static Status *run(Session *session, void *settings, const char *const *in_names, const Value *const *in, size_t ins,
                   const char *const *out_names, size_t outs, Value **out) {
    const Value *given[NAMES] = {0};
    Value *all[NAMES] = {0};
    (void)settings;
    for (size_t index = 0; index < ins; index++) {
        size_t at = 0;
        while (at < session->in_count && strcmp(session->ins[at], in_names[index])) at++;
        if (at == session->in_count) return failed(INVALID, "Invalid input name");
        if (session->ranks[at] >= 0 && session->ranks[at] != (int64_t)in[index]->rank) return failed(INVALID, "Invalid rank for input");
        given[at] = in[index];
    }
    for (size_t index = 0; index < session->in_count; index++)
        if (!given[index]) return failed(INVALID, "an input is missing");
    Status *status = run_graph(session, given, all);
    for (size_t index = 0; index < outs && !status; index++)
        for (size_t at = 0; at < session->out_count; at++)
            if (!strcmp(session->outs[at], out_names[index])) status = copy_of(all[at], &out[index]);
    for (size_t at = 0; at < session->out_count; at++) release_value(all[at]);
    return status;
}

static Status *run_async(Session *session, void *settings, const char *const *in_names, const Value *const *in, size_t ins,
                         const char *const *out_names, size_t outs, Value **out,
                         void (*told)(void *, Value **, size_t, Status *), void *context) {
    told(context, out, outs, run(session, settings, in_names, in, ins, out_names, outs, out));
    return NULL;
}

static Status *providers(char ***names, int *count) {
    static char *list[] = {"CPUExecutionProvider"};
    *names = list;
    *count = 1;
    return NULL;
}

static Status *freed(void *allocator, void *data) {
    (void)allocator;
    return free(data), NULL;
}

typedef void (*Function)(void);
typedef struct {
    const Function *(*GetApi)(uint32_t version);
    const char *(*GetVersionString)(void);
} Base;

#define PUT(place, function) table[place] = (Function)(function)

static const Function *api(uint32_t version) {
    static Function table[SLOTS];
    static const int ignored[] = {13, 19, 23, 24, 25, 124, 130}; /* settings of a session */
    (void)version;
    for (int place = 0; place < SLOTS; place++) PUT(place, missing);
    for (size_t index = 0; index < sizeof ignored / sizeof *ignored; index++) PUT(ignored[index], fine);
    for (int place = 92; place <= 100; place++) PUT(place, nothing);
    PUT(0, failed), PUT(1, error_code), PUT(2, error_message), PUT(3, create_env);
    PUT(7, from_path), PUT(8, from_array), PUT(9, run), PUT(10, create_options), PUT(14, enable_profiling);
    PUT(30, in_count), PUT(31, out_count), PUT(33, in_type), PUT(36, in_name), PUT(37, out_name);
    PUT(48, new_tensor), PUT(49, with_data), PUT(51, data_of), PUT(55, tensor_info), PUT(56, kind_of);
    PUT(60, element_type), PUT(61, rank_of), PUT(62, dimensions), PUT(64, count_of), PUT(65, shape_info), PUT(67, kind_of);
    PUT(69, memory_info), PUT(76, freed), PUT(78, some_object);
    PUT(93, free), PUT(95, free), PUT(96, release_value), PUT(100, free);
    PUT(110, end_profiling), PUT(125, providers), PUT(126, fine), PUT(192, has_value), PUT(260, run_async);
    return table;
}

static const char *version(void) { return "1.20.0"; }

const Base *OrtGetApiBase(void) {
    static const Base base = {api, version};
    return &base;
}
