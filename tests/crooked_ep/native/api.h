/* The part of onnxruntime's C API that this library uses, declared by hand: the tables are append-only,
 * so a function keeps its place for ever and no header package is needed. Places and layouts are those of
 * onnxruntime_c_api.h and onnxruntime_ep_c_api.h from 1.23 to 1.32. */

#ifndef API_H
#define API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define API_VERSION 23 /* the oldest with compiling plugins; newer runtimes call only what it had */

typedef struct OrtEpDevice OrtEpDevice;
typedef struct OrtEpGraphSupportInfo OrtEpGraphSupportInfo;
typedef struct OrtGraph OrtGraph;
typedef struct OrtHardwareDevice OrtHardwareDevice;
typedef struct OrtKernelContext OrtKernelContext;
typedef struct OrtKeyValuePairs OrtKeyValuePairs;
typedef struct OrtLogger OrtLogger;
typedef struct OrtNode OrtNode;
typedef struct OrtNodeComputeContext OrtNodeComputeContext;
typedef struct OrtOpAttr OrtOpAttr;
typedef struct OrtSessionOptions OrtSessionOptions;
typedef struct OrtStatus OrtStatus;
typedef struct OrtTensorTypeAndShapeInfo OrtTensorTypeAndShapeInfo;
typedef struct OrtTypeInfo OrtTypeInfo;
typedef struct OrtValue OrtValue;
typedef struct OrtValueInfo OrtValueInfo;

typedef void (*function)(void); /* of any signature; cast before it is called */

typedef struct {
    const function *(*GetApi)(uint32_t version);
    const char *(*GetVersionString)(void);
} OrtApiBase;

extern const function *ort_api;    /* OrtApi: functions by place */
extern const function *ort_ep_api; /* OrtEpApi */

/* Calls of the two tables: ORT(Graph_GetNodes)(graph, nodes, count). */
#define ORT(name) ((name##_function)ort_api[name##_place])
#define EP(name) ((name##_function)ort_ep_api[name##_place])
#define PLACE(place, result, name, ...)            \
    typedef result (*name##_function)(__VA_ARGS__); \
    enum { name##_place = (place) }

enum { ORT_FAIL = 1, ORT_INVALID_ARGUMENT = 2, ORT_EP_FAIL = 11 };
PLACE(0, OrtStatus *, CreateStatus, int code, const char *message);
PLACE(51, OrtStatus *, GetTensorMutableData, OrtValue *, void **);
PLACE(55, OrtStatus *, CastTypeInfoToTensorInfo, const OrtTypeInfo *, const OrtTensorTypeAndShapeInfo **);
PLACE(60, OrtStatus *, GetTensorElementType, const OrtTensorTypeAndShapeInfo *, int *);
PLACE(61, OrtStatus *, GetDimensionsCount, const OrtTensorTypeAndShapeInfo *, size_t *);
PLACE(62, OrtStatus *, GetDimensions, const OrtTensorTypeAndShapeInfo *, int64_t *, size_t);
PLACE(65, OrtStatus *, GetTensorTypeAndShape, const OrtValue *, OrtTensorTypeAndShapeInfo **);
PLACE(90, OrtStatus *, KernelContext_GetInput, const OrtKernelContext *, size_t, const OrtValue **);
PLACE(91, OrtStatus *, KernelContext_GetOutput, OrtKernelContext *, size_t, const int64_t *, size_t, OrtValue **);
PLACE(93, void, ReleaseStatus, OrtStatus *);
PLACE(99, void, ReleaseTensorTypeAndShapeInfo, OrtTensorTypeAndShapeInfo *);
PLACE(272, OrtStatus *, ReadOpAttr, const OrtOpAttr *, int type, void *data, size_t bytes, size_t *needed);
PLACE(289, OrtStatus *, GetValueInfoName, const OrtValueInfo *, const char **);
PLACE(290, OrtStatus *, GetValueInfoTypeInfo, const OrtValueInfo *, const OrtTypeInfo **);
PLACE(298, void, GetKeyValuePairs, const OrtKeyValuePairs *, const char *const **, const char *const **, size_t *);
PLACE(300, void, ReleaseKeyValuePairs, OrtKeyValuePairs *);
PLACE(307, int, HardwareDevice_Type, const OrtHardwareDevice *);
PLACE(317, const function *, GetEpApi, void);
PLACE(333, OrtStatus *, Graph_GetName, const OrtGraph *, const char **);
PLACE(344, OrtStatus *, Graph_GetNumNodes, const OrtGraph *, size_t *);
PLACE(345, OrtStatus *, Graph_GetNodes, const OrtGraph *, const OrtNode **, size_t);
PLACE(349, OrtStatus *, Node_GetName, const OrtNode *, const char **);
PLACE(350, OrtStatus *, Node_GetOperatorType, const OrtNode *, const char **);
PLACE(351, OrtStatus *, Node_GetDomain, const OrtNode *, const char **);
PLACE(352, OrtStatus *, Node_GetSinceVersion, const OrtNode *, int *);
PLACE(353, OrtStatus *, Node_GetNumInputs, const OrtNode *, size_t *);
PLACE(354, OrtStatus *, Node_GetInputs, const OrtNode *, const OrtValueInfo **, size_t);
PLACE(355, OrtStatus *, Node_GetNumOutputs, const OrtNode *, size_t *);
PLACE(356, OrtStatus *, Node_GetOutputs, const OrtNode *, const OrtValueInfo **, size_t);
PLACE(361, OrtStatus *, Node_GetAttributeByName, const OrtNode *, const char *, const OrtOpAttr **);
PLACE(363, OrtStatus *, OpAttr_GetType, const OrtOpAttr *, int *);
PLACE(379, OrtStatus *, GetSessionOptionsConfigEntries, const OrtSessionOptions *, OrtKeyValuePairs **);

PLACE(0, OrtStatus *, CreateEpDevice, void *factory, const OrtHardwareDevice *, const OrtKeyValuePairs *metadata,
      const OrtKeyValuePairs *options, OrtEpDevice **);
PLACE(2, OrtStatus *, EpGraphSupportInfo_AddNodesToFuse, OrtEpGraphSupportInfo *, const OrtNode *const *, size_t,
      const void *fusion_options);

enum { ATTRIBUTE_INT = 1, ATTRIBUTE_INTS, ATTRIBUTE_FLOAT, ATTRIBUTE_FLOATS, ATTRIBUTE_STRING };
enum { HARDWARE_CPU = 0 };
enum element {
    FLOAT = 1, UINT8, INT8, UINT16, INT16, INT32, INT64, STRING, BOOL, FLOAT16, DOUBLE, UINT32, UINT64,
    COMPLEX64, COMPLEX128, BFLOAT16
};

/* What a plugin implements. Each plain `function` is null here, which onnxruntime allows. */

typedef struct OrtNodeComputeInfo OrtNodeComputeInfo;
struct OrtNodeComputeInfo {
    uint32_t ort_version_supported;
    OrtStatus *(*CreateState)(OrtNodeComputeInfo *, OrtNodeComputeContext *, void **state);
    OrtStatus *(*Compute)(OrtNodeComputeInfo *, void *state, OrtKernelContext *);
    void (*ReleaseState)(OrtNodeComputeInfo *, void *state);
};

typedef struct OrtEp OrtEp;
struct OrtEp {
    uint32_t ort_version_supported;
    const char *(*GetName)(const OrtEp *);
    OrtStatus *(*GetCapability)(OrtEp *, const OrtGraph *, OrtEpGraphSupportInfo *);
    OrtStatus *(*Compile)(OrtEp *, const OrtGraph **, const OrtNode **fused, size_t count, OrtNodeComputeInfo **,
                          OrtNode **ep_context);
    void (*ReleaseNodeComputeInfos)(OrtEp *, OrtNodeComputeInfo **, size_t);
    function GetPreferredDataLayout, ShouldConvertDataLayoutForOp, SetDynamicOptions, OnRunStart, OnRunEnd,
        CreateAllocator, CreateSyncStreamForDevice, GetCompiledModelCompatibilityInfo;
    function newer[16]; /* of releases after API_VERSION: never called, here so that none reads beyond the end */
};

typedef struct OrtEpFactory OrtEpFactory;
struct OrtEpFactory {
    uint32_t ort_version_supported;
    const char *(*GetName)(const OrtEpFactory *);
    const char *(*GetVendor)(const OrtEpFactory *);
    OrtStatus *(*GetSupportedDevices)(OrtEpFactory *, const OrtHardwareDevice *const *, size_t count, OrtEpDevice **,
                                      size_t most, size_t *found);
    OrtStatus *(*CreateEp)(OrtEpFactory *, const OrtHardwareDevice *const *, const OrtKeyValuePairs *const *, size_t,
                           const OrtSessionOptions *, const OrtLogger *, OrtEp **);
    void (*ReleaseEp)(OrtEpFactory *, OrtEp *);
    uint32_t (*GetVendorId)(const OrtEpFactory *);
    const char *(*GetVersion)(const OrtEpFactory *);
    function ValidateCompiledModelCompatibilityInfo;
    function CreateAllocator, ReleaseAllocator;
    OrtStatus *(*CreateDataTransfer)(OrtEpFactory *, void **transfer);
    bool (*IsStreamAware)(const OrtEpFactory *);
    function CreateSyncStreamForDevice;
    function newer[16];
};

#endif
