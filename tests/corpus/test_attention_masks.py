"""Masks of attention by what the graph makes of them, whatever they are called."""

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

from harness.core.values.value import Array, Tensor
from harness.corpus.case import Case, at_attempt
from harness.corpus.inputs.attempts import InputAttempt
from harness.corpus.inputs.attention_masks import with_attention_masks
from harness.corpus.inputs.recipes.row_lengths import padding
from harness.corpus.load_case import load_case
from harness.corpus.suites.suite import open_folder
from harness.operators.value_domains import Domain

LEAST = "-3.4028235e38"


def model_of(mask: str, body: str, more: str = "") -> onnx.ModelProto:
    text = f"""<ir_version: 10, opset_import: ["" : 23, "com.microsoft" : 1]>
    g (float[N, H, S, S] scores, {mask}{more}) => (float[N, H, S, S] y)
    <float one = {{1}}, float least = {{{LEAST}}}, float low = {{-10000}}, float zero = {{0}},
     int64 none = {{0}}, int64 first = {{1}}, float[1, 1] eight = {{8}}>
    {{ {body} }}"""
    return onnx.parser.parse_model(text)


BERT = "f = Cast <to = 1> (m) i = Sub (one, f) b = Mul (i, low) s = Add (scores, b) y = Softmax (s)"
OF_HEADS = """q = Squeeze (scores) p = com.microsoft.MultiHeadAttention <num_heads = 1> (q, q, q, , m)
y = Unsqueeze (p, none)"""
FORMS = {
    "added, 1 counts": ("int64[N, 1, 1, S] m", BERT, 1),
    "added before it is scaled": (
        "float[N, 1, 1, S] m",
        "i = Sub (one, m) b = Mul (i, least) s = Add (b, scores) t = Div (s, eight) y = Softmax (t)",
        1,
    ),
    "put in place, True counts": (
        "bool[N, 1, 1, S] m",
        "s = Where (m, scores, least) y = Softmax (s)",
        1,
    ),
    "put in place, True masks": (
        "bool[N, 1, 1, S] m",
        "s = Where (m, least, scores) y = Softmax (s)",
        0,
    ),
    "compared and turned round": (
        "int64[N, 1, 1, S] m",
        "e = Equal (m, none) n = Not (e) s = Where (n, scores, least) y = Softmax (s)",
        1,
    ),
    "with another mask": (
        "bool[N, 1, 1, S] m",
        """c = Less (scores, zero) both = And (m, c) b = Where (both, zero, least) s = Add (scores, b)
        y = Softmax (s)""",
        1,
    ),
    "beside another mask of numbers": (
        "int64[N, 1, 1, S] m",
        """c = Min (scores, zero) f = Cast <to = 1> (m) sum = Add (c, f) hidden = Equal (sum, zero)
        b = Where (hidden, least, c) s = Add (scores, b) y = Softmax (s)""",
        1,
    ),
    "in a branch": (
        "bool[N, 1, 1, S] m",
        """then = Constant <value = bool {1}> ()
        y = If (then) <
            then_branch = t () => (float[N, H, S, S] a) { s = Where (m, scores, least) a = Softmax (s) },
            else_branch = e () => (float[N, H, S, S] b) { b = Identity (scores) }>""",
        1,
    ),
    "of Attention": (
        "bool[S, S] m",
        "y = Attention (scores, scores, scores, m)",
        1,
    ),
    "of MultiHeadAttention": (
        "int32[N, S] m",
        OF_HEADS,
        1,
    ),
}


@pytest.mark.parametrize(("mask", "body", "counts"), FORMS.values(), ids=FORMS)
def test_a_mask_hides_the_ends_of_rows(mask: str, body: str, counts: int) -> None:
    assert with_attention_masks({}, model_of(mask, body)) == {"m": Domain(padding=(counts, 1 - counts))}


OTHERS = {
    "scores": ("float[N, H, S, S] m", "s = Add (scores, m) y = Softmax (s)"),
    "similarities": ("float[N, H, S, S] m", "s = Mul (m, eight) t = Add (s, scores) y = Softmax (t)"),
    "scaled by much": (
        "float[N, H, S, S] m",
        "big = Neg (low) s = Mul (m, big) t = Add (s, big) u = Add (scores, zero) y = Softmax (t)",
    ),
    "a condition": ("bool[N, 1, 1, S] m", "s = Where (m, scores, zero) y = Softmax (s)"),
    "masks nothing of Softmax": ("bool[N, 1, 1, S] m", "y = Where (m, scores, least)"),
    "lengths": (
        "int32[N] m",
        OF_HEADS,
    ),
    "broken": ("bool[N, 1, 1, S] m", "s = Where (m, scores) n = Not () y = Softmax (s)"),
    "infinity times nothing": (
        "float[N, 1, 1, S] m",
        "big = Neg (least) huge = Mul (big, big) i = Mul (m, huge) s = Add (scores, i) y = Softmax (s)",
    ),
    "both ways": (
        "bool[N, 1, 1, S] m",
        "s = Where (m, least, scores) a = Softmax (s) t = Where (m, a, least) y = Softmax (t)",
    ),
}


@pytest.mark.parametrize(("mask", "body"), OTHERS.values(), ids=OTHERS)
def test_others_are_no_masks(mask: str, body: str) -> None:
    assert with_attention_masks({}, model_of(mask, body)) == {}


def test_token_ids_are_no_mask() -> None:
    body = "e = Equal (m, first) s = Where (e, least, scores) y = Softmax (s)"
    ids = {"m": Domain(extents=(30,))}
    assert with_attention_masks(ids, model_of("int64[N, 1, 1, S] m", body)) == ids


@pytest.mark.parametrize(("form", "counts"), [("added, 1 counts", 1), ("put in place, True masks", 0)])
def test_generated_masks_hide_the_ends_of_rows(tmp_path: Path, form: str, counts: int) -> None:
    mask, body, _ = FORMS[form]
    onnx.save(model_of(mask, body), tmp_path / "model.onnx")
    case = load_case(open_folder(tmp_path), "model.onnx", {"N": 2, "S": 8})
    assert (mask_of(case) == counts).tolist() == [[[[True] * 8]], [[[True] * 6 + [False] * 2]]]
    assert np.all(mask_of(at_attempt(case, InputAttempt(values="positive"))) == counts)
    alone = load_case(open_folder(tmp_path), "model.onnx", {"N": 1, "S": 2})
    assert (mask_of(alone) == counts).tolist() == [[[[True, False]]]]


def mask_of(case: Case) -> Array:
    value = dict(case.data_sets[0].inputs)["m"]
    assert isinstance(value, Tensor)
    return value.array


@pytest.mark.parametrize("shape", [(), (3,), (0, 3), (2, 0), (3, 1)])
def test_padding_leaves_something(shape: tuple[int, ...]) -> None:
    assert not padding(shape).any()
    assert padding(shape).shape == shape
