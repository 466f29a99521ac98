"""The attestation: in-toto's own field names, a digest of every file, the required cases by standing."""

import hashlib
import json

import msgspec

from harness.annex.conformance.attestation import Attestation, attestation_of
from harness.annex.conformance.level import profile_result
from harness.annex.conformance.submission import ProfileRef, encode_part
from harness.core.records.verdict import Verdict
from tests.annex.conformance.test_level import case, profile, record


def test_the_form_is_that_of_in_toto() -> None:
    of = profile(case("a/h", "float16"), case("a/w"), case("a/x"), case("a/y"), case("a/z"))
    verdicts = {"a/h": Verdict.CRASH, "a/w": Verdict.FALLBACK, "a/x": Verdict.PASS, "a/y": Verdict.MISMATCH}
    result = profile_result(of, (), [record(name, verdict) for name, verdict in verdicts.items()])
    ref = ProfileRef(label="tiny@1", digest="1" * 64, archive="2" * 64)
    made = attestation_of({"run.json": b"r", "logs/run.txt": b"l"}, ref, result)
    content = encode_part(made)
    assert json.loads(content) == {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [
            {"name": name, "digest": {"sha256": hashlib.sha256(data).hexdigest()}}
            for name, data in (("logs/run.txt", b"l"), ("run.json", b"r"))
        ],
        "predicateType": "https://in-toto.io/attestation/test-result/v0.1",
        "predicate": {
            "result": "FAILED",
            "configuration": [
                {"name": "tiny@1", "digest": {"sha256": "1" * 64}},
                {"name": "tiny@1.zip", "digest": {"sha256": "2" * 64}},
            ],
            "passedTests": ["a/x"],
            "warnedTests": ["a/w"],
            "failedTests": ["a/y", "a/z"],
        },
    }
    assert msgspec.json.decode(content, type=Attestation) == made
