"""The precision axis: which modes there are, which targets lack one, and what a mode does to the options."""

import pytest
from syrupy.assertion import SnapshotAssertion

from harness.catalog.catalog import load_catalog
from harness.core.records.cell import Cell
from harness.core.text.errors import UsageError
from harness.plan.expand import expand
from harness.plan.known_provider import precision_mode, valid_precisions
from harness.plan.plan import Plan
from harness.plan.target import Target, with_mode
from tests.kit import make_matrix

OPENVINO = """
[[target]]
name = "openvino"
provider = "OpenVINOExecutionProvider"
plugin = "onnxruntime_ep_openvino"
"""


def plan(text: str) -> Plan:
    matrix = make_matrix("schema = 1\nmodels = { suites = ['s'] }\n" + text)
    return expand(matrix, {"s": ["a", "b"]})


def declared(text: str) -> dict[str, str]:
    """Precision -> why the target does not have it."""
    found = plan(text)
    return {cell.axis("precision"): found.target(cell.target).declared(cell) for cell in found.cells}


def at(target: Target, **axes: str) -> dict[str, str]:
    cell = Cell(suite="s", model="m", target=target.name, axes=tuple(axes.items()))
    return target.options_at(cell)


def test_cells_of_one_precision_stand_together() -> None:
    axes = 'axes = { precision = ["fp32", "ep:bf16"], graph_optimization = ["all", "basic"] }'
    cells = plan(OPENVINO + axes).cells
    assert [cell.axis("precision") for cell in cells] == ["fp32"] * 4 + ["ep:bf16"] * 4
    assert cells[4].id == "s/a[openvino,precision=ep%3Abf16]"


def test_a_mode_that_no_provider_has_is_refused(snapshot: SnapshotAssertion) -> None:
    cpu = '[[target]]\nname = "qnn"\nprovider = ["QNNExecutionProvider", "CPUExecutionProvider"]\n'
    cpu += (
        '[[target]]\nname = "acme"\nprovider = "Acme"\nplugin = "acme"\naxes = { precision = ["ep:fp61"] }\n'
    )
    with pytest.raises(UsageError) as caught:
        plan('axes = { precision = ["fp32", "ep:bf61", "bf16", 16, "ep:"] }' + OPENVINO + cpu)
    assert str(caught.value) == snapshot


def test_a_target_may_lack_a_mode_that_another_has() -> None:
    found = declared(OPENVINO + 'axes = { precision = ["fp32", "ep:f32", "ep:force_fp16", "ep:fp16"] }')
    assert (found["fp32"], found["ep:f32"]) == ("", "")
    assert found["ep:force_fp16"].startswith(
        "OpenVINOExecutionProvider has no ep:force_fp16; it has ep:f32, "
    )


@pytest.mark.parametrize(
    ("device", "reason"),
    [
        ("CPU", ""),
        ("cpu", ""),
        ("", ""),
        ("GPU", "ep:bf16 is for a device of type CPU, and this target's is GPU"),
    ],
)
def test_a_mode_may_be_for_one_device_only(device: str, reason: str) -> None:
    chosen = f'device = {{ type = "{device}" }}\n' if device else ""
    assert declared(OPENVINO + chosen + 'axes = { precision = ["ep:bf16"] }') == {"ep:bf16": reason}


def test_a_mode_that_needs_more_than_options_is_not_tried() -> None:
    qnn = '[[target]]\nname = "q"\nprovider = "QNNExecutionProvider"\naxes = { precision = ["ep:int8"] }'
    assert declared(qnn)["ep:int8"].startswith("ep:int8 cannot be chosen by options alone; it needs a QDQ")


def test_a_mode_whose_options_are_for_the_other_registration_is_not_tried() -> None:
    found = declared(OPENVINO + 'axes = { precision = ["ep:precision-cpu-FP32"] }')
    assert "takes 'device_type' only in the build" in found["ep:precision-cpu-FP32"]
    built = OPENVINO.replace('plugin = "onnxruntime_ep_openvino"', "")
    assert declared(built + 'axes = { precision = ["ep:precision-cpu-FP32"] }') == {
        "ep:precision-cpu-FP32": ""
    }


def test_an_unknown_provider_has_no_known_modes() -> None:
    acme = '[[target]]\nname = "a"\nprovider = "Acme"\nplugin = "acme"\naxes = { precision = ["ep:bf16"] }'
    assert declared(acme) == {
        "ep:bf16": "Acme is not in the catalogue, so its precision modes are unknown; `precisions` names them"
    }


ACME = """
[[target]]
name = "acme"
provider = "Acme"
plugin = "acme"
options = { compute = "float", tiles = 4 }
precisions = { fp16 = { compute = "half" }, int8 = { compute = "int8", exact = false } }
"""


def test_a_target_names_the_modes_of_a_provider_that_the_catalogue_lacks() -> None:
    found = plan(ACME + 'axes = { precision = ["fp32", "ep:fp16", "ep:int8"] }')
    (target,) = found.matrix.targets
    assert {axis: target.declared(cell) for cell in found.cells for axis in [cell.axis("precision")]} == {
        "fp32": "",
        "ep:fp16": "",
        "ep:int8": "",
    }
    assert at(target, precision="ep:int8") == {"compute": "int8", "exact": "0", "tiles": "4"}
    cell = Cell(suite="s", model="m", target="acme", axes=(("precision", "ep:fp16"),))
    mode = target.mode_at(cell)
    assert mode is not None
    assert mode.computes == "float16"


def test_modes_that_mean_nothing_or_are_known_already_are_refused(snapshot: SnapshotAssertion) -> None:
    openvino = OPENVINO + 'precisions = { fp16 = { x = "y" } }\n'
    with pytest.raises(UsageError) as caught:
        plan(openvino + ACME.replace("fp16 =", "fp61 =") + 'axes = { precision = ["ep:fp16"] }')
    assert str(caught.value) == snapshot


def test_the_options_of_a_mode_go_over_those_of_the_target() -> None:
    target = Target(
        name="t", provider=("QNNExecutionProvider",), options={"backend_type": "htp", "soc_model": "1"}
    )
    fp16 = {"backend_type": "htp", "enable_htp_fp16_precision": "1", "soc_model": "60"}
    assert at(target) == at(target, precision="fp32") == target.options
    assert at(target, precision="ep:fp16") == fp16
    assert at(target, precision="ep:fp16", **{"option.soc_model": "2"}) == {**fp16, "soc_model": "2"}
    assert at(target, precision="ep:none") == target.options


@pytest.mark.parametrize(
    ("below", "above", "merged"),
    [
        ('{"CPU": {"A": "1"}}', '{"CPU": {"B": "2"}}', '{"CPU": {"A": "1", "B": "2"}}'),
        ('{"CPU": {"A": "1"}}', '{"CPU": {"A": "2"}, "GPU": {}}', '{"CPU": {"A": "2"}, "GPU": {}}'),
        ('{"CPU": 1}', '{"CPU": {"A": 1}}', '{"CPU": {"A": 1}}'),
        ("config.json", '{"A": 1}', '{"A": 1}'),
        ("1", "0", "0"),
        ("True", "1", "1"),
    ],
)
def test_json_is_merged_key_by_key(below: str, above: str, merged: str) -> None:
    assert with_mode({"k": below, "other": "x"}, {"k": above}) == {"k": merged, "other": "x"}


def test_every_mode_of_the_catalogue_can_be_named() -> None:
    for provider in load_catalog().providers:
        for value, mode in zip(valid_precisions(provider.name), provider.precision_modes, strict=True):
            assert precision_mode(provider.name, value) == mode
    assert precision_mode("CPUExecutionProvider", "fp32") is None
