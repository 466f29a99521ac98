"""`ep-harness replay`: judge the fault of a bundle on a target, without running the bundle's script."""

from collections.abc import Iterator
from pathlib import Path

from harness.annex.triage.bundle_files import Bundle, read_bundle
from harness.annex.triage.bundle_replay import Replayed, replay
from harness.annex.triage.replay_target import bundled_target
from harness.cli.output import notify, print_json, print_lines
from harness.cli.targets import ProviderRequest, pairs_of, wanted_matrix
from harness.core.findings.other_build import other_builds
from harness.core.text.errors import (
    EXIT_INCOMPLETE,
    EXIT_OK,
    EXIT_UNEXPECTED,
    UsageError,
    one_line,
    valid_names,
)
from harness.core.text.visible_text import visible
from harness.plan.matrix import read_matrix
from harness.plan.target import Target

_CODES = {"gone": EXIT_OK, "there": EXIT_UNEXPECTED, "unknown": EXIT_INCOMPLETE}
_WORDS = {"gone": "fault gone", "there": "fault there", "unknown": "cannot be judged here"}


def replay_bundle(bundle: Path, request: ProviderRequest, *, target: str | None, as_json: bool) -> int:
    """Judge a bundle, and print the result.

    Returns:
        0 if the fault is gone, 1 if it is there, 3 if that cannot be judged here.
    """
    opened = read_bundle(bundle)
    chosen = _target(opened, target, request)
    if not as_json:
        print_lines(_head(opened))
    found = replay(opened, chosen, notify)
    if as_json:
        print_json(
            {
                "bundle": opened.manifest.fault,
                "state": found.state,
                "why": found.why,
                "trials": found.trials,
                "record": found.record,
            }
        )
    else:
        print_lines(_result(opened, chosen, found))
    return _CODES[found.state]


def _target(bundle: Bundle, target: str | None, request: ProviderRequest) -> Target:
    if target is not None:
        if request.provider or request.plugin or request.options or request.device:
            what = "excludes --provider, --plugin, --option and --device"
            raise UsageError.at("--target", what, "put them into the matrix")
        return _of_matrix(target)
    if request.provider:
        return wanted_matrix(request).targets[0]
    return bundled_target(
        bundle,
        plugin=request.plugin,
        options=pairs_of("--option", request.options),
        device=pairs_of("--device", request.device),
    )


def _of_matrix(text: str) -> Target:
    file, _, name = text.rpartition(":")
    if not file or not name:
        raise UsageError.at("--target", f"expected MATRIX:NAME, got {text!r}")
    targets = {one.name: one for one in read_matrix(Path(file)).targets}
    if name not in targets:
        what = f"the matrix has no target {name!r}"
        raise UsageError.at(f"--target {file}", what, valid_names(name, targets))
    return targets[name]


def _head(bundle: Bundle) -> Iterator[str]:
    fault, where = bundle.manifest.fault, bundle.manifest.environment
    yield f"fault        {one_line(fault.sentence, 500)}"
    provider = one_line(bundle.manifest.target.provider[0], 60)
    yield f"found        {fault.verdict} on {provider}, onnxruntime {where.onnxruntime or '?'}"
    if fault.fed:
        yield f"fed          {one_line(fault.fed, 300)}"


def _result(bundle: Bundle, target: Target, found: Replayed) -> Iterator[str]:
    version = found.fingerprint.get("onnxruntime", "?")
    yield f"here         {one_line(visible(target.name), 60)}: {found.record.verdict}, onnxruntime {version}"
    plugin = bundle.manifest.target.plugin
    told = {
        "sha256": bundle.manifest.environment.libraries,
        "plugin": {"library": plugin.library if plugin else ""},
    }
    for line in other_builds(told, found.fingerprint):
        yield f"not alike    {one_line(visible(line), 300)}"
    placed = found.record.placement
    if placed is not None:
        yield f"placement    {placed.ep_nodes} nodes on the EP, {placed.cpu_nodes} on the CPU"
    again = f" in {found.trials} trials" if bundle.manifest.trials > 1 else ""
    yield f"{_WORDS[found.state]:<12} {one_line(found.why, 500)}{again}"
