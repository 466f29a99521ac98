"""The scenario ``package`` in a runtime without an API for packages: the rules of the text select."""

from types import SimpleNamespace
from typing import Any

import pytest

from harness.agent.scenarios import package
from harness.agent.scenarios.package import NoVariantError, play
from harness.agent.target_errors import UnsupportedError

EP = "NpuExecutionProvider"
ANSWERS = {"": "EP_NOT_APPLICABLE", "old": "EP_SUPPORTED_PREFER_RECOMPILATION", "new": "EP_SUPPORTED_OPTIMAL"}


class OpenedError(Exception):
    """A session was asked for: the model and the options."""


def variant(name: str, ep: str = EP, device: str = "", compatibility: str = "") -> dict[str, Any]:
    return {
        "name": name,
        "ep": ep,
        "device": device,
        "compatibility": compatibility,
        "model": f"/nowhere/{name}.onnx",
        "options": {"own": name},
        "entries": {},
    }


def job_run(*variants: dict[str, Any], chain: tuple[str, ...] = (EP,), **job: Any) -> Any:
    def session(model: str, _job: Any, options: dict[str, str], _adjust: Any) -> None:
        raise OpenedError(model, options)

    npu = SimpleNamespace(ep_name=EP, device=SimpleNamespace(type="OrtHardwareDeviceType.NPU"))
    target = SimpleNamespace(
        ort=SimpleNamespace(), chain=list(chain), options={"of": "target"}, devices=[npu], session=session
    )
    asked = {"package": {"root": "/nowhere", "component": "main", "variants": list(variants)}}
    return SimpleNamespace(
        target=target,
        job={**asked, **job},
        facts={},
        enter=lambda _phase: None,
        judge=id,
        result={},
        model="",
    )


@pytest.fixture(autouse=True)
def _bindings(monkeypatch: pytest.MonkeyPatch) -> None:
    answering = SimpleNamespace(
        get_model_compatibility_for_ep_devices=lambda _devices, text: (
            f"Kind.{ANSWERS.get(text, 'EP_UNSUPPORTED')}"
        )
    )
    monkeypatch.setattr(package, "_bindings", lambda: answering)


@pytest.mark.parametrize(
    ("variants", "chosen"),
    [
        ((variant("a"), variant("b")), "a"),
        ((variant("a"), variant("b", compatibility="old"), variant("c", compatibility="new")), "c"),
        ((variant("a", device="gpu"), variant("b", device="npu")), "b"),
        ((variant("a", compatibility="foreign"), variant("b")), "b"),
        ((variant("a", ep="CPUExecutionProvider"), variant("b", ep=""), variant("c")), "c"),
    ],
)
def test_the_best_by_the_rules_runs_with_its_own_options(
    variants: tuple[dict[str, Any], ...], chosen: str
) -> None:
    run = job_run(*variants)
    with pytest.raises(OpenedError) as opened:
        play(run)
    assert opened.value.args == (f"/nowhere/{chosen}.onnx", {"of": "target", "own": chosen})
    assert run.facts["selected_by"] == "rules"
    assert run.facts["chosen"] == run.facts["by_rules"] == chosen


def test_a_provider_is_asked_as_the_runtime_asks_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked about the first device of the variant's type, or all of them, and never about no text."""
    asked = []

    def answer(devices: list[Any], text: str) -> str:
        asked.append(([str(one.device.type) for one in devices], text))
        return "Kind.EP_SUPPORTED_OPTIMAL"

    bindings = SimpleNamespace(get_model_compatibility_for_ep_devices=answer)
    monkeypatch.setattr(package, "_bindings", lambda: bindings)
    run = job_run(
        variant("any"), variant("gpu", device="gpu", compatibility="new"), variant("all", compatibility="new")
    )
    run.target.devices = [
        SimpleNamespace(ep_name=EP, device=SimpleNamespace(type=kind)) for kind in ("NPU", "GPU", "GPU")
    ]
    with pytest.raises(OpenedError):
        play(run)
    assert asked == [(["GPU"], "new"), (["NPU", "GPU", "GPU"], "new")]
    assert run.facts["chosen"] == "gpu"


def test_nothing_matches() -> None:
    run = job_run(variant("a", ep="CPUExecutionProvider"), variant("b", compatibility="foreign"))
    with pytest.raises(NoVariantError, match=r"a \(another provider\), b \(EP_UNSUPPORTED\)"):
        play(run)
    assert (run.facts["chosen"], run.facts["by_rules"]) == ("", "")


def test_an_agent_without_the_folder_says_so() -> None:
    run = job_run()
    del run.job["package"]
    with pytest.raises(UnsupportedError, match="cannot read it"):
        play(run)
