"""Which library and which providers the packages of each language bring: a section of ``providers.md``."""

from typing import NamedTuple

_NO_NUGET = "its page; NuGet is not reachable from here"
_NO_MAVEN = "its page; Maven is not reachable from here"


class Binding(NamedTuple):
    """A package with a library of onnxruntime, or without one.

    Attributes:
        library: Where the library is, for the agent in C.
        providers: What it brings besides the CPU EP.
        known_from: How this is known.
    """

    language: str
    package: str
    library: str
    providers: str
    known_from: str


class RustProvider(NamedTuple):
    """A provider of Rust's ``ort``: where it is supported, has binaries, and is linked statically."""

    provider: str
    feature: str
    supported: str
    binaries: str
    static: str


BINDINGS = (
    Binding(
        "Python",
        "onnxruntime (PyPI)",
        "onnxruntime/capi/libonnxruntime.so.1.*, onnxruntime.dll; in wheels since 1.19",
        "Azure",
        "1.31.1 was loaded: Linux x86-64; aarch64 under qemu; Windows x86-64 under wine",
    ),
    Binding(
        "JavaScript",
        "onnxruntime-node (npm)",
        "bin/napi-v6/<system>/<processor>",
        "Windows: DirectML, WebGPU; Linux x86-64: WebGPU, and CUDA and TensorRT, whose libraries come "
        "when it is installed; Linux arm64: none",
        "1.30.0 was loaded: Linux x86-64; aarch64 under qemu; Windows x86-64 under wine",
    ),
    Binding(
        "JavaScript",
        "onnxruntime-react-native (npm)",
        "none: it depends on Maven's onnxruntime-android, or on CocoaPods' onnxruntime-c",
        "as there; with onnxruntimeUseQnn those of onnxruntime-android-qnn",
        "1.24.3 was unpacked",
    ),
    Binding(
        "C#",
        "Microsoft.ML.OnnxRuntime (NuGet)",
        "runtimes/<system>-<processor>/native",
        "CoreML on macOS and iOS, XNNPACK on Android and iOS",
        _NO_NUGET,
    ),
    Binding(
        "C#",
        "Microsoft.ML.OnnxRuntime.Gpu, .DirectML, .QNN (NuGet)",
        "runtimes/<system>-<processor>/native",
        "CUDA and TensorRT; DirectML; QNN",
        _NO_NUGET,
    ),
    Binding(
        "Java",
        "com.microsoft.onnxruntime:onnxruntime, onnxruntime_gpu (Maven)",
        "in the jar, ai/onnxruntime/native/<system>-<processor>, or where the property "
        "onnxruntime.native.path says",
        "onnxruntime_gpu: CUDA and TensorRT on Windows and Linux x86-64",
        _NO_MAVEN,
    ),
    Binding(
        "Java",
        "com.microsoft.onnxruntime:onnxruntime-android, onnxruntime-android-qnn (Maven)",
        "in the AAR, jni/<processor>/libonnxruntime.so",
        "NNAPI and XNNPACK; QNN",
        _NO_MAVEN,
    ),
    Binding(
        "Go",
        "github.com/yalue/onnxruntime_go",
        "that which the program names by SetSharedLibraryPath",
        "those of this library",
        "its README",
    ),
    Binding(
        "Rust",
        "ort 2.0.0-rc.13 (crates.io)",
        "none to open: it links a static onnxruntime 1.28.0 of pyke.io. With the feature load-dynamic it "
        "opens the library that the variable ORT_DYLIB_PATH names",
        "see below",
        "its documents and its list of binaries",
    ),
)

_ALL_DESKTOP = "Windows and Linux x86-64"

RUST_PROVIDERS = (
    RustProvider("CUDA", "cuda", f"{_ALL_DESKTOP}, Linux arm64", _ALL_DESKTOP, "no: a library beside it"),
    RustProvider(
        "TensorRT", "tensorrt", f"{_ALL_DESKTOP}, Linux arm64", _ALL_DESKTOP, "no: a library beside it"
    ),
    RustProvider("TensorRT RTX", "nvrtx", _ALL_DESKTOP, _ALL_DESKTOP, "no: a library beside it"),
    RustProvider(
        "DirectML", "directml", "Windows", "Windows x86-64, arm64", "yes, with DirectML.dll beside it"
    ),
    RustProvider("CoreML", "coreml", "macOS, iOS", "macOS and iOS arm64", "yes"),
    RustProvider(
        "WebGPU",
        "webgpu",
        "browser, Windows, Linux, macOS",
        f"{_ALL_DESKTOP}, macOS arm64",
        "yes, with helper libraries beside it",
    ),
    RustProvider("NNAPI", "nnapi", "Android", "Android arm64, x86-64", "yes"),
    RustProvider("XNNPACK", "xnnpack", "x86-64, arm64, browser", "x86-64, arm64, browser", "yes"),
    RustProvider("OpenVINO", "openvino", _ALL_DESKTOP, "none", ""),
    RustProvider("oneDNN", "onednn", _ALL_DESKTOP, "none", ""),
    RustProvider("MIGraphX", "migraphx", _ALL_DESKTOP, "none", ""),
    RustProvider("Vitis AI", "vitis", _ALL_DESKTOP, "none", ""),
    RustProvider("QNN", "qnn", "Windows, Linux and Android arm64", "none", ""),
    RustProvider("CANN", "cann", "Linux x86-64, arm64", "none", ""),
    RustProvider("ACL", "acl", "arm64", "none", ""),
    RustProvider("RKNPU", "rknpu", "Linux arm64", "none", ""),
    RustProvider("Azure", "azure", "Windows, Linux, Android", "none", ""),
)
"""Of the table in ort's documents and its ``dist.tsv``, where XNNPACK has no build of its own."""
