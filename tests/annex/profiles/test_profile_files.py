"""The file of a profile: what is refused, and that its schema is current."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.annex.conformance.profiles.profile import (
    decode_profile,
    encode_profile,
    load_profile,
    profile_schema,
)

ROOT = Path(__file__).parents[3]


def altered(change: Callable[[dict[str, Any]], object]) -> bytes:
    content: dict[str, Any] = json.loads(encode_profile(load_profile("qdq@1")))
    change(content)
    return json.dumps(content).encode()


def test_a_profile_reads_back() -> None:
    profile = load_profile("qdq@1")
    assert decode_profile(encode_profile(profile)) == profile


def test_the_digest_depends_on_the_content_and_not_on_the_layout() -> None:
    profile = load_profile("qdq@1")
    assert decode_profile(altered(lambda _: None)).digest == profile.digest
    other = decode_profile(altered(lambda content: content["rules"].update(steps=2.0)))
    assert other.digest != profile.digest


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda one: one["cases"].append(one["cases"][0]), "is there twice"),
        (lambda one: one["cases"][0].update(feature="speed"), "'speed', which is not described"),
        (lambda one: one["cases"][0].update(precision="float12"), "'float12', which has no limits"),
        (lambda one: one["cases"][0].update(scenario="dance"), "'dance': this harness does not play it"),
        (lambda one: one.update(schema=2), "version 2, and this harness reads 1"),
        (lambda one: one["rules"].pop("steps"), "missing required field `steps`"),
    ],
)
def test_a_profile_that_contradicts_itself_is_refused(
    change: Callable[[dict[str, Any]], object], message: str
) -> None:
    with pytest.raises(msgspec.ValidationError, match=message):
        decode_profile(altered(change))


def test_each_field_of_the_file_is_documented() -> None:
    page = (ROOT / "docs" / "reference" / "profile-format.md").read_text("utf-8")
    for part in profile_schema()["$defs"].values():
        for field in part["properties"]:
            assert f"| `{field}` |" in page, field
