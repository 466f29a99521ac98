"""The page that compares any two targets of a report."""

import base64
import json
import zlib
from typing import Any

from harness.core.records.record import Record
from harness.core.records.verdict import Verdict
from harness.report.pages.any_two import compared_columns
from harness.report.view import build_report
from tests.kit import merged, record


def told(*records: Record) -> list[Any]:
    views = compared_columns(build_report(merged(records), lambda *_: "", {}))
    return [json.loads(zlib.decompress(base64.b64decode(view.archive))) for view in views]


def test_each_column_is_a_side_with_a_letter_for_each_case() -> None:
    (found,) = told(
        record("a", target="new"),
        record("a", target="old", verdict=Verdict.CRASH),
        record("b", target="old"),
        record("b", target="old", verdict=Verdict.FALLBACK, axes={"precision": "fp16"}),
    )
    assert found["cases"] == ["onnx-node/a", "onnx-node/b"]
    words = {
        one["id"]: [found["verdicts"][ord(letter) - ord("a")][2] for letter in one["verdicts"]]
        for one in found["sides"]
    }
    assert words == {
        "new": ["passed", "open"],
        "old": ["failed", "passed"],
        "old · precision=fp16": ["open", "untested"],
    }
    assert [found["groups"][one["group"]]["name"] for one in found["sides"]] == ["new", "old", "old"]


def test_one_column_has_nothing_to_compare_with() -> None:
    assert told(record("a"), record("b")) == []
