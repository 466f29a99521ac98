"""A copy of a model that takes LoRA adapters: two products with weights get a low-rank addition each.

``y = x W`` becomes ``y = x W + (x A) B``. A and B are inputs with zeros as defaults, so the model without an
adapter computes what it did before. onnxruntime feeds them from the adapters of a run; the CPU EP, whose
answer is the golden, gets the same values as plain inputs.
"""

import json
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from harness.core.values.value import NamedValues, Tensor, tensor
from harness.corpus.beside.data_sets import DataSet
from harness.corpus.case import Case
from harness.corpus.derived.derived_models import MODEL_FILE, derive, digest_of
from harness.corpus.model.port import Port, ValueType

if TYPE_CHECKING:
    import onnx

LORA_FORMAT = 1
"""Increase it when copies change although their models do not."""

RANK = 4

ADAPTER_INPUTS = "ep_harness.lora."
"""Names of the inputs that adapters feed begin so; ``harness.agent.adapter_names`` reads them."""

_SIZES = "sizes.json"
_OLDEST_IR = 4
"""Version of ONNX's format from which on an input may have a default."""


def lora_copy(case: Case) -> Case | None:
    """Return a case whose data sets play none, one, another, again no adapter, and two at once.

    The first two adapters have other values for the same product, the third belongs to another product. The
    copy is made in the cache, once.

    Returns:
        None if the model has fewer than two products with a matrix of float32 weights, or has external data.

    Raises:
        ModelError: The model is broken or missing.
        UsageError: The cache cannot be written.
    """
    if case.external:
        return None
    digest = digest_of("lora", LORA_FORMAT, case.digest)
    home = derive(case, "lora", digest, _insert)
    sizes: list[tuple[int, int]] = json.loads((home / _SIZES).read_bytes())
    if len(sizes) < 2:  # noqa: PLR2004 - an adapter of another product
        return None
    given = case.data_sets[0].inputs
    one, another, other = (_adapter(at, *sizes[at], seed) for seed, at in enumerate((0, 0, 1)))
    played = {
        "no adapter": (),
        "one adapter": one,
        "another adapter": another,
        "no adapter again": (),
        "two adapters": (*one, *other),
    }
    ports = [
        Port(name=name, type=ValueType(kind="tensor", dtype="float32", shape=value.array.shape))
        for name, value in (*one, *other)
        if isinstance(value, Tensor)
    ]
    return msgspec.structs.replace(
        case,
        model_path=home / MODEL_FILE,
        ports=(*case.ports, *ports),
        data_sets=tuple(DataSet(name=name, inputs=(*given, *fed)) for name, fed in played.items()),
        digest=digest,
        recipe=None,
    )


def _adapter(at: int, rows: int, columns: int, seed: int) -> NamedValues:
    """Return the two matrices of an adapter, which change a product by about as much as its weights do."""
    generator = np.random.default_rng(seed)
    shapes = {"A": (rows, RANK), "B": (RANK, columns)}
    return tuple(
        (_name(at, part), tensor((generator.normal(size=shape) / np.sqrt(shape[0])).astype(np.float32)))
        for part, shape in shapes.items()
    )


def _name(at: int, part: str) -> str:
    return f"{ADAPTER_INPUTS}{at}.{part}"


def _insert(model: "onnx.ModelProto") -> dict[str, bytes]:
    """Return the copy, and the rows and columns of the weights of each changed product.

    A copy, such as the model of a bundle, is its own copy.
    """
    from onnx import TensorProto, helper, numpy_helper

    graph = model.graph
    shapes = {port.name: [size.dim_value for size in port.type.tensor_type.shape.dim] for port in graph.input}
    if _name(0, "A") in shapes:
        numbers = range(sum(name.startswith(ADAPTER_INPUTS) for name in shapes) // 2)
        own = [(shapes[_name(at, "A")][0], shapes[_name(at, "B")][1]) for at in numbers]
        return {MODEL_FILE: model.SerializeToString(), _SIZES: json.dumps(own).encode()}
    weights = {
        one.name: tuple(one.dims)
        for one in graph.initializer
        if one.data_type == TensorProto.FLOAT and len(one.dims) == 2  # noqa: PLR2004 - matrices
    }
    products = [
        node
        for node in graph.node
        if node.op_type == "MatMul" and not node.domain and node.input[1] in weights
    ]
    chosen = [products[0], products[-1]] if len(products) > 1 and model.ir_version >= _OLDEST_IR else []
    changed = {node.output[0]: at for at, node in enumerate(chosen)}
    nodes = []
    for node in graph.node:
        nodes.append(node)
        if not node.output or node.output[0] not in changed:
            continue
        at, result = changed[node.output[0]], node.output[0]
        base, inner, added = (f"{ADAPTER_INPUTS}{at}.{part}" for part in ("base", "inner", "added"))
        node.output[0] = base
        nodes += [
            helper.make_node("MatMul", [node.input[0], _name(at, "A")], [inner]),
            helper.make_node("MatMul", [inner, _name(at, "B")], [added]),
            helper.make_node("Add", [base, added], [result]),
        ]
    sizes = [weights[node.input[1]] for node in chosen]
    copies = [type(node).FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)
    for at, (rows, columns) in enumerate(sizes):
        for part, shape in (("A", (rows, RANK)), ("B", (RANK, columns))):
            name = _name(at, part)
            graph.input.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
            graph.initializer.append(numpy_helper.from_array(np.zeros(shape, np.float32), name))
    return {MODEL_FILE: model.SerializeToString(), _SIZES: json.dumps(sizes).encode()}
