"""Scenario ``dynamic_options``: options of the provider change while its session is open.

They are hints about energy, priority or state, so the answers have to stay the same.
"""

from __future__ import annotations

from typing import Any

from harness.agent.difference import difference
from harness.agent.job_run import JobRun
from harness.agent.plain import conclude
from harness.agent.safe_text import clean
from harness.agent.target_errors import ApiMissingError, UnsupportedError

_UNKNOWN = "ep.dynamic.ep_harness_unknown"
"""A key that no provider has."""


class DynamicOptionRefusedError(Exception):
    """A value that the provider documents was refused."""


class UnknownOptionTakenError(Exception):
    """A key that does not exist was taken, by a provider that says it refuses such."""


def play(job_run: JobRun) -> None:
    """Set, change and reset each option, and run after each; the results furthest from the first are judged.

    Raises:
        UnsupportedError: No such option is known, or this onnxruntime for Python sets none.
        DynamicOptionRefusedError: A documented value was refused.
        UnknownOptionTakenError: An unknown key was taken, which the provider says it refuses.
    """
    settings = job_run.job["scenario_settings"]
    if not settings.get("options"):
        raise UnsupportedError("no documented option of this provider can change in an open session")
    job_run.create()
    if not hasattr(job_run.session, "set_ep_dynamic_options"):
        version = clean(job_run.target.ort.__version__)
        raise ApiMissingError("onnxruntime %s for Python has no set_ep_dynamic_options" % version)
    pairs = [job_run.run(inputs) for inputs in job_run.job["data_sets"]]
    worst: list[tuple[float, list[Any]]] = [(0.0, outputs) for _, outputs in pairs]
    job_run.facts["set"] = told = []
    for key, values in settings["options"]:
        # The first value is the default, with which a session begins.
        for value in (*values[1:3], values[0]):
            told.append("%s=%s" % (clean(key, 60), clean(value, 60)))
            job_run.begin_run()
            try:
                job_run.session.set_ep_dynamic_options({key: value})
            except Exception as error:
                refused = DynamicOptionRefusedError if settings["documented"] else UnsupportedError
                raise refused("%s is refused: %s" % (told[-1], clean(error, 300))) from error
            for index, (feeds, before) in enumerate(pairs):
                job_run.further()
                outputs = job_run.runner(feeds)
                apart = difference(before, outputs)
                if apart > worst[index][0]:
                    worst[index] = (apart, outputs)
                    job_run.facts["differs_after"] = told[-1]
    _set_unknown(job_run, settings["unknown"])
    apart = max(one for one, _ in worst)
    job_run.facts["equal_to_before"] = apart == 0
    if apart:
        job_run.facts["difference"] = apart
    job_run.result["outputs"] = [job_run.send(outputs) for _, outputs in worst]
    conclude(job_run)


def _set_unknown(job_run: JobRun, documented: str) -> None:
    """Set a key that does not exist, and note what becomes of it."""
    try:
        job_run.session.set_ep_dynamic_options({_UNKNOWN: "1"})
    except Exception:  # noqa: BLE001 - a refusal, in whatever form
        job_run.facts["unknown"] = "refused"
        return
    job_run.facts["unknown"] = "taken"
    if documented == "refused":
        raise UnknownOptionTakenError("the unknown key %s was taken without a word" % _UNKNOWN)
