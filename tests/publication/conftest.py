from collections.abc import Callable
from pathlib import Path

import pytest

from harness.conformance.attestation import attestation_of, encode_attestation
from harness.conformance.level import result_of
from harness.conformance.submission import (
    Environment,
    Harness,
    Product,
    ProfileRef,
    Statement,
    Waiver,
    encode_statement,
)
from harness.core.record import SCHEMA, Record, encode_record
from harness.core.verdict import Verdict
from harness.profiles.profile import Feature, Profile, ProfileCase, Rules

Submit = Callable[..., Path]
CASES = (("abs", "Abs", "core"), ("add", "Add", "core"), ("gelu", "com.microsoft.Gelu", "float16"))


def small_profile(label: str = "tiny@1") -> Profile:
    name, _, version = label.partition("@")
    return Profile(
        schema=1,
        name=name,
        version=int(version),
        title="Small",
        about="For tests.",
        archive="a" * 64,
        rules=Rules(tolerances={"float32": (1e-4, 1e-5)}, noise_rms=4, noise_max=16, steps=1),
        features=(Feature(name="float16", meaning="half"),),
        cases=tuple(
            ProfileCase(
                name=case,
                feature=feature,
                model="0",
                inputs="0",
                golden="0",
                ops={op: 1},
                types=("float16" if feature == "float16" else "float32",),
                opset=21,
            )
            for case, op, feature in CASES
        ),
    )


@pytest.fixture
def submit(tmp_path: Path) -> Submit:
    def write(
        folder: str,
        verdicts: dict[str, Verdict] | None = None,
        *,
        version: str = "1.0",
        name: str = "Npu EP",
        waivers: tuple[Waiver, ...] = (),
        reason: str = "",
    ) -> Path:
        profile = small_profile()
        found = {case: (verdicts or {}).get(case, Verdict.PASS) for case, *_ in CASES}
        records = [
            Record(
                schema=SCHEMA,
                cell=f"tiny/{case}[npu]",
                suite="tiny",
                model=case,
                target="npu",
                provider="QNNExecutionProvider",
                verdict=verdict,
                family=verdict.family,
                expected=True,
                reason=reason,
            )
            for case, verdict in found.items()
        ]
        result = result_of(profile, (), records)
        ref = ProfileRef(label=profile.label, digest=profile.digest, archive=profile.archive)
        statement = Statement(
            schema=1,
            created="2026-11-20T10:00:00Z",
            product=Product(vendor="Vendor", name=name, version=version),
            environment=Environment(
                provider="QNNExecutionProvider",
                provider_options={},
                runtime="python",
                onnxruntime="1.24.1",
                libraries={},
                devices=("Npu 7",),
                drivers={},
                packages={},
                platform="Linux x86_64",
            ),
            harness=Harness(version="1", sources="0"),
            profile=ref,
            claims=(),
            level=result.level,
            features=result.features,
            missing=result.missing,
            waivers=waivers,
            reproduce=("ep-harness", "conform"),
        )
        files = {
            "statement.json": encode_statement(statement),
            "records.jsonl": b"".join(encode_record(record) + b"\n" for record in records),
            "run.json": b"{}",
            "logs/run.txt": b"",
        }
        attested = encode_attestation(attestation_of(files, ref, result))
        home = tmp_path / "submissions" / folder
        (home / "logs").mkdir(parents=True)
        for each, content in {**files, "attestation.json": attested}.items():
            (home / each).write_bytes(content)
        return home

    return write


@pytest.fixture
def profiles() -> Callable[[str], Profile]:
    return small_profile
