import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.text.visible_text import visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ä ✓ 模型\n\tindented", "plain ä ✓ 模型\n\tindented"),
        ("\x1b[0;93mwarning\x1b[m", "warning"),
        ("\x1b]8;;https://evil.example\x1b\\link\x1b]8;;\x07", "link"),
        ("\x1b(Bcharset", "charset"),
        ("bell\x07 nul\x00 cr\r", "bell\\x07 nul\\x00 cr\\x0d"),
        ("\x1b", "\\x1b"),
        ("safe\u202egnp.exe", "safe\\u202egnp.exe"),
        ("pass\u200bword", "pass\\u200bword"),
        ("tag\U000e0041", "tag\\U000e0041"),
        ("lone\ud800", "lone\\ud800"),
    ],
)
def test_what_cannot_be_seen_is_dropped_or_spelled_out(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text(st.characters(), max_size=200))
def test_nothing_invisible_is_left(text: str) -> None:
    shown = visible(text)
    hidden = {c for c in shown if unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"}} - {"\n", "\t"}
    assert not hidden
    assert not {c for c in shown if unicodedata.bidirectional(c) in _BIDI_CONTROLS}
    assert visible(shown) == shown
    shown.encode("utf-8")


_BIDI_CONTROLS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
