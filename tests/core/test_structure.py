"""The walker agrees with msgspec, and nothing gets past it that the reader would choke on."""

import copy
import tomllib
from collections.abc import Sequence
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core.files.structure import FilePlace, deviations
from harness.core.text.errors import Problem, UsageError
from harness.plan.file_format import MatrixFile
from harness.plan.matrix import Matrix
from tests.kit import make_matrix

VALID = tomllib.loads("""
schema = 1
models = { suites = ["onnx-node"], folders = ["m"], exclude = ["x"], dimensions = { n = 1 } }
axes = { precision = ["fp32"], "option.a" = ["1"] }
[[target]]
name = "t"
provider = ["QNNExecutionProvider"]
plugin = "p"
device = { type = "CPU" }
options = { a = 1 }
env = { A = "b" }
runtime = { python = "p" }
workers = 1
required = true
axes = { scenario = ["plain"] }
timeouts_s = { run = 1.0 }
memory_limit_mb = 1
[[exclude]]
model = "m"
[[tolerance]]
rtol = 1
atol = 0.0
target = ["t"]
[[expect]]
"option.a" = "1"
verdict = "pass"
reason = "r"
""")
TYPE = msgspec.inspect.type_info(MatrixFile)

plain = (
    st.none().map(lambda _: "")
    | st.text(max_size=4)
    | st.integers()
    | st.floats()
    | st.booleans()
    | st.dates()
    | st.sampled_from(["option.a", "name", "CPUExecutionProvider", "..", "a/b", "\0"])
)
anything = st.recursive(
    plain,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place inside nested tables and lists."""
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [path, *(inner for key in keys for inner in places(value[key], (*path, key)))]


@st.composite
def damaged(draw: st.DrawFn) -> dict[str, Any]:
    table = copy.deepcopy(VALID)
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(places(table)[1:]))
        parent: Any = table
        for key in path[:-1]:
            parent = parent[key]
        match draw(st.sampled_from(["replace", "remove", "add"])):
            case "replace":
                parent[path[-1]] = draw(anything)
            case "remove":
                del parent[path[-1]]
            case "add" if isinstance(parent, dict):
                parent[draw(st.text(max_size=9) | st.just("option.b"))] = draw(anything)
        if len(places(table)) == 1:
            break
    return table


@settings(max_examples=300, deadline=None)
@given(damaged())
def test_a_damaged_matrix_is_refused_or_read_but_never_chokes(table: dict[str, Any]) -> None:
    problems: Sequence[Problem] = ()
    try:
        matrix = make_matrix(table)
    except UsageError as error:
        problems = error.problems
    if problems:
        assert all(problem.where.startswith("m.toml") and problem.what for problem in problems)
    else:
        assert msgspec.json.decode(msgspec.json.encode(matrix), type=Matrix) == matrix


@settings(max_examples=300, deadline=None)
@given(damaged())
def test_what_msgspec_refuses_the_walker_refuses(table: dict[str, Any]) -> None:
    try:
        msgspec.convert(table, MatrixFile)
    except (msgspec.ValidationError, OverflowError):
        assert list(deviations(table, TYPE, FilePlace("m.toml")))


def test_a_good_matrix_has_no_deviations() -> None:
    assert list(deviations(VALID, TYPE, FilePlace("m.toml"))) == []


def test_places_are_spelled_as_toml_spells_keys() -> None:
    place = FilePlace("m.toml").key("target").item(2).key("axes").key("option.x y")
    assert str(place) == 'm.toml: target[2].axes."option.x y"'
    assert str(FilePlace("m.toml").key("a\x1b[0m")) == 'm.toml: "a\\u001b[0m"'
