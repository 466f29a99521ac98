"""Which browsers are on this machine, and whether the harness can use them. Starts none."""

from collections.abc import Iterator

from harness.runtimes.installer import InstallError
from harness.runtimes.javascript import BROWSERS, find_browser, find_node

TRY = "ep-harness doctor matrices/web.toml"
"""What tries their execution providers."""


def browsers_here() -> Iterator[str]:
    """Yield a remark for each browser here, or one that there is none; then one if Node.js is missing."""
    found = [remark for name in BROWSERS if (remark := _place(name))]
    yield from found or [f"no browser was found; known are {', '.join(BROWSERS)}"]
    try:
        find_node()
    except InstallError as error:
        yield f"browsers are driven from Node.js: {error}"
    else:
        if found:
            yield f"`{TRY}` tries it there"


def _place(name: str) -> str:
    try:
        return f"{name} is {find_browser(name)}"
    except InstallError:
        return ""
