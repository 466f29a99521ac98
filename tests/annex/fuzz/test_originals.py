"""Originals of failing variants are kept; other passing graphs are not."""

import pytest

from harness.annex.fuzz import originals
from harness.annex.fuzz.originals import Originals
from harness.core.records.cell import Cell
from harness.core.records.record import Record
from tests.kit import bare_record


def record_of(model: str, target: str = "gpu") -> Record:
    cell = Cell(suite="fuzz-1", model=model, target=target)
    return bare_record(model, cell=cell.id, suite="fuzz-1", target=target)


GROWN, VARIANT = "000004-grown", "000005-variant-of-000004"


def test_the_original_of_a_finding_is_given_once() -> None:
    held = Originals()
    assert not held.hold(record_of(GROWN))
    assert held.of(record_of(VARIANT)) == (record_of(GROWN),)
    assert held.of(record_of(VARIANT)) == ()


def test_an_original_that_comes_later_is_kept_at_once_and_only_on_that_target() -> None:
    held = Originals()
    assert held.of(record_of(VARIANT)) == ()
    assert not held.hold(record_of(GROWN, "cpu"))
    assert held.hold(record_of(GROWN))
    assert not held.hold(record_of(GROWN))


def test_what_is_no_variant_has_no_original() -> None:
    held = Originals()
    held.hold(record_of("000006-Relu-14-float32"))
    assert held.of(record_of("000009-variant-of-operator-test")) == ()
    assert not held.hold(record_of("000009-variant-of-operator-test"))


def test_few_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(originals, "MOST_HELD", 2)
    held = Originals()
    for number in (0, 4, 8):
        held.hold(record_of(f"{number:06d}-grown"))
    assert held.of(record_of("000001-variant-of-000000")) == ()
    assert held.of(record_of("000005-variant-of-000004")) == (record_of("000004-grown"),)
