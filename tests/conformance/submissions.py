"""Make submissions from structs: a valid one, and whatever a test changes, sealed again."""

import datetime as dt
import functools
import hashlib
import io
import subprocess
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
from onnx import TensorProto, helper, numpy_helper

from harness.conformance.attestation import attestation_of, encode_attestation
from harness.conformance.environment import environment_of
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
    Harness,
    Product,
    ProfileRef,
    Statement,
    Waiver,
    encode_statement,
)
from harness.conformance.verify.frozen import FrozenCase, frozen_cases
from harness.core.cell import AXIS_DEFAULTS, Cell
from harness.core.compare import compare
from harness.core.decide import decide
from harness.core.facts import facts_of
from harness.core.noise import NoiseRule
from harness.core.output_metrics import OutputMetrics
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
from harness.profiles.archive import write_archive
from harness.profiles.case_files import digests_of, noise_file
from harness.profiles.profile import Feature, Profile, ProfileCase, Rules, encode_profile
from harness.profiles.suite import policy_of_case

_Value = TypeVar("_Value")

NOW = dt.datetime(2026, 11, 25, 12, tzinfo=dt.UTC)
PROVIDER = "QNNExecutionProvider"
LABEL = "tiny@1"
SUITE = "tiny-1"

FINGERPRINT: dict[str, Any] = {
    "onnxruntime": "1.31.1",
    "platform": "Linux-6.8-x86_64",
    "machine": "x86_64",
    "packages": {"numpy": "2.4.6", "onnxruntime-qnn": "2.7.0"},
    "plugin": {"version": "2.7.0"},
    "sha256": {"libonnxruntime_providers_qnn.so": "d" * 64},
    "devices": [{"device": {"type": "NPU", "vendor": "Qualcomm"}, "metadata": {"Description": "Hexagon"}}],
    "drivers": {"qcadsprpc": "1.0"},
    "options": {"backend_type": "htp"},
}

RULES = Rules(
    tolerances={"float32": (1e-4, 1e-5), "float16": (1e-3, 2.5e-3)}, noise_rms=3.0, noise_max=32.0, steps=1.0
)


SHAPE = (4, 16)


@functools.cache
def tiny_profile(cases: int = 8) -> Profile:
    """Return a profile of so many cases; every fourth one belongs to the feature ``float16``."""
    return _tiny(cases)[0]


def tiny_archive(profile: Profile) -> bytes:
    """Return the archive of a tiny profile."""
    return _tiny(len(profile.cases))[1]


@functools.cache
def tiny_frozen(cases: int) -> dict[str, FrozenCase]:
    """Return what is frozen with the cases of a tiny profile."""
    profile, content = _tiny(cases)
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "tiny.zip"
        archive.write_bytes(content)
        return frozen_cases(profile, archive)


@functools.cache
def _tiny(cases: int) -> tuple[Profile, bytes]:
    files: dict[str, bytes] = {}
    found = []
    for index in range(cases):
        name = f"suite/case_{index:03}"
        own = _files_of(index)
        files |= {f"{name}/{path}": content for path, content in own.items()}
        digests = digests_of(own)
        found.append(
            ProfileCase(
                name=name,
                feature="float16" if index % 4 == 3 else "core",
                model=digests.model,
                inputs=digests.inputs,
                golden=digests.golden,
                ops={"MatMul": 1, "Add": 2},
                types=("float32",),
                opset=21,
            )
        )
    content = write_archive(files)
    profile = Profile(
        schema=1,
        name="tiny",
        version=1,
        title="Tiny",
        about="For tests.",
        archive=hashlib.sha256(content).hexdigest(),
        rules=RULES,
        features=tuple(
            Feature(name=name, meaning=f"models of {name}")
            for name in ("float16", "float64", "float16+float64")
        ),
        cases=tuple(found),
    )
    return profile, content


def golden_of(index: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return the golden of a case."""
    return np.random.default_rng(index).normal(size=SHAPE).astype(np.float32)


def _files_of(index: int) -> dict[str, bytes]:
    """Return the files of a case: a product and two sums, with the noise of every second one."""
    float32 = TensorProto.FLOAT
    values = [helper.make_tensor_value_info(name, float32, SHAPE) for name in ("x", "y")]
    square = numpy_helper.from_array(np.eye(16, dtype=np.float32), "w")
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Add", ["p", "p"], ["s"]),
        helper.make_node("Add", ["s", "x"], ["y"]),
    ]
    graph = helper.make_graph(nodes, f"case_{index}", values[:1], values[1:], [square])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    golden = golden_of(index)
    files = {
        "model.onnx": model.SerializeToString(),
        "test_data_set_0/input_0.pb": numpy_helper.from_array(golden / 3, "x").SerializeToString(),
        "test_data_set_0/output_0.pb": numpy_helper.from_array(golden, "y").SerializeToString(),
    }
    if index % 2:
        buffer = io.BytesIO()
        np.save(buffer, np.abs(golden).astype(np.float64) * 2.0**-24 + 1e-9)
        files[noise_file(0, 0)] = buffer.getvalue()
    return files


def good_record(case: ProfileCase, index: int, cases: int, provider: str = PROVIDER) -> Record:
    """Return the record of a case that a provider computes with a small error."""
    numbers = np.random.default_rng(1000 + index)
    golden = golden_of(index)
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
        outputs=rows_of(actual, index),
        golden="profile",
        timings_ms={"create": 2.5 + index / 7, "first_run": 0.3 + index / 11, "teardown": 0.1 + index / 13},
        started=(NOW - dt.timedelta(minutes=5, seconds=-index)).isoformat(timespec="milliseconds"),
        attempt=1,
        process=ProcessState(pid=4711, session=index + 1, took_ms=6.0 + index),
        content=ModelContent(opsets={"ai.onnx": 21}, ops=dict(case.ops), types=("float32",)),
        model_digest=tiny_frozen(cases)[case.name].digest,
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
    index = int(record.model.rpartition("_")[2])
    return judged(changed(record, outputs=rows_of(golden_of(index) * np.float32(1.25), index)))


def rows_of(actual: np.ndarray[Any, np.dtype[np.float32]], index: int) -> tuple[OutputMetrics, ...]:
    """Return the rows of an answer, as an engine has them."""
    golden = golden_of(index)
    spread = np.abs(golden).astype(np.float64) * 2.0**-24 + 1e-9
    return compare(
        "y",
        Tensor(dtype="float32", array=golden),
        Tensor(dtype="float32", array=actual),
        lambda _: Tolerance(1e-4, 1e-5),
        noise=NoiseRule(precision="float32", spreads={"y": spread}) if index % 2 else None,
        policy=policy_of_case(RULES, tiny_profile().cases[0]),
    ).outputs


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
        count = len(self.profile.cases)
        records = [good_record(case, index, count, provider) for index, case in enumerate(self.profile.cases)]
        self.records: list[Record] = [edit(i, r) for i, r in enumerate(records)] if edit else records
        self.claims, self.waivers, self.provider = claims, waivers, provider
        self.statement: Callable[[Statement], Statement] = lambda statement: statement
        self.raw: Callable[[dict[str, bytes]], object] = len
        self.after: Callable[[dict[str, bytes]], object] = len

    def files(self, key: Path | None = None) -> dict[str, bytes]:
        """Return the files: consistent with the records, attested, and signed if there is a key."""
        result = result_of(self.profile, set(self.claims) & {"float16"}, self.records)
        reference = ProfileRef(
            label=self.profile.label, digest=self.profile.digest, archive=self.profile.archive
        )
        statement = self.statement(
            Statement(
                schema=SCHEMA,
                created=NOW.isoformat(),
                product=Product(vendor="Vendor", name="EP", version="2.7.0"),
                environment=environment_of(self.provider, FINGERPRINT | {"providers": [self.provider]}),
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
                "ep": FINGERPRINT | {"providers": [self.provider]},
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
    (folder / f"{profile.label}.zip").write_bytes(tiny_archive(profile))
    return folder


def new_key(folder: Path, identity: str) -> tuple[Path, str]:
    """Make a key; return it and its line for a file of allowed signers."""
    path = folder / identity
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    kind, key, *_ = Path(f"{path}.pub").read_text().split()
    return path, f'{identity} namespaces="ep-harness-submission" {kind} {key}\n'
