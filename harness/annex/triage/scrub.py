"""What a bundle must not reveal: folders, users and hosts of the machine it comes from."""

import os
import re
import tempfile
from collections.abc import Iterable
from pathlib import Path

import msgspec

from harness.core.text.visible_text import visible
from harness.places.own_names import own_hosts, own_users, without_names

PATH = "<path>"

_WORD = r"[\w.+@%~#-]"
_BEFORE = r"(?:(?<![\w.<>/])|(?<=^-[A-Za-z])|(?<=\s-[A-Za-z]))"  # also after -L and similar
_POSIX = re.compile(rf"{_BEFORE}(?:file://)?~?/(?:{_WORD}+/)*({_WORD}+)?")
_WINDOWS = re.compile(rf"(?<!\w)(?:file:///)?(?:[A-Za-z]:[\\/]|\\\\)(?:[^\\/:*?\"<>|\s]+[\\/])*({_WORD}*)")


class Scrubber(msgspec.Struct, frozen=True, kw_only=True):
    """Replaces text that identifies its machine: folders, users and hosts.

    Attributes:
        folders: Folders to hide, even if they contain spaces; absolute paths are always hidden.
        names: Names from the model, which may look like paths (``/encoder/layer.0/MatMul``) and stay.
    """

    folders: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    names: frozenset[str] = frozenset()

    @classmethod
    def of_here(cls, names: Iterable[str] = ()) -> "Scrubber":
        """Return a scrubber that knows this process's account, host and folders."""
        folders = {str(Path.cwd()), tempfile.gettempdir(), os.path.expanduser("~")}  # noqa: PTH111 - may be unset
        return cls(
            folders=tuple(
                sorted((one for one in folders if len(Path(one).parts) > 1), key=len, reverse=True)
            ),
            users=own_users(),
            hosts=own_hosts(),
            names=frozenset(names),
        )

    def __call__(self, text: str) -> str:
        """Return the text with placeholders; the file name of a path stays."""
        text = visible(text)
        for folder in self.folders:
            text = re.sub(re.escape(folder) + r"(?=[\\/\s'\":;,)\]]|$)", PATH, text)
        text = re.sub(re.escape(PATH) + rf"[\\/](?:[^\\/\s:'\"]+[\\/])*({_WORD}*)", _named, text)
        text = _POSIX.sub(self._path, _WINDOWS.sub(_named, text))
        return without_names(text, self.users, self.hosts)

    def table(self, values: dict[str, str]) -> dict[str, str]:
        """Return the table with each value scrubbed."""
        return {key: self(value) for key, value in values.items()}

    def _path(self, match: re.Match[str]) -> str:
        text = match[0]
        if text in self.names or text.rstrip(".") in self.names or text == "/":
            return text
        return _named(match)


def _named(match: re.Match[str]) -> str:
    return f"{PATH}/{match[1]}" if match[1] else PATH
