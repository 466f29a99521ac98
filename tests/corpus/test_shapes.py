"""Data of other shapes: what varies, what follows, and that values stay within their range."""

from pathlib import Path

import msgspec
import numpy as np
import pytest

from harness.core.values.value import Tensor, Value, tensor
from harness.corpus.beside.data_sets import DataSet
from harness.corpus.case import Case
from harness.corpus.derived.scenario_case import Inapplicable, scenario_case
from harness.corpus.derived.shapes import GIVEN, MOST_SYMBOLS, empty_batch, other_shapes
from harness.corpus.model.port import Port, ValueType
from tests.kit import bare_case, model_facts

FACTS = model_facts(opsets={"ai.onnx": 17}, nodes=1, op_types={"Relu": 1}, float_types=frozenset({"float32"}))


def case_of(**inputs: tuple[tuple[str | None, ...], Value]) -> Case:
    """A case whose inputs have these symbols and values."""
    ports = []
    for name, (symbols, value) in inputs.items():
        dtype = value.dtype if isinstance(value, Tensor) else ""
        shape = tuple(None for _ in symbols)
        kind = ValueType(kind="tensor", dtype=dtype, shape=shape, symbols=symbols)
        ports.append(Port(name=name, type=kind))
    data_set = DataSet(name="generated", inputs=tuple((name, value) for name, (_, value) in inputs.items()))
    return bare_case(
        model_path=Path("model.onnx"),
        ports=tuple(ports),
        outputs=("y",),
        output_types=(ValueType(kind="tensor"),),
        data_sets=(data_set,),
        facts=FACTS,
    )


def ones(*shape: int) -> Tensor:
    return tensor(np.ones(shape, np.float32))


def array(data_set: DataSet, name: str) -> np.ndarray:
    value = dict(data_set.inputs)[name]
    assert isinstance(value, Tensor)
    return value.array


def shapes(data_set: DataSet) -> dict[str, tuple[int, ...]]:
    return {name: array(data_set, name).shape for name, _ in data_set.inputs}


def test_each_symbol_differs_in_a_run_of_its_own_between_two_of_the_given_shapes() -> None:
    case = case_of(ids=(("sequence", "batch"), ones(6, 2)), mask=(("batch", "sequence", None), ones(2, 6, 3)))
    found = other_shapes(case)
    assert [data_set.name for data_set in found] == [GIVEN, "batch=4", "sequence=3", GIVEN]
    assert found[0].inputs is found[-1].inputs is case.data_sets[0].inputs
    assert shapes(found[1]) == {"ids": (6, 4), "mask": (4, 6, 3)}
    assert shapes(found[2]) == {"ids": (3, 2), "mask": (2, 3, 3)}


def test_a_size_of_one_grows_and_the_batch_always_does() -> None:
    case = case_of(x=(("N", "length"), ones(1, 1)))
    assert [data_set.name for data_set in other_shapes(case)] == [GIVEN, "N=2", "length=2", GIVEN]


def test_sums_and_products_follow() -> None:
    case = case_of(
        past=(("batch", "past"), ones(1, 4)),
        x=(("batch", "sequence"), ones(1, 2)),
        mask=(("batch", "past + sequence"), ones(1, 6)),
        pairs=(("2*batch",), ones(2)),
    )
    found = {data_set.name: shapes(data_set) for data_set in other_shapes(case)}
    assert list(found) == [GIVEN, "batch=2", "past=2", "sequence=1"]
    assert found["batch=2"] == {"past": (2, 4), "x": (2, 2), "mask": (2, 6), "pairs": (4,)}
    assert found["past=2"] == {"past": (1, 2), "x": (1, 2), "mask": (1, 4), "pairs": (2,)}
    assert found["sequence=1"]["mask"] == (1, 5)


def test_only_the_dimensions_that_settings_name_vary_in_their_order() -> None:
    case = case_of(x=(("batch", "seq", "width"), ones(2, 6, 8)))
    chosen = msgspec.structs.replace(case, vary=("width", "batch"))
    assert [one.name for one in other_shapes(chosen)] == [GIVEN, "width=4", "batch=4", GIVEN]
    none = msgspec.structs.replace(case_of(x=(("batch",), ones(2))), vary=("other",))
    found = scenario_case(none, "dynamic_shapes")
    assert found == Inapplicable("no input has a dimension of other that may vary")


def test_a_grid_runs_every_combination_and_leaves_out_symbols_that_the_model_lacks() -> None:
    case = case_of(x=(("batch", "width"), ones(2, 8)), y=(("batch", "2*width"), ones(2, 16)))
    found = other_shapes(case, {"batch": (1, 3), "width": (4, 16), "height": (7,)})
    assert [one.name for one in found] == [
        *(GIVEN, "batch=1, width=4", "batch=1, width=16", "batch=3, width=4", "batch=3, width=16", GIVEN),
    ]
    assert shapes(found[4]) == {"x": (3, 16), "y": (3, 32)}
    assert other_shapes(case, {"height": (7,)}) == ()
    refused = scenario_case(case, "dynamic_shapes", grid={"height": (7,)})
    assert isinstance(refused, Inapplicable)
    assert refused.reason == "no input has a dimension of the grid that may vary: height"


def test_what_cannot_vary_stays() -> None:
    two_sizes = case_of(x=(("n", None), ones(2, 3)), y=(("n", None), ones(4, 3)))
    assert other_shapes(two_sizes) == ()
    empty = case_of(past=((None, "past"), ones(1, 0)), x=(("batch",), ones(2)))
    assert [data_set.name for data_set in other_shapes(empty)] == [GIVEN, "batch=4", GIVEN]
    fixed = case_of(x=((), ones(2, 3)), nothing=(("batch",), None))
    assert other_shapes(fixed) == ()
    many = case_of(x=(tuple(f"d{index}" for index in range(9)), ones(*[2] * 9)))
    assert len(other_shapes(many)) == MOST_SYMBOLS + 2


def test_dimensions_without_a_name_go_by_their_axis() -> None:
    case = case_of(x=(("", None), ones(2, 3)), y=(("", ""), ones(2, 5)))
    found = {data_set.name: shapes(data_set) for data_set in other_shapes(case)}
    assert found["axis 0=4"] == {"x": (4, 3), "y": (4, 5)}
    assert found["axis 1=2"] == {"x": (2, 3), "y": (2, 2)}


def test_repetitions_differ_from_the_original_and_keep_to_its_range() -> None:
    ids = np.array([[5, 9, 7]], np.int64)
    case = case_of(
        x=(("batch", None), tensor(np.array([[-2.0, 8.0]], np.float32))),
        half=(("batch",), tensor(np.array([16.0], np.float16))),
        ids=(("batch", None), tensor(ids)),
        mask=(("batch", None), tensor(np.array([[1, 1, 0]], np.int64))),
        flag=(("batch",), tensor(np.array([True]))),
        text=(("batch",), tensor(np.array(["a"], dtype=object))),
    )
    doubled = other_shapes(case)[1]
    np.testing.assert_array_equal(array(doubled, "x"), np.array([[-2.0, 8.0], [-1.75, 7.0]], np.float32))
    assert array(doubled, "half").tolist() == [16.0, 14.0]
    assert array(doubled, "half").dtype == np.float16
    assert array(doubled, "ids").tolist() == [[5, 9, 7], [7, 5, 9]]
    assert array(doubled, "mask").tolist() == [[1, 1, 0], [1, 1, 0]]
    assert array(doubled, "flag").tolist() == [True, True]
    assert array(doubled, "text").tolist() == ["a", "a"]


def test_an_empty_batch_comes_before_the_given_one() -> None:
    case = case_of(x=((None, "batch_size"), ones(3, 2)), y=(("length",), ones(4)))
    found = empty_batch(case)
    assert [data_set.name for data_set in found] == ["batch_size=0", GIVEN]
    assert shapes(found[0]) == {"x": (3, 0), "y": (4,)}
    leading = case_of(x=(("rows", "columns"), ones(3, 2)))
    assert shapes(empty_batch(leading)[0]) == {"x": (0, 2)}
    assert empty_batch(case_of(x=((None, "columns"), ones(3, 2)))) == ()


@pytest.mark.parametrize("scenario", ["dynamic_shapes", "zero_size"])
def test_another_scenario_is_another_case_and_always_the_same_one(scenario: str) -> None:
    case = case_of(x=(("batch", "length"), ones(1, 4)))
    made = scenario_case(case, scenario)
    assert isinstance(made, Case)
    again = scenario_case(case, scenario)
    assert isinstance(again, Case)
    assert made.digest == again.digest != case.digest
    assert made.model_path == case.model_path


def test_shapes_that_the_cpu_provider_refuses_are_left_out() -> None:
    case = case_of(x=(("batch", "width"), ones(1, 4)))
    whole = scenario_case(case, "dynamic_shapes")
    left = scenario_case(case, "dynamic_shapes", {"width=2": "with width=2: no"})
    assert isinstance(whole, Case)
    assert isinstance(left, Case)
    assert [data_set.name for data_set in left.data_sets] == [GIVEN, "batch=2", GIVEN]
    assert left.digest != whole.digest
    none = scenario_case(case, "dynamic_shapes", {"width=2": "with width=2: no", "batch=2": "never"})
    assert none == Inapplicable("the CPU EP runs no other shape than the given one: with width=2: no; never")


@pytest.mark.parametrize(
    ("scenario", "reason"),
    [
        ("dynamic_shapes", "no input has a dimension that may vary"),
        ("zero_size", "no input has a batch dimension that may vary"),
    ],
)
def test_a_model_without_symbols_cannot_play(scenario: str, reason: str) -> None:
    assert scenario_case(case_of(x=((), ones(2, 3))), scenario) == Inapplicable(reason)


def test_other_scenarios_leave_the_case_as_it_is() -> None:
    case = case_of(x=(("batch",), ones(1)))
    assert scenario_case(case, "io_binding") is case
