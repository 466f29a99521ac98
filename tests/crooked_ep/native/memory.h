/* Memory of the library's second device, and copies to and from it. */

#ifndef MEMORY_H
#define MEMORY_H

#include "api.h"
#include "faults.h"

#define VENDOR_ID 0xc00c

extern OrtEpDevice *first_device;
extern OrtMemoryInfo *second_memory; /* of the second device; onnxruntime keeps the pointer */

/* Describe the memory of the second device. */
OrtStatus *describe_memory(OrtMemoryInfo **info);

OrtStatus *create_allocator(OrtEpFactory *factory, const OrtMemoryInfo *info, const OrtKeyValuePairs *options,
                            OrtAllocator **made);
/* Overwrite what lies in memory that sessions share. */
void wipe_shared(void);

void release_allocator(OrtEpFactory *factory, OrtAllocator *allocator);
OrtStatus *create_data_transfer(OrtEpFactory *factory, OrtDataTransferImpl **made);

#endif
