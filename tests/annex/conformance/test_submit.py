"""Submissions: made from whole runs and from interrupted ones, without the folders of a machine."""

import datetime as dt
import json
from typing import Any

import msgspec
import pytest

from harness.annex.conformance.profiles.profile import Feature, Profile, ProfileCase, ProfileRules
from harness.annex.conformance.submission import Level, Statement, statement_schema
from harness.annex.conformance.submission_scrub import scrubbed, scrubbed_text, without_folders
from harness.annex.conformance.submit import Claim, ProfileRun, submission_of
from harness.annex.conformance.submitted_environment import submitted_environment_of, version_of
from harness.core.records.record import Record, decode_record
from harness.core.records.run_info import RunInfo
from harness.core.records.verdict import Verdict
from tests.kit import bare_record

NOW = dt.datetime(2026, 11, 25, 12, tzinfo=dt.UTC)
NAMES = ("s/a", "s/b", "s/c")


def profile() -> Profile:
    return Profile(
        schema=1,
        name="tiny",
        version=1,
        title="",
        about="",
        archive="a" * 64,
        rules=ProfileRules(tolerances={"float32": (1e-4, 1e-5)}, noise_rms=3, noise_max=32, steps=1),
        features=(),
        cases=tuple(
            ProfileCase(
                name=name, model="", inputs="", golden="", ops={"Abs": 1}, types=("float32",), opset=21
            )
            for name in NAMES
        ),
    )


def record(name: str, verdict: Verdict = Verdict.PASS) -> Record:
    return bare_record(name, verdict, suite="tiny-1", artifacts="artifacts/0123")


def finished(*records: Record, fingerprint: dict[str, Any] | None = None) -> ProfileRun:
    targets = {"ep": fingerprint or {"onnxruntime": "1.31.1"}}
    return ProfileRun(
        target="ep",
        provider="AcmeExecutionProvider",
        info=RunInfo(
            schema=1,
            plan="",
            cells=len(NAMES),
            matrix={"path": "/home/me/x/matrix.toml"},
            targets=targets,
            complete=len(records) == len(NAMES),
        ),
        records=records,
        told=["ready ep", "records /home/me/x/run"],
    )


def test_records_are_sorted_and_leave_artifacts_behind() -> None:
    done = submission_of(Claim(profile=profile()), finished(*map(record, reversed(NAMES))), NOW)
    assert done.result.level is Level.CONFORMANT
    written = [decode_record(line) for line in done.files["records.jsonl"].splitlines()]
    assert [one.model for one in written] == list(NAMES)
    assert {one.artifacts for one in written} == {""}
    assert done.files["logs/run.txt"] == b"ready ep\nrecords run\n"
    assert json.loads(done.files["run.json"])["matrix"]["path"] == "matrix.toml"


def test_who_claims_two_features_claims_both_at_once() -> None:
    features = tuple(Feature(name=name, meaning="") for name in ("a", "b", "a+b", "a+c"))
    of = msgspec.structs.replace(profile(), features=features)
    claim = Claim(profile=of, features=frozenset({"a", "b"}))
    assert submission_of(claim, finished(*map(record, NAMES)), NOW).statement.claims == ("a", "a+b", "b")


def test_an_interrupted_run_is_not_conformant_and_names_its_open_cases() -> None:
    done = submission_of(Claim(profile=profile()), finished(record("s/b")), NOW)
    statement = msgspec.json.decode(done.files["statement.json"], type=Statement)
    assert statement.level is Level.NOT
    assert statement.missing == ("s/a", "s/c")
    assert statement.features["core"].open == 2


def test_a_run_without_any_answer_gives_a_submission() -> None:
    done = submission_of(Claim(profile=profile()), finished(), NOW)
    assert done.files["records.jsonl"] == b""
    assert done.statement.missing == NAMES


def test_the_environment_is_that_of_the_agent() -> None:
    fingerprint = {
        "platform": "Linux-6",
        "machine": "x86_64",
        "onnxruntime": "1.31.1",
        "packages": {"b": "2", "a": "1"},
        "options": {"config": "/opt/acme/c.json"},
        "plugin": {"library": "/opt/acme/lib/libacme.so", "version": "3.2"},
        "sha256": {"libacme.so": "ab"},
        "drivers": {"acme": "7"},
        "devices": [{"device": {"type": "NPU", "vendor": "Acme"}, "metadata": {"name": "N\u202e1"}}] * 2,
    }
    found = submitted_environment_of("AcmeExecutionProvider", fingerprint)
    assert found.devices == ("NPU Acme N\\u202e1",)
    assert found.provider_options == {"config": "c.json"}
    assert found.libraries == {"libacme.so": "ab"}
    assert found.drivers == {"acme": "7"}
    assert found.platform == "Linux-6 x86_64"
    assert found.runtime == "python"
    assert version_of(found, fingerprint) == "3.2"


def test_an_agent_that_never_answered_leaves_the_environment_empty() -> None:
    found = submitted_environment_of("AcmeExecutionProvider", {})
    assert (found.onnxruntime, found.libraries, found.devices) == ("", {}, ())
    assert version_of(found, {}) == "unknown"


@pytest.mark.parametrize(("metadata", "version"), [({"version": "0.4.1"}, "0.4.1"), ({}, "unknown")])
def test_a_bare_library_has_the_version_that_it_tells(metadata: dict[str, str], version: str) -> None:
    fingerprint = {
        "onnxruntime": "1.31.1",
        "plugin": {"library": "/opt/acme/lib/libacme.so", "version": ""},
        "devices": [{"device": {"type": "NPU"}, "metadata": metadata}],
    }
    assert version_of(submitted_environment_of("AcmeExecutionProvider", fingerprint), fingerprint) == version


def test_a_browser_tells_the_version_of_its_package() -> None:
    fingerprint = {"browser": "156", "packages": {"onnxruntime-web": "1.30.0"}, "onnxruntime": "1.29"}
    found = submitted_environment_of("WebGpuExecutionProvider", fingerprint)
    assert found.runtime == "browser"
    assert version_of(found, fingerprint) == "1.30.0"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("/opt/acme/libacme.so", "libacme.so"),
        ("C:\\Program Files\\Acme\\acme.dll", "acme.dll"),
        ("cannot load '/opt/acme/libacme.so': no", "cannot load 'libacme.so': no"),
        ("\\\\server\\share\\acme.dll", "acme.dll"),
        ("~/models/a.onnx", "a.onnx"),
        ("LD=/opt/a:/opt/b/c", "LD=a:c"),
        ('{"file": "/opt/a/b.json"}', '{"file": "b.json"}'),
        ("https://example.org/a/b", "https://example.org/a/b"),
        ("models/a.onnx", "models/a.onnx"),
        ("Mozilla/5.0 (X11) Safari/537.36", "Mozilla/5.0 (X11) Safari/537.36"),
        ("at file:///home/alice/lib.py, line 3", "at lib.py, line 3"),
        ("at file:///C:/Users/alice/lib.py", "at lib.py"),
        ("ld -L/opt/vendor/secret/lib -lx", "ld -Llib -lx"),
        ("-a/b", "-a/b"),
    ],
)
def test_folders_are_removed_and_nothing_else(text: str, left: str) -> None:
    assert without_folders(text) == left
    assert scrubbed({"a": [text, 1, None]}) == {"a": [left, 1, None]}


def test_the_host_of_a_cuda_error_is_removed() -> None:
    assert scrubbed_text("CUDA failure 2; GPU=0 ; hostname=vendor-lab-17 ; file=a.cc") == (
        "CUDA failure 2; GPU=0 ; hostname=<host> ; file=a.cc"
    )


def test_a_statement_has_what_its_schema_says() -> None:
    done = submission_of(Claim(profile=profile()), finished(*map(record, NAMES)), NOW)
    schema = statement_schema()
    assert set(schema["$defs"]["Statement"]["properties"]) == set(json.loads(done.files["statement.json"]))
