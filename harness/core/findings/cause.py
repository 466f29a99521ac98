"""The innermost cause that an error names, in words that are equal for all cells with this cause.

Providers wrap the reason in their own text: ``returned while running Conv node ... Status Message: ...``. The
node with that cause, and its shapes, differ from cell to cell.
"""

import re
from collections.abc import Collection

from harness.core.findings.lacking import lacking
from harness.core.text.errors import one_line

PRINTED = "it printed: "
"""Text before a provider's printed output, where its error gives no reason."""

_AROUND = re.compile(
    rf"Status Message:|ERROR_MESSAGE:|{PRINTED.rstrip()}|\bfailed:|\bException during \w{{1,40}}:"
)
"""Endings of the text that onnxruntime, OpenVINO and this harness put before a cause."""

_KIND = re.compile(r"(?:with [^:\n]{1,100}: (?=[A-Z]\w*: ))?[A-Z]\w*: ")
"""The kind of an error, such as ``RuntimeException``, behind the name of a data set; records have both."""

_LITTLE = 6
"""A cause of at most this many words names no reason: ``Failed to compose Qnn graph``."""

_LETTERS = re.compile(r"[^\W\d_]{2,}")
_WORD = re.compile(r"[^\s'\"`,;:()\[\]{}<>=]+")
_NAMES = re.compile(
    r"(?<=ode \()[^()]*(?=\) Op)"  # Node (c1) Op (Conv)
    r"|(?<=put: )\S+"  # for input: x
    r"|(?<=(?:name|node): )[^\s,;]+"  # Operation name: y
    r"|(?<=hostname=)\S+"  # CUDA failure 700: ... ; GPU=0 ; hostname=box7 ; file=...
)
"""Where providers name a node, an input, an output or a machine without quotes.

An optimizer makes up names of its own, which no model has.
"""

_VARYING = re.compile(
    r"'[^']{0,200}'|\"[^\"]{0,200}\"|`[^`]{0,200}`"
    r"|[(\[{]\s*-?\d[\d\s,x*-]*[)\]}]"  # a shape
    r"|[\w.+-]{1,200}\.(?:onnx|ort|pb|npy|npz)\b|0x[0-9a-fA-F]+"
    r"|(?:[\w.+-]{0,200}/)+[\w.+-]{0,200}|[-+]?\d[\d.,]*(?:[eE][-+]?\d+)?%?"
)
"""Names in quotes, shapes, files, addresses, paths, figures; bounded, for a text without an end."""

_MOST_CHARS = 4000
"""Largest number of characters that are searched for a cause: a foreign record may have any length."""

_CUT_WORD = re.compile(r"[^\s…]{0,30}…[^\s…]{0,30}")
"""Where a record's text is cut: how much of the words there is left depends on the length of names."""

_OPERATOR = re.compile(r"['\"`][A-Z][A-Za-z]+['\"`]")
"""An operator in quotes, which is part of a cause: ``no kernel for 'Relu'``."""


def plain_cause(text: str, names: Collection[str] = ()) -> str:
    """Return the cause in a message or a reason, with ``#`` for each name, shape, figure and path.

    Texts with the same result have the same cause. A feature that the device lacks is one cause, whichever
    operator needs it. ``names`` are those of the model's nodes and tensors.
    """
    text = _CUT_WORD.sub("…", one_line(text, _MOST_CHARS))
    if feature := lacking(text):
        return f"the device lacks {feature}"
    marked = _NAMES.sub("#", innermost(text))
    if names:
        known = frozenset(names)
        marked = _WORD.sub(lambda word: "#" if word[0] in known else word[0], marked)
    return one_line(_VARYING.sub(lambda part: part[0] if _OPERATOR.fullmatch(part[0]) else "#", marked))


def innermost(text: str) -> str:
    """Return the text behind all parts that only say where a cause occurred."""
    parts = [part for part in map(str.strip, _AROUND.split(text)) if part]
    cause = parts[-1] if parts else ""
    return _KIND.sub("", cause, count=1) if _KIND.match(cause) else cause


def says_little(message: str) -> bool:
    """Return whether an error gives no reason, so that the printed output may contain the cause."""
    return len(_LETTERS.findall(innermost(message))) <= _LITTLE
