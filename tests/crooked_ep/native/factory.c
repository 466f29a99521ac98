/* What onnxruntime finds in this library: its two functions, and the factory that the first one returns. */

/* setenv is of POSIX. */
#define _GNU_SOURCE

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "context.h"
#include "ep.h"
#include "memory.h"

#ifdef NO_SYMBOL /* a build that lacks the function that onnxruntime looks for */
#define CreateEpFactories CreateOtherFactories
#endif
#define EXPORTED __attribute__((visibility("default")))

int ort_version;
const function *ort_api;
const function *ort_ep_api;
const function *ort_editor_api;
int registrations;

static int factories_alive; /* onnxruntime makes one more, and releases it, where it refuses a name for the second time */

/* Its second device: hardware that this library alone knows. */
static OrtHardwareDevice *second_device;
OrtEpDevice *first_device;
OrtMemoryInfo *second_memory;

static const char *get_name(const OrtEpFactory *factory) {
    (void)factory;
    return EP_NAME;
}

static const char *get_vendor(const OrtEpFactory *factory) {
    (void)factory;
    return "Crooked";
}

static uint32_t get_vendor_id(const OrtEpFactory *factory) {
    (void)factory;
    return VENDOR_ID;
}

static const char *get_version(const OrtEpFactory *factory) {
    (void)factory;
    return library_version();
}

static bool is_stream_aware(const OrtEpFactory *factory) {
    (void)factory;
    return false;
}

/* The CPU, whose memory is the host's, and an NPU with memory of its own. */
static OrtStatus *get_supported_devices(OrtEpFactory *factory, const OrtHardwareDevice *const *devices, size_t count,
                                        OrtEpDevice **found, size_t most, size_t *number) {
    *number = 0;
    OrtStatus *status = act(environment_fault, DEVICES);
    if (environment_fault == FAULT_no_devices) return NULL;
    for (size_t i = 0; !status && i < count && *number < most; i++) {
        if (ORT(HardwareDevice_Type)(devices[i]) != HARDWARE_CPU) continue;
        status = EP(CreateEpDevice)(factory, devices[i], NULL, NULL, &found[*number]);
        if (!status) first_device = found[(*number)++];
    }
    if (status || *number >= most) return status;
    if (!second_device)
        status = EP(CreateHardwareDevice)(HARDWARE_NPU, VENDOR_ID, 1, "Crooked", NULL, &second_device);
    if (!status) status = EP(CreateEpDevice)(factory, second_device, NULL, NULL, &found[*number]);
    if (status) return status;
    if (!second_memory) status = describe_memory(&second_memory);
    if (!status) status = EP(EpDevice_AddAllocatorInfo)(found[(*number)++], second_memory);
    return status;
}

static OrtStatus *validate(OrtEpFactory *factory, const OrtHardwareDevice *const *devices, size_t count,
                           const char *info, int *compatibility) {
    (void)factory, (void)devices, (void)count;
    *compatibility = compatibility_of(info);
    return NULL;
}

static OrtStatus *create_ep(OrtEpFactory *factory, const OrtHardwareDevice *const *devices,
                            const OrtKeyValuePairs *const *metadata, size_t count, const OrtSessionOptions *options,
                            const OrtLogger *logger, OrtEp **made) {
    (void)factory, (void)devices, (void)metadata, (void)count, (void)logger;
    return make_ep(options, made);
}

static void release(OrtEpFactory *factory, OrtEp *ep) {
    (void)factory;
    release_ep(ep);
}

/* Count in a variable of this process, which outlives the library and is that of its copies, too. */
static int count(const char *variable, int more) {
    const char *before = getenv(variable);
    char text[16];
    int now = (before ? atoi(before) : 0) + more;
    snprintf(text, sizeof text, "%d", now);
    setenv(variable, text, 1);
    return now;
}

/* Count registrations for the faults that need it. */
static void count_registration(void) {
    enum place place = place_of(environment_fault);
    if (place == REGISTRATION || place == UNREGISTER) registrations = count("CROOKED_EP_REGISTRATIONS", 1);
    if (place == COMPANY && !factories_alive) count("CROOKED_EP_COPIES", 1);
}

/* Take this library from the copies in use; what its fault does if others are left. */
static OrtStatus *leave_copies(void) {
    if (place_of(environment_fault) != COMPANY || count("CROOKED_EP_COPIES", -1) == 0) return NULL;
    setenv("CROOKED_EP_DISTURBED", "1", 1);
    return act(environment_fault, COMPANY);
}

EXPORTED OrtStatus *CreateEpFactories(const char *registered_name, const OrtApiBase *base, const OrtLogger *logger,
                                      OrtEpFactory **factories, size_t most, size_t *number) {
    (void)registered_name, (void)logger, (void)most;
    *number = 0;
    /* A runtime prints why it has no such version. All that a plugin can do then is to have no provider. */
    ort_api = base->GetApi(environment_fault == FAULT_wrong_api_version ? 999 : API_VERSION);
    if (!ort_api) return NULL;
    const char *minor = strchr(base->GetVersionString(), '.');
    ort_version = minor ? atoi(minor + 1) : 0;
    ort_ep_api = ORT(GetEpApi)();
    ort_editor_api = ORT(GetModelEditorApi)();
    if (environment_fault == FAULT_unknown)
        return ORT(CreateStatus)(ORT_INVALID_ARGUMENT, "crooked: CROOKED_EP_FAULT: there is no such fault");
    count_registration();
    OrtStatus *status = act(environment_fault, REGISTER);
    if (!status && registrations > 1) status = act(environment_fault, REGISTRATION);
    if (status || environment_fault == FAULT_no_factories) return status;
    OrtEpFactory *factory = calloc(1, sizeof *factory);
    factory->ort_version_supported = API_VERSION;
    factory->GetName = get_name;
    factory->GetVendor = get_vendor;
    factory->GetSupportedDevices = get_supported_devices;
    factory->CreateEp = create_ep;
    factory->ReleaseEp = release;
    factory->GetVendorId = get_vendor_id;
    factory->GetVersion = get_version;
    factory->ValidateCompiledModelCompatibilityInfo = validate;
    factory->CreateAllocator = create_allocator;
    factory->ReleaseAllocator = release_allocator;
    factory->CreateDataTransfer = create_data_transfer;
    factory->IsStreamAware = is_stream_aware;
    factories[0] = factory;
    factories_alive++;
    *number = 1;
    return NULL;
}

EXPORTED OrtStatus *ReleaseEpFactory(OrtEpFactory *factory) {
    OrtStatus *status = act(process_fault, RELEASE_FACTORY);
    if (!status && registrations > 1) status = act(environment_fault, UNREGISTER);
    free(factory);
    static bool devices_gone;
    if (devices_gone) raise(SIGSEGV); /* as reading them may, or may not, do */
    if (--factories_alive && environment_fault != FAULT_devices_released_early) return status;
    devices_gone = factories_alive;
    if (!status) status = leave_copies();
    if (second_device) EP(ReleaseHardwareDevice)(second_device);
    if (second_memory) ORT(ReleaseMemoryInfo)(second_memory);
    second_device = NULL;
    second_memory = NULL;
    return status;
}

__attribute__((constructor)) static void load(void) {
    environment_fault = process_fault = fault_named(getenv("CROOKED_EP_FAULT"));
    act(environment_fault, LOAD);
}

__attribute__((destructor)) static void unload(void) {
    act(process_fault, UNLOAD);
}
