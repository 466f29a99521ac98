from collections.abc import Callable
from pathlib import Path

import pytest

from harness.core.value import Value
from harness.corpus.case import Case, DataSet
from harness.corpus.facts import ModelFacts
from harness.corpus.port import Port, ValueType


def a_case(
    types: tuple[ValueType, ...],
    inputs: tuple[tuple[Value, ...], ...] = ((),),
    input_types: tuple[ValueType, ...] = (),
) -> Case:
    """A case with outputs of these types and, for each data set, these inputs."""
    facts = ModelFacts(
        ir_version=9,
        opsets={},
        nodes=0,
        op_types={},
        float_types=frozenset(),
        shape_only_ops=frozenset(),
    )
    return Case(
        model_path=Path("m.onnx"),
        ports=tuple(Port(name=f"in/{index}", type=one) for index, one in enumerate(input_types)),
        outputs=tuple(f"out/{index}" for index in range(len(types))),
        output_types=types,
        data_sets=tuple(
            DataSet(
                name=f"test_data_set_{number}",
                inputs=tuple((f"in/{index}", value) for index, value in enumerate(values)),
            )
            for number, values in enumerate(inputs)
        ),
        rtol=0.0,
        atol=0.0,
        digest="d",
        facts=facts,
    )


@pytest.fixture
def make_case() -> Callable[..., Case]:
    """Make a case."""
    return a_case


@pytest.fixture
def one_case() -> Case:
    """A case of one tensor output."""
    return a_case((ValueType(kind="tensor"),))
