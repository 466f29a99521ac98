"""A feature that a device lacks, as its provider's error names it: one cause for all cells that need it."""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from harness.core.records.record import Record
from harness.core.records.verdict import Family


class _Feature(NamedTuple):
    pattern: re.Pattern[str]
    remedy: str


def _feature(pattern: str, remedy: str) -> _Feature:
    return _Feature(re.compile(pattern, re.IGNORECASE), remedy)


OUT_OF_MEMORY = re.compile(
    r"\bMemoryError\b|bad_alloc|bad allocation|out of memory|Failed to allocate memory|MemoryAllocation\b"
    # wasm: JavaScript's engine, and emscripten.
    r"|Array buffer allocation failed|Aborted\(OOM\)|WebAssembly\.Memory\(\): could not allocate",
    re.IGNORECASE,
)
"""How runtimes report that memory ran out."""

_DENIED = r"device (?:does not|doesn't|cannot) support (?:the )?"
"""The text is about a device, not about an operator or its kernel."""

_FEATURES: Mapping[str, _Feature] = {
    # onnxruntime's shader_helper.cc, and Dawn's compiler of shaders.
    "f16": _feature(
        r"requires f16 but|'?f16'? extension is not allowed"
        rf"|{_DENIED}'?(?:shader-)?(?:f16|fp16|float16|half)\b",
        "use a device or driver with 16-bit floats (of WebGPU: the feature shader-f16), or a float32 model",
    ),
    "bf16": _feature(
        rf"requires bf16 but|{_DENIED}(?:bf16|bfloat16)\b",
        "use a device with bfloat16, or a model in float32 or float16",
    ),
    "subgroups": _feature(
        rf"requires subgroup\w* but|'?subgroup\w*'? extension is not allowed|{_DENIED}subgroup",
        "use a device or driver with subgroups in shaders (of WebGPU: the feature subgroups)",
    ),
    "memory": _feature(
        rf"{OUT_OF_MEMORY.pattern}"
        # WebGPU's limits of a device; QNN's memory beside the processor. QNN_COMMON_ERROR_MEM_ALLOC is no
        # such word: the simulator reports it for graphs of ten numbers that it cannot create.
        r"|exceeds the max(?:imum)? (?:\w{1,20} ){0,4}size|maxBufferSize|maxStorageBufferBindingSize"
        r"|(?:insufficient|exceeds?\b.{0,40}) VTCM",
        "use a device with more memory, a smaller batch, or a higher memory_limit_mb of the target",
    ),
    "an instruction set": _feature(
        r"no kernel image is available|CUDNN_STATUS_ARCH_MISMATCH|\bSIGILL\b|illegal instruction|0xC000001D"
        r"|requires (?:CUDA )?compute capability|requires (?:AVX|AMX|SSE|NEON|SVE)",
        "use a build of the provider for this processor or device, or a newer one",
    ),
}
"""Name of a feature -> the words by which providers report that it is absent, and a remedy."""


class Lacking(NamedTuple):
    """Cells of one target that fail because its device lacks a feature."""

    target: str
    feature: str
    cells: int

    @property
    def words(self) -> str:
        """Describe what the device lacks, how many cells need it, and the remedy."""
        which = "1 cell needs it" if self.cells == 1 else f"{self.cells:,} cells need it"
        return f"the device lacks {self.feature}: {which}; {remedy_of(self.feature)}"


def lacking(text: str) -> str:
    """Return the feature that a device lacks according to an error; empty if it names none."""
    return next((name for name, one in _FEATURES.items() if one.pattern.search(text)), "")


def remedy_of(feature: str) -> str:
    """Return the remedy of a lack, in words; empty for an unknown feature."""
    known = _FEATURES.get(feature)
    return "" if known is None else known.remedy


def lack_of(record: Record) -> str:
    """Return the missing feature for which a cell fails or is refused; empty if there is none."""
    counts = record.ended is not None and record.family in (Family.FAILED, Family.UNSUPPORTED)
    return record.ended.lacks if counts and record.ended is not None else ""


def lacks_of(records: Iterable[Record]) -> tuple[Lacking, ...]:
    """Return what the devices of targets lack, sorted by target, then the most wanted feature first."""
    found: dict[tuple[str, str], int] = {}
    for record in records:
        if feature := lack_of(record):
            found[record.target, feature] = found.get((record.target, feature), 0) + 1
    ordered = sorted(found.items(), key=lambda item: (item[0][0], -item[1], item[0][1]))
    return tuple(Lacking(target, feature, cells) for (target, feature), cells in ordered)
