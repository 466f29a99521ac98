"""What onnxruntime says, less what only its own developers need."""

import re
from collections.abc import Iterator
from pathlib import Path

from harness.core.errors import one_line

LIMIT = 8192
"""Characters of a message that are read: twice what an agent sends, and 300 of them are shown."""

_WORD = re.compile(r"\S+")
_SOURCES = re.compile(r"/(?:onnxruntime_src|onnxruntime/(?:core|python))/")
_LINE = re.compile(r":\d+")
_STATUS = re.compile(r"\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : ")
_AFTER_PARAMETERS = re.compile(r"::<lambda\([^)]*\)>|\s*\bconst\b|\s*\[with [^]]*\]")


def clean_error(message: str, model: Path | None = None) -> str:
    """An error message in one line: status codes, source paths, C++ signatures and the model's folder go.

    onnxruntime puts ``file:line signature`` before what it has to say; the signature alone can be longer
    than a line. The file's name and the line stay, for whoever looks there.

    Args:
        message: As it was raised.
        model: The model's path; only its name stays.
    """
    text = _STATUS.sub("", message[:LIMIT])
    if model is not None:
        text = text.replace(str(model), model.name)
    parts = []
    position = 0
    for start, end, place in _places(text):
        if start < position:
            continue
        parts += [text[position:start], place, ": "]
        position = _after_signature(text, end)
    return one_line("".join([*parts, text[position:]]))


def _places(text: str) -> Iterator[tuple[int, int, str]]:
    """Where ``path/of/onnxruntime/file:line`` and a blank begin and end, and ``file:line``.

    Word by word, and not by one pattern, which would try every part of a hostile path as its beginning.
    """
    for word in _WORD.finditer(text):
        sources = _SOURCES.search(word[0])
        colon = word[0].rfind(":")
        ended = text[word.end() : word.end() + 1] == " "
        if sources is None or not ended or not _LINE.fullmatch(word[0], max(colon, 0)):
            continue
        file = colon
        while file > sources.end() and (word[0][file - 1] in "._" or word[0][file - 1].isalnum()):
            file -= 1
        if file < colon:
            yield word.start() + _path_to(word[0], sources.start()), word.end() + 1, word[0][file:]


def _path_to(word: str, start: int) -> int:
    """Where the folders begin that lead to a place in a word."""
    while True:
        slash = word.rfind("/", 0, start)
        folder = word[slash + 1 : start]
        if slash < 0 or not folder or not all(char in "._+-" or char.isalnum() for char in folder):
            return start
        start = slash


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
