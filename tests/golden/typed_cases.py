"""Cases of outputs of some types."""

from harness.core.values.value import Value
from harness.corpus.beside.data_sets import DataSet
from harness.corpus.case import Case
from harness.corpus.model.port import Port, ValueType
from tests.kit import bare_case, model_facts


def case_of_types(
    types: tuple[ValueType, ...],
    inputs: tuple[tuple[Value, ...], ...] = ((),),
    input_types: tuple[ValueType, ...] = (),
) -> Case:
    """A case with outputs of these types and, for each data set, these inputs."""
    facts = model_facts()
    return bare_case(
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
        facts=facts,
    )


ONE_CASE = case_of_types((ValueType(kind="tensor"),))
"""A case of one tensor output."""
