"""The reference of the zoo, written from the models: ``docs/reference/zoo.md``."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from harness.annex.made.zoo.graph_builder import Architecture
from harness.annex.made.zoo.roster import ARCHITECTURES, ZooModel, build, zoo_models
from harness.core.values.value import STRING, Array, tensor
from harness.corpus.model.model_facts import model_facts

if TYPE_CHECKING:
    import onnx

_HEAD = """\
# The zoo

Real architectures with seeded weights, built by code in the form in which applications export them. This page
is written by `tox -e generate` from the models themselves.

```toml
[models]
suites = ["zoo"]
```

A model goes by its architecture, its size and its opset: `zoo/resnet-small-op17`. A selector such as `model =
"zoo/*-small-*"` takes one size of all.

* **Two opsets.** Both exports hold the same weights, are fed the same data and compute the same function,
  with the operators that exporters write at that opset: from 20 on `Gelu` is one node, from 23 on so are
  `RMSNormalization`, `RotaryEmbedding` and `Attention`. A provider that takes the one and not the other lacks
  an operator's version, not the architecture.
* **Sizes.** `small` runs in milliseconds on a processor, and within seconds on a simulator; `base` is deeper
  and wider.
* **Fixed dimensions.** The batch, and sequences where there are any, are symbolic dimensions. `small-fixed`
  is the small model with their sizes written into it, because many accelerators take nothing else.
* **Weights** are random numbers that derive from their names, scaled so that activations stay near 1 through
  any depth. No model is trained: its probabilities have no meaning, its numbers do.
* **Inputs** are in the range of real ones, and seeded too. There is no expected data; goldens are computed,
  as for a model of your own.
* **Building.** A model is built when it is first asked for, and kept in the [cache](corpus.md#the-cache).

In the tables of inputs, *range* is that of the suite's data. Weights are counted with the numbers in the
attributes of `ai.onnx.ml`; operators with those in branches and bodies of loops.
"""


class _Export(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about one model in the tables."""

    inputs: Mapping[str, tuple[str, str, str]]
    opset: str
    nodes: int
    weights: int
    nbytes: int
    operators: Mapping[str, int]


def reference() -> str:
    """Return the page as Markdown: an overview, then one section for each architecture."""
    exports = {name: _export(model) for name, model in zoo_models().items()}
    overview = table(
        ("architecture", "what it is made of", "weights", "opsets"),
        (
            (
                f"[{each.name}](#{each.name})",
                each.what,
                " / ".join(_count(exports[model.name].weights) for model in _sizes(each)),
                ", ".join(map(str, each.opsets)),
            )
            for each in ARCHITECTURES
        ),
    )
    total = f"{len(exports)} models of {len(ARCHITECTURES)} architectures; weights of `small` and `base`:"
    sections = (line for each in ARCHITECTURES for line in _section(each, exports))
    return "\n".join([_HEAD, total, "", *overview, *sections, ""])


def _sizes(architecture: Architecture) -> Iterator[ZooModel]:
    """Yield one model of each size."""
    for size in architecture.sizes:
        yield ZooModel(architecture=architecture, size=size, opset=architecture.opsets[0])


def _section(architecture: Architecture, exports: Mapping[str, _Export]) -> Iterator[str]:
    own = {name for name, model in zoo_models().items() if model.architecture is architecture}
    what = f"{architecture.what[0].upper()}{architecture.what[1:]}."
    yield from ("", f"## {architecture.name}", "", what, "")
    yield from table(
        ("model", "opset", "nodes", "weights", "size"),
        (
            (f"`{name}`", one.opset, str(one.nodes), _count(one.weights), _size(one.nbytes))
            for name, one in exports.items()
            if name in own
        ),
    )
    for model in _sizes(architecture):
        yield from ("", f"Inputs of `{architecture.name}-{model.size}`:", "")
        inputs = exports[model.name].inputs.items()
        yield from table(
            ("input", "type", "shape", "range"), ((f"`{name}`", *facts) for name, facts in inputs)
        )
    yield from ("", *_operators(architecture, exports))


def _operators(architecture: Architecture, exports: Mapping[str, _Export]) -> Iterator[str]:
    """Yield the operators of the small model at the older opset, and what the newer opset changes."""
    older, newer = (
        Counter(exports[ZooModel(architecture=architecture, size="small", opset=opset).name].operators)
        for opset in architecture.opsets
    )
    yield f"Operators of `small` at opset {architecture.opsets[0]}: {_counts(older)}."
    if older != newer:
        more, less = _counts(newer - older) or "nothing", _counts(older - newer) or "nothing"
        yield from ("", f"At opset {architecture.opsets[1]}: {more} more, {less} less.")


def _export(model: ZooModel) -> _Export:
    g = build(model)
    proto = g.model(model.name)
    facts = model_facts(proto)
    return _Export(
        inputs={port.name: _input(port, g.inputs[port.name]) for port in proto.graph.input},
        opset=", ".join(f"{domain} {version}" for domain, version in facts.opsets.items()),
        nodes=facts.nodes,
        weights=sum(math.prod(weight.dims) for weight in proto.graph.initializer)
        + sum(_elements(attribute) for node in proto.graph.node for attribute in node.attribute),
        nbytes=proto.ByteSize(),
        operators=facts.op_types,
    )


def _input(port: "onnx.ValueInfoProto", data: Array) -> tuple[str, str, str]:
    """Return type, declared shape with the size of each symbol, and range."""
    dtype = tensor(data).dtype
    dims = zip(port.type.tensor_type.shape.dim, data.shape, strict=True)
    sizes = [f"{dim.dim_param} = {size}" if dim.dim_param else str(size) for dim, size in dims]
    if dtype == STRING:
        extent = f"{len(set(data.ravel()))} different words"
    else:
        numbers = data[data == data]  # noqa: PLR0124 - without NaN
        extent = f"{numbers.min():.4g} to {numbers.max():.4g}"
        extent += ", some NaN" if numbers.size < data.size else ""
    return dtype, f"({', '.join(sizes)})", extent


def _elements(attribute: "onnx.AttributeProto") -> int:
    """Return how many numbers and texts an attribute holds."""
    lists = (attribute.floats, attribute.ints, attribute.strings)
    return sum(map(len, lists)) + (math.prod(attribute.t.dims) if attribute.type == attribute.TENSOR else 0)


def _counts(operators: Mapping[str, int]) -> str:
    return ", ".join(f"{name} x{count}" if count > 1 else name for name, count in sorted(operators.items()))


def _count(number: int) -> str:
    """Return three digits, as in 12.3 k."""
    for unit, factor in (("M", 10**6), ("k", 10**3)):
        if number >= factor:
            return f"{number / factor:.3g} {unit}"
    return str(number)


def _size(nbytes: int) -> str:
    return f"{nbytes / 1e6:.3g} MB" if nbytes >= 10**6 else f"{nbytes / 1e3:.3g} kB"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table in Markdown."""
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"
