"""`places` of a target in a matrix file."""

from pathlib import Path
from typing import Any

import pytest

from harness.core.text.errors import UsageError
from harness.plan.places import Place
from harness.plan.target import Target
from tests.kit import make_matrix


def target(places: Any, **more: Any) -> Target:
    table = {"name": "npu", "provider": "QNNExecutionProvider", "places": places, **more}
    matrix = {"schema": 1, "models": {"suites": ["onnx-node"]}, "target": [table]}
    return make_matrix(matrix, Path("/m/m.toml")).targets[0]


def test_a_list_names_each_place() -> None:
    made = target([{"name": "a", "ssh": "u@a", "python": "py"}, {"name": "b", "device": {"id": 2}}]).places
    assert made is not None
    assert made.each == (Place(name="a", ssh="u@a", python="py"), Place(name="b", device={"id": "2"}))
    assert not made.identical


def test_a_count_numbers_places() -> None:
    made = target({"count": 2, "command": "srun -w n{n} python", "name": "n{n}", "env": {"K": "{n}"}}).places
    assert made is not None
    assert made.each == tuple(
        Place(name=f"n{n}", command=f"srun -w n{n} python", env={"K": str(n)}) for n in (1, 2)
    )


def test_what_all_places_share_is_overridden_by_each() -> None:
    made = target(
        {"each": [{"name": "a", "env": {"X": "2"}}, {"name": "b"}], "env": {"X": "1", "Y": True}}
    ).places
    assert made is not None
    assert [place.env for place in made.each] == [{"X": "2", "Y": "1"}, {"X": "1", "Y": "1"}]


def test_file_and_folder_begin_beside_the_matrix() -> None:
    made = target({"file": "places.json", "identical": True}).places
    assert made is not None
    assert (made.file, made.folder, made.identical) == ("/m/places.json", "/m", True)


def test_the_runtime_of_a_target_with_places_is_none_of_the_harness() -> None:
    assert target([{"name": "a"}]).runtime.places == "npu"


@pytest.mark.parametrize(
    ("places", "told"),
    [
        (5, "expected a table or a non-empty list of tables"),
        ([], "expected a non-empty list of tables"),
        ({}, "no places are named"),
        ({"count": 2, "file": "x"}, "exclude each other"),
        ({"count": 2, "name": "x"}, "all places would have the name"),
        ({"count": 2, "name": "a b{n}"}, "use up to 63 letters"),
        ({"count": 0}, "expected an integer from 1 to 10000"),
        ({"name": "x", "file": "f"}, "no effect without `count`"),
        ({"file": "f", "env": {"A": "1"}}, "`file` has that for each place"),
        ({"count": 1, "release": ["r"]}, "was not acquired"),
        ([{"name": "a"}, {"name": "a"}], "another place has the name 'a'"),
        ([{"name": "a", "ssh": "x", "command": "y"}], "exclude each other"),
        ([{"name": "a", "python": "p"}], "no effect without `ssh`"),
        ([{"name": "a", "channel": "line"}], "no effect without `ssh` or `adb` or `command`"),
        ([{"name": "../x"}], "a unique name of up to 63 letters"),
        ([{"name": "a", "sshh": "x"}], "unknown key"),
    ],
)
def test_contradictions_are_told(places: Any, told: str) -> None:
    with pytest.raises(UsageError) as caught:
        target(places)
    assert told in str(caught.value)
