#include "memory.h"

#include <stdlib.h>
#include <string.h>

#define SLACK 64 /* bytes behind each block, so that a fault that writes there damages no heap */

struct allocator {
    OrtAllocator table; /* first: onnxruntime's pointer is also ours */
    const OrtMemoryInfo *info;
    bool is_shared; /* the first one of the process: onnxruntime makes it with the registration, for all sessions that want it */
};

enum { MOST_SHARED = 1024 };
static struct {
    void *block;
    size_t bytes;
} shared[MOST_SHARED];
static bool has_shared;

static void note(void *block, void *now, size_t bytes) {
    for (int i = 0; i < MOST_SHARED; i++)
        if (shared[i].block == block) {
            shared[i].block = now;
            shared[i].bytes = bytes;
            return;
        }
}

void wipe_shared(void) {
    for (int i = 0; i < MOST_SHARED; i++)
        if (shared[i].block) memset(shared[i].block, 0x3f, shared[i].bytes);
}

OrtStatus *describe_memory(OrtMemoryInfo **info) {
    enum { DEFAULT_MEMORY = 0, DEVICE_ALLOCATOR = 0 };
    return ORT(CreateMemoryInfo_V2)("crooked_npu", MEMORY_NPU, VENDOR_ID, 0, DEFAULT_MEMORY, 0, DEVICE_ALLOCATOR, info);
}

static void *allocate(OrtAllocator *allocator, size_t bytes) {
    void *block = calloc(1, bytes + SLACK);
    if (((struct allocator *)allocator)->is_shared) note(NULL, block, bytes);
    return block;
}

static void release_block(OrtAllocator *allocator, void *block) {
    if (block && ((struct allocator *)allocator)->is_shared) note(block, NULL, 0);
    free(block);
}

static const OrtMemoryInfo *info_of(const OrtAllocator *allocator) { return ((const struct allocator *)allocator)->info; }

OrtStatus *create_allocator(OrtEpFactory *factory, const OrtMemoryInfo *info, const OrtKeyValuePairs *options,
                            OrtAllocator **made) {
    (void)factory, (void)options;
    struct allocator *allocator = calloc(1, sizeof *allocator);
    allocator->table = (OrtAllocator){API_VERSION, allocate, release_block, info_of, allocate, 0, 0, {0}};
    allocator->info = info;
    allocator->is_shared = !has_shared;
    has_shared = true;
    *made = &allocator->table;
    return NULL;
}

void release_allocator(OrtEpFactory *factory, OrtAllocator *allocator) {
    (void)factory;
    free(allocator);
}

/* ---- Copies: its memory is the host's, so each one is a memcpy ---- */

static bool is_host_or_ours(const OrtMemoryDevice *device) {
    return EP(MemoryDevice_GetDeviceType)(device) == MEMORY_CPU || EP(MemoryDevice_GetVendorId)(device) == VENDOR_ID;
}

static bool can_copy(const OrtDataTransferImpl *transfer, const OrtMemoryDevice *from, const OrtMemoryDevice *to) {
    (void)transfer;
    return is_host_or_ours(from) && is_host_or_ours(to);
}

static OrtStatus *copy_tensors(OrtDataTransferImpl *transfer, const OrtValue **from, OrtValue **to, void **streams,
                               size_t count) {
    (void)transfer, (void)streams;
    OrtStatus *status = NULL;
    for (size_t i = 0; !status && i < count; i++) {
        size_t bytes;
        void *source = NULL, *target = NULL;
        status = ORT(GetTensorSizeInBytes)(from[i], &bytes);
        if (!status && !bytes) continue;
        if (!status) status = ORT(GetTensorMutableData)((OrtValue *)from[i], &source);
        if (!status) status = ORT(GetTensorMutableData)(to[i], &target);
        if (status) break;
        if (process_fault == FAULT_copy_tail_lost && bytes >= 8) bytes -= 4;
        memcpy(target, source, bytes);
        if (process_fault == FAULT_copy_beyond_end) memset((char *)target + bytes, 0x5a, 4);
    }
    return status;
}

static void release_transfer(OrtDataTransferImpl *transfer) { free(transfer); }

OrtStatus *create_data_transfer(OrtEpFactory *factory, OrtDataTransferImpl **made) {
    (void)factory;
    *made = malloc(sizeof **made);
    **made = (OrtDataTransferImpl){API_VERSION, release_transfer, can_copy, copy_tensors};
    return NULL;
}
