"""What selection policies choose: a plugin with two devices, libraries that die, an old onnxruntime."""

import sys
from pathlib import Path

import pytest

from harness.core.records.selection_study import (
    ChosenProvider,
    OfferedDevice,
    SelectionAnswer,
    SelectionStudy,
)
from harness.studies.device_selection import SelectionTrial, study_selection
from tests.kit import is_intel

CROOKED, CPU = "CrookedExecutionProvider", "CPUExecutionProvider"
POLICIES = {
    "DEFAULT",
    "PREFER_CPU",
    "PREFER_NPU",
    "PREFER_GPU",
    "MAX_PERFORMANCE",
    "MAX_EFFICIENCY",
    "MIN_OVERALL_POWER",
}
NO_PLUGIN_OF_TWO_DEVICES = pytest.mark.skipif(sys.platform != "linux", reason="the crooked EP is for Linux")

CPU_0 = OfferedDevice(provider=CROOKED, type="CPU", device="CPU 0 of X")
NPU_1 = OfferedDevice(provider=CROOKED, type="NPU", device="NPU 1 of X")
STUDY = SelectionStudy(offered=(CPU_0, NPU_1))


def choices(study: SelectionStudy) -> dict[str, str]:
    return {answer.policy: answer.choice for answer in study.answers}


def wrong(study: SelectionStudy) -> dict[str, str]:
    return {answer.policy: told for answer in study.answers if (told := study.wrong(answer))}


def answered(policy: str, *devices: OfferedDevice, right: bool = True, nodes: int = 2) -> SelectionAnswer:
    chosen = ChosenProvider(provider=CROOKED, devices=devices, nodes=nodes)
    return SelectionAnswer(policy=policy, chosen=(chosen,), right=right)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (answered("PREFER_NPU", NPU_1), ""),
        (answered("PREFER_NPU", CPU_0), f"uses CPU 0 of X, but NPU 1 of X of {CROOKED} is offered"),
        (answered("PREFER_NPU", CPU_0, NPU_1), ""),  # nothing shows which of them it is
        (answered("PREFER_GPU", CPU_0), ""),  # there is none
        (answered("MAX_PERFORMANCE", CPU_0), ""),  # it promises no type
        (answered("MAX_PERFORMANCE", CPU_0, right=False), "the answer is wrong"),
        (SelectionAnswer(policy="DEFAULT", failed="SIGSEGV at create"), "SIGSEGV at create"),
    ],
)
def test_what_is_wrong_with_an_answer(answer: SelectionAnswer, told: str) -> None:
    assert STUDY.wrong(answer) == told


def test_a_provider_that_computes_nothing_is_named() -> None:
    answer = answered("DEFAULT", CPU_0, nodes=0)
    assert answer.choice == f"CPU 0 of X by {CROOKED}, which computes no node"
    assert answer.is_idle


@NO_PLUGIN_OF_TWO_DEVICES
@pytest.mark.real_ep
def test_a_policy_that_prefers_the_npu_gets_it(crooked_ep: Path) -> None:
    (alone,) = study_selection(CROOKED, str(crooked_ep), {}, installed=())
    on_cpu, on_npu = f" by {CROOKED}", f"NPU 1 of Crooked by {CROOKED}"
    found = choices(alone)
    assert found.keys() >= POLICIES
    assert {policy for policy in POLICIES if found[policy] == on_npu} >= {"PREFER_NPU", "MAX_EFFICIENCY"}
    assert found["PREFER_CPU"].startswith("CPU ")
    assert found["PREFER_CPU"].endswith(on_cpu)
    assert wrong(alone) == {}
    assert all(answer.right for answer in alone.answers)


@NO_PLUGIN_OF_TWO_DEVICES
@pytest.mark.real_ep
def test_a_device_that_lies_is_told(crooked_ep: Path) -> None:
    study = SelectionTrial([(CROOKED, str(crooked_ep))], {"CROOKED_EP_FAULT": "other_device"}).run()
    (told,) = wrong(study).items()
    assert told[0] == "PREFER_CPU"
    assert told[1].startswith("uses NPU 1 of Crooked, but CPU 0 of ")


@NO_PLUGIN_OF_TWO_DEVICES
@pytest.mark.real_ep
@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ("segv_at_load", f"SIGSEGV at register {CROOKED}"),
        ("no_devices", "it offers no device here"),
    ],
)
def test_a_library_that_fails_does_not_lose_the_others(crooked_ep: Path, fault: str, why: str) -> None:
    study = SelectionTrial([(CROOKED, str(crooked_ep))], {"CROOKED_EP_FAULT": fault}).run()
    assert study.libraries == {CROOKED: why}
    assert choices(study).keys() >= POLICIES
    assert {choice.rpartition(" by ")[2] for choice in choices(study).values()} == {CPU}


@NO_PLUGIN_OF_TWO_DEVICES
@pytest.mark.real_ep
def test_a_crash_under_a_policy_is_its_answer(crooked_ep: Path) -> None:
    study = SelectionTrial([(CROOKED, str(crooked_ep))], {"CROOKED_EP_FAULT": "abort_in_create"}).run()
    assert wrong(study) == dict.fromkeys(choices(study), "SIGABRT at create")


@pytest.mark.real_ep
def test_the_plugins_that_are_installed_choose_together() -> None:
    """QNN offers a processor that it cannot run without options, so alone it fails where it is chosen."""
    pytest.importorskip("onnxruntime_qnn")
    pytest.importorskip("onnxruntime_ep_openvino")
    installed = [("OpenVINOExecutionProvider", "onnxruntime_ep_openvino")]
    alone, together = study_selection("QNNExecutionProvider", "onnxruntime_qnn", {}, installed=installed)
    assert all("backend" in told for told in wrong(alone).values())
    assert wrong(alone).keys() >= POLICIES
    if not is_intel():
        pytest.skip("OpenVINO's plugin offers devices of Intel alone")
    assert wrong(together) == {}
    assert choices(together)["PREFER_CPU"].endswith("by OpenVINOExecutionProvider")


def test_an_onnxruntime_without_policies_is_told(tmp_path: Path) -> None:
    package = tmp_path / "onnxruntime"
    package.mkdir()
    text = "__version__ = '1.22.1'\nclass SessionOptions: pass\nclass InferenceSession: pass\n"
    (package / "__init__.py").write_text(text, encoding="utf-8")
    study = SelectionTrial([(CROOKED, "/none.so")], {"PYTHONPATH": str(tmp_path)}).run()
    assert study.declined == "onnxruntime 1.22.1 has no policies in Python; 1.23 is the first"
    assert (study.answers, study.libraries) == ((), {})


def test_a_python_that_does_not_start_is_told(tmp_path: Path) -> None:
    study = SelectionTrial([(CROOKED, "/none.so")], {}, python=str(tmp_path / "python")).run()
    assert "cannot be started" in study.declined
    assert study.libraries == {}
