"""Models of 1 to 100 MB, for a folder as users have them: the same bytes each time for one number.

Three sources take turns:

* architectures of the zoo, widened to the wanted size, at several depths and two opsets;
* the image classifiers of onnx's wheel, whose constant weights become random ones;
* models that PyPI packages ship, as they are and with weights that differ by 2 %.

Sizes are spread evenly on a logarithmic scale, in an order of which each beginning is spread alike.
``shapes_of`` counts models that differ in their graph; the others differ in sizes or weights alone.
"""

import functools
import hashlib
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnx.numpy_helper

from harness.annex.made.zoo.graph_builder import GraphBuilder
from harness.annex.made.zoo.roster import ARCHITECTURES
from harness.core.values.value import Array, Tensor
from harness.corpus.beside.value_file import write_model_folder
from harness.corpus.load_case import load_case
from harness.corpus.suites.suites import open_model

PACKAGES = ("rapidocr-onnxruntime==1.4.4", "silero-vad==6.2.3", "magika==1.0.3", "ddddocr==1.6.1")
"""Packages of PyPI whose wheels have models of at least ``LEAST_MB``."""
LEAST_MB, MOST_MB = 1.0, 100.0
GOLDEN_RATIO = (5**0.5 - 1) / 2
"""Steps of this share of a range are spread evenly in each beginning."""
SHIPPED_SHARE = 5
"""One model in so many is of a package or of onnx's wheel."""
PERTURBED = 0.02
_ARCHITECTURES = {one.name: one for one in ARCHITECTURES}
_MATRIX = onnx.TensorProto.FLOAT


class Made(NamedTuple):
    """One model: its name in the folder, and what makes it with its inputs, which may be empty."""

    name: str
    make: Callable[[], tuple[onnx.ModelProto, Mapping[str, Array]]]


def models(count: int, wheels: Path) -> Iterator[Made]:
    """Yield so many models; ``wheels`` is the folder into which ``PACKAGES`` are installed."""
    shipped = [*_shipped(wheels), *_light()]
    grown = list(_GROWN)
    for number in range(count):
        turn, rest = divmod(number, SHIPPED_SHARE)
        if rest == SHIPPED_SHARE - 1:
            version, index = divmod(turn, len(shipped))
            name, read = shipped[index]
            yield Made(f"{number:03}-{name}-v{version}", functools.partial(_other_weights, read, version))
        else:
            version, index = divmod(number - turn, len(grown))
            share = (number * GOLDEN_RATIO) % 1
            wanted_mb = LEAST_MB * (MOST_MB / LEAST_MB) ** share
            name = f"{number:03}-{grown[index]}-{wanted_mb:.0f}mb"
            yield Made(name, functools.partial(_grown, grown[index], wanted_mb, version, number))


def write(made: Made, folder: Path) -> None:
    """Write a model with its inputs into a new folder, in the layout of ONNX's test runner."""
    model, inputs = made.make()
    folder.mkdir(parents=True)
    write_model_folder(folder, model, inputs)
    if not inputs:  # they are generated, as for any model without test data
        (folder / "test_data_set_0").rmdir()
        suite = open_model(str(folder / "model.onnx"))
        case = load_case(suite, suite.models()[0], {})
        values = {name: value.array for name, value in case.data_sets[0].inputs if isinstance(value, Tensor)}
        (folder / "model.onnx").unlink()
        write_model_folder(folder, model, values)


def shape_of(model: onnx.ModelProto) -> str:
    """Return a digest of the graph: operators and their edges, without sizes and weights."""
    edges = [(node.op_type, tuple(node.input), tuple(node.output)) for node in model.graph.node]
    return hashlib.sha256(repr(edges).encode()).hexdigest()


def _sized(name: str, growth: float, depth: int) -> dict[str, Any]:
    """Return the arguments of an architecture whose weights are to be ``growth`` times those of ``base``."""
    base = dict(_ARCHITECTURES[name].sizes["base"])
    wider = math.sqrt(growth)

    def wide(key: str, step: int) -> int:
        return max(step, round(base[key] * wider / step) * step)

    if name == "mobilenet":
        rows = [
            row._replace(expanded=round(row.expanded * wider), after=round(row.after * wider / 4) * 4)
            for row in base["rows"]
        ]
        return base | {"rows": tuple(rows)}
    if name == "efficientnet":
        stages = [(one[0], round(one[1] * wider / 4) * 4, *one[2:]) for one in base["stages"]]
        return base | {"stages": tuple(stages)}
    if name == "llama":
        size = base["size"]
        width = max(64, round(size.width * wider / 64) * 64)
        inner = max(64, round(size.inner * wider / 32) * 32)
        return {"size": size._replace(width=width, inner=inner, layers=size.layers + depth)}
    if "hidden" in base:
        return base | {"hidden": wide("hidden", 16)}
    deeper = {key: base[key] + depth for key in ("layers", "blocks") if key in base}
    step = 8 * base["heads"] if "heads" in base else 8
    return base | {"width": wide("width", step)} | deeper


def _grown(
    name: str, wanted_mb: float, version: int, number: int
) -> tuple[onnx.ModelProto, Mapping[str, Array]]:
    """Build a model of the zoo of about so many MB."""
    depth = version % 3
    opset = _ARCHITECTURES[name].opsets[version % 2]
    bytes_mb = 1e6
    growth = wanted_mb * bytes_mb / _GROWN[name]
    built = _built(name, _sized(name, growth, depth), opset, number)
    for _ in range(2):  # tables and layers do not grow alike
        size = sum(tensor.ByteSize() for tensor in built.model(name).graph.initializer)
        growth *= wanted_mb * bytes_mb / size
        built = _built(name, _sized(name, growth, depth), opset, number)
    return built.model(name), built.inputs


def _built(name: str, size: Mapping[str, Any], opset: int, number: int) -> GraphBuilder:
    # Sizes that many accelerators require, and weights of this model alone.
    graph = GraphBuilder(seed=f"{name}-{number}", opset=opset, fixed=True)
    _ARCHITECTURES[name].build(graph, **size)
    return graph


def _shipped(wheels: Path) -> Iterator[tuple[str, Callable[[], onnx.ModelProto]]]:
    """Yield the models of the packages."""
    for path in sorted(wheels.glob("**/*.onnx")):
        if LEAST_MB * 1e6 <= path.stat().st_size <= MOST_MB * 1e6:
            yield f"{path.relative_to(wheels).parts[0]}-{path.stem}", functools.partial(onnx.load, path)


def _light() -> Iterator[tuple[str, Callable[[], onnx.ModelProto]]]:
    """Yield the classifiers of onnx's wheel whose weights are of a size."""
    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    for name in ("densenet121", "inception_v1", "inception_v2", "shufflenet", "squeezenet"):
        yield name, functools.partial(_with_weights, folder / f"light_{name}.onnx")


def _with_weights(path: Path) -> onnx.ModelProto:
    """Return a model whose constant weights are random ones that keep activations near 1."""
    model = onnx.load(path)
    graph = model.graph
    shapes = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer}
    nodes = []
    for node in graph.node:
        if node.op_type != "ConstantOfShape" or node.input[0] not in shapes:
            nodes.append(node)
            continue
        shape = tuple(int(size) for size in shapes[node.input[0]])
        draw = _random(path.stem, node.output[0]).standard_normal(shape, np.float32)
        if len(shape) > 1:
            values = draw * np.float32(math.sqrt(2 / math.prod(shape[1:])))
        else:
            positive = any(word in node.output[0] for word in ("var", "scale", "bn_w"))
            values = np.float32(positive) + np.float32(0.02) * draw
        graph.initializer.append(onnx.numpy_helper.from_array(values, node.output[0]))
    del graph.node[:]
    graph.node.extend(nodes)
    read = {name for node in nodes for name in node.input}
    for field in (graph.initializer, graph.input):
        kept = [one for one in field if one.name in read]
        del field[:]
        field.extend(kept)
    return model


def _other_weights(
    read: Callable[[], onnx.ModelProto], version: int
) -> tuple[onnx.ModelProto, Mapping[str, Array]]:
    """Return a model as it is, or with weights that differ."""
    model = read()
    for tensor in model.graph.initializer if version else ():
        if tensor.data_type == _MATRIX and len(tensor.dims) > 1:
            values = onnx.numpy_helper.to_array(tensor)
            draw = _random(tensor.name, str(version)).standard_normal(values.shape, np.float32)
            changed = values * (1 + np.float32(PERTURBED) * draw)
            tensor.CopyFrom(onnx.numpy_helper.from_array(changed, tensor.name))
    return model, {}


def _random(*names: str) -> np.random.Generator:
    return np.random.default_rng(list(hashlib.sha256("\0".join(names).encode()).digest()))


_GROWN = {
    "resnet": 11.3e6,
    "bert": 17.3e6,
    "mobilenet": 2.5e6,
    "llama": 19.5e6,
    "vit": 11.0e6,
    "speech-lstm": 6.5e6,
    "unet": 1.9e6,
    "gpt": 17.0e6,
    "efficientnet": 1.5e6,
    "speech-gru": 7.2e6,
    "diffusion": 1.7e6,
}
"""Architecture -> bytes of the weights of its size ``base``."""
