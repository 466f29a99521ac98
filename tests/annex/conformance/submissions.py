"""Make submissions from structs: a valid one, and whatever a test changes, sealed again."""

import datetime as dt
import hashlib
import subprocess
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np

from harness.annex.conformance.attestation import attestation_of
from harness.annex.conformance.level import profile_result
from harness.annex.conformance.profile_matrix import profile_matrix
from harness.annex.conformance.profiles.profile import Profile
from harness.annex.conformance.profiles.profile_suite import policy_of_case, suite_name
from harness.annex.conformance.signing import ssh_sign
from harness.annex.conformance.submission import (
    ATTESTATION,
    LOG,
    SSH_SIGNATURE,
    STATEMENT,
    STATEMENT_SCHEMA,
    SUBMITTED_RECORDS,
    SUBMITTED_RUN,
    WAIVERS,
    Harness,
    Product,
    ProfileRef,
    Statement,
    Waiver,
    encode_part,
)
from harness.annex.conformance.submitted_environment import submitted_environment_of
from harness.core.comparison.output_metrics import OutputMetrics
from harness.core.comparison.policy_terms import policy_terms
from harness.core.comparison.tolerance import Tolerance
from harness.core.noise.noise import NoiseRule
from harness.core.records.cell import AXIS_DEFAULTS, Cell
from harness.core.records.cell_end import CellEnd
from harness.core.records.facts import Placement
from harness.core.records.record import ModelContent, ProcessState, Record, encode_record
from harness.core.records.run_info import RunInfo
from harness.core.records.verdict import Phase
from harness.core.values.value import Tensor
from harness.core.verdicts.compare import compare_outputs
from harness.core.verdicts.decide import decide
from harness.plan.expectation import is_expected
from harness.plan.matrix import Matrix
from tests.annex.conformance.small_profiles import RULES, frozen_of, golden_of, tiny_profile
from tests.kit import bare_record

_Value = TypeVar("_Value")

NOW = dt.datetime(2026, 11, 25, 12, tzinfo=dt.UTC)
PROVIDER = "QNNExecutionProvider"

FINGERPRINT: dict[str, Any] = {
    "onnxruntime": "1.31.1",
    "platform": "Linux-6.8-x86_64",
    "machine": "x86_64",
    "packages": {"numpy": "2.4.6", "onnxruntime-qnn": "2.7.0"},
    "plugin": {"library": "libonnxruntime_providers_qnn.so", "version": "2.7.0"},
    "sha256": {"libonnxruntime_providers_qnn.so": "d" * 64},
    "devices": [{"device": {"type": "NPU", "vendor": "Qualcomm"}, "metadata": {"Description": "Hexagon"}}],
    "drivers": {"qcadsprpc": "1.0"},
    "options": {"backend_type": "htp"},
}


def good_record(profile: Profile, index: int, provider: str = PROVIDER) -> Record:
    """Return the record of a case that a provider computes with a small error."""
    case, suite = profile.cases[index], suite_name(profile)
    frozen = frozen_of(profile)[case.name]
    numbers = np.random.default_rng(1000 + index)
    golden = golden_of(index)
    actual = (golden * (1 + numbers.normal(scale=3e-8, size=golden.shape))).astype(np.float32)
    axes = {**AXIS_DEFAULTS, "scenario": case.scenario}
    cell = Cell(suite=suite, model=case.name, target="ep", axes=tuple(sorted(axes.items())))
    return bare_record(
        case.name,
        suite=suite,
        provider=provider,
        cell=cell.id,
        axes=axes,
        phase=Phase.COMPARE,
        placement=placement_of(frozen.ops, {}),
        outputs=rows_of(actual, index),
        golden="profile",
        golden_digest=frozen.golden,
        policy=policy_terms(policy_of_case(RULES, case)),
        timings_ms={"create": 2.5 + index / 7, "first_run": 0.3 + index / 11, "teardown": 0.1 + index / 13},
        started=(NOW - dt.timedelta(minutes=5, seconds=-index)).isoformat(timespec="milliseconds"),
        attempt=1,
        process=ProcessState(pid=4711, session=index + 1, took_ms=6.0 + index),
        content=ModelContent(opsets=dict(frozen.opsets), ops=dict(frozen.ops), types=frozen.types),
        model_digest=frozen.digest,
    )


def placement_of(on_ep: dict[str, int], on_cpu: dict[str, int]) -> Placement:
    """Return a placement of these operators in one partition."""
    return Placement(
        ep_nodes=sum(on_ep.values()),
        cpu_nodes=sum(on_cpu.values()),
        ep_ops=dict(on_ep),
        cpu_ops=on_cpu,
        partitions=1 if on_ep else 0,
        source="assignment",
    )


def refused(record: Record) -> Record:
    """Return the record of a model that the provider refuses cleanly."""
    ended = CellEnd(how="raised", message="NotImplemented: no MatMul", kind="NotImplemented")
    record = changed(
        record,
        ended=ended,
        phase=Phase.CREATE,
        placement=None,
        outputs=(),
        golden="",
        golden_digest="",
        policy={},
        timings_ms={},
    )
    return judged(record)


def fallen(record: Record) -> Record:
    """Return the record with the nodes of its first operator on the CPU."""
    assert record.content is not None
    first, *others = record.content.ops.items()
    return judged(changed(record, placement=placement_of(dict(others), dict([first]))))


def wrong(record: Record) -> Record:
    """Return the record of a wrong answer."""
    index = int(record.model.rpartition("_")[2])
    return judged(changed(record, outputs=rows_of(golden_of(index) * np.float32(1.25), index)))


def rows_of(actual: np.ndarray[Any, np.dtype[np.float32]], index: int) -> tuple[OutputMetrics, ...]:
    """Return the rows of an answer, as an engine has them."""
    golden = golden_of(index)
    spread = np.abs(golden).astype(np.float64) * 2.0**-24 + 1e-9
    return compare_outputs(
        "y",
        Tensor(dtype="float32", array=golden),
        Tensor(dtype="float32", array=actual),
        lambda _: Tolerance(1e-4, 1e-5),
        noise=NoiseRule(precision="float32", spreads={"y": spread}) if index % 2 else None,
        policy=policy_of_case(RULES, tiny_profile().cases[0]),
    ).outputs


def judged(record: Record) -> Record:
    """Return the record with the verdict that it deserves."""
    decided = decide(record, policy_of_case(RULES, tiny_profile().cases[0]))
    verdict = decided.verdict
    return changed(
        record,
        verdict=verdict,
        family=verdict.family,
        expected=is_expected(None, verdict),
        reason=decided.reason,
    )


def changed(value: _Value, **fields: Any) -> _Value:
    """Return a struct with other fields."""
    assert isinstance(value, msgspec.Struct)
    return msgspec.structs.replace(value, **fields)


class Draft:
    """A submission in the making; every part may be changed before ``files`` seals it.

    Args:
        edit: Changes the record of each case; None for all right.
        profile: Of ``tiny_profile`` by default.
        claims: Claimed features.
    """

    def __init__(
        self,
        edit: Callable[[int, Record], Record] | None = None,
        profile: Profile | None = None,
        claims: tuple[str, ...] = (),
        waivers: tuple[Waiver, ...] = (),
        provider: str = PROVIDER,
    ) -> None:
        self.profile = profile or tiny_profile()
        records = [good_record(self.profile, index, provider) for index in range(len(self.profile.cases))]
        self.records: list[Record] = [edit(i, r) for i, r in enumerate(records)] if edit else records
        self.claims, self.waivers, self.provider = claims, waivers, provider
        self.fingerprint = dict(FINGERPRINT)
        self.statement: Callable[[Statement], Statement] = lambda statement: statement
        self.matrix: Callable[[Matrix], Matrix] = with_plugin
        self.run: Callable[[RunInfo], RunInfo] = lambda run: run
        self.raw: Callable[[dict[str, bytes]], object] = len
        self.after: Callable[[dict[str, bytes]], object] = len

    def _known_claims(self) -> set[str]:
        return set(self.claims) & {feature.name for feature in self.profile.features}

    def files(self, key: Path | None = None) -> dict[str, bytes]:
        """Return the files: consistent with the records, attested, and signed if there is a key."""
        result = profile_result(self.profile, self._known_claims(), self.records)
        reference = ProfileRef(
            label=self.profile.label, digest=self.profile.digest, archive=self.profile.archive
        )
        statement = self.statement(
            Statement(
                schema=STATEMENT_SCHEMA,
                created=NOW.isoformat(),
                product=Product(vendor="Vendor", name="EP", version="2.7.0"),
                environment=submitted_environment_of(
                    self.provider, self.fingerprint | {"providers": [self.provider]}
                ),
                harness=Harness(version="0.1.0", sources="e" * 64),
                profile=reference,
                claims=self.claims,
                level=result.level,
                features=result.features,
                missing=result.missing,
                waivers=self.waivers,
                reproduce=("ep-harness", "conform", "--profile", self.profile.label),
            )
        )
        plan = (record.cell for record in self.records)
        run = RunInfo(
            schema=1,
            plan=hashlib.sha256("".join(f"{cell}\n" for cell in sorted(plan)).encode()).hexdigest(),
            cells=len(self.records),
            matrix=msgspec.to_builtins(self.matrix(_matrix_of(self.profile, self.provider))),
            targets={
                "ep": self.fingerprint | {"providers": [self.provider]},
            },
            complete=True,
        )
        run = self.run(run)
        files = {
            STATEMENT: encode_part(statement),
            SUBMITTED_RECORDS: b"".join(encode_record(record) + b"\n" for record in self.records),
            SUBMITTED_RUN: msgspec.json.encode(run),
            LOG: b"done\n",
        }
        if self.waivers:
            files[WAIVERS] = waivers_toml(self.waivers)
        self.raw(files)
        attested = changed(result, level=statement.level)
        files[ATTESTATION] = encode_part(attestation_of(files, statement.profile, attested))
        if key is not None:
            files[SSH_SIGNATURE] = ssh_sign(files[ATTESTATION], key)
        self.after(files)
        return files


_MATRICES: dict[tuple[str, str], Matrix] = {}


def _matrix_of(profile: Profile, provider: str) -> Matrix:
    """Return the matrix of a profile, made once: that takes longer than a submission."""
    key = (profile.digest, provider)
    if key not in _MATRICES:
        _MATRICES[key] = profile_matrix(profile, "ep", provider)
    return _MATRICES[key]


def with_plugin(matrix: Matrix) -> Matrix:
    """Return the matrix of a profile with what the target of ``FINGERPRINT`` adds."""
    (target,) = matrix.targets
    options, library = FINGERPRINT["options"], FINGERPRINT["plugin"]["library"]
    return changed(matrix, targets=(changed(target, plugin=library, options=dict(options)),))


def waivers_toml(waivers: Iterable[Waiver]) -> bytes:
    """Return the content of ``waivers.toml``."""
    return "".join(
        f'[[waiver]]\ncase = "{one.case}"\nissue = "{one.issue}"\n'
        f'expires = {one.expires}\nwords = "{one.words}"\n'
        for one in waivers
    ).encode()


def write_folder(files: dict[str, bytes], folder: Path) -> Path:
    """Write a submission as a folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def write_zip(files: dict[str, bytes], path: Path) -> Path:
    """Write a submission as a zip."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def new_key(folder: Path, identity: str) -> tuple[Path, str]:
    """Make a key; return it and its line for a file of allowed signers."""
    path = folder / identity
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    kind, key, *_ = Path(f"{path}.pub").read_text().split()
    return path, f'{identity} namespaces="ep-harness-submission" {kind} {key}\n'
