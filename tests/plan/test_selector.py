"""The language that selects cells."""

import fnmatch
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.records.cell import Cell
from harness.core.text.globs import glob_matcher
from harness.plan.selector import Selector, SelectorIndex, model_matcher, selector_from

PROVIDERS = {"cpu": "CPUExecutionProvider", "qnn-htp": "QNNExecutionProvider"}
CELL = Cell(
    suite="onnx-node",
    model="test_abs",
    target="qnn-htp",
    axes=(("graph_optimization", "all"), ("option.soc", "60"), ("precision", "fp32")),
)


def selects(selector: Selector, cell: Cell = CELL) -> bool:
    return SelectorIndex([selector], PROVIDERS).matching(cell) == 1


STARS = "*a" * 40 + "b"


@pytest.mark.parametrize(
    "key", ["suite", "model", "target", "provider", "precision", "scenario", "option.soc"]
)
def test_forty_stars_take_no_time(key: str) -> None:
    """An entry of a matrix: exclude, expect, tolerance, latency, repeat, gate."""
    long = "a" * 400
    cell = Cell(
        suite=long,
        model=long,
        target=long,
        axes=(("option.soc", long), ("precision", long), ("scenario", long)),
    )
    assert SelectorIndex([selector_from({key: STARS})], {long: long}).matching(cell) == 0
    assert not model_matcher((STARS,))(long, long)


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ({}, True),
        ({"suite": "onnx-*"}, True),
        ({"suite": "onnx"}, False),
        ({"model": "test_abs"}, True),
        ({"model": "test_*"}, True),
        ({"model": "onnx-node/test_*"}, True),
        ({"model": "onnx-node*"}, True),
        ({"model": "*/test_abs"}, True),
        ({"model": "node/test_abs"}, False),
        ({"model": "test_a"}, False),
        ({"model": "TEST_ABS"}, False),
        ({"target": "qnn-*"}, True),
        ({"target": "cpu"}, False),
        ({"provider": "QNN*"}, True),
        ({"provider": "CPU*"}, False),
        ({"precision": "fp??"}, True),
        ({"precision": "[!f]*"}, False),
        ({"option.soc": "6*"}, True),
        ({"option.other": "*"}, False),
        ({"scenario": "*"}, False),
        ({"model": ["nope", "test_abs"]}, True),
        ({"model": ["nope", "neither"]}, False),
        ({"model": "test_abs", "target": "qnn-htp", "precision": "fp32"}, True),
        ({"model": "test_abs", "target": "cpu", "precision": "fp32"}, False),
    ],
)
def test_every_key_must_match_by_one_of_its_globs(
    table: dict[str, str | list[str]], expected: object
) -> None:
    assert selects(selector_from(table)) is expected


def test_keys_of_the_entry_itself_are_no_axes() -> None:
    entry = {"model": "m", "verdict": "pass", "reason": "r", "option.x": ["1", "2"]}
    selector = selector_from(entry, not_keys=("verdict", "reason"))
    assert selector == Selector(model=("m",), axes=(("option.x", ("1", "2")),))


def test_a_glob_without_a_slash_sees_the_model_alone() -> None:
    matches = model_matcher(("test_*", "other/x*"))
    assert matches("onnx-node", "test_abs")
    assert not matches("onnx-node", "a_test_abs")
    assert matches("other", "xyz")
    assert not matches("suite", "other/x")


def test_a_star_crosses_slashes() -> None:
    assert model_matcher(("models/*.onnx",))("models", "a/b/c.onnx")


def test_the_model_has_its_slashes_too() -> None:
    assert model_matcher(("a/b.onnx",))("models", "a/b.onnx") is False
    assert model_matcher(("*a/b.onnx",))("models", "a/b.onnx")


@given(st.lists(st.text("ab*?[]!/-", max_size=6), min_size=1, max_size=3), st.text("ab/-[]", max_size=6))
def test_globs_are_those_of_fnmatch(globs: list[str], text: str) -> None:
    assert glob_matcher(tuple(globs))(text) == any(fnmatch.fnmatchcase(text, glob) for glob in globs)


glob = st.sampled_from(["*", "a", "b", "a*", "s/a", "s/*", "1"])
globs = st.one_of(st.just(()), st.tuples(glob), st.tuples(glob, glob))
axes = st.dictionaries(st.sampled_from(["x", "y"]), st.tuples(glob)).map(lambda table: tuple(table.items()))
selectors = st.builds(Selector, suite=globs, model=globs, target=globs, provider=globs, axes=axes)


@given(st.lists(selectors, max_size=5))
def test_a_table_answers_as_its_selectors_do_alone(entries: list[Selector]) -> None:
    providers = {"a": "b", "b": "1"}
    index = SelectorIndex(entries, providers)
    for suite, model, target, value in product(["s", "a"], ["a", "b"], ["a", "b"], ["1", "a"]):
        cell = Cell(suite=suite, model=model, target=target, axes=(("x", value),))
        alone = [SelectorIndex([entry], providers).matching(cell) for entry in entries]
        assert index.matching(cell) == sum(answer << bit for bit, answer in enumerate(alone))
