/* The part of onnxruntime's C API that this library uses, declared by hand: the tables are append-only,
 * so a function keeps its place for ever and no header package is needed. Places and layouts are those of
 * onnxruntime_c_api.h and onnxruntime_ep_c_api.h from 1.24 to 1.32. */

#ifndef API_H
#define API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define API_VERSION 24 /* the oldest on which this library runs; newer runtimes call only what it had */

typedef struct OrtAllocator OrtAllocator;
typedef struct OrtRunOptions OrtRunOptions;
typedef struct OrtProfilingEvent OrtProfilingEvent;
typedef struct OrtProfilingEventsContainer OrtProfilingEventsContainer;
typedef struct OrtDataTransferImpl OrtDataTransferImpl;
typedef struct OrtEpContextConfig OrtEpContextConfig;
typedef struct OrtEpDevice OrtEpDevice;
typedef struct OrtEpGraphSupportInfo OrtEpGraphSupportInfo;
typedef struct OrtDataType OrtDataType;
typedef struct OrtGraph OrtGraph;
typedef struct OrtHardwareDevice OrtHardwareDevice;
typedef struct OrtKernelDef OrtKernelDef;
typedef struct OrtKernelDefBuilder OrtKernelDefBuilder;
typedef struct OrtKernelRegistry OrtKernelRegistry;
typedef struct OrtMemoryDevice OrtMemoryDevice;
typedef struct OrtMemoryInfo OrtMemoryInfo;
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

extern int ort_version; /* of the runtime: 32 is 1.32 */
extern const function *ort_api;    /* OrtApi: functions by place */
extern const function *ort_ep_api; /* OrtEpApi */
extern const function *ort_editor_api; /* OrtModelEditorApi */

/* Calls of the tables: ORT(Graph_GetNodes)(graph, nodes, count). */
#define ORT(name) ((name##_function)ort_api[name##_place])
#define EP(name) ((name##_function)ort_ep_api[name##_place])
#define EDITOR(name) ((name##_function)ort_editor_api[name##_place])
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
PLACE(76, OrtStatus *, AllocatorFree, OrtAllocator *, void *);
PLACE(78, OrtStatus *, GetAllocatorWithDefaultOptions, OrtAllocator **);
PLACE(90, OrtStatus *, KernelContext_GetInput, const OrtKernelContext *, size_t, const OrtValue **);
PLACE(91, OrtStatus *, KernelContext_GetOutput, OrtKernelContext *, size_t, const int64_t *, size_t, OrtValue **);
PLACE(93, void, ReleaseStatus, OrtStatus *);
PLACE(99, void, ReleaseTensorTypeAndShapeInfo, OrtTensorTypeAndShapeInfo *);
PLACE(94, void, ReleaseMemoryInfo, OrtMemoryInfo *);
PLACE(211, OrtStatus *, CreateOpAttr, const char *name, const void *data, int length, int type, OrtOpAttr **);
PLACE(253, OrtStatus *, KernelContext_GetAllocator, const OrtKernelContext *, const OrtMemoryInfo *, OrtAllocator **);
PLACE(272, OrtStatus *, ReadOpAttr, const OrtOpAttr *, int type, void *data, size_t bytes, size_t *needed);
PLACE(289, OrtStatus *, GetValueInfoName, const OrtValueInfo *, const char **);
PLACE(290, OrtStatus *, GetValueInfoTypeInfo, const OrtValueInfo *, const OrtTypeInfo **);
PLACE(291, const function *, GetModelEditorApi, void);
PLACE(298, void, GetKeyValuePairs, const OrtKeyValuePairs *, const char *const **, const char *const **, size_t *);
PLACE(300, void, ReleaseKeyValuePairs, OrtKeyValuePairs *);
PLACE(307, int, HardwareDevice_Type, const OrtHardwareDevice *);
PLACE(317, const function *, GetEpApi, void);
PLACE(318, OrtStatus *, GetTensorSizeInBytes, const OrtValue *, size_t *);
PLACE(320, OrtStatus *, CreateMemoryInfo_V2, const char *name, int device_type, uint32_t vendor, int32_t device,
      int memory_type, size_t alignment, int allocator_type, OrtMemoryInfo **);
PLACE(331, OrtStatus *, ValueInfo_IsConstantInitializer, const OrtValueInfo *, bool *);
PLACE(333, OrtStatus *, Graph_GetName, const OrtGraph *, const char **);
PLACE(334, OrtStatus *, Graph_GetModelPath, const OrtGraph *, const char **);
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
PLACE(373, const char *, GetRunConfigEntry, const OrtRunOptions *, const char *key);
PLACE(379, OrtStatus *, GetSessionOptionsConfigEntries, const OrtSessionOptions *, OrtKeyValuePairs **);

PLACE(0, OrtStatus *, CreateEpDevice, void *factory, const OrtHardwareDevice *, const OrtKeyValuePairs *metadata,
      const OrtKeyValuePairs *options, OrtEpDevice **);
PLACE(2, OrtStatus *, EpGraphSupportInfo_AddNodesToFuse, OrtEpGraphSupportInfo *, const OrtNode *const *, size_t,
      const void *fusion_options);
PLACE(5, OrtStatus *, EpDevice_AddAllocatorInfo, OrtEpDevice *, const OrtMemoryInfo *);
PLACE(6, const OrtMemoryDevice *, MemoryInfo_GetMemoryDevice, const OrtMemoryInfo *);
PLACE(9, int, MemoryDevice_GetDeviceType, const OrtMemoryDevice *);
PLACE(11, uint32_t, MemoryDevice_GetVendorId, const OrtMemoryDevice *);
PLACE(65, OrtStatus *, CreateProfilingEvent, int category, int32_t process, int32_t thread, const char *name,
      int64_t start_us, int64_t duration_us, const char *const *keys, const char *const *values, size_t count,
      OrtProfilingEvent **);
PLACE(66, void, ReleaseProfilingEvent, OrtProfilingEvent *);
PLACE(72, OrtStatus *, ProfilingEventsContainer_AddEvents, OrtProfilingEventsContainer *,
      const OrtProfilingEvent *const *, size_t);
/* Callbacks of the application for the data of contexts, 1.31. */
typedef OrtStatus *(*WriteContext)(void *state, const char *name, const void *data, size_t);
typedef OrtStatus *(*ReadContext)(void *state, const char *name, OrtAllocator *, void **data, size_t *);
enum { CALLBACKS_VERSION = 31, READS_BY_CALLBACK = 1, WRITES_BY_CALLBACK = 2 };
PLACE(74, OrtStatus *, SessionOptionsGetEpContextConfig, const OrtSessionOptions *, OrtEpContextConfig **);
PLACE(75, void, ReleaseEpContextConfig, OrtEpContextConfig *);
PLACE(76, OrtStatus *, EpContextConfigGetEpContextDataReadFunc, const OrtEpContextConfig *, ReadContext *, void **state);
PLACE(77, OrtStatus *, EpContextConfigGetEpContextDataWriteFunc, const OrtEpContextConfig *, WriteContext *, void **state);
PLACE(16, OrtStatus *, CreateHardwareDevice, int type, uint32_t vendor, uint32_t device, const char *vendor_name,
      const OrtKeyValuePairs *metadata, OrtHardwareDevice **);
PLACE(17, void, ReleaseHardwareDevice, OrtHardwareDevice *);
PLACE(18, OrtStatus *, CreateKernelRegistry, OrtKernelRegistry **);
PLACE(19, void, ReleaseKernelRegistry, OrtKernelRegistry *);
PLACE(20, OrtStatus *, KernelRegistry_AddKernel, OrtKernelRegistry *, const OrtKernelDef *, function create, void *state);
PLACE(21, OrtStatus *, CreateKernelDefBuilder, OrtKernelDefBuilder **);
PLACE(22, void, ReleaseKernelDefBuilder, OrtKernelDefBuilder *);
PLACE(23, OrtStatus *, KernelDefBuilder_SetOperatorType, OrtKernelDefBuilder *, const char *);
PLACE(24, OrtStatus *, KernelDefBuilder_SetDomain, OrtKernelDefBuilder *, const char *);
PLACE(25, OrtStatus *, KernelDefBuilder_SetSinceVersion, OrtKernelDefBuilder *, int first, int last);
PLACE(26, OrtStatus *, KernelDefBuilder_SetExecutionProvider, OrtKernelDefBuilder *, const char *);
PLACE(32, OrtStatus *, KernelDefBuilder_Build, OrtKernelDefBuilder *, OrtKernelDef **);
PLACE(33, void, ReleaseKernelDef, OrtKernelDef *);

PLACE(6, OrtStatus *, CreateNode, const char *operator, const char *domain, const char *name, const char *const *inputs,
      size_t, const char *const *outputs, size_t, OrtOpAttr **, size_t, OrtNode **);

enum { ATTRIBUTE_INT = 1, ATTRIBUTE_INTS, ATTRIBUTE_FLOAT, ATTRIBUTE_FLOATS, ATTRIBUTE_STRING };
enum { HARDWARE_CPU = 0, HARDWARE_GPU, HARDWARE_NPU };
enum { MEMORY_CPU = 0, MEMORY_GPU, MEMORY_FPGA, MEMORY_NPU }; /* OrtMemoryInfoDeviceType */
enum { NOT_APPLICABLE = 0, OPTIMAL, PREFER_RECOMPILATION, NOT_SUPPORTED }; /* OrtCompiledModelCompatibility */
enum element {
    FLOAT = 1, UINT8, INT8, UINT16, INT16, INT32, INT64, STRING, BOOL, FLOAT16, DOUBLE, UINT32, UINT64,
    COMPLEX64, COMPLEX128, BFLOAT16
};

/* What a plugin implements. Each plain `function` is null here, which onnxruntime allows. */

struct OrtAllocator {
    uint32_t version;
    void *(*Alloc)(OrtAllocator *, size_t);
    void (*Free)(OrtAllocator *, void *);
    const OrtMemoryInfo *(*Info)(const OrtAllocator *);
    void *(*Reserve)(OrtAllocator *, size_t);
    function GetStats, AllocOnStream;
    function newer[8];
};

struct OrtDataTransferImpl {
    uint32_t ort_version_supported;
    void (*Release)(OrtDataTransferImpl *);
    bool (*CanCopy)(const OrtDataTransferImpl *, const OrtMemoryDevice *from, const OrtMemoryDevice *to);
    OrtStatus *(*CopyTensors)(OrtDataTransferImpl *, const OrtValue **from, OrtValue **to, void **streams, size_t);
};

typedef struct OrtNodeComputeInfo OrtNodeComputeInfo;
struct OrtNodeComputeInfo {
    uint32_t ort_version_supported;
    OrtStatus *(*CreateState)(OrtNodeComputeInfo *, OrtNodeComputeContext *, void **state);
    OrtStatus *(*Compute)(OrtNodeComputeInfo *, void *state, OrtKernelContext *);
    void (*ReleaseState)(OrtNodeComputeInfo *, void *state);
};

typedef struct OrtEp OrtEp;
typedef struct OrtEpProfilerImpl OrtEpProfilerImpl;
struct OrtEpProfilerImpl {
    uint32_t ort_version_supported;
    void (*Release)(OrtEpProfilerImpl *);
    OrtStatus *(*StartProfiling)(OrtEpProfilerImpl *, int64_t since_start_ns);
    function StartEvent, StopEvent;
    OrtStatus *(*EndProfiling)(OrtEpProfilerImpl *, OrtProfilingEventsContainer *);
};

struct OrtEp {
    uint32_t ort_version_supported;
    const char *(*GetName)(const OrtEp *);
    OrtStatus *(*GetCapability)(OrtEp *, const OrtGraph *, OrtEpGraphSupportInfo *);
    OrtStatus *(*Compile)(OrtEp *, const OrtGraph **, const OrtNode **fused, size_t count, OrtNodeComputeInfo **,
                          OrtNode **ep_context);
    void (*ReleaseNodeComputeInfos)(OrtEp *, OrtNodeComputeInfo **, size_t);
    function GetPreferredDataLayout, ShouldConvertDataLayoutForOp;
    OrtStatus *(*SetDynamicOptions)(OrtEp *, const char *const *keys, const char *const *values, size_t count);
    OrtStatus *(*OnRunStart)(OrtEp *, const OrtRunOptions *);
    OrtStatus *(*OnRunEnd)(OrtEp *, const OrtRunOptions *, bool synchronize);
    function CreateAllocator, CreateSyncStreamForDevice;
    const char *(*GetCompiledModelCompatibilityInfo)(OrtEp *, const OrtGraph *);
    OrtStatus *(*GetKernelRegistry)(OrtEp *, const OrtKernelRegistry **);
    function IsConcurrentRunSupported;
    function Sync;                                               /* 1.25 */
    OrtStatus *(*CreateProfiler)(OrtEp *, OrtEpProfilerImpl **); /* 1.25 */
    bool (*IsGraphCaptureEnabled)(const OrtEp *);                /* 1.26 */
    bool (*IsGraphCaptured)(const OrtEp *, int id);              /* 1.26 */
    OrtStatus *(*ReplayGraph)(OrtEp *, int id);                  /* 1.26 */
    function GetGraphCaptureNodeAssignmentPolicy, GetAvailableResource, OnSessionInitializationEnd,
        GetDefaultMemoryDevice;
    OrtStatus *(*ReleaseCapturedGraph)(OrtEp *, int id); /* 1.27 */
    function GetWeightlessSupport;                       /* 1.29 */
    OrtStatus *(*GetEpContextDataCallbackSupport)(const OrtEp *, uint32_t *flags); /* 1.31 */
    function newer[8]; /* of later releases: never called, here so that none reads beyond the end */
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
    OrtStatus *(*ValidateCompiledModelCompatibilityInfo)(OrtEpFactory *, const OrtHardwareDevice *const *, size_t,
                                                         const char *info, int *compatibility);
    OrtStatus *(*CreateAllocator)(OrtEpFactory *, const OrtMemoryInfo *, const OrtKeyValuePairs *, OrtAllocator **);
    void (*ReleaseAllocator)(OrtEpFactory *, OrtAllocator *);
    OrtStatus *(*CreateDataTransfer)(OrtEpFactory *, OrtDataTransferImpl **);
    bool (*IsStreamAware)(const OrtEpFactory *);
    function CreateSyncStreamForDevice;
    function newer[16];
};

#endif
