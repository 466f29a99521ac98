"""A claim is bound to what it claims: contradictions by name, and every field of every file changed once."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from harness.annex.conformance.attestation import Attestation
from harness.annex.conformance.submission import (
    ATTESTATION,
    LOG,
    STATEMENT,
    SUBMITTED_RECORDS,
    SUBMITTED_RUN,
    WAIVERS,
    Statement,
)
from harness.annex.conformance.verify.verification import Verification, verify_submissions
from harness.core.comparison.noise_limits import NoiseLimits
from harness.core.comparison.output_metrics import Noise, OutputMetrics
from harness.core.records.facts import Placement
from harness.core.records.record import Record
from harness.core.records.run_info import PlaceInfo, RunInfo, ShardInfo
from harness.plan.matrix import Matrix, ModelSelection
from harness.plan.selector import Selector
from harness.plan.target import Runtime, Target
from harness.plan.tolerance_entry import ToleranceEntry
from tests.annex.conformance.changes import changes
from tests.annex.conformance.small_profiles import tiny_profile, write_profile
from tests.annex.conformance.submissions import (
    NOW,
    Draft,
    changed,
    fallen,
    refused,
    with_plugin,
    write_folder,
    wrong,
)
from tests.annex.conformance.test_verify_tampered import WAIVER

DOC = Path(__file__).parents[3] / "docs" / "reference" / "verify.md"

_TARGET = r"run\.json\.matrix\.targets\[0\]\."
_AGENT = r"run\.json\.targets\.ep\."
_ROW = r"record\.outputs\[0\]\."

FREE = {
    r"statement\.json\.(product\.(vendor|name|contact)|harness\.(version|sources))": "words of the signer",
    r"statement\.json\.reproduce.*": "words of the signer",
    r"waivers\.toml": "a comment: its waivers are those of the statement",
    r"logs/run\.txt": "what the run printed: nothing is read from it",
    r"run\.json\.matrix\.path": "a name on the machine of the vendor",
    r"run\.json\.matrix\.scenarios\..*": "settings of scenarios that the profile does not play",
    _TARGET + r"runtime\.(packages|python_version|flags|threads).*": "listed: `settings`",
    _TARGET + r"(device|precisions|timeouts_s|renew_after).*": "listed: `settings`",
    _TARGET + r"(unchecked_options|workers|memory_limit_mb|retries|work_limit)": "listed: `settings`",
    _TARGET + r"(plugin|alone|device_lock)": "listed: `settings`",
    _AGENT + r"(added|plugin\.added|devices\[0\]\.(added|(device|metadata)\.added))": "told alone",
    r"record\.(reason|cause|teardown)": "words of the provider",
    r"record\.ended\.(refused|message|kind|note|lacks|lines.*)": "words of the provider",
    r"record\.placement\.(partitions|source)": "told by onnxruntime; counts of nodes decide",
    r"record\.(started|timings_ms\.\w+|process\..*)": "measured once; see `timings`, `process` and `time`",
    r"record\.(attempt|repeats.*|unchecked.*|agreement.*|device.*)": "told beside the verdict",
    r"record\.policy\.added": "a setting of a later version; those of this one decide",
    _ROW + r"details(\.(copied|flushed(_part)?|granted|hint|lead))?": "for readers",
    _ROW + r"details\.(signed_zeros|stale|told|unseen)": "for readers",
    _ROW + r"(headroom|noise\.(each|like|size|worst|rms_limit|max_limit))": "for readers",
    _ROW + r"noise\.max": "between two bounds, which error and frozen noise give",
}
"""Path of a field -> why no change of it is found."""


def draft() -> Draft:
    """Return a submission with a record of each kind: right, fallen back, refused, and wrong by a feature."""
    kinds = (refused, fallen, lambda record: record, wrong)
    return Draft(
        lambda index, record: kinds[index](record), tiny_profile(4), claims=("float16",), waivers=(WAIVER,)
    )


def cases() -> Iterator[tuple[str, dict[str, bytes]]]:
    """Yield each field of each file, and the files with it changed, attested anew as a forger would."""
    made = draft()
    files = made.files()

    def again(name: str, content: bytes) -> dict[str, bytes]:
        made.raw = made.after = len
        setattr(made, "after" if name == ATTESTATION else "raw", lambda new: new.update({name: content}))
        return made.files()

    whole = {STATEMENT: Statement, SUBMITTED_RUN: RunInfo, ATTESTATION: Attestation}
    for name, form in whole.items():
        for path, value in changes(json.loads(files[name]), form):
            yield f"{name}{path[1:]}", again(name, msgspec.json.encode(value))
    run = json.loads(files[SUBMITTED_RUN])
    for path, value in changes(run["matrix"], Matrix):
        yield (
            f"{SUBMITTED_RUN}.matrix{path[1:]}",
            again(SUBMITTED_RUN, msgspec.json.encode({**run, "matrix": value})),
        )
    lines = files[SUBMITTED_RECORDS].splitlines()
    for at, line in enumerate(lines):
        for path, value in changes(json.loads(line), Record):
            other = [*lines[:at], msgspec.json.encode(value), *lines[at + 1 :]]
            yield f"record{path[1:]}", again(SUBMITTED_RECORDS, b"".join(each + b"\n" for each in other))
    yield LOG, again(LOG, b"something else\n")
    yield WAIVERS, again(WAIVERS, files[WAIVERS] + b"# more\n")


def verified(folder: Path, files: list[dict[str, bytes]]) -> tuple[Verification, ...]:
    folder.mkdir()
    paths = [write_folder(each, folder / f"s{index:04}") for index, each in enumerate(files)]
    return verify_submissions(paths, now=NOW, profiles=write_profile(folder / "profiles", tiny_profile(4)))


def is_found(one: Verification) -> bool:
    """Return whether a submission is refused or marked; each here is a copy of another one, too."""
    return any(each.weight != "noted" and each.name != "copied" for each in one.findings)


def test_every_field_changed_alone_is_found_or_has_a_reason_why_not(tmp_path: Path) -> None:
    free: set[str] = set()
    every = [*cases()]
    assert len(every) > 600
    for number in range(0, len(every), 50):
        part = every[number : number + 50]
        done = verified(tmp_path / str(number), [files for _, files in part])
        free |= {path for (path, _), one in zip(part, done, strict=True) if not is_found(one)}
    left = {path for path in free if not any(re.fullmatch(each, path) for each in FREE)}
    assert sorted(left) == []
    assert [each for each in FREE if not any(re.fullmatch(each, path) for path in free)] == []


def target_with(**fields: object) -> Callable[[Matrix], Matrix]:
    def edit(matrix: Matrix) -> Matrix:
        (target,) = with_plugin(matrix).targets
        return changed(matrix, targets=(changed(target, **fields),))

    return edit


def whole_with(**fields: object) -> Callable[[Matrix], Matrix]:
    return lambda matrix: changed(with_plugin(matrix), **fields)


ANY = Selector(model=("*",))
NINE: dict[str, tuple[Callable[[Matrix], Matrix], str, str]] = {
    "a hidden LD_PRELOAD": (target_with(env={"LD_PRELOAD": "x.so"}), "matrix", "refused"),
    "other options": (target_with(options={"backend_type": "cpu"}), "matrix", "refused"),
    "another provider with plugin": (
        target_with(provider=("CPUExecutionProvider",), plugin=None),
        "matrix",
        "refused",
    ),
    "other axes": (whole_with(axes={"precision": ("fp16",)}), "matrix", "refused"),
    "axes of the target": (target_with(axes={"option.x": ("1",)}), "matrix", "refused"),
    "a tolerance of 1e9": (
        whole_with(tolerance=(ToleranceEntry(selector=ANY, rtol=1e9, atol=1e9),)),
        "matrix",
        "refused",
    ),
    "limits of noise": (
        whole_with(tolerance=(ToleranceEntry(selector=ANY, noise=NoiseLimits(rms=1e9, max=1e9)),)),
        "matrix",
        "refused",
    ),
    "another suite": (whole_with(models=ModelSelection(suites=("onnx-node",))), "matrix", "refused"),
    "no target": (whole_with(targets=()), "matrix", "refused"),
    "an agent by command": (target_with(runtime=Runtime(command="./mine")), "own-program", "marked"),
    "an interpreter of one's own": (
        target_with(runtime=Runtime(python="/my/python")),
        "own-program",
        "marked",
    ),
    "a second provider": (
        target_with(provider=("QNNExecutionProvider", "CUDAExecutionProvider")),
        "own-program",
        "refused",  # the process tells one provider
    ),
    "a variable that nobody knows": (target_with(env={"QNN_X": "1"}), "own-program", "marked"),
    "another library": (target_with(plugin="libother.so"), "matrix", "refused"),
    "Node.js in place of Python": (target_with(runtime=Runtime(node="20")), "matrix", "refused"),
    "a setting that decides nothing": (target_with(memory_limit_mb=4096), "settings", "verified"),
    "a runtime of packages": (
        target_with(runtime=Runtime(packages=("onnxruntime==1.31.1",))),
        "settings",
        "verified",
    ),
}


@pytest.mark.parametrize("kind", NINE)
def test_a_matrix_that_contradicts_the_submission(kind: str, tmp_path: Path) -> None:
    edit, name, outcome = NINE[kind]
    made = draft()
    made.matrix = edit
    (done,) = verified(tmp_path / "s", [made.files()])
    assert name in {one.name for one in done.findings}
    assert done.outcome == outcome


@pytest.mark.parametrize(
    "fields",
    [
        {"plan": "0" * 64},
        {"cells": 5},
        {"shard": ShardInfo(index=1, count=2, plan="", cells=8)},
        {"places": {"ep": {"a": PlaceInfo()}}},
        {"schema": 2},
        {"matrix": {}},
        {"targets": {}},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_a_run_that_contradicts_the_profile(fields: dict[str, object], tmp_path: Path) -> None:
    made = draft()
    made.run = lambda run: changed(run, **fields)
    assert verified(tmp_path / "s", [made.files()])[0].outcome == "refused"


@pytest.mark.parametrize("hostile", [7, "x", [], [7], {"a": 7}, None])
@pytest.mark.parametrize("field", ["plugin", "sha256", "devices", "packages", "providers", "options"])
def test_a_fingerprint_of_another_form_is_a_finding(field: str, hostile: object, tmp_path: Path) -> None:
    made = draft()
    made.run = lambda run: changed(run, targets={"ep": {**run.targets["ep"], field: hostile}})
    assert verified(tmp_path / "s", [made.files()])[0].outcome == "refused"


def test_no_field_is_left_out_of_the_table() -> None:
    text = DOC.read_text("utf-8").partition("## What each field is checked against")[2].partition("\n## ")[0]
    forms = (Statement, RunInfo, Matrix, Target, Runtime, Record, OutputMetrics, Noise, Placement)
    named = set(re.findall(r"`([\w.]+)`", text))
    for form in forms:
        assert [one for one in form.__struct_fields__ if one not in named] == [], form.__name__
