"""Check the plan: matrix and plan of ``run.json`` are those of the profile on one target.

The matrix is built again from the profile, the target's name and the provider of the statement, as
``ep-harness conform`` does. Further settings of a target are compared with the statement and the fingerprint,
and listed. A setting that decides which program or library computes requires a person.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

import msgspec

from harness.annex.conformance.profiles.profile import Profile
from harness.annex.conformance.submission import STATEMENT, SUBMITTED_RUN, Statement
from harness.annex.conformance.submitted_environment import harmless_texts
from harness.annex.conformance.verify.finding import Finding, finding
from harness.annex.conformance.verify.strict_json import strict_convert
from harness.catalog.catalog import find_provider
from harness.core.records.facts import CPU_PROVIDER
from harness.core.records.record import SCHEMA, Record
from harness.core.records.run_info import RunInfo
from harness.plan.matrix import Matrix
from harness.plan.target import LIBRARY_SUFFIXES, Runtime, Target
from harness.report.runs.record_claims import is_plan_of

_INJECTS = re.compile(r"LD_(?:PRELOAD|AUDIT)|DYLD_INSERT_LIBRARIES|PYTHON\w*|NODE_OPTIONS", re.IGNORECASE)
"""Environment variables that inject code into any process; no provider needs them."""

_OF_PROFILE = ("name", "provider", "axes", "places", "required")
"""Fields of a target that are compared, and never listed."""

_DECIDES = ("python", "ssh", "adb", "agent", "agent_files", "command", "channel", "places")
"""Fields of a runtime that name a program other than the submitter's or the harness's default."""

_BY_DEFAULT = Target(name="", provider=("",))


def plan_findings(
    wanted: Matrix, profile: Profile, statement: Statement, run: RunInfo, records: Sequence[Record]
) -> Iterator[Finding]:
    """Yield where ``run.json`` planned something other than the profile on the target of the records.

    ``wanted`` is the matrix of the profile. The records are those of the profile: see ``cases.py``.
    """
    target = records[0].target if records else next(iter(run.targets), "")
    if run.schema != SCHEMA:
        yield finding("other-schema", SUBMITTED_RUN, f"schema {run.schema}, this version reads {SCHEMA}")
    if run.cells != len(profile.cases) or not is_plan_of(run, records):
        yield finding(
            "plan", SUBMITTED_RUN, f"{run.cells} cells of the plan {run.plan}, which is not the profile's"
        )
    if run.shard is not None or run.places:
        yield finding(
            "plan",
            SUBMITTED_RUN,
            "a share of a plan, or several places: a submission is one run on one device",
        )
    if others := sorted(run.targets.keys() - {target}):
        yield finding("plan", SUBMITTED_RUN, f"the environments of other targets: {', '.join(others)}")
    yield from _ends(run, target)
    matrix, fault = strict_convert(run.matrix, Matrix, f"{SUBMITTED_RUN}: matrix")
    if fault is not None:
        yield fault
    if matrix is not None:
        yield from _matrix(wanted, profile, matrix, target)
        if len(matrix.targets) == 1 and target in run.targets:
            try:
                yield from [*_target(statement, matrix.targets[0], run.targets[target])]
            except (AttributeError, TypeError, ValueError) as error:
                yield finding("run", SUBMITTED_RUN, f"no fingerprint of a target: {error}")
            yield from _records(matrix.targets[0], records)


def _matrix(wanted: Matrix, profile: Profile, matrix: Matrix, target: str) -> Iterator[Finding]:
    """Yield where a matrix differs from that of the profile; settings of a target are not compared here."""
    for field in matrix.__struct_fields__:
        if field in ("path", "targets"):
            continue
        told, right = getattr(matrix, field), getattr(wanted, field)
        if field == "scenarios":  # the settings of others have no effect
            played = {case.scenario for case in profile.cases} & set(told.__struct_fields__)
            told, right = ([getattr(of, each) for each in sorted(played)] for of in (told, right))
        if told != right:
            yield finding(
                "matrix", SUBMITTED_RUN, f"{field} of the matrix is not that of the profile: {_plain(told)}"
            )
    names = [one.name for one in matrix.targets]
    if names != [target]:
        listed = ", ".join(names) or "none"
        yield finding(
            "matrix", SUBMITTED_RUN, f"the targets of the matrix are {listed}; the records have {target}"
        )


def _target(statement: Statement, target: Target, fingerprint: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield where a target contradicts statement or fingerprint, and the settings that it adds."""
    told = statement.environment
    first, *others = target.provider
    if first != told.provider:
        yield finding(
            "matrix",
            SUBMITTED_RUN,
            f"the provider of the target is {first}, and {STATEMENT} has {told.provider}",
        )
    if others := [each for each in others if each != CPU_PROVIDER]:
        yield finding(
            "own-program", SUBMITTED_RUN, f"the chain of the target has more providers: {', '.join(others)}"
        )
    if target.axes or target.places is not None or not target.required:
        yield finding("matrix", SUBMITTED_RUN, "the target has axes or places of its own, or is not required")
    # A process that never answered reported nothing, and has no result.
    if "options" in fingerprint and harmless_texts(target.options) != told.provider_options:
        what = (
            f"options of the target are {_plain(target.options)}, and {STATEMENT} has {told.provider_options}"
        )
        yield finding("matrix", SUBMITTED_RUN, what)
    chains = (fingerprint.get("providers", target.provider), target.provider)
    used, wanted = ([each for each in chain if each != CPU_PROVIDER] for chain in chains)
    if used != wanted:
        yield finding(
            "run", SUBMITTED_RUN, f"the process had the providers {', '.join(used)}, not {', '.join(wanted)}"
        )
    yield from _plugin(target, fingerprint)
    yield from _runtime(target.runtime, told.runtime, fingerprint)
    yield from _variables(target)
    yield from _settings(target)


def _ends(run: RunInfo, target: str) -> Iterator[Finding]:
    """Yield how processes ended, unless they ended cleanly."""
    if others := sorted(run.exits.keys() - {target}):
        yield finding("run", SUBMITTED_RUN, f"ends of processes of other targets: {', '.join(others)}")
    if (end := run.exits.get(target)) is not None and end.verdict is not None:
        yield finding("unclean-exit", SUBMITTED_RUN, f"{end.unclean} of {end.ended} processes: {end.reason}")


def _records(target: Target, records: Sequence[Record]) -> Iterator[Finding]:
    """Yield records of further tries, and of options, that the target does not have."""
    for record in records:
        if len(record.retries) > target.retries:
            yield finding("matrix", record.cell, f"more than {target.retries} retries, which the target has")
        if record.effect is not None and not set(record.effect.options) <= target.options.keys():
            options = ", ".join(record.effect.options)
            yield finding(
                "matrix", record.cell, f"an effect of options that the target does not have: {options}"
            )


def _plugin(target: Target, fingerprint: Mapping[str, Any]) -> Iterator[Finding]:
    plugin, loaded = target.plugin, fingerprint.get("plugin")
    if "providers" in fingerprint and (plugin is None) is not (loaded is None):
        yield finding(
            "matrix", SUBMITTED_RUN, f"the target has the plugin {plugin}, and its process loaded {loaded}"
        )
    if not isinstance(loaded, dict):
        return
    library = _name(loaded.get("library", ""))
    if plugin is not None and plugin.endswith(LIBRARY_SUFFIXES) and _name(plugin) != library:
        what = f"the target has the plugin {_name(plugin)}, and its process loaded {library}"
        yield finding("matrix", SUBMITTED_RUN, what)
    if plugin is not None and not plugin.endswith(LIBRARY_SUFFIXES):
        packages = {name.replace("-", "_").casefold() for name in fingerprint.get("packages") or ()}
        if plugin.replace("-", "_").casefold() not in packages:
            yield finding(
                "settings", SUBMITTED_RUN, f"plugin of the target is the package {plugin}, of unknown version"
            )
    digests = fingerprint.get("sha256")
    if digests and library not in digests:
        yield finding("run", SUBMITTED_RUN, f"the loaded library {library} has no digest in it")
    for device in fingerprint.get("devices") or ():
        path = (device.get("metadata") or {}).get("library_path", library)
        if _name(path) != library:
            yield finding(
                "run", SUBMITTED_RUN, f"a device is of the library {path}, and {library} was loaded"
            )


def _runtime(runtime: Runtime, told: str, fingerprint: Mapping[str, Any]) -> Iterator[Finding]:
    kind = "browser" if runtime.browser else "node" if runtime.node else "python"
    if fingerprint.get("onnxruntime") and kind != told:
        yield finding(
            "matrix", SUBMITTED_RUN, f"the runtime of the target is {kind}, and {STATEMENT} has {told}"
        )
    for field in _DECIDES:
        if value := getattr(runtime, field):
            yield finding("own-program", SUBMITTED_RUN, f"runtime.{field} of the target is {value}")


def _variables(target: Target) -> Iterator[Finding]:
    """Yield environment variables: those of the catalogue are listed, others require a person."""
    known = find_provider(target.provider[0]) if target.env else None
    usual = set[str]()
    if known is not None:
        usual = {one.name for one in known.variables} | {name for one in known.probes for name in one.env}
    for name, value in target.env.items():
        if _INJECTS.fullmatch(name):
            yield finding(
                "matrix", SUBMITTED_RUN, f"env of the target puts code into the process: {name} = {value}"
            )
        else:
            kind = "settings" if name in usual else "own-program"
            yield finding(kind, SUBMITTED_RUN, f"env of the target has {name} = {value}")


def _settings(target: Target) -> Iterator[Finding]:
    """List every other setting that is not the default."""
    for field in target.__struct_fields__:
        value = getattr(target, field)
        if field in (*_OF_PROFILE, "options", "env", "runtime") or value == getattr(_BY_DEFAULT, field):
            continue
        if field != "plugin":  # the statement has the digest of its library
            yield finding("settings", SUBMITTED_RUN, f"{field} of the target is {_plain(value)}")
    for field in target.runtime.__struct_fields__:
        value = getattr(target.runtime, field)
        if field not in _DECIDES and value != getattr(_BY_DEFAULT.runtime, field):
            yield finding("settings", SUBMITTED_RUN, f"runtime.{field} of the target is {_plain(value)}")


def _name(path: object) -> str:
    return PurePosixPath(str(path).replace("\\", "/")).name


def _plain(value: Any) -> Any:
    return msgspec.to_builtins(value)
