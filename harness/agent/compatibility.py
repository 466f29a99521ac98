"""What onnxruntime says of a compiled model, before anybody loads it: it fits the devices, or it does not."""

from __future__ import annotations

import re
from typing import Any

from harness.agent.compiled_model import CompiledModelError
from harness.agent.job_run import JobRun
from harness.agent.safe_text import clean

_VERSION = re.compile(r"\d+(?:\.\d+)+")

_UNUSABLE, USABLE, _OPTIMAL = "EP_UNSUPPORTED", "EP_SUPPORTED", "EP_SUPPORTED_OPTIMAL"
"""onnxruntime's words for a compiled model: it will not load, the beginning of those that will, the best."""

STALE = "stale"
"""Fact of the process that asks: a model's description, that of another version, and what this is called."""


def ask_compatibility(job_run: JobRun, path: str) -> None:
    """Ask about a compiled model, a damaged one and foreign ones; what is said are facts of the job.

    Raises:
        CompiledModelError: A model that loads here is called unusable, or a damaged or foreign one optimal.
    """
    target = job_run.target
    native: Any = getattr(getattr(target.ort, "capi", None), "_pybind_state", None)
    if not target.devices or not hasattr(native, "get_compatibility_info_from_model"):
        job_run.facts["compatibility"] = (
            "not known: this onnxruntime tells it for the devices of plugins alone, or not at all"
        )
        return
    info = native.get_compatibility_info_from_model(path, target.chain[0])
    if not info:
        job_run.facts["compatibility"] = "the provider says nothing about its compiled models"
        return

    def said(text: str) -> str:
        try:
            found = native.get_model_compatibility_for_ep_devices(target.devices, text)
        except Exception as error:  # noqa: BLE001 - the text is a fact
            return "refused: " + clean(error, 100)
        return str(getattr(found, "name", found))

    fresh, damaged, foreign = said(info), said(info[: len(info) // 2]), said("of another provider")
    job_run.facts["compatibility"] = "fresh: %s; damaged: %s; foreign: %s" % (fresh, damaged, foreign)
    stale = _of_another_version(info)
    if stale != info:
        job_run.facts[STALE] = [info, stale, said(stale)]
    if fresh == _UNUSABLE:
        raise CompiledModelError("a model that was compiled here and loads is called %s" % fresh)
    for what, word in (("damaged", damaged), ("foreign", foreign)):
        if word == _OPTIMAL:
            raise CompiledModelError("the description of a %s compiled model is called %s" % (what, word))


def _of_another_version(info: str) -> str:
    """Return a description with another last digit of its first version, such as 1.2.4 for 1.2.3.

    A description without a version has all its digits changed, and one without digits is returned as it is.
    """
    version = _VERSION.search(info)
    if version is None:
        return re.sub(r"\d", lambda digit: str((int(digit.group()) + 1) % 10), info)
    at = version.end() - 1
    return "%s%d%s" % (info[:at], (int(info[at]) + 1) % 10, info[at + 1 :])
