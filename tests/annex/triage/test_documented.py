"""Wrong values within an error that a document of the provider allows: they stay faults, and say so."""

from collections.abc import Callable

import msgspec
import onnx
import onnx.parser
import pytest

from harness.annex.triage import documented_errors
from harness.catalog.catalog import find_provider
from harness.catalog.provider import Accuracy, Provider
from harness.core.records.fault import Fault
from harness.core.records.verdict import Verdict

ALLOWED = 2.0**-11
GRAPH = """<ir_version: 9, opset_import: ["" : 20]>
    waves (float[64] x) => (float[64] y) { a = Sin(x) b = Erf(a) y = Exp(b) }"""


@pytest.fixture
def allowing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A document of the CPU EP that allows sines an error."""
    cpu = find_provider("CPUExecutionProvider")
    assert cpu is not None
    entry = Accuracy(operators=("Sin", "Tan"), error=ALLOWED, document="its manual", source=("page 7",))

    def find(_name: str) -> Provider:
        return msgspec.structs.replace(cpu, accuracy=(entry,))

    monkeypatch.setattr(documented_errors, "find_provider", find)


def triaged(triage: Callable[..., list[Fault]], op_type: str, factor: float) -> Fault:
    planted = {"kind": "scale", "op_type": op_type, "factor": factor}
    (fault,) = triage(planted, m=onnx.parser.parse_model(GRAPH))
    assert fault.signature.verdict is Verdict.MISMATCH
    assert fault.reduced is not None
    return fault


@pytest.mark.usefixtures("allowing")
def test_an_error_of_the_allowed_size_is_told(triage_planted: Callable[..., list[Fault]]) -> None:
    fault = triaged(triage_planted, "Sin", 1 + ALLOWED / 2)
    assert "within the error that its manual allows for Sin" in fault.sentence
    assert next(one for one in fault.conditions if one.kind == "accuracy").fails is False


@pytest.mark.usefixtures("allowing")
@pytest.mark.parametrize(
    ("op_type", "factor"), [("Sin", 1.05), pytest.param("Erf", 1 + ALLOWED / 2, marks=pytest.mark.long)]
)
def test_a_larger_error_or_one_of_another_operator_is_not(
    triage_planted: Callable[..., list[Fault]], op_type: str, factor: float
) -> None:
    fault = triaged(triage_planted, op_type, factor)
    assert "allows" not in fault.sentence
    assert not [one for one in fault.conditions if one.kind == "accuracy"]
