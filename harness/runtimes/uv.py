"""uv, the program that builds environments of Python packages: find it, and read its errors."""

import os
import re
import shutil
import sysconfig

from harness.core.text.errors import one_line
from harness.core.text.visible_text import visible
from harness.runtimes.installer import Installer, InstallError

_SHOWN = 240
"""Characters of uv's error in a reason, which a table shows beside the requirements and a cause."""

_LAST_WORDS = re.compile(r"^(?:error: ?|\s*[x\u00d7] )(.*)", re.MULTILINE | re.DOTALL)
_BECAUSE = re.compile(r"\s*\n\s*(?:cause:|Caused by:|[╰└]─▶|├─▶)\s*")
_HINT = re.compile(r"\s*\n\s*(?=hint:)")
_DRAWING = re.compile(r"[│╰└├─▶]+")


class Uv(Installer):
    """Runs uv; another thread can cancel it."""

    name = "uv"
    variables = {"NO_COLOR": "1", "UV_NO_PROGRESS": "1"}  # noqa: RUF012 - a constant

    def program(self) -> str:
        """Return its path; errors as ``find_uv``."""
        return find_uv()

    def reason(self, printed: str) -> str:
        """Return uv's error and its causes in one line."""
        text = visible(printed)
        found = _LAST_WORDS.search(text)
        error = found[1] if found else "\n".join(text.strip().splitlines()[-3:])
        error = _HINT.sub("; ", _BECAUSE.sub(": ", error))
        return one_line(_DRAWING.sub(" ", error), _SHOWN)


def find_uv() -> str:
    """Return the uv that was installed with the harness, else the one on the path.

    Raises:
        InstallError: There is none.
    """
    places = (sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath))
    found = shutil.which("uv", path=os.pathsep.join(places))
    if found is None:
        raise InstallError("there is no uv to build it with; pip install uv")
    return found
