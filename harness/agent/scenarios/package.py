"""Scenario ``package``: the runtime selects a variant of a model package for this target, and runs it.

Its choice is held against the rules in onnxruntime's text: the same provider, a device of that type, the best
answer of the provider to the variant's compatibility string, and of equals the first. A runtime without the
API for packages gets the variant by these rules.
"""

from __future__ import annotations

import importlib
import os
import time
from typing import Any

from harness.agent.job_run import JobRun
from harness.agent.plain import conclude, run_data_sets
from harness.agent.safe_text import clean
from harness.agent.session_target import CPU
from harness.agent.system import elapsed_ms
from harness.agent.target_errors import UnsupportedError

_SCORES = {
    "EP_SUPPORTED_OPTIMAL": 100,
    "EP_SUPPORTED_PREFER_RECOMPILATION": 50,
    "EP_NOT_APPLICABLE": 0,
}
"""Answer of a provider -> score; any other answer rejects the variant."""

_REJECTED = -1


class NoVariantError(Exception):
    """No variant of the component is selected for this target."""


def play(job_run: JobRun) -> None:
    """Let the runtime select, hold that against the rules, and run what was selected.

    Raises:
        UnsupportedError: This agent cannot read the package's folder.
        NoVariantError: Nothing is selected.
    """
    package = job_run.job.get("package")
    if not package:
        raise UnsupportedError("the package lies on the harness's machine, and this place cannot read it")
    chooser = _Chooser(job_run, package)
    job_run.facts.update(component=package["component"], chosen="", **chooser.facts())
    has_api = hasattr(job_run.target.ort, "ModelPackageContext")
    job_run.facts["selected_by"] = "runtime" if has_api else "rules"
    if has_api:
        context = job_run.target.ort.ModelPackageContext(package["root"])
        selected = _selected(job_run, context, package["component"], chooser.settings())
        job_run.facts["policies"] = _by_policies(job_run, context, package["component"])
        chosen = "" if selected is None else selected.get_selected_variant_name()
    else:
        selected, chosen = None, chooser.best
    if not chosen:
        raise NoVariantError(job_run.facts.get("refusal") or "no variant matches: %s" % chooser.told())
    variant = chooser.named(chosen)
    job_run.facts.update(chosen=chosen, score=chooser.scores[chosen], folder_bytes=_folder_bytes(variant))
    job_run.enter("create")
    started = time.perf_counter()
    job_run.judge(chooser.session(variant) if selected is None else selected.create_session())
    job_run.result["timings_ms"]["create"] = elapsed_ms(started)
    job_run.result["providers"] = job_run.session.get_providers()
    job_run.result["names"] = job_run.runner.names
    run_data_sets(job_run)
    if selected is not None:
        # The runtime's session records no assignment; the same variant, opened once more, does.
        job_run.enter("create")
        started = time.perf_counter()
        job_run.judge(chooser.session(variant))
        job_run.facts["create_warm_ms"] = elapsed_ms(started)
    conclude(job_run)


def _selected(job_run: JobRun, context: Any, component: str, settings: Any) -> Any:
    """Return the runtime's selection; None if nothing matches, which is then a fact."""
    try:
        return context.select_component(component, job_run.target.ort.ModelPackageOptions(settings))
    except Exception as error:  # noqa: BLE001 - the runtime's own words
        job_run.facts["refusal"] = clean(error)
        return None


def _by_policies(job_run: JobRun, context: Any, component: str) -> list[str]:
    """Return what the runtime selects by each of its policies, such as ``PREFER_CPU: ov``."""
    ort = job_run.target.ort
    policies = getattr(getattr(ort, "OrtExecutionProviderDevicePolicy", None), "__members__", {})
    found = []
    for name, policy in policies.items():
        try:
            settings = ort.SessionOptions()
            settings.set_provider_selection_policy(policy)
            chosen = context.select_component(component, ort.ModelPackageOptions(settings))
            found.append("%s: %s" % (name, chosen.get_selected_variant_name()))
        except Exception:  # noqa: BLE001 - nothing matches
            found.append("%s: none" % name)
    return found


class _Chooser:
    """The rules of selection, for the provider of this target."""

    def __init__(self, job_run: JobRun, package: dict[str, Any]) -> None:
        self.job_run = job_run
        self.target = job_run.target
        self.variants: list[dict[str, Any]] = package["variants"]
        self.devices = self.target.devices or self._offered()
        self.answers = {one["name"]: self._answer(one) for one in self.variants}
        self.scores = {name: _SCORES.get(answer, _REJECTED) for name, answer in self.answers.items()}
        # max() returns the first of equals, as the order of the manifest decides.
        self.best = max(self.scores, key=lambda name: self.scores[name], default="")
        if not self.best or self.scores[self.best] == _REJECTED:
            self.best = ""

    def named(self, name: str) -> dict[str, Any]:
        """Return a variant by its name."""
        return next(one for one in self.variants if one["name"] == name)

    def facts(self) -> dict[str, Any]:
        """Return what the rules say of each variant."""
        stale = [one["name"] for one in self.variants if self._is_stale(one)]
        return {
            "variants": [one["name"] for one in self.variants],
            "answers": [self.answers[one["name"]] for one in self.variants],
            "scores": [self.scores[one["name"]] for one in self.variants],
            "by_rules": self.best,
            **({"stale": stale} if stale else {}),
        }

    def told(self) -> str:
        """Return the answer to each variant, in words."""
        return ", ".join("%s (%s)" % pair for pair in self.answers.items()) or "there is none"

    def settings(self) -> Any:
        """Return session options that ask for this target's provider, as an application gives them."""
        settings = self.target.ort.SessionOptions()
        if self.target.devices:
            settings.add_provider_for_devices(self.target.devices, self.target.options)
        else:
            for name in self.target.chain:
                if name != CPU:
                    settings.add_provider(name, self.target.options if name == self.target.chain[0] else {})
        return settings

    def session(self, variant: dict[str, Any]) -> Any:
        """Return a session of a variant with its own options."""

        def adjust(settings: Any) -> None:
            for key, value in variant["entries"].items():
                settings.add_session_config_entry(key, value)

        options = {**self.target.options, **variant["options"]}
        self.job_run.model = variant["model"]
        return self.target.session(variant["model"], self.job_run.job, options, adjust)

    def _offered(self) -> list[Any]:
        """Return the devices of a provider that is built in; none if this onnxruntime lists none."""
        listed = self.target.ort.get_ep_devices() if hasattr(self.target.ort, "get_ep_devices") else []
        return [device for device in listed if device.ep_name == self.target.chain[0]]

    def _answer(self, variant: dict[str, Any]) -> str:
        """Return the provider's answer to a variant, or why it is not asked."""
        if variant["ep"] != self.target.chain[0]:
            return "another provider" if variant["ep"] else "no provider"
        types = [_type(device) for device in self.devices]
        if not types and self.target.chain[0] == CPU:
            types = ["cpu"]
        if variant["device"] and types and variant["device"] not in types:
            return "another device"
        return self._validated(variant["compatibility"], variant["device"])

    def _validated(self, compatibility: str, device: str) -> str:
        """Return the answer to a compatibility string, as the runtime asks for it.

        It asks about the first device of the type that the variant names, or about all, and never about an
        empty string.
        """
        ask = getattr(_bindings(), "get_model_compatibility_for_ep_devices", None)
        devices = [one for one in self.devices if not device or _type(one) == device]
        if ask is None or not devices or not compatibility:
            return "EP_NOT_APPLICABLE"  # as for a provider that has no such function
        try:
            return str(ask(devices[:1] if device else devices, compatibility)).rsplit(".", 1)[-1]
        except Exception as error:  # noqa: BLE001 - the provider's own words
            return "error: %s" % clean(error, limit=200)

    def _is_stale(self, variant: dict[str, Any]) -> bool:
        """Return whether a compiled model was made by another build than the manifest says, and is worse."""
        read = getattr(_bindings(), "get_compatibility_info_from_model", None)
        if read is None or variant["ep"] != self.target.chain[0] or not variant["compatibility"]:
            return False
        try:
            own = read(variant["model"], variant["ep"])
        except Exception:  # noqa: BLE001 - a model that cannot be read fails when it is loaded
            return False
        if not own or own == variant["compatibility"]:
            return False
        answer = self._validated(own, variant["device"])
        return _SCORES.get(answer, _REJECTED) < self.scores.get(variant["name"], _REJECTED)


def _type(device: Any) -> str:
    """Return the type of a device as a package names it."""
    return str(device.device.type).rsplit(".", 1)[-1].lower()


def _bindings() -> Any:
    """Return onnxruntime's module of bindings, which has what its package does not export."""
    try:
        return importlib.import_module("onnxruntime.capi._pybind_state")
    except ImportError:
        return None


def _folder_bytes(variant: dict[str, Any]) -> int:
    folder = os.path.dirname(variant["model"])
    return sum(
        os.path.getsize(os.path.join(where, name)) for where, _, names in os.walk(folder) for name in names
    )
