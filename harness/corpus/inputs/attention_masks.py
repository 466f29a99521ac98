"""Which value of a mask lets attention see a position: by what the graph makes of it before Softmax.

A row whose positions are all masked has no answer: NaN, or the mean of what should not count, which rounding
decides. Random masks have such rows. A mask that hides nothing is passed by a provider that ignores masks, so
generated ones hide the ends of rows, as padding does. The names of masks differ, and so does their sense: 1
for a position that counts, or True for one that does not. The graph shows it: one of the two values becomes a
large negative number, added to the scores of Softmax or put in their place.

Each tensor that a mask leads to is known by two numbers, for a mask of zeros and for one of ones. Whatever
else is added, multiplied or chosen there counts as what it is where nothing is masked. Bodies of control
flow are entered; local functions are not.
"""

from collections import ChainMap
from collections.abc import Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.corpus.model.element_types import ELEMENT_TYPES
from harness.corpus.model.nodes import bodies, constant_of, domain_of, operator_name
from harness.corpus.model.port import model_text
from harness.corpus.model.protos import few_numbers
from harness.operators.book import operators_by, operators_with
from harness.operators.value_domains import Domain

if TYPE_CHECKING:
    import onnx

_MASKED = 1000.0
"""What a masked score is lowered by, at least. Exporters write -10000, the least number of a type, or -inf;
where values themselves are scaled, as similarities are, they are scaled by 100 or less. The same number is in
``harness.agent.precision.attention_ranges``, which may be where this package is not."""

_MOST_ELEMENTS = 4096
"""Of a constant that is read, to see whether all its elements are the same."""

_MASKED_INPUTS = operators_by(lambda row: row.mask_inputs)
_FUNCTIONS = {
    op: function
    for op, name in {**operators_by(lambda row: row.numbers), "Div": "divide"}.items()
    if isinstance(function := getattr(np, name.removeprefix("np."), None), np.ufunc)
}
"""Operator -> numpy's function of its elements."""

_NEUTRAL = {"Sub": 0.0, "Div": 1.0}
"""What an unknown input counts as where numpy's function has no identity."""

_MOVES = operators_with(lambda row: row.keeps_values)
_BOTH = np.array([0.0, 1.0])

Numbers = np.ndarray[Any, np.dtype[np.float64]]
"""What a mask of zeros and a mask of ones become, shape (2,)."""

Known = Mapping[str, Numbers]
"""Numbers by the name of the mask."""

_SCATTERS = {"ScatterND", "ScatterElements"}


def with_attention_masks(domains: Mapping[str, Domain], model: "onnx.ModelProto") -> dict[str, Domain]:
    """Return the values that inputs may hold; masks of attention hide the ends of rows."""
    found = dict(domains)
    for name, value in _unmasking(model.graph).items():
        known = found.get(name, Domain())
        if not known.extents:  # token ids, whose padding the graph masks by itself
            found[name] = known.within(Domain(padding=(value, 1 - value)))
    return found


def _unmasking(graph: "onnx.GraphProto") -> dict[str, float]:
    """Return for each mask the value that masks nothing."""
    walk = _Walk()
    weights = {weight.name for weight in graph.initializer}
    for port in graph.input:
        declared = port.type.tensor_type
        kind = ELEMENT_TYPES.get(declared.elem_type, "")
        # A mask of one axis may be the length of each row.
        has_rows = not declared.HasField("shape") or len(declared.shape.dim) > 1
        if port.name not in weights and has_rows and ("int" in kind or "float" in kind or kind == "bool"):
            walk.known[port.name] = {port.name: _BOTH}
    with np.errstate(all="ignore"):
        walk.graph(graph)
    return {model_text(name): float(values.pop()) for name, values in walk.seen.items() if len(values) == 1}


class _Walk:
    """What is known of each tensor so far.

    Attributes:
        known: What masks become, by tensor.
        seen: Mask -> the values that let attention see a position. Two of them contradict each other.
    """

    def __init__(self) -> None:
        self.known: MutableMapping[str, Known] = ChainMap()
        self.seen: dict[str, set[int]] = {}
        self._constants: MutableMapping[str, onnx.TensorProto] = ChainMap()
        self._uniform: MutableMapping[str, float | None] = ChainMap()

    def graph(self, graph: "onnx.GraphProto") -> None:
        """Take the nodes of a graph in their order, with the bodies of each."""
        self._constants.update((weight.name, weight) for weight in graph.initializer)
        for node in graph.node:
            if node.output:
                self._node(node)
            for body in bodies(node):
                outer = self.known, self._constants, self._uniform
                self.known, self._constants, self._uniform = (ChainMap({}, one) for one in outer)
                self.graph(body)
                self.known, self._constants, self._uniform = outer

    def _node(self, node: "onnx.NodeProto") -> None:
        kind, given = operator_name(domain_of(node), node.op_type), list(node.input)
        if node.op_type in _MASKED_INPUTS:
            for at in _MASKED_INPUTS[node.op_type]:
                self._see(self.known.get(given[at], {}) if at < len(given) else {}, flags=kind != "Softmax")
        elif kind == "Constant":
            if (value := constant_of(node)) is not None:
                self._constants[node.output[0]] = value
        elif kind == "ConstantOfShape":
            self._uniform[node.output[0]] = next(iter(few_numbers(constant_of(node), 1)), 0.0)
        elif given and kind in _MOVES:
            self._move(node)
        else:
            self._compute(node.output[0], kind, given)

    def _move(self, node: "onnx.NodeProto") -> None:
        source, made = node.input[0], node.output[0]
        known = self.known.get(source, {})
        if node.op_type == "Cast" and known:
            to = next((one.i for one in node.attribute if one.name == "to"), 0)
            as_bool = ELEMENT_TYPES.get(to) == "bool"
            known = {name: (two != 0).astype(np.float64) if as_bool else two for name, two in known.items()}
        if known:
            self.known[made] = known
        elif (value := self._number(source)) is not None:
            self._uniform[made] = value

    def _compute(self, made: str, kind: str, given: Sequence[str]) -> None:
        masks = {name for one in given for name in self.known.get(one, {})}
        if not masks:
            return
        found = {name: self._result(kind, given, name) for name in sorted(masks)}
        if known := {name: two for name, two in found.items() if two is not None and two[0] != two[1]}:
            self.known[made] = known

    def _result(self, kind: str, given: Sequence[str], mask: str) -> Numbers | None:
        """Return what an operator makes of one mask; None if it is unknown."""
        inputs = [self._of(one, mask) for one in given]
        if kind == "Where" and len(inputs) == 3:  # noqa: PLR2004 - condition, two choices
            return _chosen(*inputs)
        if kind in _SCATTERS:
            return inputs[0] if inputs[-1] is None else inputs[-1]
        function = _FUNCTIONS.get(kind)
        operands = 0 if function is None else len(function.types[0].partition("->")[0])
        if function is None or operands != len(inputs):  # Max and Min may take more
            return None
        neutral: Any = function.identity if function.identity is not None else _NEUTRAL.get(kind)
        if neutral is None and any(one is None for one in inputs):
            return None
        known = (np.full(2, float(neutral)) if one is None else one for one in inputs)
        return np.asarray(function(*known), np.float64)

    def _of(self, name: str, mask: str) -> Numbers | None:
        two = self.known.get(name, {}).get(mask)
        if two is None and (value := self._number(name)) is not None:
            two = np.full(2, value)
        return two

    def _number(self, name: str) -> float | None:
        """Return the number that all elements of a constant are; None for any other tensor."""
        if name not in self._uniform:
            numbers = set(few_numbers(self._constants.get(name), _MOST_ELEMENTS))
            self._uniform[name] = numbers.pop() if len(numbers) == 1 else None
        return self._uniform[name]

    def _see(self, known: Known, *, flags: bool) -> None:
        """Take what is added to scores of attention, or these; or ``flags`` that are 1 where one counts."""
        for name, (zero, one) in known.items():
            is_flag = flags and {zero, one} == {0.0, 1.0}
            lowered = min(zero, one) <= -_MASKED and abs(one - zero) >= _MASKED
            if is_flag or lowered:
                self.seen.setdefault(name, set()).add(int(one > zero))


def _chosen(condition: Numbers | None, first: Numbers | None, second: Numbers | None) -> Numbers | None:
    """Return what ``Where`` makes of a mask; other scores count as 0."""
    if condition is None:  # where nothing else masks, the mask is chosen
        return second if first is None else first
    zero = np.zeros(2)
    return np.where(condition != 0, zero if first is None else first, zero if second is None else second)
