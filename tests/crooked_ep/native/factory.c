/* What onnxruntime finds in this library: its two functions, and the factory that the first one returns. */

#include <stdlib.h>
#include <string.h>

#include "ep.h"

#ifdef NO_SYMBOL /* a build that lacks the function that onnxruntime looks for */
#define CreateEpFactories CreateOtherFactories
#endif
#define EXPORTED __attribute__((visibility("default")))

const function *ort_api;
const function *ort_ep_api;

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
    return 0xc00c;
}

static const char *get_version(const OrtEpFactory *factory) {
    (void)factory;
    return "0.1.0";
}

static bool is_stream_aware(const OrtEpFactory *factory) {
    (void)factory;
    return false;
}

static OrtStatus *create_data_transfer(OrtEpFactory *factory, void **transfer) {
    (void)factory;
    *transfer = NULL; /* host memory alone */
    return NULL;
}

static OrtStatus *get_supported_devices(OrtEpFactory *factory, const OrtHardwareDevice *const *devices, size_t count,
                                        OrtEpDevice **found, size_t most, size_t *number) {
    *number = 0;
    OrtStatus *status = act(environment_fault, DEVICES);
    if (environment_fault == FAULT_no_devices) return NULL;
    for (size_t i = 0; !status && i < count && *number < most; i++) {
        if (ORT(HardwareDevice_Type)(devices[i]) != HARDWARE_CPU) continue;
        status = EP(CreateEpDevice)(factory, devices[i], NULL, NULL, &found[*number]);
        if (!status) ++*number;
    }
    return status;
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

EXPORTED OrtStatus *CreateEpFactories(const char *registered_name, const OrtApiBase *base, const OrtLogger *logger,
                                      OrtEpFactory **factories, size_t most, size_t *number) {
    (void)registered_name, (void)logger, (void)most;
    *number = 0;
    /* A runtime prints why it has no such version. All that a plugin can do then is to have no provider. */
    ort_api = base->GetApi(environment_fault == FAULT_wrong_api_version ? 999 : API_VERSION);
    if (!ort_api) return NULL;
    ort_ep_api = ORT(GetEpApi)();
    if (environment_fault == FAULT_unknown)
        return ORT(CreateStatus)(ORT_INVALID_ARGUMENT, "crooked: CROOKED_EP_FAULT: there is no such fault");
    OrtStatus *status = act(environment_fault, REGISTER);
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
    factory->CreateDataTransfer = create_data_transfer;
    factory->IsStreamAware = is_stream_aware;
    factories[0] = factory;
    *number = 1;
    return NULL;
}

EXPORTED OrtStatus *ReleaseEpFactory(OrtEpFactory *factory) {
    OrtStatus *status = act(process_fault, RELEASE_FACTORY);
    free(factory);
    return status;
}

__attribute__((constructor)) static void load(void) {
    environment_fault = process_fault = fault_named(getenv("CROOKED_EP_FAULT"));
    act(environment_fault, LOAD);
}

__attribute__((destructor)) static void unload(void) {
    act(process_fault, UNLOAD);
}
