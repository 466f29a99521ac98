"""A case whose model draws every rounding at random, so that runs on the CPU provider show its noise."""

import contextlib
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from harness.core.noise.spread import PROBES
from harness.core.values.value import DTYPES, NamedValues, Tensor, Value, tensor
from harness.corpus.beside.data_sets import DataSet
from harness.corpus.caches.cache import cache_root, fill_intact
from harness.corpus.case import Case
from harness.corpus.derived.derived_models import MODEL_FILE, digest_of
from harness.corpus.derived.scenario_case import Inapplicable
from harness.corpus.model.element_types import ELEMENT_TYPES, is_floating
from harness.corpus.model.lean_model import LARGE, LEAST_WEIGHT_BYTES, WEIGHTS_FILE
from harness.corpus.model.model_errors import blame
from harness.corpus.model.model_file import load_lean, load_model
from harness.corpus.model.origins import RANDOM_OPERATORS
from harness.corpus.model.port import Port, ValueType
from harness.corpus.noise import AMPLITUDE

if TYPE_CHECKING:
    import onnx

    from harness.corpus.noise.rewrite import Written

NOISE_FORMAT = 34
"""Increase it when the noise changes although no model does."""

SAMPLES = 8
"""Draws at each amplitude."""

SMOOTH = (16.0,)
"""Amplitude for models without jumps at float32: well above the existing rounding."""

JUMPING = (1.0, 8.0, 8.0)
"""Amplitudes for models with jumps.

Jumps are not proportional to the noise, so 1 has to be one of them. If an element is so near to a jump that
an EP may land on the other side, 8 draws at 1 and 16 at 8 miss it once in some 10,000 cases.
"""

_COARSE = (1.0, 1.0)
"""Amplitudes at coarser precisions and for allowed errors, whose noise is far above that of float32.

Many elements lie within the noise near the edge of a Relu; amplified noise would push them across.
"""

_SMALL = LARGE
"""Largest size in bytes of a model whose form with noise stays in the cache, and has its own weights.

The weights of a larger one stay in a copy of its file, so that this process does not hold them.
"""


_FIRST = 256
"""Elements of a weight that show whether it may be coarse."""

_AMPLITUDES = "amplitudes.json"


def with_allowed(precision: str, allowed: Iterable[tuple[str, float]]) -> str:
    """Return a text for the source of noise: a precision, and errors that a document allows some operators.

    The errors are pairs of an operator and its largest error, see ``harness.corpus.noise.rewrite.add_noise``.
    The text is also a part of a file's name: ``float32+Cos=0.00048828125``.
    """
    return "+".join((precision, *(f"{operator}={error!r}" for operator, error in sorted(allowed))))


def split_allowed(noise_at: str) -> tuple[str, dict[str, float]]:
    """Return the precision and the allowed errors of a text by ``with_allowed``."""
    precision, *pairs = noise_at.split("+")
    return precision, {
        operator: float(error) for operator, _, error in (pair.partition("=") for pair in pairs)
    }


def noisy_case(case: Case, noise_at: str) -> Case | Inapplicable:
    """Return a plain case with a model that adds noise and that the CPU provider runs.

    Each data set becomes ``1 + N`` data sets: one without noise, and N with. The model is written to the
    folder ``noisy_entry`` of the cache, once. The roundings are those of a precision, a key of ``PRECISIONS``
    in ``harness.core.noise.noise``; ``noise_at`` may also have errors, see ``with_allowed``.

    Raises:
        ModelError: The model is broken or missing.
        UsageError: The cache cannot be written.
    """
    if drawn := sorted(RANDOM_OPERATORS & case.facts.op_types.keys()):
        return Inapplicable(f"the model draws random numbers: {', '.join(drawn)}")
    entry = noisy_entry(case, noise_at)

    def build(folder: Path) -> None:
        with blame(case.model_path):
            amplitudes = _build(case, noise_at, folder)
        (folder / _AMPLITUDES).write_bytes(msgspec.json.encode(amplitudes))

    fill_intact(entry, build)
    amplitudes = msgspec.json.decode((entry / _AMPLITUDES).read_bytes(), type=str | tuple[float, ...])
    if isinstance(amplitudes, str):
        return Inapplicable(amplitudes)
    draws = (0.0, *(amplitude for amplitude in amplitudes for _ in range(SAMPLES)))
    if amplitudes == SMOOTH:
        draws = (*draws, *(1.0,) * PROBES)
    home = case.model_path.parent
    number = ValueType(kind="tensor", dtype="float32", shape=())
    return msgspec.structs.replace(
        case,
        model_path=entry / MODEL_FILE,
        external=(
            *(entry / file.relative_to(home) for file in case.external),
            *([entry / WEIGHTS_FILE] if (entry / WEIGHTS_FILE).exists() else []),
        ),
        ports=(*case.ports, Port(name=AMPLITUDE, type=number)),
        data_sets=tuple(
            DataSet(
                name=f"{data_set.name}-noise-{index}",
                inputs=(*data_set.inputs, (AMPLITUDE, tensor(np.array(amplitude, np.float32)))),
            )
            for data_set in case.data_sets
            for index, amplitude in enumerate(draws)
        ),
        digest=digest_of("noise", noise_at, NOISE_FORMAT, SAMPLES, amplitudes, case.digest),
    )


def noisy_entry(case: Case, noise_at: str) -> Path:
    """Return the folder of the model with noise; once its results are known, it is no longer needed."""
    return cache_root() / "noise" / f"{case.digest}-{noise_at}-v{NOISE_FORMAT}"


def _stays(case: Case) -> bool:
    """Return whether the weights of a model stay in a copy of its file."""
    with contextlib.suppress(OSError):
        return case.source is None and not case.external and case.model_path.stat().st_size > _SMALL
    return False


def discard_noisy(case: Case, noise_at: str) -> None:
    """Remove a model with noise that is no longer needed, unless it is small."""
    entry = noisy_entry(case, noise_at)
    with contextlib.suppress(OSError):
        if (entry / MODEL_FILE).stat().st_size > _SMALL or (entry / WEIGHTS_FILE).exists():
            shutil.rmtree(entry, ignore_errors=True)


def amplitudes_of(noisy: Case) -> tuple[float, ...]:
    """Return the amplitude of each data set of a case from ``noisy_case``."""
    found = (dict(data_set.inputs)[AMPLITUDE] for data_set in noisy.data_sets)
    return tuple(float(value.array) for value in found if isinstance(value, Tensor))


def noisy_model(
    read: Callable[[], "onnx.ModelProto"],
    inputs: NamedValues,
    precision: str,
    *,
    allowed: Mapping[str, float] = MappingProxyType({}),
    seed: int = 0,
    same_sizes: bool = True,
) -> "tuple[onnx.ModelProto, Written]":
    """Return a model with noise, and what was added to it.

    ``read`` returns the model anew. The number of a sum's terms depends on the sizes of its ``inputs``, and
    on whether all data sets have the ``same_sizes``. For the other arguments see ``noisy_case`` and
    ``harness.corpus.noise.rewrite.add_noise``.

    Raises:
        NotFlatError: The model cannot have noise; raised by ``harness.corpus.noise.flat``.
    """
    # These import onnx, which a model from the cache does not need.
    from harness.corpus.noise.flat import flattened
    from harness.corpus.noise.rewrite import add_noise

    def written(*, folded: bool) -> "tuple[onnx.ModelProto, Written]":
        model = flattened(read())
        _set_sizes(model, dict(inputs))
        found = add_noise(model, precision, folded=folded, allowed=allowed, seed=seed)
        if not same_sizes:
            _forget_sizes(model)
        return model, found

    model, found = written(folded=True)
    # A model without a place for noise has only constants, or only exact operators.
    return (model, found) if found.sites else written(folded=False)


def _build(case: Case, noise_at: str, folder: Path) -> str | tuple[float, ...]:
    """Write the model with noise. Return its amplitudes, or why it has none."""
    from harness.corpus.noise.flat import NotFlatError
    from harness.corpus.noise.operator_rounding import BY_BLOCKS

    precision, allowed = split_allowed(noise_at)
    inputs = case.data_sets[0].inputs
    sizes = {tuple(_shape_of(value) for _, value in data_set.inputs) for data_set in case.data_sets}

    def read() -> "onnx.ModelProto":
        if not stays:
            return load_model(case.model_path)
        return load_lean(case.model_path, LEAST_WEIGHT_BYTES, WEIGHTS_FILE, _may_be_coarse)

    stays = _stays(case)
    try:
        model, written = noisy_model(
            read,
            inputs,
            precision,
            allowed=allowed,
            same_sizes=len(sizes) == 1,
        )
    except NotFlatError as error:
        return str(error)
    if allowed.keys() == {BY_BLOCKS} and not written.by_blocks:
        return "nothing multiplies by weights of a few bits"
    (folder / MODEL_FILE).write_bytes(model.SerializeToString())
    for file in case.external:
        _link(file, folder / file.relative_to(case.model_path.parent))
    if stays:
        # By the system, outside of this process's memory. A link would change the state of the user's file.
        shutil.copyfile(case.model_path, folder / WEIGHTS_FILE)
    if not written.sites:  # every operator is exact: one run without noise shows it
        return ()
    if written.jumps:
        return JUMPING
    return SMOOTH if precision == "float32" and not (allowed or written.coarse) else _COARSE


def _may_be_coarse(weight: "onnx.TensorProto", first: bytes) -> bool:
    """Return whether the first elements of a weight are coarse: whether all are decides about its noise."""
    import onnx

    from harness.corpus.noise.tensors import is_coarse

    dtype = ELEMENT_TYPES.get(weight.data_type, "")
    if not is_floating(dtype) or dtype not in DTYPES:
        return True
    start = first[: _FIRST * DTYPES[dtype].itemsize]
    shape = [len(start) // DTYPES[dtype].itemsize]
    return is_coarse(onnx.TensorProto(data_type=weight.data_type, dims=shape, raw_data=start))


def _shape_of(value: Value) -> tuple[int, ...]:
    return value.array.shape if isinstance(value, Tensor) else ()


def _set_sizes(model: "onnx.ModelProto", inputs: Mapping[str, Value]) -> None:
    """Declare the inputs with the sizes of their values."""
    import onnx

    for port in model.graph.input:
        value = inputs.get(port.name)
        if isinstance(value, Tensor) and port.type.HasField("tensor_type"):
            sizes = [onnx.TensorShapeProto.Dimension(dim_value=size) for size in value.array.shape]
            port.type.tensor_type.shape.CopyFrom(onnx.TensorShapeProto(dim=sizes))


def _forget_sizes(model: "onnx.ModelProto") -> None:
    """Remove declared sizes, which are those of the first data set."""
    del model.graph.value_info[:]
    for port in (*model.graph.input, *model.graph.output):
        if port.name != AMPLITUDE and port.type.HasField("tensor_type"):
            port.type.tensor_type.ClearField("shape")


def _link(file: Path, copy: Path) -> None:
    copy.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(os.path.realpath(file), copy)
    except OSError:  # another disk, or a file system without hard links
        shutil.copyfile(file, copy)
