"""What onnxruntime says, less what only its own developers need."""

import re
from pathlib import Path

from harness.core.errors import one_line

_PLACE = re.compile(r"(?:/[\w.+-]+)*?/(?:onnxruntime_src|onnxruntime/(?:core|python))/\S*?([\w.]+:\d+) ")
_STATUS = re.compile(r"\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : ")
_AFTER_PARAMETERS = re.compile(r"::<lambda\([^)]*\)>|\s*\bconst\b|\s*\[with [^]]*\]")


def essence(message: str, model: Path | None = None) -> str:
    """An error message in one line: status codes, source paths, C++ signatures and the model's folder go.

    onnxruntime puts ``file:line signature`` before what it has to say; the signature alone can be longer
    than a line. The file's name and the line stay, for whoever looks there.

    Args:
        message: As it was raised.
        model: The model's path; only its name stays.
    """
    text = _STATUS.sub("", message)
    if model is not None:
        text = text.replace(str(model), model.name)
    parts = []
    position = 0
    for place in _PLACE.finditer(text):
        if place.start() < position:
            continue
        parts += [text[position : place.start()], place[1], ": "]
        position = _after_signature(text, place.end())
    return one_line("".join([*parts, text[position:]]))


def _after_signature(text: str, start: int) -> int:
    """Where the signature that begins at ``start`` ends; ``start`` itself where there is none."""
    opened = text.find("(", start)
    if opened < 0:
        return start
    depth = 0
    for position in range(opened, len(text)):
        depth += (text[position] == "(") - (text[position] == ")")
        if not depth:
            break
    else:
        return start  # cut off in the middle
    end = position + 1
    while suffix := _AFTER_PARAMETERS.match(text, end):
        end = suffix.end()
    return end + (len(text) > end and text[end] == " ")
