"""How many terms sums have, which sizes results have, and which weights are whole numbers."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from harness.corpus.noise.even import even_axes
from harness.corpus.noise.tensors import is_coarse, is_whole, node_size
from harness.corpus.noise.terms import UNKNOWN_TERMS, PartialDims, terms_of

NODE = tuple[str, tuple[PartialDims, ...], dict[str, Any]]


OPSET = 17


def a_node(op: str, dims: tuple[PartialDims, ...], attributes: dict[str, Any]) -> onnx.NodeProto:
    return helper.make_node(op, [f"in{index}" for index in range(len(dims))], ["out"], **attributes)


@pytest.mark.parametrize(
    ("node", "terms"),
    [
        (("MatMul", ((2, 768), (768, 8)), {}), 768),
        (("MatMul", (None, (768, 8)), {}), 768),
        (("MatMul", ((2, None), (None, 8)), {}), UNKNOWN_TERMS),
        (("MatMul", ((5,), (5,)), {}), 5),
        (("Gemm", (None, (8, 300)), {"transB": 1}), 300),
        (("Gemm", (None, (300, 8)), {}), 300),
        (("Conv", (None, (32, 16, 3, 3)), {}), 144),
        (("ConvTranspose", (None, (16, 8, 4, 4)), {"strides": [2, 2]}), 64),
        (("Einsum", ((2, 3, 4), (2, 4, 5)), {"equation": "bij,bjk->bik"}), 4),
        (("LSTM", (None, (1, 40, 10), (1, 40, 12)), {}), 22),
        (("Softmax", ((4, 64),), {}), 64),
        (("LayerNormalization", (None, (768,)), {}), 768),
        (("GlobalAveragePool", ((1, 8, 7, 7),), {}), 49),
        (("MeanVarianceNormalization", ((2, 3, 4, 5),), {}), 40),
        (("AveragePool", (None,), {"kernel_shape": [3, 3]}), 9),
        (("ReduceMean", ((2, 3, 16),), {"axes": [1, 2]}), 48),
        (("ReduceMean", ((2, 3, 16), (1,)), {}), 96),
        (("CumSum", ((2, 3, 16), ()), {}), 16),
        (("DFT", ((2, 30, 16, 2),), {}), 30),
        (("AffineGrid", ((2, 3, 4), (5,)), {}), 4),
        (("Attention", ((1, 2, 16, 32), (1, 2, 300, 32), (1, 2, 300, 64)), {}), 300),
        (("Attention", ((1, 16, 64), (1, 5, 64), (1, 5, 64)), {"q_num_heads": 2}), 32),
        (("MultiHeadAttention", ((1, 1, 64), (1, 1, 64), (1, 1, 64)), {"num_heads": 8}), 8),
        (("GroupQueryAttention", ((1, 1, 64), None, None, (1, 2, 99, 32)), {"num_heads": 2}), 100),
        (("Relu", ((2, 3),), {}), 0),
    ],
)
def test_terms(node: NODE, terms: float) -> None:
    _, dims, _ = node
    assert terms_of(a_node(*node), dims, OPSET) == terms


def test_axes_that_are_known_count_alone() -> None:
    dims: tuple[PartialDims, ...] = ((2, 3, 16), (1,))
    assert terms_of(a_node("ReduceMean", dims, {}), dims, OPSET, (-1,)) == 16
    assert terms_of(a_node("ReduceSum", dims, {}), dims, OPSET, (0, 1)) == 6
    assert terms_of(a_node("CumSum", dims, {}), dims, OPSET, (1,)) == 3
    assert terms_of(a_node("CumSum", dims, {}), dims, OPSET, (9,)) == UNKNOWN_TERMS


def test_softmax_of_an_old_opset_adds_up_all_axes_from_its_own_on() -> None:
    dims: tuple[PartialDims, ...] = ((2, 42, 8),)
    assert terms_of(a_node("Softmax", dims, {}), dims, 12) == 336
    assert terms_of(a_node("Softmax", dims, {"axis": 2}), dims, 12) == 8
    assert terms_of(a_node("LogSoftmax", dims, {"axis": 1}), dims, 13) == 42


@pytest.mark.parametrize("dims", [(), (None,), ((2,),), ((), ())])
@pytest.mark.parametrize("op", ["MatMul", "Conv", "Gemm", "Einsum", "Softmax", "GRU", "LayerNormalization"])
def test_broken_nodes_do_no_harm(op: str, dims: tuple[PartialDims, ...]) -> None:
    assert terms_of(a_node(op, dims, {}), dims, OPSET) > 0


@pytest.mark.parametrize(
    ("node", "size"),
    [
        (("Tanh", ((2, None),), {}), (2, None)),
        (("Add", ((8,), (2, 3, 8)), {}), (2, 3, 8)),
        (("Add", ((64, 1), (1, 512)), {}), (64, 512)),
        (("Mul", ((None, 1), (4, None)), {}), (4, None)),
        (("Mul", ((512,), (None, None)), {}), (None, 512)),
        (("Transpose", ((2, 3, 4),), {}), (4, 3, 2)),
        (("Transpose", ((2, 3, 4),), {"perm": [1, 0, 2]}), (3, 2, 4)),
        (("Transpose", ((2, 3, 4),), {"perm": [1, 0, 9]}), None),
        (("MatMul", ((2, 3, 4), (4, 5)), {}), (2, 3, 5)),
        (("MatMul", ((), ()), {}), None),
        (("Reshape", ((2, 3), (1,)), {}), None),
        (("Add", (None, (2,)), {}), None),
        (("Constant", (), {}), None),
    ],
)
def test_sizes(node: NODE, size: PartialDims) -> None:
    _, dims, _ = node
    assert node_size(a_node(*node), dims) == size


@pytest.mark.parametrize(
    ("numbers", "whole"),
    [
        (np.array([1.0, 0.0, -256.0], np.float32), True),
        (np.array(0.5, np.float32), False),
        (np.array(257.0, np.float32), False),
        (np.array([np.inf], np.float32), False),
        (np.array([np.nan], np.float32), False),
        (np.zeros(65, np.float32), False),
        (np.array([1], np.int64), False),
    ],
)
def test_whole_numbers(numbers: np.ndarray[Any, Any], *, whole: bool) -> None:
    assert is_whole(numpy_helper.from_array(numbers, "w")) is whole


@pytest.mark.parametrize(
    ("numbers", "coarse"),
    [
        (np.array([0.0625, -2.5, 256.0], np.float32), True),
        (np.array([0.1], np.float32), False),
        (np.array([256.5], np.float32), False),
        (np.array([np.nan], np.float32), False),
        (np.array([1], np.int64), False),
        (np.concatenate([np.ones(1000), [0.3]]).astype(np.float32), False),
    ],
)
def test_coarse_weights(numbers: np.ndarray[Any, Any], *, coarse: bool) -> None:
    assert is_coarse(numpy_helper.from_array(numbers, "w")) is coarse


@pytest.mark.parametrize(
    ("node", "axes"),
    [
        (("LayerNormalization", ((2, 5, 64), (64,)), {}), (-1,)),
        (("LayerNormalization", ((2, 5, 64), (64,)), {"axis": 1}), (-2, -1)),
        (("LayerNormalization", ((2, 5, 3), (3,)), {}), ()),
        (("BatchNormalization", ((2, 8, 9, 9),), {}), (0, 2, 3)),
        (("BatchNormalization", ((1, 8),), {}), ()),
        (("BatchNormalization", (None,), {}), ()),
        (("Resize", ((1, 3, 8, 8),), {}), (2, 3)),
        (("Attention", ((1, 2, 16, 32),), {}), (-1,)),
        (("Sin", ((1, 2, 16, 32),), {}), ()),
        (("Exp", ((1, 2, 16, 32),), {}), ""),
    ],
)
def test_which_elements_are_as_uncertain(node: NODE, axes: tuple[int, ...] | str) -> None:
    _, dims, _ = node
    assert even_axes(a_node(*node), dims) == axes
