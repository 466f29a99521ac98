r"""Make text from models and providers harmless and visible.

The template engine escapes HTML; this module replaces what HTML lets through: terminal colours, control
characters, and invisible characters that reorder or hide text.
"""

import re

WIDTH = 80
"""Columns of a page of text."""

_ANSI = re.compile(
    r"""\x1b(?:
        \[[0-?]*[ -/]*[@-~]                # CSI: colours, cursor movements
      | [\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?  # OSC, DCS, SOS, PM, APC: titles, links
      | [ -/]*[0-~]                        # other sequences of two or three characters
    )""",
    re.VERBOSE,
)
_INVISIBLE = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls except tab and newline
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"  # soft hyphen, fillers, Arabic letter mark
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f"  # zero width, line separators, direction overrides
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff"  # fillers, variation selectors, byte order mark
    "\ud800-\udfff"  # lone surrogates, which UTF-8 cannot carry
    "\U000e0000-\U000e0fff"  # tags
    "]"
)


def visible(text: str) -> str:
    r"""Drop terminal escape sequences and spell out invisible characters, such as ``\x07`` or ``\u202e``.

    Tabs and newlines stay.
    """
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    return _INVISIBLE.sub(_spelled, text)


def _spelled(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code <= 0xFF:  # noqa: PLR2004 - the range of \x
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004 - the range of \u
