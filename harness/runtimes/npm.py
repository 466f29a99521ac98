"""npm, which installs packages for Node.js and browsers: find it, install without scripts, read its errors.

Scripts of packages never run: a matrix may name any package. onnxruntime-node needs its script for CUDA only.
"""

import json
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from harness.core.text.errors import one_line
from harness.core.text.visible_text import visible
from harness.runtimes.installer import Installer, InstallError

DRIVER = "playwright-core@1.61.0"
"""The package that drives browsers (Apache-2.0): its last release for Node.js 18, without its own browser."""

NPM_VARIABLES = (
    *("npm_config_registry", "npm_config_userconfig", "npm_config_before"),
    *("NPM_CONFIG_REGISTRY", "NPM_CONFIG_USERCONFIG", "NPM_CONFIG_BEFORE"),
)
"""Variables by which npm may find other packages under the same names."""

INSTALLED = Path("node_modules", ".package-lock.json")
"""npm's own list of what it installed, written at the end."""

_SHOWN = 240
"""Characters of npm's error in a reason, which a table shows beside the requirements and a cause."""

_ERROR = re.compile(r"^npm (?:error|ERR!) ?(?:not(?:arget|found)|40\d )? ?(.*)$", re.MULTILINE)
_NO_REASON = re.compile(r"^(?:A complete log of this run|code |errno |Log files were not written|$)")


class Npm(Installer):
    """Runs npm; another thread can cancel it."""

    name = "npm"
    variables = {  # noqa: RUF012 - a constant
        "npm_config_ignore_scripts": "true",
        "npm_config_audit": "false",
        "npm_config_fund": "false",
        "npm_config_update_notifier": "false",
        "npm_config_progress": "false",
        "NO_COLOR": "1",
    }

    def program(self) -> str:
        """Return its path."""
        found = shutil.which("npm")
        if found is None:
            raise InstallError("there is no npm to install its packages with; install Node.js with npm")
        return found

    def reason(self, printed: str) -> str:
        """Return npm's error in one line, without its code and the path of its log."""
        lines = [line for line in _ERROR.findall(visible(printed)) if not _NO_REASON.match(line)]
        return one_line(" ".join(lines), _SHOWN)


def install_npm_packages(npm: Npm, requirements: Iterable[str], folder: Path) -> tuple[str, ...]:
    """Install packages into ``node_modules`` of a folder; return them as ``name==version``, sorted.

    Raises:
        InstallError: They cannot be installed.
    """
    # Without this file npm would install into the nearest parent folder that has one.
    (folder / "package.json").write_text('{"private": true}\n', encoding="utf-8")
    npm.run("install", "--no-save", "--", *requirements, folder=folder)
    try:
        packages = json.loads((folder / INSTALLED).read_bytes())["packages"]
    except (OSError, ValueError, KeyError) as error:
        raise InstallError(f"npm left no list of what it installed: {one_line(error)}") from error
    names = {
        path.rpartition("node_modules/")[2]: str(about.get("version", "")) for path, about in packages.items()
    }
    return tuple(sorted(f"{name}=={version}" for name, version in names.items()))
