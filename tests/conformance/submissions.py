"""Make submissions from structs: a valid one, and whatever a test changes, sealed again."""

import datetime as dt
import subprocess
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np

from harness.conformance.attestation import attestation_of, encode_attestation
from harness.conformance.level import result_of
from harness.conformance.signing import ssh_sign
from harness.conformance.submission import (
    ATTESTATION,
    LOG,
    RECORDS,
    RUN,
    SCHEMA,
    SSH_SIGNATURE,
    STATEMENT,
    WAIVERS,
    Environment,
    Harness,
    Product,
    ProfileRef,
    Statement,
    Waiver,
    encode_statement,
)
from harness.core.cell import AXIS_DEFAULTS, Cell
from harness.core.compare import compare
from harness.core.decide import decide
from harness.core.facts import facts_of
from harness.core.record import (
    Ended,
    ModelContent,
    Placement,
    ProcessState,
    Record,
    encode_record,
)
from harness.core.run_info import RunInfo
from harness.core.tolerance import Tolerance
from harness.core.value import Tensor
from harness.core.verdict import Phase, Verdict
from harness.profiles.profile import Feature, Profile, ProfileCase, Rules, encode_profile
from harness.profiles.suite import policy_of_case

_Value = TypeVar("_Value")

NOW = dt.datetime(2026, 11, 25, 12, tzinfo=dt.UTC)
PROVIDER = "QNNExecutionProvider"
LABEL = "tiny@1"
SUITE = "tiny-1"

RULES = Rules(
    tolerances={"float32": (1e-4, 1e-5), "float16": (1e-3, 2.5e-3)}, noise_rms=3.0, noise_max=32.0, steps=1.0
)


def tiny_profile(cases: int = 8) -> Profile:
    """Return a profile of so many cases; every fourth one belongs to the feature ``float16``."""
    return Profile(
        schema=1,
        name="tiny",
        version=1,
        title="Tiny",
        about="For tests.",
        archive="a" * 64,
        rules=RULES,
        features=(Feature(name="float16", meaning="models of float16"),),
        cases=tuple(
            ProfileCase(
                name=f"suite/case_{index:03}",
                feature="float16" if index % 4 == 3 else "core",
                model=f"{index:064x}",
                inputs="b" * 64,
                golden="c" * 64,
                ops={"MatMul": 1, "Add": 2},
                types=("float32",),
                opset=21,
            )
            for index in range(cases)
        ),
    )


def good_record(case: ProfileCase, index: int, provider: str = PROVIDER) -> Record:
    """Return the record of a case that a provider computes with a small error."""
    numbers = np.random.default_rng(index)
    golden = numbers.normal(size=(4, 16)).astype(np.float32)
    actual = (golden * (1 + numbers.normal(scale=3e-8, size=golden.shape))).astype(np.float32)
    axes = {**AXIS_DEFAULTS, "scenario": case.scenario}
    cell = Cell(suite=SUITE, model=case.name, target="ep", axes=tuple(sorted(axes.items())))
    return Record(
        schema=1,
        cell=cell.id,
        suite=SUITE,
        model=case.name,
        target="ep",
        provider=provider,
        verdict=Verdict.PASS,
        family=Verdict.PASS.family,
        expected=True,
        axes=axes,
        phase=Phase.COMPARE,
        placement=Placement(
            ep_nodes=3,
            cpu_nodes=0,
            ep_ops={"MatMul": 1, "Add": 2},
            cpu_ops={},
            partitions=1,
            source="assignment",
        ),
        outputs=compare(
            "y",
            Tensor(dtype="float32", array=golden),
            Tensor(dtype="float32", array=actual),
            lambda _: Tolerance(1e-4, 1e-5),
        ).outputs,
        golden="profile",
        timings_ms={"create": 2.5 + index / 7, "first_run": 0.3 + index / 11, "teardown": 0.1 + index / 13},
        started=(NOW - dt.timedelta(minutes=5, seconds=-index)).isoformat(timespec="milliseconds"),
        attempt=1,
        process=ProcessState(pid=4711, session=index + 1, took_ms=6.0 + index),
        content=ModelContent(opsets={"ai.onnx": 21}, ops=dict(case.ops), types=("float32",)),
        model_digest=case.model,
    )


def refused(record: Record) -> Record:
    """Return the record of a model that the provider refuses cleanly."""
    ended = Ended(how="raised", message="NotImplemented: no MatMul", kind="NotImplemented")
    record = changed(
        record, ended=ended, phase=Phase.CREATE, placement=None, outputs=(), golden="", timings_ms={}
    )
    return judged(record)


def fallen(record: Record) -> Record:
    """Return the record with one node on the CPU."""
    placement = Placement(
        ep_nodes=2, cpu_nodes=1, ep_ops={"Add": 2}, cpu_ops={"MatMul": 1}, partitions=1, source="assignment"
    )
    return judged(changed(record, placement=placement))


def wrong(record: Record) -> Record:
    """Return the record of a wrong answer."""
    golden = np.linspace(1, 2, 64, dtype=np.float32).reshape(4, 16)
    outputs = compare(
        "y",
        Tensor(dtype="float32", array=golden),
        Tensor(dtype="float32", array=golden * np.float32(1.25)),
        lambda _: Tolerance(1e-4, 1e-5),
    ).outputs
    return judged(changed(record, outputs=outputs))


def judged(record: Record) -> Record:
    """Return the record with the verdict that it deserves."""
    verdict = decide(facts_of(record), policy_of_case(RULES, tiny_profile().cases[0])).verdict
    return changed(record, verdict=verdict, family=verdict.family)


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
        records = [good_record(case, index, provider) for index, case in enumerate(self.profile.cases)]
        self.records: list[Record] = [edit(i, r) for i, r in enumerate(records)] if edit else records
        self.claims, self.waivers, self.provider = claims, waivers, provider
        self.statement: Callable[[Statement], Statement] = lambda statement: statement
        self.raw: Callable[[dict[str, bytes]], object] = len
        self.after: Callable[[dict[str, bytes]], object] = len

    def files(self, key: Path | None = None) -> dict[str, bytes]:
        """Return the files: consistent with the records, attested, and signed if there is a key."""
        result = result_of(self.profile, set(self.claims) & {"float16"}, self.records)
        reference = ProfileRef(label=self.profile.label, digest=self.profile.digest, archive="a" * 64)
        statement = self.statement(
            Statement(
                schema=SCHEMA,
                created=NOW.isoformat(),
                product=Product(vendor="Vendor", name="EP", version="1.0"),
                environment=Environment(
                    provider=self.provider,
                    provider_options={},
                    runtime="python",
                    onnxruntime="1.31.1",
                    libraries={"ep.so": "d" * 64},
                    devices=("NPU",),
                    drivers={},
                    packages={"numpy": "2.4.6"},
                    platform="Linux",
                ),
                harness=Harness(version="0.1.0", sources="e" * 64),
                profile=reference,
                claims=self.claims,
                level=result.level,
                features=result.features,
                missing=result.missing,
                waivers=self.waivers,
                reproduce=("ep-harness", "conform", "--profile", LABEL),
            )
        )
        run = RunInfo(
            schema=1,
            plan="f" * 64,
            cells=len(self.records),
            matrix={},
            targets={
                "ep": {
                    "onnxruntime": "1.31.1",
                    "providers": [self.provider],
                    "packages": {"numpy": "2.4.6"},
                }
            },
            complete=True,
        )
        files = {
            STATEMENT: encode_statement(statement),
            RECORDS: b"".join(encode_record(record) + b"\n" for record in self.records),
            RUN: msgspec.json.encode(run),
            LOG: b"done\n",
        }
        if self.waivers:
            files[WAIVERS] = waivers_toml(self.waivers)
        self.raw(files)
        attested = changed(result, level=statement.level)
        files[ATTESTATION] = encode_attestation(attestation_of(files, statement.profile, attested))
        if key is not None:
            files[SSH_SIGNATURE] = ssh_sign(files[ATTESTATION], key)
        self.after(files)
        return files


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


def write_profile(folder: Path, profile: Profile) -> Path:
    """Write a published profile, and return its folder."""
    folder.mkdir(exist_ok=True)
    (folder / f"{profile.label}.json").write_bytes(encode_profile(profile))
    return folder


def new_key(folder: Path, identity: str) -> tuple[Path, str]:
    """Make a key; return it and its line for a file of allowed signers."""
    path = folder / identity
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    kind, key, *_ = Path(f"{path}.pub").read_text().split()
    return path, f'{identity} namespaces="ep-harness-submission" {kind} {key}\n'
