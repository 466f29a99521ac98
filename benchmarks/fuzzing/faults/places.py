"""Faults that show for some neighbours of a node only: aliases, fusions, bodies; and in a second run."""

from functools import partial

import numpy as np

from benchmarks.fuzzing.faults.fault import Fault, Site, fault

SECOND_RUN = "second run"
"""Kind of the faults that a first run does not have."""

_alias = partial(fault, "alias")
_fused = partial(fault, "fusion")
_body = partial(fault, "body")
_again = partial(fault, SECOND_RUN)


def _same(site: Site) -> bool:
    return site.has(1) and site.node.input[0] == site.node.input[1] and bool(site.y.size)


def _kept(site: Site) -> bool:
    """The tensor that an activation could overwrite is an output of the graph."""
    return site.has(0) and site.node.input[0] in {one.name for one in site.graph.output}


def _conv_relu(site: Site) -> bool:
    maker = site.maker()
    weights = {one.name for one in site.graph.initializer}
    return (
        maker is not None and maker.op_type == "Conv" and len(maker.input) > 2 and maker.input[2] in weights
    )


def _product_bias(site: Site) -> bool:
    return any(
        site.behind("MatMul", at) and site.is_weight(1 - at) and site.x(1 - at).ndim == 1 for at in (0, 1)
    )


def _shared(site: Site) -> bool:
    return site.is_weight(1) and site.readers(site.node.input[1]) > 1


def _casts(site: Site) -> bool:
    return site.behind("Cast") and site.y.dtype == np.float32


PLACES: tuple[Fault, ...] = (
    _alias("Add, Mul: a tensor with itself", "Add Mul", _same),
    _alias("Concat: a tensor with itself", "Concat", _same),
    _alias("activations: their operand is an output, too", "Relu Sigmoid Tanh LeakyRelu Abs Neg Clip", _kept),
    _alias("a weight of two nodes", "MatMul Conv Add Mul Gemm", _shared),
    _fused("Conv with a constant bias, Relu", "Relu", _conv_relu),
    _fused("Conv, Add of a constant", "Add", lambda s: s.behind("Conv") and s.is_weight(1)),
    _fused("MatMul, Add of a vector", "Add", _product_bias),
    _fused("Transpose, Transpose", "Transpose", lambda s: s.behind("Transpose")),
    _fused("Cast, Cast", "Cast", _casts),
    _body("If", "If", lambda s: bool(s.y.size)),
    _again("LSTM, GRU, RNN keep their state", "LSTM GRU RNN", lambda s: bool(s.y.size)),
    _again("Conv in groups", "Conv", lambda s: s.given.get("group", 1) > 1),
)  # fmt: skip
