"""Failures of one cause have one text, whichever node met it."""

import pytest

from harness.core.findings.cause import innermost, plain_cause, says_little


@pytest.mark.parametrize(
    "messages",
    [
        (
            "Fail: while running Cast node. Name:'a' Status Message: Cast requires f16 but it has none",
            "Fail: Status Message: Status Message: Program Max requires f16 but the device has none",
        ),
        (
            "Fail: Name:'x' Status Message: Check 'a != b' failed: Memory has not been allocated",
            "EPFail: Check 'c' failed: Memory has not been allocated",
        ),
        ("Fail: no room for a[3, 4] of 12 bytes", "Fail: no room for a[7,1] of 7 bytes"),
        ("with test_data_set_1: Fail: no tiles", "with test_data_set_2: Fail: no tiles", "Fail: no tiles"),
        (
            "Failed; it printed: Failed for node: a_1. Code 7",
            "Failed; it printed: Failed for node: b_2. Code 8",
        ),
        ("Operation name: Squeeze_72, no", "Operation name: y, no"),
        # A record's text is cut in the middle, at a place that depends on the length of names.
        (
            "Name:'a' Status Message: Comp…s provider. HOW: cast it",
            "Status Message: Co…is provider. HOW: cast it",
        ),
    ],
)
def test_one_cause_is_one_text(messages: tuple[str, ...]) -> None:
    assert len({plain_cause(one) for one in messages}) == 1


def test_other_causes_have_other_texts() -> None:
    texts = (
        "no kernel for 'Relu'",
        "no kernel for 'Neg'",
        "Check 'a' failed: no tiles",
        "no tiles for 'Relu'",
    )
    assert len({plain_cause(one) for one in texts}) == len(texts)


def test_the_innermost_is_never_nothing() -> None:
    assert innermost("Fail: why Status Message: ") == "why"
    assert innermost("") == ""
    assert says_little("EPFail: Failed to compose Qnn graph.")
    assert not says_little("EPFail: Status Message: the tile of the unit has no room for this")
