"""How an agent starts in Node.js or in a browser: find the programs, and build the command."""

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from harness import agent
from harness.core.text.errors import one_line
from harness.plan.target import Runtime, is_version
from harness.runtimes.installer import InstallError

AGENTS = Path(agent.__file__).parents[1] / "agent_js"
"""The JavaScript agents; they run in their installation folder."""

OLDEST_NODE = (18, 9)
"""The first Node.js with ``os.machine``, which the agents use."""

BROWSERS = {
    "chromium": ("chromium", "chromium-browser"),
    "chrome": ("google-chrome", "google-chrome-stable", "chrome"),
    "edge": ("microsoft-edge", "microsoft-edge-stable", "msedge"),
}
"""Name of a browser in a matrix -> names of its program, and then its places on other systems."""

_PLACES = {
    "chromium": ("/Applications/Chromium.app/Contents/MacOS/Chromium",),
    "chrome": (
        "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
        r"C:\Program Files\Google\Chrome\Application\chrome.exe",
    ),
    "edge": (
        "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
        r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
    ),
}

_VERSION = re.compile(r"v(\d+)\.(\d+)\.(\d+)")
_LOOK_S = 30.0


def agent_command(runtime: Runtime, modules: Path) -> tuple[str, ...]:
    """Return the command of a JavaScript agent; its packages are in ``node_modules`` of a folder.

    Raises:
        InstallError: Node.js or the browser is missing, or Node.js has another version.
    """
    node = find_node(runtime.node or "")
    if runtime.browser is None:
        return (node, str(AGENTS / "node.mjs"), "--modules", str(modules))
    return (
        node,
        str(AGENTS / "browser.mjs"),
        *("--modules", str(modules)),
        *("--browser", find_browser(runtime.browser)),
        *("--threads", str(runtime.threads or 1)),
        *(f"--flag={flag}" for flag in runtime.flags),
    )


def find_node(asked: str = "") -> str:
    """Return the path of Node.js, by a version, a name to look up, or a path.

    Of any version if none is given.

    Raises:
        InstallError: It is missing, too old, or has another version.
    """
    wanted = "node" if not asked or is_version(asked) else asked
    found = shutil.which(wanted)
    if found is None:
        raise InstallError(f"there is no program {wanted!r}; install Node.js")
    version = _version(found, Path(found).stat().st_mtime_ns)
    text = ".".join(map(str, version))
    if version < OLDEST_NODE:
        oldest = ".".join(map(str, OLDEST_NODE))
        raise InstallError(f"{found} is Node.js {text}; the agent needs {oldest} or newer")
    if is_version(asked) and asked and not f"{text}.".startswith(f"{asked}."):
        raise InstallError(f"the runtime asks for Node.js {asked}, and {found} is {text}")
    return found


def find_browser(asked: str) -> str:
    """Return the path of a browser, by a name of ``BROWSERS``, a program to look up, or a path.

    Raises:
        InstallError: There is none.
    """
    for name in (*BROWSERS.get(asked, (asked,)), *_PLACES.get(asked, ())):
        if found := shutil.which(name):
            return found
    known = f"; looked for {', '.join(BROWSERS[asked])}" if asked in BROWSERS else ""
    raise InstallError(f"there is no browser {asked!r} on this machine{known}")


@cache
def _version(program: str, _mtime_ns: int) -> tuple[int, ...]:
    try:
        done = subprocess.run(  # noqa: S603 - an argument list, never a shell
            [program, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_LOOK_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise InstallError(f"{program} does not start: {one_line(error)}") from error
    found = _VERSION.match(done.stdout)
    if found is None:
        raise InstallError(
            f"{program} is no Node.js: it answers --version with {one_line(done.stdout, 60)!r}"
        )
    return tuple(map(int, found.groups()))
