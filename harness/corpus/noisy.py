"""A case whose model draws every rounding by lot, so that runs on the CPU provider show its noise."""

import contextlib
import hashlib
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from harness.core.spread import PROBES
from harness.core.value import Tensor
from harness.corpus.cache import cache_root, fill_once
from harness.corpus.case import Case
from harness.corpus.data_sets import DataSet
from harness.corpus.errors import blame
from harness.corpus.model_file import parse_model, read_model_file
from harness.corpus.noise.drawing import AMPLITUDE
from harness.corpus.noise.flat import NotFlatError, flattened
from harness.corpus.noise.operators import RANDOM
from harness.corpus.noise.rewrite import BFLOAT16_CASTS, Written, add_noise
from harness.corpus.port import Port, ValueType
from harness.corpus.scenario import Inapplicable

if TYPE_CHECKING:
    import onnx

FORMAT = 10
"""Rises when the noise changes although no model does."""

SAMPLES = 8
"""Draws at each amplitude."""

SMOOTH = (16.0,)
"""Amplitude for models without jumps at float32: well above the rounding that is there already."""

JUMPING = (1.0, 8.0, 8.0)
"""Amplitudes for models with jumps.

What jumps does not move in proportion to the noise, so that 1 has to be among them. Of the elements that lie
so near to a jump that an EP may fall to its other side, 8 draws at 1 and 16 at 8 miss one in some 10,000.
"""

COARSE = (1.0,)
"""Amplitudes at coarser precisions, whose noise is far above that of float32."""

SMALL = 1 << 20
"""Bytes up to which a model with noise is left where it is."""

MODEL, AMPLITUDES = "model.onnx", "amplitudes.json"


def noisy_case(case: Case, precision: str) -> Case | Inapplicable:
    """The case with a model that adds noise; the CPU provider runs it like any other.

    Each data set of the case becomes ``1 + N`` data sets: one without noise, and N with. The model is written
    to the cache, once; ``noisy_entry`` says where.

    Args:
        case: As it is run plainly.
        precision: A key of ``PRECISIONS`` in ``harness.core.spread``: whose roundings are to be drawn.

    Raises:
        ModelError: The model is broken, or has gone.
        UsageError: The cache cannot be written.
    """
    if drawn := sorted(RANDOM & case.facts.op_types.keys()):
        return Inapplicable(f"the model draws random numbers: {', '.join(drawn)}")
    if precision == "bfloat16" and case.facts.opsets.get("ai.onnx", BFLOAT16_CASTS) < BFLOAT16_CASTS:
        return Inapplicable(f"the model is of an opset before {BFLOAT16_CASTS}, which has no bfloat16")
    entry = noisy_entry(case, precision)

    def build(folder: Path) -> None:
        with blame(case.model_path):
            _build(case, precision, folder)

    fill_once(entry, build)
    amplitudes = msgspec.json.decode((entry / AMPLITUDES).read_bytes(), type=str | tuple[float, ...])
    if isinstance(amplitudes, str):
        return Inapplicable(amplitudes)
    draws = (0.0, *(amplitude for amplitude in amplitudes for _ in range(SAMPLES)))
    if amplitudes == SMOOTH:
        draws = (*draws, *(1.0,) * PROBES)
    home = case.model_path.parent
    number = ValueType(kind="tensor", dtype="float32", shape=())
    digest = hashlib.sha256(f"noise {precision} {FORMAT} {SAMPLES} {amplitudes} {case.digest}".encode())
    return msgspec.structs.replace(
        case,
        model_path=entry / MODEL,
        external=tuple(entry / file.relative_to(home) for file in case.external),
        ports=(*case.ports, Port(name=AMPLITUDE, type=number)),
        data_sets=tuple(
            DataSet(
                name=f"{data_set.name}-noise-{index}",
                inputs=(*data_set.inputs, (AMPLITUDE, _scalar(amplitude))),
            )
            for data_set in case.data_sets
            for index, amplitude in enumerate(draws)
        ),
        digest=digest.hexdigest(),
    )


def noisy_entry(case: Case, precision: str) -> Path:
    """Where the model with noise lies; once its results are known, it is not needed any more."""
    return cache_root() / "noise" / f"{case.digest}-{precision}-v{FORMAT}"


def discard_noisy(case: Case, precision: str) -> None:
    """Remove a model with noise that has served its purpose, where it takes more than ``SMALL`` bytes."""
    entry = noisy_entry(case, precision)
    with contextlib.suppress(OSError):
        if (entry / MODEL).stat().st_size > SMALL:
            shutil.rmtree(entry, ignore_errors=True)


def amplitudes_of(noisy: Case) -> tuple[float, ...]:
    """The amplitude of each data set of a case from ``noisy_case``, in their order."""
    found = (dict(data_set.inputs)[AMPLITUDE] for data_set in noisy.data_sets)
    return tuple(float(value.array) for value in found if isinstance(value, Tensor))


def _scalar(number: float) -> Tensor:
    return Tensor(dtype="float32", array=np.array(number, np.float32))


def _build(case: Case, precision: str, folder: Path) -> None:
    try:
        model = flattened(parse_model(read_model_file(case.model_path)))
    except NotFlatError as error:
        _say(folder, str(error))
        return
    _set_sizes(model, case)
    written = add_noise(model, precision)
    if not written.sites:  # a model of constants alone, unless every operator is exact
        model = flattened(parse_model(read_model_file(case.model_path)))
        written = add_noise(model, precision, folded=False)
    _forget_sizes(model)
    (folder / MODEL).write_bytes(model.SerializeToString())
    for file in case.external:
        _beside(file, folder / file.relative_to(case.model_path.parent))
    _say(folder, _amplitudes(written, precision))


def _amplitudes(written: Written, precision: str) -> tuple[float, ...]:
    if not written.sites:  # every operator is exact: one run without noise shows it
        return ()
    if written.jumps:
        return JUMPING
    return SMOOTH if precision == "float32" else COARSE


def _say(folder: Path, amplitudes: str | tuple[float, ...]) -> None:
    """Keep the amplitudes, or why there are none."""
    (folder / AMPLITUDES).write_bytes(msgspec.json.encode(amplitudes))


def _set_sizes(model: "onnx.ModelProto", case: Case) -> None:
    """Declare the inputs as large as those of the first data set: how many terms sums have depends on it."""
    import onnx

    inputs = dict(case.data_sets[0].inputs)
    for port in model.graph.input:
        value = inputs.get(port.name)
        if isinstance(value, Tensor) and port.type.HasField("tensor_type"):
            sizes = [onnx.TensorShapeProto.Dimension(dim_value=size) for size in value.array.shape]
            port.type.tensor_type.shape.CopyFrom(onnx.TensorShapeProto(dim=sizes))


def _forget_sizes(model: "onnx.ModelProto") -> None:
    """Declare nothing about sizes: those of the first data set need not be those of the next."""
    del model.graph.value_info[:]
    for port in (*model.graph.input, *model.graph.output):
        if port.name != AMPLITUDE and port.type.HasField("tensor_type"):
            port.type.tensor_type.ClearField("shape")


def _beside(file: Path, copy: Path) -> None:
    copy.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(os.path.realpath(file), copy)
    except OSError:  # another disk, or a file system without hard links
        shutil.copyfile(file, copy)
