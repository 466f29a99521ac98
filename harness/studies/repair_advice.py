"""The next step for a provider that cannot be used, by cause."""

import re
from collections.abc import Callable

from harness.core.records.verdict import Cause, Verdict
from harness.core.text.errors import one_line
from harness.plan.target import LIBRARY_SUFFIXES, Target
from harness.studies.trial import TrialResult

_OLD_NUMPY = re.compile(r"numpy<2|NumPy 1\.x|numpy\.core\.multiarray failed|_ARRAY_API not found")
_NO_MODULE = re.compile(r"No module named '(\w+)")
_NEWER_API = re.compile(r"API version|ORT_API_VERSION", re.IGNORECASE)


def next_step(found: TrialResult) -> str:
    """Return the next step, in one line."""
    step = _STEPS.get(found.cause)
    return step(found) if step else _look(found)


def install_advice(target: Target, requirement: str) -> str:
    """Return how to install a package in a target's runtime."""
    runtime = target.runtime
    if runtime.packages:
        return f'add "{requirement}" to the packages of its runtime'
    if runtime.python:
        return f"{runtime.python} -m pip install '{requirement}'"
    there = ", on the machine or in the container of the target" if runtime.is_elsewhere else ""
    return f"pip install '{requirement}'{there}"


def _not_installed(found: TrialResult) -> str:
    target, provider = found.target, found.provider
    if target.plugin and "onnxruntime" in found.fingerprint:
        if target.plugin.endswith(LIBRARY_SUFFIXES):
            return "name the path of an existing library as `plugin`"
        return install_advice(target, target.plugin.replace("_", "-"))
    if found.fingerprint:  # the agent started, and found no onnxruntime
        wheels = [wheel for wheel in provider.wheels if "-ep-" not in wheel] if provider else []
        return install_advice(target, wheels[0] if wheels and not target.plugin else "onnxruntime")
    if target.runtime.packages:
        return "correct the packages of its runtime, or connect this machine to the package index"
    if target.runtime.agent:
        return "correct `agent` of its runtime: `ep-harness agent-check -- PROGRAM` shows what is wrong"
    return "correct its runtime: its Python does not start"


def _import_failed(found: TrialResult) -> str:
    printed = f"{found.record.reason}\n{found.printed}"
    if _OLD_NUMPY.search(printed):
        return install_advice(found.target, "numpy<2")
    if missing := _NO_MODULE.search(found.record.reason):
        return install_advice(found.target, missing[1])
    if "hollow" in found.record.reason:
        return "uninstall every distribution of onnxruntime there, then install the one you need"
    return "import onnxruntime in that Python and read the whole error"


def _library_missing(found: TrialResult) -> str:
    library, _, _ = found.record.reason.partition(" is missing")
    known = found.provider.libraries if found.provider else {}
    fitting = [name for name in known if library.startswith(name)]
    if fitting:
        return f"install what provides {library}: {known[max(fitting, key=len)]}"
    return f"install what provides {one_line(library, 60)}, or add its folder to the loader's path (`env`)"


def _version_conflict(found: TrialResult) -> str:
    owners = found.fingerprint.get("owners")
    if owners:
        return f"keep one: pip uninstall {' '.join(map(str, owners))}, then install the one you need"
    return install_advice(found.target, "onnxruntime>=1.23")


def _no_device(found: TrialResult) -> str:
    runtime, places = found.target.runtime, found.target.places
    elsewhere = runtime.is_elsewhere or (places and any(one.is_elsewhere for one in places.each))
    if elsewhere and not found.fingerprint:
        return "fix the connection: the reason has its last output, docs/how-to/remote.md the checks"
    if found.target.device and found.fingerprint.get("devices"):
        return "correct the device filter: the reason lists the devices"
    if found.provider and found.provider.device_advice:
        return found.provider.device_advice
    return "install the driver of the device, and give the process access to it"


def _registration_failed(found: TrialResult) -> str:
    if _NEWER_API.search(f"{found.record.reason}\n{found.printed}"):
        return "match onnxruntime and the plugin: install a newer onnxruntime, or an older plugin"
    return _look(found)


def _look(found: TrialResult) -> str:
    name = found.target.provider[0]
    return f"read its output: `ep-harness check {name}` keeps it among the artifacts of the record"


def _not_in_build(found: TrialResult) -> str:
    return found.provider.advice if found.provider else "use a build of onnxruntime that includes it"


def _option_rejected(found: TrialResult) -> str:
    name = found.target.provider[0]
    return f"correct the option or drop it; docs/reference/providers.md lists those of {name}"


_STEPS: dict[str, Callable[[TrialResult], str]] = {
    Cause.NOT_INSTALLED: _not_installed,
    Cause.NOT_IN_BUILD: _not_in_build,
    Cause.IMPORT_FAILED: _import_failed,
    Cause.LIBRARY_MISSING: _library_missing,
    Cause.VERSION_CONFLICT: _version_conflict,
    Cause.NO_DEVICE: _no_device,
    Cause.REGISTRATION_FAILED: _registration_failed,
    Verdict.OPTION_REJECTED: _option_rejected,
}
