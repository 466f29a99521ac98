"""The next step for a provider that cannot be used, by cause."""

import re
from collections.abc import Callable
from typing import Any

import msgspec

from harness.catalog.provider import Provider
from harness.core.errors import one_line
from harness.core.verdict import Cause, Verdict
from harness.plan.target import LIBRARY_SUFFIXES, Target

_OLD_NUMPY = re.compile(r"numpy<2|NumPy 1\.x|numpy\.core\.multiarray failed|_ARRAY_API not found")
_NO_MODULE = re.compile(r"No module named '(\w+)")
_NEWER_API = re.compile(r"API version|ORT_API_VERSION", re.IGNORECASE)


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """Why a target cannot be used.

    Attributes:
        cause: A ``Cause`` or, if a session was tried, the ``Verdict``.
        reason: The cause in one line.
        printed: The output of its process.
        target: The target.
        provider: Its provider's entry in the catalogue; None if there is none.
        fingerprint: The environment as far as it is known.
    """

    cause: str
    reason: str
    printed: str
    target: Target
    provider: Provider | None
    fingerprint: dict[str, Any]


def next_step(trouble: Trouble) -> str:
    """Return the next step, in one line."""
    step = _STEPS.get(trouble.cause)
    return step(trouble) if step else _look(trouble)


def install(target: Target, requirement: str) -> str:
    """Return how to install a package in a target's runtime."""
    runtime = target.runtime
    if runtime.packages:
        return f'add "{requirement}" to the packages of its runtime'
    if runtime.python:
        return f"{runtime.python} -m pip install '{requirement}'"
    there = ", on the machine or in the container of the target" if runtime.ssh or runtime.command else ""
    return f"pip install '{requirement}'{there}"


def _not_installed(trouble: Trouble) -> str:
    target, provider = trouble.target, trouble.provider
    if target.plugin and "onnxruntime" in trouble.fingerprint:
        if target.plugin.endswith(LIBRARY_SUFFIXES):
            return "name the path of an existing library as `plugin`"
        return install(target, target.plugin.replace("_", "-"))
    if trouble.fingerprint:  # the agent started, and found no onnxruntime
        wheels = [wheel for wheel in provider.wheels if "-ep-" not in wheel] if provider else []
        return install(target, wheels[0] if wheels and not target.plugin else "onnxruntime")
    if target.runtime.packages:
        return "correct the packages of its runtime, or connect this machine to the package index"
    return "correct its runtime: its Python does not start"


def _import_failed(trouble: Trouble) -> str:
    said = f"{trouble.reason}\n{trouble.printed}"
    if _OLD_NUMPY.search(said):
        return install(trouble.target, "numpy<2")
    if missing := _NO_MODULE.search(trouble.reason):
        return install(trouble.target, missing[1])
    if "hollow" in trouble.reason:
        return "uninstall every distribution of onnxruntime there, then install the one you need"
    return "import onnxruntime in that Python and read the whole error"


def _library_missing(trouble: Trouble) -> str:
    library, _, _ = trouble.reason.partition(" is missing")
    known = trouble.provider.libraries if trouble.provider else {}
    fitting = [name for name in known if library.startswith(name)]
    if fitting:
        return f"install what provides {library}: {known[max(fitting, key=len)]}"
    return f"install what provides {one_line(library, 60)}, or add its folder to the loader's path (`env`)"


def _version_conflict(trouble: Trouble) -> str:
    owners = trouble.fingerprint.get("owners")
    if owners:
        return f"keep one: pip uninstall {' '.join(map(str, owners))}, then install the one you need"
    return install(trouble.target, "onnxruntime>=1.23")


def _no_device(trouble: Trouble) -> str:
    if trouble.target.device and trouble.fingerprint.get("devices"):
        return "correct the device filter: the reason lists the devices"
    if trouble.provider and trouble.provider.device_advice:
        return trouble.provider.device_advice
    return "install the driver of the device, and give the process access to it"


def _registration_failed(trouble: Trouble) -> str:
    if _NEWER_API.search(f"{trouble.reason}\n{trouble.printed}"):
        return "match onnxruntime and the plugin: install a newer onnxruntime, or an older plugin"
    return _look(trouble)


def _look(trouble: Trouble) -> str:
    name = trouble.target.provider[0]
    return f"read its output: `ep-harness check {name}` keeps it among the artifacts of the record"


def _not_in_build(trouble: Trouble) -> str:
    return trouble.provider.advice if trouble.provider else "use a build of onnxruntime that includes it"


def _option_rejected(trouble: Trouble) -> str:
    name = trouble.target.provider[0]
    return f"correct the option or drop it; docs/reference/providers.md lists those of {name}"


_STEPS: dict[str, Callable[[Trouble], str]] = {
    Cause.NOT_INSTALLED: _not_installed,
    Cause.NOT_IN_BUILD: _not_in_build,
    Cause.IMPORT_FAILED: _import_failed,
    Cause.LIBRARY_MISSING: _library_missing,
    Cause.VERSION_CONFLICT: _version_conflict,
    Cause.NO_DEVICE: _no_device,
    Cause.REGISTRATION_FAILED: _registration_failed,
    Verdict.OPTION_REJECTED: _option_rejected,
}
