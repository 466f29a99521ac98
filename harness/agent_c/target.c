#include "session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { NEWEST_API = 28, OLDEST_API = 17 };

/* y = Relu(x) over float32[4] at opset 13, IR 7: the smallest model that any provider runs. */
static const uint8_t PROBE[] = {
    0x08, 0x07, 0x12, 0x00, 0x3a, 0x33, 0x0a, 0x0c, 0x0a, 0x01, 0x78, 0x12, 0x01, 0x79, 0x22, 0x04, 0x52, 0x65, 0x6c, 0x75,
    0x12, 0x01, 0x70, 0x5a, 0x0f, 0x0a, 0x01, 0x78, 0x12, 0x0a, 0x0a, 0x08, 0x08, 0x01, 0x12, 0x04, 0x0a, 0x02, 0x08, 0x04,
    0x62, 0x0f, 0x0a, 0x01, 0x79, 0x12, 0x0a, 0x0a, 0x08, 0x08, 0x01, 0x12, 0x04, 0x0a, 0x02, 0x08, 0x04, 0x42, 0x04, 0x0a,
    0x00, 0x10, 0x0d};

const OrtFunction *ort_api;
unsigned ort_minor;
OrtAllocator *ort_allocator;
OrtEnv *ort_env;

static void *library;
static const char *version = "", *library_path = "";
static OrtSession *held;
static char **available;
static int available_count;

Target target;
static const Json *configuration;
static const char *plugin, *registered;

static const char *KINDS[] = {"Ok",           "Fail",         "InvalidArgument",  "NoSuchFile",  "NoModel",
                              "EngineError",  "RuntimeException", "InvalidProtobuf", "ModelLoaded", "NotImplemented",
                              "InvalidGraph", "EPFail"};
static const char *WORDS[] = {"SUCCESS",       "FAIL",              "INVALID_ARGUMENT", "NO_SUCHFILE",  "NO_MODEL",
                              "ENGINE_ERROR",  "RUNTIME_EXCEPTION", "INVALID_PROTOBUF", "MODEL_LOADED", "NOT_IMPLEMENTED",
                              "INVALID_GRAPH", "EP_FAIL"};

const char *status_text(Arena *arena, OrtStatus *status, const char **kind) {
    int code = ORT(GetErrorCode)(status);
    bool known = code >= 0 && code < (int)(sizeof KINDS / sizeof *KINDS);
    if (kind) *kind = known ? KINDS[code] : "Fail";
    const char *text = ORT(GetErrorMessage)(status);
    text = arena_format(arena, "[ONNXRuntimeError] : %d : %s : %s", code, known ? WORDS[code] : "?", text ? text : "");
    ORT(ReleaseStatus)(status);
    return text;
}

static bool refuse(Refusal *refusal, const char *cause, const char *reason) {
    *refusal = (Refusal){.cause = cause, .reason = reason};
    return false;
}

static bool refuse_status(Arena *arena, Refusal *refusal, const char *cause, OrtStatus *status) {
    return refuse(refusal, cause, status_text(arena, status, NULL));
}

/* --- the runtime --- */

static const char *missing_library(Arena *arena, const char *why) {
    const char *words[] = {": cannot open shared object file", " not found", ": No such file"};
    for (size_t index = 0; index < sizeof words / sizeof *words; index++) {
        const char *end = strstr(why, words[index]), *begin = end;
        while (begin && begin > why && begin[-1] != ' ' && begin[-1] != '/' && begin[-1] != '\'') begin--;
        if (end && memchr(begin, '.', (size_t)(end - begin))) return arena_text(arena, begin, (size_t)(end - begin));
    }
    return NULL;
}

static bool try_library(Arena *arena, const char *path, const char **why) {
    if (!library) library = library_open(arena, path, why);
    if (library && !*library_path) library_path = path;
    return library != NULL;
}

bool runtime_load(Arena *arena, const char *asked, Refusal *refusal) {
    static const char *const names[] = {
#ifdef _WIN32
        "onnxruntime.dll",
#elif defined(__APPLE__)
        "libonnxruntime.dylib",
#else
        "libonnxruntime.so", "libonnxruntime.so.1",
#endif
    };
    const char *why = "", *named = asked ? asked : variable(arena, "EP_HARNESS_ONNXRUNTIME");
    if (named && *named) {
        if (!try_library(arena, named, &why)) {
            const char *missing = is_file(named) ? missing_library(arena, why) : NULL;
            if (!is_file(named)) return refuse(refusal, "not_installed", arena_format(arena, "no onnxruntime at %s: %s", named, why));
            if (missing) return refuse(refusal, "library_missing", arena_format(arena, "%s is missing: %s", missing, why));
            return refuse(refusal, "import_failed", why);
        }
    }
    for (size_t index = 0; index < sizeof names / sizeof *names && !library; index++) {
        const char *beside = arena_format(arena, "%s%s", self_folder(arena), names[index]);
        if (is_file(beside) ? try_library(arena, beside, &why) : try_library(arena, names[index], &why)) break;
    }
    if (!library) {
        const char *hint = "no libonnxruntime: give --library PATH or set EP_HARNESS_ONNXRUNTIME (%s)";
        return refuse(refusal, "not_installed", arena_format(arena, hint, why));
    }
    void *symbol = library_symbol(library, "OrtGetApiBase");
    const OrtApiBase *(ORT_CALL *get_base)(void);
    memcpy(&get_base, &symbol, sizeof symbol);
    if (!symbol) return refuse(refusal, "import_failed", arena_format(arena, "%s has no OrtGetApiBase", library_path));
    const OrtApiBase *base = get_base();
    version = base->GetVersionString();
    unsigned major = 0;
    if (sscanf(version, "%u.%u", &major, &ort_minor) != 2 || major != 1 || ort_minor < OLDEST_API) {
        const char *reason = "%s is onnxruntime %s; the agent needs 1.%d or newer, and knows 1";
        return refuse(refusal, "version_conflict", arena_format(arena, reason, library_path, version, OLDEST_API));
    }
    ort_api = base->GetApi(ort_minor < NEWEST_API ? ort_minor : NEWEST_API);
    if (!ort_api) return refuse(refusal, "version_conflict", arena_format(arena, "onnxruntime %s gives no API", version));
    OrtStatus *status = ORT(CreateEnv)(2, "ep-harness", &ort_env);
    if (!status) status = ORT(GetAllocatorWithDefaultOptions)(&ort_allocator);
    if (!status) status = ORT(GetAvailableProviders)(&available, &available_count);
    if (status) return refuse_status(arena, refusal, "import_failed", status);
    learn_numbers(ort_allocator);
    return true;
}

static void put_pairs(Message *message, const OrtKeyValuePairs *pairs, bool comma) {
    const char *const *names = NULL, *const *texts = NULL;
    size_t count = 0;
    if (pairs) ORT(GetKeyValuePairs)(pairs, &names, &texts, &count);
    for (size_t index = 0; index < count; index++) {
        put_then(message, index || comma ? "," : "", names[index]);
        put_then(message, ":", texts[index]);
    }
}

static const char *hardware_type(const OrtEpDevice *one) {
    static const char *types[] = {"CPU", "GPU", "NPU"};
    int type = ORT(HardwareDevice_Type)(ORT(EpDevice_Device)(one));
    return type >= 0 && type < 3 ? types[type] : "OTHER";
}

static void put_device(Message *message, const OrtEpDevice *one) {
    const OrtHardwareDevice *hardware = ORT(EpDevice_Device)(one);
    put_then(message, "{\"provider\":", ORT(EpDevice_EpName)(one));
    put_format(message, ",\"device\":{\"type\":\"%s\",\"vendor\":", hardware_type(one));
    put_text(message, ORT(HardwareDevice_Vendor)(hardware));
    put_format(message, ",\"vendor_id\":\"%u\",\"device_id\":\"%u\"", (unsigned)ORT(HardwareDevice_VendorId)(hardware),
               (unsigned)ORT(HardwareDevice_DeviceId)(hardware));
    put_pairs(message, ORT(HardwareDevice_Metadata)(hardware), true);
    put(message, "},\"metadata\":{");
    put_pairs(message, ORT(EpDevice_EpMetadata)(one), false);
    put(message, "}}");
}

static size_t devices(const OrtEpDevice *const **found) {
    size_t count = 0;
    *found = NULL;
    OrtStatus *status = ort_env && HAS(GetEpDevices) ? ORT(GetEpDevices)(ort_env, found, &count) : NULL;
    if (status) ORT(ReleaseStatus)(status);
    return status ? 0 : count;
}

void environment_put(Message *message, bool with_target) {
    const OrtEpDevice *const *all = NULL;
    bool some = false;
    put_then(message, "{\"agent\":\"c\",\"platform\":", system_name());
    put_then(message, ",\"machine\":", machine_name());
    processor_put(message);
    put(message, ",\"not_watched\":[\"fp_control\",\"signals\",\"locale\",\"directory\",\"environment\",\"descriptors\","
                 "\"file_mask\",\"limits\",\"files\",\"processes\",\"leftovers\",\"inputs\",\"printed\",\"memory\"]");
    if (*version) {
        put_then(message, ",\"onnxruntime\":", version);
        put_then(message, ",\"library\":", library_path);
        put(message, ",\"session\":{\"intra_op_num_threads\":1,\"inter_op_num_threads\":1}");
        put_texts(message, ",\"available_providers\":", (const char *const *)available, (size_t)available_count);
    }
    if (with_target) {
        put_texts(message, ",\"providers\":", target.chain, target.chain_size);
        put(message, ",\"options\":{");
        for (size_t index = 0; index < target.option_count; index++) {
            put_then(message, index ? "," : "", target.keys[index]);
            put_then(message, ":", target.values[index]);
        }
        put(message, "}");
        if (plugin) {
            put_then(message, ",\"plugin\":{\"library\":", plugin);
            put(message, ",\"version\":\"\"}");
        }
        for (size_t index = 0, count = devices(&all); target.chain_size && index < count; index++) {
            if (strcmp(ORT(EpDevice_EpName)(all[index]), target.chain[0])) continue;
            put(message, some ? "," : ",\"devices\":[");
            put_device(message, all[index]);
            some = true;
        }
        if (some) put(message, "]");
    }
    put(message, "}");
}

/* --- the target --- */

static bool fits(const char *found, const Json *wanted) {
    return found && json_is(wanted, JSON_TEXT) && !strcasecmp(found, wanted->text);
}

static bool pairs_fit(const OrtKeyValuePairs *pairs, const Json *wanted) {
    const char *const *names = NULL, *const *texts = NULL;
    size_t count = 0;
    if (pairs) ORT(GetKeyValuePairs)(pairs, &names, &texts, &count);
    for (size_t index = 0; index < count; index++)
        if (!strcmp(names[index], wanted->key) && fits(texts[index], wanted)) return true;
    return false;
}

static bool device_fits(const OrtEpDevice *one, const Json *filter) {
    const OrtHardwareDevice *hardware = ORT(EpDevice_Device)(one);
    for (const Json *wanted = json_members(filter); wanted; wanted = wanted->next) {
        char number[32] = "";
        const char *found = number;
        if (!strcmp(wanted->key, "number")) continue; /* of those that match */
        if (!strcmp(wanted->key, "type")) found = hardware_type(one);
        else if (!strcmp(wanted->key, "vendor")) found = ORT(HardwareDevice_Vendor)(hardware);
        else if (!strcmp(wanted->key, "vendor_id")) snprintf(number, sizeof number, "%u", (unsigned)ORT(HardwareDevice_VendorId)(hardware));
        else if (!strcmp(wanted->key, "device_id")) snprintf(number, sizeof number, "%u", (unsigned)ORT(HardwareDevice_DeviceId)(hardware));
        else found = NULL;
        if (found ? !fits(found, wanted) : !pairs_fit(ORT(HardwareDevice_Metadata)(hardware), wanted) && !pairs_fit(ORT(EpDevice_EpMetadata)(one), wanted)) return false;
    }
    return true;
}

static bool register_plugin(Arena *arena, const char *asked, const Json *filter, Refusal *refusal) {
    plugin = absolute_path(arena, asked);
    if (!is_file(plugin)) {
        const char *reason = "no plugin library at %s: this agent takes a path, not the name of a Python package";
        return refuse(refusal, "not_installed", arena_format(arena, reason, plugin));
    }
    if (!HAS(GetEpDevices)) return refuse(refusal, "version_conflict", arena_format(arena, "onnxruntime %s has no plugins; 1.22 is the first", version));
    OrtStatus *status = library_register(arena, target.chain[0], plugin);
    if (status) {
        const char *reason = status_text(arena, status, NULL), *missing = missing_library(arena, reason);
        if (missing) return refuse(refusal, "library_missing", arena_format(arena, "%s is missing: %s", missing, reason));
        return refuse(refusal, "registration_failed", reason);
    }
    registered = target.chain[0];
    const OrtEpDevice *const *all = NULL;
    int left = atoi(json_text(json_get(filter, "number"), "1"));
    for (size_t index = 0, count = devices(&all); index < count && !target.device; index++)
        if (!strcmp(ORT(EpDevice_EpName)(all[index]), target.chain[0]) && device_fits(all[index], filter) && --left == 0) target.device = all[index];
    const char *which = filter && filter->size ? " that the filter wants" : "";
    return target.device || refuse(refusal, "no_device", arena_format(arena, "%s is registered but offers no device%s", target.chain[0], which));
}

static bool is_available(const char *name) {
    for (int index = 0; index < available_count; index++)
        if (!strcmp(available[index], name)) return true;
    return false;
}

bool target_open(Arena *arena, const Json *config, Refusal *refusal) {
    const Json *providers = json_get(config, "providers"), *options = json_get(config, "options");
    configuration = config;
    target.chain_size = target.option_count = 0;
    for (const Json *one = json_item(providers, 0); one && target.chain_size < MOST_SETTINGS; one = one->next)
        target.chain[target.chain_size++] = json_text(one, "");
    for (const Json *one = json_members(options); one && target.option_count < MOST_SETTINGS; one = one->next) {
        target.keys[target.option_count] = one->key;
        target.values[target.option_count++] = json_text(one, "");
    }
    target.entries = json_get(config, "session");
    if (!target.chain_size) return refuse(refusal, "not_in_build", "the configuration names no provider");
    const char *asked = json_text(json_get(config, "plugin"), NULL);
    if (asked) return register_plugin(arena, asked, json_get(config, "device"), refusal);
    for (size_t index = 0; index < target.chain_size; index++)
        if (!is_available(target.chain[index]))
            return refuse(refusal, "not_in_build", arena_format(arena, "%s is not in this onnxruntime %s", target.chain[index], version));
    return true;
}

static const char *probe_refusal(Arena *arena, int without) {
    SessionPlan plan = {.model = (const char *)PROBE, .model_size = sizeof PROBE, .without = without};
    Trouble trouble = {0};
    target_release();
    held = session_open(arena, &plan, &trouble);
    if (held) return NULL;
    return trouble.status ? status_text(arena, trouble.status, NULL) : trouble.unfeedable;
}

bool target_probe(Arena *arena, Refusal *refusal) {
    const char *error = probe_refusal(arena, -1);
    if (!error) return true;
    for (size_t index = 0; index < target.option_count; index++)
        if (!probe_refusal(arena, (int)index)) {
            *refusal = (Refusal){.option = target.keys[index], .reason = error};
            return false;
        }
    if (target.option_count && !probe_refusal(arena, -2)) {
        *refusal = (Refusal){.option = target.keys[0], .reason = error};
        return false;
    }
    const char *missing = missing_library(arena, error);
    if (missing) return refuse(refusal, "library_missing", arena_format(arena, "%s is missing: %s", missing, error));
    return refuse(refusal, "registration_failed", error);
}

const char *target_sickness(Arena *arena) {
    static const float given[4] = {-2, -0.5F, 0.5F, 3}, wanted[4] = {0, 0, 0.5F, 3};
    const char *input = "x", *output = "y";
    int64_t shape = 4;
    OrtValue *in = NULL, *out = NULL;
    void *data = NULL;
    if (!held) return NULL; /* a scenario has released it */
    OrtStatus *status = ORT(CreateTensorAsOrtValue)(ort_allocator, &shape, 1, 1, &in);
    if (!status) status = ORT(GetTensorMutableData)(in, &data);
    if (!status) memcpy(data, given, sizeof given);
    if (!status) status = ORT(Run)(held, NULL, &input, (const OrtValue *const *)&in, 1, &output, 1, &out);
    if (!status) status = ORT(GetTensorMutableData)(out, &data);
    bool right = !status && !memcmp(data, wanted, sizeof wanted);
    if (in) ORT(ReleaseValue)(in);
    if (out) ORT(ReleaseValue)(out);
    return status ? status_text(arena, status, NULL) : right ? NULL : "it computes Relu wrongly";
}

void target_release(void) {
    if (held) ORT(ReleaseSession)(held);
    held = NULL;
}

OrtStatus *target_unregister(void) {
    const char *name = registered;
    target.device = NULL;
    registered = NULL;
    return name ? ORT(UnregisterExecutionProviderLibrary)(ort_env, name) : NULL;
}

void target_unload(void) {
    OrtStatus *status = target_unregister();
    if (status) ORT(ReleaseStatus)(status);
}

OrtStatus *library_register(Arena *arena, const char *name, const char *path) {
    return ORT(RegisterExecutionProviderLibrary)(ort_env, name, runtime_path(arena, path));
}

const char *plugin_library(void) { return plugin; }

bool target_is(const char *provider) {
    bool cpu_alone = true;
    for (size_t index = 0; index < target.chain_size; index++) {
        bool is_cpu = !strcmp(target.chain[index], CPU_PROVIDER);
        if (!is_cpu && !strcasecmp(target.chain[index], provider)) return true;
        cpu_alone &= is_cpu;
    }
    return cpu_alone && !strcasecmp(provider, CPU_PROVIDER);
}

const Json *target_config(void) { return configuration; }
const char *runtime_version(void) { return version; }
const char *runtime_library(void) { return library_path; }
void *runtime_symbol(const char *name) { return library_symbol(library, name); }
