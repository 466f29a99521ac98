r"""Text from models and providers as one line of a log that a CI server reads along."""

from harness.core.errors import one_line
from harness.core.text import visible


def plain(text: object, limit: int = 300) -> str:
    """One visible line; the marks by which GitHub and Azure find commands in a log are taken apart.

    Both look for ``##[`` and ``##vso[`` anywhere in a line, and for ``::`` where a line begins.
    """
    line = one_line(visible(str(text)), limit)
    return line.replace("##", "# #").replace("::", ": :")


def annotation(level: str, title: str, message: str) -> str:
    """A GitHub workflow command that shows a remark on the run's page.

    Args:
        level: ``error``, ``warning`` or ``notice``.
        title: Its headline; any text.
        message: Its text, lines included; any text.
    """
    return f"::{level} title={_property(title)}::{_data(message)}"


def _data(text: str) -> str:
    # https://github.com/actions/toolkit, packages/core/src/command.ts: escapeData, escapeProperty.
    return visible(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(one_line(text)).replace(":", "%3A").replace(",", "%2C")
