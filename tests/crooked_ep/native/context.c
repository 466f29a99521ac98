#include "context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ep.h"
#include "kernels.h"

#define MAGIC "CROOKED"
#define FIRST_PART 4 /* of a version: "0.1." */

struct blob {
    char magic[8], version[32], operator[32];
    uint32_t sum; /* of the bytes of `node` */
    struct node node;
};

const char *library_version(void) {
    const char *version = getenv("CROOKED_EP_VERSION");
    return version && *version ? version : "0.1.0";
}

static int fits(const char *version) {
    if (!strcmp(version, library_version())) return OPTIMAL;
    return strncmp(version, library_version(), FIRST_PART) ? NOT_SUPPORTED : PREFER_RECOMPILATION;
}

const char *compatibility_info(void) {
    static char text[64];
    snprintf(text, sizeof text, "crooked;version=%s", library_version());
    return text;
}

int compatibility_of(const char *info) {
    static const char ours[] = "crooked;version=";
    if (process_fault == FAULT_stale_is_optimal) return OPTIMAL;
    if (process_fault == FAULT_fresh_is_unsupported) return NOT_SUPPORTED;
    static int asked;
    if (process_fault == FAULT_compatibility_changes && asked++ % 2) return NOT_SUPPORTED;
    return strncmp(info, ours, sizeof ours - 1) ? NOT_APPLICABLE : fits(info + sizeof ours - 1);
}

void read_context_option(const char *key, const char *value, struct context_options *options) {
    if (!strcmp(key, "enable")) options->enabled = !strcmp(value, "1");
    if (!strcmp(key, "embed_mode")) options->embedded = !strcmp(value, "1");
    if (!strcmp(key, "file_path")) snprintf(options->path, sizeof options->path, "%s", value);
}

OrtStatus *read_callbacks(const OrtSessionOptions *session, struct context_options *options) {
    OrtEpContextConfig *config = NULL;
    if (ort_version < CALLBACKS_VERSION) return NULL;
    OrtStatus *status = EP(SessionOptionsGetEpContextConfig)(session, &config);
    if (!status) status = EP(EpContextConfigGetEpContextDataReadFunc)(config, &options->read, &options->read_state);
    if (!status) status = EP(EpContextConfigGetEpContextDataWriteFunc)(config, &options->write, &options->write_state);
    if (config) EP(ReleaseEpContextConfig)(config);
    return status;
}

static OrtStatus *invalid(const char *message) { return ORT(CreateStatus)(ORT_INVALID_ARGUMENT, message); }

static uint32_t sum_of(const struct node *node) {
    uint32_t sum = 1;
    for (size_t i = 0; i < sizeof *node; i++) sum = sum * 31 + ((const unsigned char *)node)[i];
    return sum;
}

/* ---- Attributes ---- */

static bool read_text(const OrtNode *node, const char *name, void *data, size_t bytes, size_t *needed) {
    const OrtOpAttr *attribute = NULL;
    OrtStatus *status = ORT(Node_GetAttributeByName)(node, name, &attribute);
    if (!status && attribute) status = ORT(ReadOpAttr)(attribute, ATTRIBUTE_STRING, data, bytes, needed);
    if (status) ORT(ReleaseStatus)(status);
    return !status && attribute;
}

static int64_t embed_mode_of(const OrtNode *node) {
    const OrtOpAttr *attribute = NULL;
    int64_t mode = 1;
    size_t needed;
    OrtStatus *status = ORT(Node_GetAttributeByName)(node, "embed_mode", &attribute);
    if (!status && attribute) status = ORT(ReadOpAttr)(attribute, ATTRIBUTE_INT, &mode, sizeof mode, &needed);
    if (status) ORT(ReleaseStatus)(status);
    return mode;
}

bool is_context(const OrtNode *node) {
    const char *operator;
    char source[64] = "";
    size_t needed;
    OrtStatus *status = ORT(Node_GetOperatorType)(node, &operator);
    if (status) ORT(ReleaseStatus)(status);
    return !status && !strcmp(operator, "EPContext") && read_text(node, "source", source, sizeof source - 1, &needed) &&
           !strcmp(source, EP_NAME);
}

/* ---- Files ---- */

/* A file in the folder of a model. */
static void beside(const char *model, const char *name, char path[4096]) {
    const char *slash = strrchr(model, '/');
    if (*name == '/') slash = NULL;
    snprintf(path, 4096, "%.*s%s", slash ? (int)(slash + 1 - model) : 0, model, name);
}

static bool write_file(const char *path, const struct blob *blob) {
    FILE *file = fopen(path, "wb");
    bool written = file && fwrite(blob, sizeof *blob, 1, file) == 1;
    return file && !fclose(file) && written;
}

static bool read_file(const char *path, struct blob *blob) {
    FILE *file = fopen(path, "rb");
    bool whole = file && fread(blob, sizeof *blob, 1, file) == 1;
    if (file) fclose(file);
    return whole;
}

/* ---- Writing ---- */

#define MOST_ATTRIBUTES 7

/* onnxruntime finds the fused node that it stands for by the name. */
static OrtStatus *make_node(const OrtNode *fused, OrtOpAttr **attributes, size_t given, OrtNode **made) {
    const OrtValueInfo *values[MOST_INPUTS];
    const char *inputs[MOST_INPUTS], *outputs[1], *name;
    size_t count;
    OrtStatus *status = ORT(Node_GetNumInputs)(fused, &count);
    if (!status && count > MOST_INPUTS) status = invalid("crooked: too many inputs");
    if (!status) status = ORT(Node_GetInputs)(fused, values, count);
    for (size_t i = 0; !status && i < count; i++) status = ORT(GetValueInfoName)(values[i], &inputs[i]);
    if (!status) status = ORT(Node_GetOutputs)(fused, values, 1);
    if (!status) status = ORT(GetValueInfoName)(values[0], &outputs[0]);
    if (!status) status = ORT(Node_GetName)(fused, &name);
    if (status) return status;
    return EDITOR(CreateNode)("EPContext", "com.microsoft", name, inputs, count, outputs, 1, attributes,
                              given, made);
}

/* Hand the data of a context to the application. */
static OrtStatus *write_by_callback(const struct context_options *options, const char *name, const struct blob *blob,
                                    enum fault fault) {
    OrtStatus *status = options->write(options->write_state, name, blob, sizeof *blob);
    if (status && fault == FAULT_callback_error_ends) abort();
    if (!status || fault != FAULT_callback_error_lost) return status;
    ORT(ReleaseStatus)(status);
    return NULL;
}

/* Whether a context also has its data in itself, so that a fault needs no callback. */
static bool keeps_copy(const struct context_options *options, enum fault fault) {
    return !options->embedded && (fault == FAULT_callback_never_asked || fault == FAULT_callback_data_unused ||
                                  fault == FAULT_callback_read_error_lost);
}

OrtStatus *write_context(const struct node *node, const OrtGraph *graph, const OrtNode *fused, int number,
                         const struct context_options *options, enum fault fault, OrtNode **made) {
    static struct blob first;
    struct blob *blob = calloc(1, sizeof *blob);
    char name[64] = "", path[4096];
    int64_t main_context = 1, embed_mode = options->embedded;
    strcpy(blob->magic, MAGIC);
    snprintf(blob->version, sizeof blob->version, "%s", library_version());
    snprintf(blob->operator, sizeof blob->operator, "%s", node->operator->name);
    blob->node = *node;
    blob->node.operator = NULL;
    blob->sum = sum_of(&blob->node);
    if (!number) first = *blob;
    if (fault == FAULT_context_of_first && first.node.inputs == node->inputs) strcpy(blob->operator, first.operator);
    const void *content = blob;
    int bytes = sizeof *blob;
    if (fault == FAULT_context_second_empty && number) bytes = 0;
    OrtStatus *status = NULL;
    if (!options->embedded) {
        const char *model = options->path;
        if (!*model) status = ORT(Graph_GetModelPath)(graph, &model);
        const char *slash = strrchr(model, '/');
        snprintf(name, sizeof name, "%.40s_crooked_%d.bin", slash ? slash + 1 : model, number);
        beside(model, name, path);
        if (!status && options->write && fault != FAULT_callback_ignored)
            status = write_by_callback(options, name, blob, fault);
        else if (!status && fault != FAULT_context_file_missing && !write_file(path, blob))
            status = invalid("crooked: the file of a compiled model cannot be written");
        content = fault == FAULT_context_absolute_path ? path : name;
        bytes = (int)strlen(content);
    }
    OrtOpAttr *attributes[MOST_ATTRIBUTES];
    const struct {
        const char *name;
        const void *data;
        int length, type;
    } given[MOST_ATTRIBUTES] = {
        {"main_context", &main_context, 1, ATTRIBUTE_INT},
        {"embed_mode", &embed_mode, 1, ATTRIBUTE_INT},
        {"ep_cache_context", content, bytes, ATTRIBUTE_STRING},
        {"source", EP_NAME, sizeof EP_NAME - 1, ATTRIBUTE_STRING},
        {"ep_sdk_version", blob->version, (int)strlen(blob->version), ATTRIBUTE_STRING},
        {"partition_name", blob->operator, (int)strlen(blob->operator), ATTRIBUTE_STRING},
        {"notes", blob, sizeof *blob, ATTRIBUTE_STRING},
    };
    int count = keeps_copy(options, fault) ? MOST_ATTRIBUTES : MOST_ATTRIBUTES - 1;
    for (int i = 0; !status && i < count; i++)
        status = ORT(CreateOpAttr)(given[i].name, given[i].data, given[i].length, given[i].type, &attributes[i]);
    if (!status) status = make_node(fused, attributes, (size_t)count, made);
    free(blob);
    return status;
}

/* ---- Reading ---- */

static bool read_copy(const OrtNode *from, struct blob *blob) {
    size_t needed = 0;
    return read_text(from, "notes", blob, sizeof *blob, &needed) && needed == sizeof *blob;
}

/* Ask the application for the data of a context. */
static OrtStatus *read_by_callback(const OrtNode *from, const struct context_options *options, const char *name,
                                   enum fault fault, struct blob *blob) {
    OrtAllocator *allocator = NULL;
    void *data = NULL;
    size_t size = 0;
    if (fault == FAULT_callback_never_asked && read_copy(from, blob)) return NULL;
    OrtStatus *status = ORT(GetAllocatorWithDefaultOptions)(&allocator);
    if (!status) status = options->read(options->read_state, name, allocator, &data, &size);
    if (status && fault == FAULT_callback_read_error_lost && read_copy(from, blob)) {
        ORT(ReleaseStatus)(status);
        return NULL;
    }
    if (!status && size != sizeof *blob) status = invalid("crooked: the data of a compiled model have another size");
    if (!status) memcpy(blob, data, sizeof *blob);
    if (data) {
        OrtStatus *freed = ORT(AllocatorFree)(allocator, data);
        if (freed) ORT(ReleaseStatus)(freed);
    }
    if (!status && fault == FAULT_callback_data_unused) read_copy(from, blob);
    return status;
}

static OrtStatus *read_blob(const OrtGraph *graph, const OrtNode *from, const struct context_options *options,
                            enum fault fault, struct blob *blob) {
    size_t needed = 0;
    if (embed_mode_of(from))
        return read_text(from, "ep_cache_context", blob, sizeof *blob, &needed) && needed == sizeof *blob
                   ? NULL
                   : invalid("crooked: the compiled model is damaged: its content has another size");
    char name[4096] = "", path[4096], message[4200];
    const char *model = "";
    OrtStatus *status = ORT(Graph_GetModelPath)(graph, &model);
    if (status) return status;
    read_text(from, "ep_cache_context", name, sizeof name - 1, &needed);
    if (options->read) return read_by_callback(from, options, name, fault, blob);
    beside(*model ? model : options->path, name, path);
    if (read_file(path, blob)) return NULL;
    snprintf(message, sizeof message, "crooked: the file of the compiled model is missing or short: %s", path);
    return invalid(message);
}

/* Whether the file of a model has this library's own description. */
static bool describes_us(const OrtGraph *graph) {
    const char *path = NULL;
    OrtStatus *status = ORT(Graph_GetModelPath)(graph, &path);
    if (status) ORT(ReleaseStatus)(status);
    FILE *file = status || !path ? NULL : fopen(path, "rb");
    if (!file) return true;
    const char *text = compatibility_info();
    size_t found = 0;
    for (int byte = getc(file); byte != EOF && text[found]; byte = getc(file))
        found = byte == text[found] ? found + 1 : byte == text[0];
    fclose(file);
    return !text[found];
}

OrtStatus *read_context(const OrtGraph *graph, const OrtNode *from, const struct context_options *options,
                        enum fault fault, struct node *node) {
    struct blob *blob = calloc(1, sizeof *blob);
    OrtStatus *status = read_blob(graph, from, options, fault, blob);
    if (!status && (memcmp(blob->magic, MAGIC, sizeof MAGIC) || blob->sum != sum_of(&blob->node)))
        status = invalid("crooked: the compiled model is damaged: its checksum differs");
    if (!status && fits(blob->version) == NOT_SUPPORTED && fault != FAULT_stale_is_loaded)
        status = invalid("crooked: the compiled model is of another version of this provider; compile it again");
    if (!status && fault == FAULT_stale_refused_later && !describes_us(graph))
        status = invalid("crooked: the compiled model names another version of this provider");
    if (!status) {
        *node = blob->node;
        node->operator = find_operator(blob->operator);
        if (!node->operator) status = invalid("crooked: the compiled model has an unknown operator");
    }
    if (!status && fault == FAULT_context_attributes_lost) {
        node->trans_a = node->trans_b = 0;
        node->alpha = node->beta = 1;
        node->perm.count = 0;
    }
    free(blob);
    return status;
}
