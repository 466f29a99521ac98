"""Submissions tampered with by somebody who knows the form: each is refused or marked, with the reason."""

import datetime as dt
import os
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.annex.conformance.submission import (
    ATTESTATION,
    LOG,
    SSH_SIGNATURE,
    STATEMENT,
    SUBMITTED_RECORDS,
    SUBMITTED_RUN,
    WAIVERS,
    Level,
    Waiver,
)
from harness.annex.conformance.verify.finding import FINDING_KINDS, FindingWeight
from harness.annex.conformance.verify.verification import MOST_FINDINGS, Verification, verify_submissions
from harness.core.comparison.output_metrics import Noise, OutputDetails
from harness.core.records.record import Record
from harness.core.records.reference_answer import Adjudication, ReferenceCheck
from harness.core.records.verdict import Family, Verdict
from tests.annex.conformance.small_profiles import tiny_profile, write_profile
from tests.annex.conformance.submissions import (
    FINGERPRINT,
    NOW,
    Draft,
    changed,
    fallen,
    judged,
    new_key,
    refused,
    write_folder,
    write_zip,
    wrong,
)

WAIVER = Waiver(
    case="suite/case_000", issue="https://example.org/1", expires=dt.date(2027, 1, 1), words="A driver fault."
)


def verified(path: Path, tmp_path: Path, signers: Path | None = None) -> Verification:
    profiles = write_profile(tmp_path / "profiles", tiny_profile())
    (done,) = verify_submissions([path], signers=signers, now=NOW, profiles=profiles)
    return done


def names(done: Verification) -> set[str]:
    return {one.name for one in done.findings}


def expect(done: Verification, name: str) -> None:
    assert name in names(done), done.findings
    assert FINDING_KINDS[name].weight is not FindingWeight.NOTED
    assert done.outcome != "verified"


def draft_of(edit: Callable[[Record], Record], at: int = 0) -> Draft:
    return Draft(lambda index, record: edit(record) if index == at else record)


def row(**fields: Any) -> Callable[[Record], Record]:
    return lambda record: changed(record, outputs=(changed(record.outputs[0], **fields),))


def placed(**fields: Any) -> Callable[[Record], Record]:
    return lambda record: changed(record, placement=changed(record.placement, **fields))


def as_pass(record: Record) -> Record:
    return changed(record, verdict=Verdict.PASS, family=Family.PASSED)


def noisy(record: Record) -> Record:
    frontier = record.outputs[0].frontier
    raised = (frontier[0], (frontier[1][0], frontier[0][1] * 2), *frontier[2:])
    return row(frontier=raised)(record)


def scaled(record: Record, factor: float) -> Record:
    """Return the record with smaller errors that agree with each other, but not with the golden."""
    one = record.outputs[0]
    return row(
        max_abs=(one.max_abs or 0) * factor,
        max_rel=(one.max_rel or 0) * factor,
        rmse=(one.rmse or 0) * factor,
        headroom=None,
        mismatched=0,
        frontier=tuple((at, rtol * factor) for at, rtol in one.frontier if at == 0)
        + (((one.atol, 0.0),) if one.atol >= (one.max_abs or 0) * factor else ()),
    )(record)


RECORD_EDITS: dict[str, tuple[Callable[[Record], Record], str]] = {
    "flipped verdict": (lambda r: as_pass(wrong(r)), "verdict"),
    "fallback called pass": (lambda r: as_pass(fallen(r)), "verdict"),
    "refusal called pass": (lambda r: as_pass(refused(r)), "verdict"),
    "family alone": (lambda r: changed(wrong(r), family=Family.PASSED), "verdict"),
    "unknown placement called pass": (
        placed(source="unknown", ep_nodes=0, ep_ops={}, partitions=0),
        "verdict",
    ),
    "cpu node called pass": (placed(cpu_nodes=1, cpu_ops={"MatMul": 1}), "verdict"),
    "coarser precision": (lambda r: changed(r, precision="float8"), "excuse"),
    "converted": (lambda r: changed(r, converted=True), "excuse"),
    "delivers": (lambda r: changed(r, delivers=("bfloat16",)), "excuse"),
    "dispute": (lambda r: changed(wrong(r), dispute="golden is wrong"), "excuse"),
    "undefined": (lambda r: changed(wrong(r), undefined={"y": "text"}), "excuse"),
    "golden of the CPU": (lambda r: changed(r, golden="cpu"), "excuse"),
    "references": (lambda r: changed(wrong(r), reference_check=ReferenceCheck()), "excuse"),
    "adjudication": (
        lambda r: changed(
            r, adjudication=(Adjudication(output="y", by="x", golden=1.0, ep=0.0, nearer="ep"),)
        ),
        "excuse",
    ),
    "max_abs lowered": (lambda r: row(max_abs=(r.outputs[0].max_abs or 0) / 2)(r), "metrics"),
    "rmse zero": (row(rmse=0.0), "metrics"),
    "rmse above max": (row(rmse=1.0), "metrics"),
    "headroom": (row(headroom=0.9), "metrics"),
    "headroom above 1": (row(headroom=1.5), "metrics"),
    "negative error": (row(max_abs=-1.0), "metrics"),
    "frontier rises": (noisy, "metrics"),
    "frontier emptied": (row(frontier=()), "metrics"),
    "frontier exact": (row(frontier=((0.0, 0.0),)), "metrics"),
    "other atol": (row(atol=1.0), "metrics"),
    "elements": (row(elements=65), "metrics"),
    "mismatched": (row(mismatched=3), "metrics"),
    "bits": (row(delivered_bits=30.0), "metrics"),
    "cosine": (row(cosine=0.5), "metrics"),
    "ep_nodes": (placed(ep_nodes=7), "placement"),
    "negative nodes": (placed(ep_nodes=3, ep_ops={"MatMul": 5, "Add": -2}), "placement"),
    "partitions": (placed(partitions=9), "placement"),
    "no partitions": (placed(partitions=0), "placement"),
    "shape op not on cpu": (placed(shape_ops=("MatMul",)), "placement"),
    "foreign shape op": (
        placed(cpu_nodes=1, cpu_ops={"Conv": 1}, shape_ops=("Conv",)),
        "placement",
    ),
    "work called shape work": (
        placed(ep_nodes=2, ep_ops={"Add": 2}, cpu_nodes=1, cpu_ops={"MatMul": 1}, shape_ops=("MatMul",)),
        "placement",
    ),
    "no outputs": (lambda r: changed(r, outputs=()), "outputs"),
    "an output twice": (lambda r: changed(r, outputs=r.outputs * 2), "outputs"),
    "output renamed": (row(name="z"), "outputs"),
    "other shape": (row(shape=(64,)), "outputs"),
    "other type": (row(dtype="float16"), "outputs"),
    "second run without outputs of the model": (
        lambda r: changed(r, again=(changed(r.outputs[0], name="z"),)),
        "outputs",
    ),
    "steps of floats": (
        lambda r: judged(row(details=OutputDetails(steps=0.5))(wrong(r))),
        "metrics",
    ),
    "noise that is not frozen": (
        lambda r: judged(row(noise=Noise(precision="float32", rms=0.5, max=1.0))(wrong(r))),
        "metrics",
    ),
    "nothing finite": (
        lambda r: judged(
            row(max_abs=None, max_rel=None, rmse=None, headroom=None, frontier=((0.0, 0.0),), mismatched=0)(
                wrong(r)
            )
        ),
        "metrics",
    ),
    "frontier of a small error": (
        lambda r: judged(
            row(frontier=r.outputs[0].frontier, mismatched=0, delivered_bits=20.0, headroom=0.1)(wrong(r))
        ),
        "metrics",
    ),
    "errors all a thousandth, bits as they were": (lambda r: judged(scaled(wrong(r), 1e-6)), "metrics"),
    "weak golden": (lambda r: changed(r, weak_golden="all zeros"), "excuse"),
    "no golden": (lambda r: changed(r, no_golden="none"), "excuse"),
    "other inputs": (lambda r: changed(r, other=r.outputs), "excuse"),
    "digest of another model": (lambda r: changed(r, model_digest="0" * 64), "other-model"),
    "no digest of the model": (lambda r: changed(r, model_digest=""), "other-model"),
    "impossible nodes": (placed(ep_nodes=900, ep_ops={"Add": 900}), "too-many-nodes"),
    "times zero": (
        lambda r: changed(r, timings_ms={"create": 0.0, "first_run": 0.0, "teardown": 0.0}),
        "timings",
    ),
    "times missing": (lambda r: changed(r, timings_ms={}), "timings"),
    "phases longer than cell": (
        lambda r: changed(r, process=changed(r.process, took_ms=0.1)),
        "timings",
    ),
    "no start": (lambda r: changed(r, started=""), "timings"),
    "starts later": (lambda r: changed(r, started="2026-12-01T00:00:00+00:00"), "time"),
    "start is no time": (lambda r: changed(r, started="yesterday"), "time"),
    "other provider": (lambda r: changed(r, provider="CPUExecutionProvider"), "other-target"),
    "other target": (lambda r: changed(r, target="other"), "other-target"),
    "other suite": (lambda r: changed(r, suite="cnn-1"), "other-target"),
    "other axes": (lambda r: changed(r, axes={**r.axes, "precision": "fp16"}), "other-target"),
    "other id": (lambda r: changed(r, cell="a/b[ep]"), "other-target"),
    "other model": (lambda r: changed(r, content=changed(r.content, ops={"Abs": 1})), "other-model"),
    "inputs of its own": (lambda r: changed(r, fed="generated 2x3, seed 0"), "other-model"),
    "no content": (lambda r: changed(r, content=None), "other-model"),
    "foreign case": (lambda r: changed(r, model="suite/zzz"), "case-unknown"),
    "schema of a record": (lambda r: changed(r, schema=2), "other-schema"),
}


@pytest.mark.parametrize("kind", RECORD_EDITS)
def test_an_edited_record(kind: str, tmp_path: Path) -> None:
    edit, name = RECORD_EDITS[kind]
    expect(verified(write_folder(draft_of(edit).files(), tmp_path / "s"), tmp_path), name)


def replaced(old: bytes, new: bytes, file: str = SUBMITTED_RECORDS) -> Callable[[dict[str, bytes]], None]:
    def edit(files: dict[str, bytes]) -> None:
        assert old in files[file]
        files[file] = files[file].replace(old, new, 1)

    return edit


def put(name: str, content: bytes) -> Callable[[dict[str, bytes]], None]:
    return lambda files: files.__setitem__(name, content)


RAW_EDITS: dict[str, tuple[Callable[[dict[str, bytes]], object], str]] = {
    "duplicate key": (replaced(b'"schema":1', b'"schema":1,"schema":1'), "duplicate-key"),
    "NaN": (replaced(b'"mismatched":0', b'"mismatched":NaN'), "not-json"),
    "Infinity": (replaced(b'"attempt":1', b'"attempt":Infinity'), "not-json"),
    "1e999": (replaced(b'"rtol":0.0001', b'"rtol":1e999'), "not-json"),
    "huge integer": (replaced(b'"attempt":1', b'"attempt":' + b"9" * 100), "not-json"),
    "thousands of digits": (replaced(b'"attempt":1', b'"attempt":' + b"9" * 9000), "not-json"),
    "unknown field": (replaced(b'"schema":1', b'"schema":1,"note":"trust me"'), "other-form"),
    "BOM": (replaced(b'{"schema"', b'\xef\xbb\xbf{"schema"'), "not-json"),
    "trailing garbage": (
        lambda files: files.__setitem__(SUBMITTED_RECORDS, files[SUBMITTED_RECORDS] + b"garbage\n"),
        "not-json",
    ),
    "CRLF": (
        lambda files: files.__setitem__(SUBMITTED_RECORDS, files[SUBMITTED_RECORDS].replace(b"\n", b"\r\n")),
        "not-json",
    ),
    "not UTF-8": (replaced(b'"golden":"profile"', b'"golden":"\xff"'), "not-json"),
    "deep nesting": (put(SUBMITTED_RUN, b"[" * 100_000 + b"]" * 100_000), "not-json"),
    "giant line": (put(SUBMITTED_RUN, b'"' + b"x" * (9 << 20) + b'"'), "not-json"),
    "empty statement": (put(STATEMENT, b""), "not-json"),
    "statement is a list": (put(STATEMENT, b"[]"), "other-form"),
    "no last newline": (
        lambda files: files.__setitem__(SUBMITTED_RECORDS, files[SUBMITTED_RECORDS][:-1]),
        "not-json",
    ),
    "wrong type": (replaced(b'"attempt":1', b'"attempt":"1"'), "other-form"),
    "run of other cells": (replaced(b'"cells":8', b'"cells":9', SUBMITTED_RUN), "run"),
    "run not complete": (replaced(b'"complete":true', b'"complete":false', SUBMITTED_RUN), "run"),
    "other onnxruntime": (replaced(b"1.31.1", b"1.30.0", SUBMITTED_RUN), "other-environment"),
    "waivers that are not stated": (
        put(WAIVERS, b'[[waiver]]\ncase="*"\nissue="https://x.y/1"\nexpires=2027-01-01\nwords="w"\n'),
        "waivers",
    ),
    "a further file": (put("evil.sh", b""), "unknown-file"),
}


@pytest.mark.parametrize("kind", RAW_EDITS)
def test_edited_bytes_attested_again(kind: str, tmp_path: Path) -> None:
    edit, name = RAW_EDITS[kind]
    draft = Draft()
    draft.raw = edit
    expect(verified(write_folder(draft.files(), tmp_path / "s"), tmp_path), name)


AFTER_EDITS: dict[str, tuple[Callable[[dict[str, bytes]], object], str]] = {
    "log edited": (put(LOG, b"all fine\n"), "digest"),
    "record edited": (replaced(b'"attempt":1', b'"attempt":2'), "digest"),
    "no attestation": (lambda files: files.pop(ATTESTATION), "not-a-submission"),
    "no records": (lambda files: files.pop(SUBMITTED_RECORDS), "not-a-submission"),
    "waivers added": (put(WAIVERS, b""), "not-attested"),
    "subject of no file": (
        replaced(b'"name": "run.json"', b'"name": "ran.json"', ATTESTATION),
        "attested-missing",
    ),
    "result edited": (replaced(b'"PASSED"', b'"FAILED"', ATTESTATION), "attestation"),
    "signature is no signature": (put(SSH_SIGNATURE, b"x"), "signature"),
}


@pytest.mark.parametrize("kind", AFTER_EDITS)
def test_edited_after_the_attestation(kind: str, tmp_path: Path) -> None:
    edit, name = AFTER_EDITS[kind]
    draft = Draft()
    draft.after = edit
    expect(verified(write_folder(draft.files(), tmp_path / "s"), tmp_path), name)


STATED: dict[str, tuple[dict[str, Any], str]] = {
    "other schema": ({"schema": 2}, "other-schema"),
    "level": ({"level": Level.PARTIAL}, "level"),
    "missing": ({"missing": ("suite/case_000",)}, "missing-list"),
    "totals": ({"features": {}}, "totals"),
    "unknown claim": ({"claims": ("fp64",)}, "unknown-claim"),
    "a claim twice": ({"claims": ("float16", "float16")}, "unknown-claim"),
    "two claims without both at once": ({"claims": ("float16", "float64")}, "unknown-claim"),
    "no time": ({"created": "now"}, "time"),
    "the future": ({"created": "2030-01-01T00:00:00+00:00"}, "future"),
    "waivers only stated": ({"waivers": (WAIVER,)}, "waivers"),
}


@pytest.mark.parametrize("kind", STATED)
def test_an_edited_statement(kind: str, tmp_path: Path) -> None:
    fields, name = STATED[kind]
    draft = Draft()
    draft.statement = lambda statement: changed(statement, **fields)
    expect(verified(write_folder(draft.files(), tmp_path / "s"), tmp_path), name)


ENVIRONMENTS: dict[str, Any] = {
    "provider": "CPUExecutionProvider",
    "provider_options": {},
    "runtime": "browser",
    "onnxruntime": "1.32.0",
    "libraries": {"libonnxruntime_providers_qnn.so": "e" * 64},
    "devices": ("a far better NPU",),
    "drivers": {},
    "packages": {"numpy": "2.4.6"},
    "platform": "Windows-11",
}


@pytest.mark.parametrize("field", ENVIRONMENTS)
def test_another_environment(field: str, tmp_path: Path) -> None:
    draft = Draft()
    draft.statement = lambda s: changed(s, environment=changed(s.environment, **{field: ENVIRONMENTS[field]}))
    expect(verified(write_folder(draft.files(), tmp_path / "s"), tmp_path), "other-environment")


def test_another_version_of_the_product(tmp_path: Path) -> None:
    draft = Draft()
    draft.statement = lambda s: changed(s, product=changed(s.product, version="3.0"))
    expect(verified(write_folder(draft.files(), tmp_path / "s"), tmp_path), "other-environment")


@pytest.mark.parametrize(
    "fields", [{"rms": 0.5}, {"max": 0.5}, {"rms": 0.5, "max": 2.0}, {"precision": "float16"}]
)
def test_an_error_called_noise(fields: dict[str, Any], tmp_path: Path) -> None:
    def edit(record: Record) -> Record:
        bad = wrong(record)
        assert bad.outputs[0].noise is not None
        return judged(row(noise=changed(bad.outputs[0].noise, **fields))(bad))

    done = verified(write_folder(draft_of(edit, at=1).files(), tmp_path / "s"), tmp_path)
    assert names(done) & {"metrics", "excuse"}
    assert done.outcome == "refused"


@pytest.mark.parametrize("devices", [[1], {"a": 1}, "NPU", [{"device": 3}]])
def test_a_hostile_fingerprint(devices: object, tmp_path: Path) -> None:
    draft = Draft()
    draft.raw = replaced(
        msgspec.json.encode(FINGERPRINT["devices"]), msgspec.json.encode(devices), SUBMITTED_RUN
    )
    done = verified(write_folder(draft.files(), tmp_path / "s"), tmp_path)
    assert names(done) & {"run", "other-environment"}
    assert done.outcome == "refused"


PROFILES: dict[str, tuple[dict[str, str], str]] = {
    "edited profile": ({"digest": "0" * 64}, "profile-edited"),
    "edited archive": ({"archive": "0" * 64}, "profile-edited"),
    "newer version": ({"label": "tiny@2"}, "unknown-profile"),
    "a path": ({"label": "../tiny@1"}, "unknown-profile"),
}


@pytest.mark.parametrize("kind", PROFILES)
def test_another_profile(kind: str, tmp_path: Path) -> None:
    fields, name = PROFILES[kind]
    draft = Draft()
    draft.statement = lambda statement: changed(statement, profile=changed(statement.profile, **fields))
    expect(verified(write_folder(draft.files(), tmp_path / "s"), tmp_path), name)


def test_claims_of_a_patched_harness_and_hidden_text(tmp_path: Path) -> None:
    draft = Draft()
    draft.statement = lambda s: changed(
        s,
        harness=changed(s.harness, unofficial=("a file differs",)),
        product=changed(s.product, vendor="Ven\u202edor"),
    )
    done = verified(write_folder(draft.files(), tmp_path / "s"), tmp_path)
    assert {"unofficial", "hidden-text"} <= names(done)
    assert done.outcome == "marked"


def test_cases_left_out_repeated_and_reordered(tmp_path: Path) -> None:
    for name, edit in (
        ("case-missing", lambda records: records[1:]),
        ("case-twice", lambda records: [records[0], *records]),
        ("records-unsorted", lambda records: records[::-1]),
    ):
        draft = Draft()
        draft.records = edit(draft.records)
        expect(verified(write_folder(draft.files(), tmp_path / name), tmp_path), name)


def test_a_case_of_another_feature_fails_a_claim_only(tmp_path: Path) -> None:
    edit = lambda index, record: refused(record) if index == 3 else record  # noqa: E731
    without = verified(write_folder(Draft(edit).files(), tmp_path / "a"), tmp_path)
    claimed = verified(write_folder(Draft(edit, claims=("float16",)).files(), tmp_path / "b"), tmp_path)
    assert without.result is not None
    assert claimed.result is not None
    assert (without.result.level, claimed.result.level) == (Level.CONFORMANT, Level.PARTIAL)
    assert without.outcome == claimed.outcome == "verified"


@pytest.mark.parametrize(
    ("waiver", "name"),
    [
        (changed(WAIVER, expires=dt.date(2026, 1, 1)), "waiver-expired"),
        (WAIVER, "waiver-idle"),
        (changed(WAIVER, case="suite/none"), "waivers"),
        (changed(WAIVER, issue="javascript:alert(1)"), "waivers"),
        (changed(WAIVER, words=" "), "waivers"),
    ],
)
def test_waivers(waiver: Waiver, name: str, tmp_path: Path) -> None:
    expect(verified(write_folder(Draft(waivers=(waiver,)).files(), tmp_path / "s"), tmp_path), name)


def test_times_that_are_all_alike(tmp_path: Path) -> None:
    times = {"create": 2.0, "first_run": 0.3, "teardown": 0.1}
    draft = Draft(lambda _, record: changed(record, timings_ms=times))
    expect(verified(write_folder(draft.files(), tmp_path / "s"), tmp_path), "timings")


def test_sessions_in_the_reverse_order(tmp_path: Path) -> None:
    draft = Draft(lambda i, record: changed(record, process=changed(record.process, session=20 - i)))
    expect(verified(write_folder(draft.files(), tmp_path / "s"), tmp_path), "process")


def test_answers_that_are_the_golden_everywhere(tmp_path: Path) -> None:
    exact = row(
        max_abs=0.0,
        max_rel=0.0,
        rmse=0.0,
        cosine=1.0,
        sqnr_db=None,
        delivered_bits=None,
        headroom=0.0,
        frontier=((0.0, 0.0),),
        noise=None,
    )
    draft = Draft(lambda _, record: exact(record))
    done = verified(write_folder(draft.files(), tmp_path / "s"), tmp_path)
    assert names(done) == {"too-exact", "no-signature"}


def test_records_of_another_submission(tmp_path: Path) -> None:
    mine = write_folder(Draft().files(), tmp_path / "mine")
    again = write_zip(Draft().files(), tmp_path / "again.zip")
    profiles = write_profile(tmp_path / "profiles", tiny_profile())
    for done in verify_submissions([mine, again], now=NOW, profiles=profiles):
        assert done.outcome == "verified"  # one submission that is there twice
    draft = Draft()
    draft.statement = lambda s: changed(s, product=changed(s.product, vendor="Another"))
    other = write_folder(draft.files(), tmp_path / "other")
    for done in verify_submissions([mine, other], now=NOW, profiles=profiles):
        expect(done, "copied")


def test_many_marks_do_not_hide_a_refusal(tmp_path: Path) -> None:
    draft = Draft()
    reasons = tuple(f"reason {number}" for number in range(MOST_FINDINGS))
    draft.statement = lambda s: changed(
        s, harness=changed(s.harness, unofficial=reasons), created="2026-01-01T00:00:00+00:00"
    )
    done = verified(write_folder(draft.files(), tmp_path / "s"), tmp_path)
    assert len(done.findings) == MOST_FINDINGS
    expect(done, "time")
    assert done.outcome == "refused"


def test_signatures(tmp_path: Path) -> None:
    key, line = new_key(tmp_path, "vendor@example.org")
    troll, _ = new_key(tmp_path, "troll@example.org")
    signers = tmp_path / "signers"
    signers.write_text(line)
    signed = Draft().files(key)
    good = verified(write_folder(signed, tmp_path / "good"), tmp_path, signers)
    assert (good.outcome, good.signer) == ("verified", "vendor@example.org")
    stolen = {**Draft(lambda i, r: refused(r) if i == 0 else r).files(), SSH_SIGNATURE: signed[SSH_SIGNATURE]}
    expect(verified(write_folder(stolen, tmp_path / "old"), tmp_path, signers), "signature")
    own = write_folder(Draft().files(troll), tmp_path / "own")
    expect(verified(own, tmp_path, signers), "unknown-signer")
    unsigned = write_folder(Draft().files(), tmp_path / "unsigned")
    expect(verified(unsigned, tmp_path, signers), "unsigned")
    two = write_folder({**signed, "attestation.sigstore.json": b"{}"}, tmp_path / "two")
    expect(verified(two, tmp_path, signers), "two-signatures")
    sigstore = write_folder({**Draft().files(), "attestation.sigstore.json": b"{}"}, tmp_path / "sig")
    expect(verified(sigstore, tmp_path, signers), "signature-unchecked")
    signers.write_text(line.replace("namespaces=", 'valid-before="20200101",namespaces='))
    expect(verified(tmp_path / "good", tmp_path, signers), "unknown-signer")


ENTRIES: dict[str, tuple[str, str]] = {
    "parent": ("../statement.json", "unsafe-name"),
    "absolute": ("/etc/passwd", "unsafe-name"),
    "backslash": ("logs\\run.txt", "unsafe-name"),
    "reserved": ("NUL.txt", "unsafe-name"),
    "drive": ("C:evil", "unsafe-name"),
    "other case": ("STATEMENT.json", "duplicate-name"),
    "the same name": ("statement.json", "duplicate-name"),
    "nested zip": ("more.zip", "unknown-file"),
    "control characters": ("a\x1b[31m.txt", "unsafe-name"),
}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("kind", ENTRIES)
def test_a_zip_with_a_hostile_name(kind: str, tmp_path: Path) -> None:
    entry, name = ENTRIES[kind]
    path = write_zip(Draft().files(), tmp_path / "s.zip")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(entry, b"x")
    expect(verified(path, tmp_path), name)


def test_zips_that_are_damaged_or_bombs(tmp_path: Path) -> None:
    good = write_zip(Draft().files(), tmp_path / "good.zip").read_bytes()

    def of(content: bytes) -> Verification:
        path = tmp_path / "bad.zip"
        path.write_bytes(content)
        return verified(path, tmp_path)

    expect(of(good[:-30]), "unreadable")
    expect(of(b""), "unreadable")
    expect(of(b"#!/bin/sh\n" + good), "unreadable")
    at = good.index(b"PK\x01\x02")
    expect(of(good[: at + 16] + struct.pack("<I", 1) + good[at + 20 :]), "unreadable")  # CRC
    expect(of(good[: at + 8] + struct.pack("<H", 1) + good[at + 10 :]), "encrypted")
    bomb = write_zip({**Draft().files(), LOG: b"\0" * (40 << 20)}, tmp_path / "bomb.zip")
    expect(verified(bomb, tmp_path), "too-large")
    link = zipfile.ZipInfo(WAIVERS)
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "good.zip", "a") as archive:
        archive.writestr(link, "/etc/passwd")
    expect(verified(tmp_path / "good.zip", tmp_path), "not-a-file")


def test_folders_with_links_pipes_and_sparse_files(tmp_path: Path) -> None:
    files = Draft().files()
    link = write_folder(files, tmp_path / "link")
    (link / WAIVERS).symlink_to("/etc/passwd")
    expect(verified(link, tmp_path), "not-a-file")
    pipe = write_folder(files, tmp_path / "pipe")
    os.mkfifo(pipe / WAIVERS)
    expect(verified(pipe, tmp_path), "not-a-file")
    expect(verified(pipe / WAIVERS, tmp_path), "not-a-file")
    sparse = write_folder(files, tmp_path / "sparse")
    with (sparse / WAIVERS).open("wb") as file:
        file.truncate(1 << 40)
    expect(verified(sparse, tmp_path), "too-large")
    folder = write_folder({**files, "deep/er/file": b""}, tmp_path / "deep")
    expect(verified(folder, tmp_path), "unknown-file")


def test_many_entries_lines_waivers_and_stars_are_counted_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = Draft().files()
    lines = write_folder({**files, SUBMITTED_RECORDS: b"\n" * (60 << 20)}, tmp_path / "lines")
    expect(verified(lines, tmp_path), "too-large")
    many = tuple(changed(WAIVER, words=str(number)) for number in range(3))
    monkeypatch.setattr("harness.annex.conformance.verify.statement_check.MOST_WAIVERS", 2)
    expect(verified(write_folder(Draft(waivers=many).files(), tmp_path / "many"), tmp_path), "waivers")
    stars = changed(WAIVER, case="*a" * 40 + "b")
    expect(verified(write_folder(Draft(waivers=(stars,)).files(), tmp_path / "stars"), tmp_path), "waivers")
    monkeypatch.setattr("harness.core.files.zips.MOST_DIRECTORY", 100)
    expect(verified(write_zip(files, tmp_path / "good.zip"), tmp_path), "unreadable")


def test_at_least_sixty_kinds_are_tried() -> None:
    kinds: tuple[dict[str, Any], ...] = (RECORD_EDITS, RAW_EDITS, AFTER_EDITS, STATED, PROFILES, ENTRIES)
    assert sum(len(table) for table in kinds) >= 60
