/* The part of onnxruntime's C API that the agent uses, declared by hand. The table is append-only: a function
 * keeps its place for ever. Each has the release of which it is a part; older ones are those of 1.17 and before. */

#ifndef ORT_H
#define ORT_H

#include "platform.h"

#define OPAQUE(name) typedef struct name name
OPAQUE(OrtStatus); OPAQUE(OrtEnv); OPAQUE(OrtSession); OPAQUE(OrtSessionOptions); OPAQUE(OrtValue); OPAQUE(OrtMemoryInfo);
OPAQUE(OrtAllocator); OPAQUE(OrtRunOptions); OPAQUE(OrtTypeInfo); OPAQUE(OrtTensorInfo); OPAQUE(OrtEpDevice);
OPAQUE(OrtHardwareDevice); OPAQUE(OrtKeyValuePairs); OPAQUE(OrtSubgraph); OPAQUE(OrtAssignedNode); OPAQUE(OrtProviderOptions);
OPAQUE(OrtIoBinding); OPAQUE(OrtLoraAdapter); OPAQUE(OrtSyncStream); OPAQUE(OrtCompilation);

#if defined(_WIN32) && defined(__i386__)
#define ORT_CALL __stdcall
#else
#define ORT_CALL
#endif

typedef void(ORT_CALL *OrtFunction)(void); /* of any signature; cast before it is called */

typedef struct {
    const OrtFunction *(ORT_CALL *GetApi)(uint32_t version);
    const char *(ORT_CALL *GetVersionString)(void);
} OrtApiBase;

extern const OrtFunction *ort_api;
extern unsigned ort_minor; /* 31 of 1.31.1 */

/* ORT(Run)(session, ...): a call of the table. */
#define ORT(name) ((name##_function)ort_api[name##_place])
#define HAS(name) (ort_minor >= (unsigned)name##_since)
#define PLACE(place, since, result, name, ...)                   \
    typedef result(ORT_CALL *name##_function)(__VA_ARGS__);      \
    enum { name##_place = (place), name##_since = (since) }

PLACE(0, 0, OrtStatus *, CreateStatus, int code, const char *message);
PLACE(1, 0, int, GetErrorCode, const OrtStatus *);
PLACE(2, 0, const char *, GetErrorMessage, const OrtStatus *);
PLACE(3, 0, OrtStatus *, CreateEnv, int level, const char *name, OrtEnv **);
PLACE(7, 0, OrtStatus *, CreateSession, const OrtEnv *, const OrtChar *path, const OrtSessionOptions *, OrtSession **);
PLACE(8, 0, OrtStatus *, CreateSessionFromArray, const OrtEnv *, const void *, size_t, const OrtSessionOptions *, OrtSession **);
PLACE(9, 0, OrtStatus *, Run, OrtSession *, const OrtRunOptions *, const char *const *, const OrtValue *const *, size_t,
      const char *const *, size_t, OrtValue **);
PLACE(10, 0, OrtStatus *, CreateSessionOptions, OrtSessionOptions **);
PLACE(11, 0, OrtStatus *, SetOptimizedModelFilePath, OrtSessionOptions *, const OrtChar *);
PLACE(13, 0, OrtStatus *, SetSessionExecutionMode, OrtSessionOptions *, int);
PLACE(14, 0, OrtStatus *, EnableProfiling, OrtSessionOptions *, const OrtChar *prefix);
PLACE(19, 0, OrtStatus *, DisableCpuMemArena, OrtSessionOptions *);
PLACE(23, 0, OrtStatus *, SetSessionGraphOptimizationLevel, OrtSessionOptions *, int);
PLACE(24, 0, OrtStatus *, SetIntraOpNumThreads, OrtSessionOptions *, int);
PLACE(25, 0, OrtStatus *, SetInterOpNumThreads, OrtSessionOptions *, int);
PLACE(30, 0, OrtStatus *, SessionGetInputCount, const OrtSession *, size_t *);
PLACE(31, 0, OrtStatus *, SessionGetOutputCount, const OrtSession *, size_t *);
PLACE(33, 0, OrtStatus *, SessionGetInputTypeInfo, const OrtSession *, size_t, OrtTypeInfo **);
PLACE(34, 0, OrtStatus *, SessionGetOutputTypeInfo, const OrtSession *, size_t, OrtTypeInfo **);
PLACE(36, 0, OrtStatus *, SessionGetInputName, const OrtSession *, size_t, OrtAllocator *, char **);
PLACE(37, 0, OrtStatus *, SessionGetOutputName, const OrtSession *, size_t, OrtAllocator *, char **);
PLACE(39, 0, OrtStatus *, CreateRunOptions, OrtRunOptions **);
PLACE(46, 0, OrtStatus *, RunOptionsSetTerminate, OrtRunOptions *);
PLACE(48, 0, OrtStatus *, CreateTensorAsOrtValue, OrtAllocator *, const int64_t *, size_t, int type, OrtValue **);
PLACE(49, 0, OrtStatus *, CreateTensorWithDataAsOrtValue, const OrtMemoryInfo *, void *, size_t, const int64_t *, size_t, int type, OrtValue **);
PLACE(51, 0, OrtStatus *, GetTensorMutableData, OrtValue *, void **);
PLACE(53, 0, OrtStatus *, GetStringTensorDataLength, const OrtValue *, size_t *);
PLACE(54, 0, OrtStatus *, GetStringTensorContent, const OrtValue *, void *, size_t, size_t *offsets, size_t count);
PLACE(55, 0, OrtStatus *, CastTypeInfoToTensorInfo, const OrtTypeInfo *, const OrtTensorInfo **);
PLACE(56, 0, OrtStatus *, GetOnnxTypeFromTypeInfo, const OrtTypeInfo *, int *);
PLACE(60, 0, OrtStatus *, GetTensorElementType, const OrtTensorInfo *, int *);
PLACE(61, 0, OrtStatus *, GetDimensionsCount, const OrtTensorInfo *, size_t *);
PLACE(62, 0, OrtStatus *, GetDimensions, const OrtTensorInfo *, int64_t *, size_t);
PLACE(64, 0, OrtStatus *, GetTensorShapeElementCount, const OrtTensorInfo *, size_t *);
PLACE(65, 0, OrtStatus *, GetTensorTypeAndShape, const OrtValue *, OrtTensorInfo **);
PLACE(67, 0, OrtStatus *, GetValueType, const OrtValue *, int *);
PLACE(69, 0, OrtStatus *, CreateCpuMemoryInfo, int allocator, int memory, OrtMemoryInfo **);
PLACE(71, 0, OrtStatus *, MemoryInfoGetName, const OrtMemoryInfo *, const char **);
PLACE(75, 0, OrtStatus *, AllocatorAlloc, OrtAllocator *, size_t, void **);
PLACE(76, 0, OrtStatus *, AllocatorFree, OrtAllocator *, void *);
PLACE(77, 0, OrtStatus *, AllocatorGetInfo, const OrtAllocator *, const OrtMemoryInfo **);
PLACE(78, 0, OrtStatus *, GetAllocatorWithDefaultOptions, OrtAllocator **);
PLACE(80, 0, OrtStatus *, GetValue, const OrtValue *, int index, OrtAllocator *, OrtValue **);
PLACE(81, 0, OrtStatus *, GetValueCount, const OrtValue *, size_t *);
PLACE(82, 0, OrtStatus *, CreateValue, const OrtValue *const *, size_t, int type, OrtValue **);
PLACE(92, 0, void, ReleaseEnv, OrtEnv *);
PLACE(93, 0, void, ReleaseStatus, OrtStatus *);
PLACE(94, 0, void, ReleaseMemoryInfo, OrtMemoryInfo *);
PLACE(95, 0, void, ReleaseSession, OrtSession *);
PLACE(96, 0, void, ReleaseValue, OrtValue *);
PLACE(97, 0, void, ReleaseRunOptions, OrtRunOptions *);
PLACE(98, 0, void, ReleaseTypeInfo, OrtTypeInfo *);
PLACE(99, 0, void, ReleaseTensorTypeAndShapeInfo, OrtTensorInfo *);
PLACE(100, 0, void, ReleaseSessionOptions, OrtSessionOptions *);
PLACE(104, 0, OrtStatus *, CastTypeInfoToSequenceTypeInfo, const OrtTypeInfo *, const OrtTypeInfo **);
PLACE(107, 0, OrtStatus *, GetSequenceElementType, const OrtTypeInfo *, OrtTypeInfo **);
PLACE(110, 0, OrtStatus *, SessionEndProfiling, OrtSession *, OrtAllocator *, char **);
PLACE(124, 0, OrtStatus *, AddFreeDimensionOverrideByName, OrtSessionOptions *, const char *, int64_t);
PLACE(125, 0, OrtStatus *, GetAvailableProviders, char ***, int *);
PLACE(126, 0, OrtStatus *, ReleaseAvailableProviders, char **, int);
PLACE(130, 0, OrtStatus *, AddSessionConfigEntry, OrtSessionOptions *, const char *, const char *);
PLACE(131, 0, OrtStatus *, CreateAllocator, const OrtSession *, const OrtMemoryInfo *, OrtAllocator **);
PLACE(132, 0, void, ReleaseAllocator, OrtAllocator *);
PLACE(133, 0, OrtStatus *, RunWithBinding, OrtSession *, const OrtRunOptions *, const OrtIoBinding *);
PLACE(134, 0, OrtStatus *, CreateIoBinding, OrtSession *, OrtIoBinding **);
PLACE(135, 0, void, ReleaseIoBinding, OrtIoBinding *);
PLACE(136, 0, OrtStatus *, BindInput, OrtIoBinding *, const char *, const OrtValue *);
PLACE(137, 0, OrtStatus *, BindOutput, OrtIoBinding *, const char *, const OrtValue *);
PLACE(138, 0, OrtStatus *, BindOutputToDevice, OrtIoBinding *, const char *, const OrtMemoryInfo *);
PLACE(140, 0, OrtStatus *, GetBoundOutputValues, const OrtIoBinding *, OrtAllocator *, OrtValue ***, size_t *);
PLACE(150, 0, OrtStatus *, AddInitializer, OrtSessionOptions *, const char *, const OrtValue *);
PLACE(165, 0, OrtStatus *, AddRunConfigEntry, OrtRunOptions *, const char *, const char *);
PLACE(176, 0, OrtStatus *, RegisterAllocator, OrtEnv *, OrtAllocator *);
PLACE(177, 0, OrtStatus *, UnregisterAllocator, OrtEnv *, const OrtMemoryInfo *);
PLACE(192, 0, OrtStatus *, HasValue, const OrtValue *, int *);
PLACE(194, 0, OrtStatus *, GetTensorMemoryInfo, const OrtValue *, const OrtMemoryInfo **);
PLACE(203, 0, OrtStatus *, SynchronizeBoundOutputs, OrtIoBinding *);
PLACE(210, 0, OrtStatus *, AddExternalInitializers, OrtSessionOptions *, const char *const *, const OrtValue *const *, size_t);
PLACE(216, 0, OrtStatus *, SessionOptionsAppendExecutionProvider, OrtSessionOptions *, const char *name,
      const char *const *keys, const char *const *values, size_t);
PLACE(252, 0, OrtStatus *, GetResizedStringTensorElementBuffer, OrtValue *, size_t index, size_t size, char **);
PLACE(260, 0, OrtStatus *, RunAsync, OrtSession *, const OrtRunOptions *, const char *const *, const OrtValue *const *, size_t,
      const char *const *, size_t, OrtValue **, void(ORT_CALL *)(void *, OrtValue **, size_t, OrtStatus *), void *);
PLACE(279, 18, OrtStatus *, AddExternalInitializersFromFilesInMemory, OrtSessionOptions *, const OrtChar *const *names, char *const *, const size_t *, size_t);
PLACE(281, 20, OrtStatus *, CreateLoraAdapterFromArray, const void *, size_t, OrtAllocator *, OrtLoraAdapter **);
PLACE(282, 20, void, ReleaseLoraAdapter, OrtLoraAdapter *);
PLACE(283, 20, OrtStatus *, RunOptionsAddActiveLoraAdapter, OrtRunOptions *, const OrtLoraAdapter *);
PLACE(284, 20, OrtStatus *, SetEpDynamicOptions, OrtSession *, const char *const *, const char *const *, size_t);
PLACE(293, 22, OrtStatus *, SessionOptionsSetLoadCancellationFlag, OrtSessionOptions *, bool);
PLACE(294, 22, const OrtFunction *, GetCompileApi, void);
PLACE(298, 22, void, GetKeyValuePairs, const OrtKeyValuePairs *, const char *const **, const char *const **, size_t *);
PLACE(301, 22, OrtStatus *, RegisterExecutionProviderLibrary, OrtEnv *, const char *name, const OrtChar *path);
PLACE(302, 22, OrtStatus *, UnregisterExecutionProviderLibrary, OrtEnv *, const char *name);
PLACE(303, 22, OrtStatus *, GetEpDevices, const OrtEnv *, const OrtEpDevice *const **, size_t *);
PLACE(304, 22, OrtStatus *, SessionOptionsAppendExecutionProvider_V2, OrtSessionOptions *, OrtEnv *,
      const OrtEpDevice *const *, size_t, const char *const *keys, const char *const *values, size_t);
PLACE(307, 22, int, HardwareDevice_Type, const OrtHardwareDevice *);
PLACE(308, 22, uint32_t, HardwareDevice_VendorId, const OrtHardwareDevice *);
PLACE(309, 22, const char *, HardwareDevice_Vendor, const OrtHardwareDevice *);
PLACE(310, 22, uint32_t, HardwareDevice_DeviceId, const OrtHardwareDevice *);
PLACE(311, 22, const OrtKeyValuePairs *, HardwareDevice_Metadata, const OrtHardwareDevice *);
PLACE(312, 22, const char *, EpDevice_EpName, const OrtEpDevice *);
PLACE(314, 22, const OrtKeyValuePairs *, EpDevice_EpMetadata, const OrtEpDevice *);
PLACE(316, 22, const OrtHardwareDevice *, EpDevice_Device, const OrtEpDevice *);
PLACE(318, 23, OrtStatus *, GetTensorSizeInBytes, const OrtValue *, size_t *);
PLACE(380, 23, OrtStatus *, SessionGetMemoryInfoForInputs, const OrtSession *, const OrtMemoryInfo **, size_t);
PLACE(381, 23, OrtStatus *, SessionGetMemoryInfoForOutputs, const OrtSession *, const OrtMemoryInfo **, size_t);
PLACE(386, 23, OrtStatus *, CopyTensors, const OrtEnv *, const OrtValue *const *, OrtValue *const *, OrtSyncStream *, size_t);
PLACE(388, 23, OrtStatus *, GetModelCompatibilityForEpDevices, const OrtEpDevice *const *, size_t, const char *, int *);
PLACE(404, 24, OrtStatus *, GetCompatibilityInfoFromModel, const OrtChar *path, const char *provider, OrtAllocator *, char **);
PLACE(407, 24, OrtStatus *, Session_GetEpGraphAssignmentInfo, const OrtSession *, const OrtSubgraph *const **, size_t *);
PLACE(408, 24, OrtStatus *, EpAssignedSubgraph_GetEpName, const OrtSubgraph *, const char **);
PLACE(409, 24, OrtStatus *, EpAssignedSubgraph_GetNodes, const OrtSubgraph *, const OrtAssignedNode *const **, size_t *);
PLACE(410, 24, OrtStatus *, EpAssignedNode_GetName, const OrtAssignedNode *, const char **);
PLACE(412, 24, OrtStatus *, EpAssignedNode_GetOperatorType, const OrtAssignedNode *, const char **);
PLACE(421, 27, OrtStatus *, SessionReleaseCapturedGraph, OrtSession *, int);
PLACE(422, 28, OrtFunction, GetExperimentalFunction, const char *name);

/* Callbacks for the data of a compiled model; 1.28 to 1.30 have them as experiments, by name. */
typedef OrtStatus *(ORT_CALL *ReadNamed)(void *state, const char *name, OrtAllocator *, void **data, size_t *);
typedef OrtStatus *(ORT_CALL *WriteNamed)(void *state, const char *name, const void *data, size_t);
PLACE(426, 31, OrtStatus *, SessionOptionsSetEpContextDataReadFunc, OrtSessionOptions *, ReadNamed, void *state);

/* The table of the compiler, COMPILE(CompileModel)(...): it is append-only, too. */
#define COMPILE(name) ((name##_function)ORT(GetCompileApi)()[name##_place])
typedef OrtStatus *(ORT_CALL *WriteBuffer)(void *state, const void *, size_t);
PLACE(0, 22, void, ReleaseModelCompilationOptions, OrtCompilation *);
PLACE(1, 22, OrtStatus *, CreateModelCompilationOptionsFromSessionOptions, const OrtEnv *, const OrtSessionOptions *, OrtCompilation **);
PLACE(2, 22, OrtStatus *, ModelCompilationOptions_SetInputModelPath, OrtCompilation *, const OrtChar *);
PLACE(3, 22, OrtStatus *, ModelCompilationOptions_SetInputModelFromBuffer, OrtCompilation *, const void *, size_t);
PLACE(4, 22, OrtStatus *, ModelCompilationOptions_SetOutputModelPath, OrtCompilation *, const OrtChar *);
PLACE(6, 22, OrtStatus *, ModelCompilationOptions_SetOutputModelBuffer, OrtCompilation *, OrtAllocator *, void **, size_t *);
PLACE(7, 22, OrtStatus *, ModelCompilationOptions_SetEpContextEmbedMode, OrtCompilation *, bool);
PLACE(8, 22, OrtStatus *, CompileModel, const OrtEnv *, const OrtCompilation *);
PLACE(12, 23, OrtStatus *, ModelCompilationOptions_SetOutputModelWriteFunc, OrtCompilation *, WriteBuffer, void *state);
PLACE(16, 31, OrtStatus *, ModelCompilationOptions_SetEpContextDataWriteFunc, OrtCompilation *, WriteNamed, void *state);

/* Providers with options of their own: five functions of one form. */
typedef OrtStatus *(ORT_CALL *CreateOptions)(OrtProviderOptions **);
typedef OrtStatus *(ORT_CALL *UpdateOptions)(OrtProviderOptions *, const char *const *, const char *const *, size_t);
typedef OrtStatus *(ORT_CALL *AppendOptions)(OrtSessionOptions *, const OrtProviderOptions *);
typedef void(ORT_CALL *ReleaseOptions)(OrtProviderOptions *);

enum { INVALID_ARGUMENT = 2 };
enum { TYPE_STRING = 8, VALUE_TENSOR = 1, VALUE_SEQUENCE, VALUE_MAP };

#define CPU_PROVIDER "CPUExecutionProvider"

#endif
