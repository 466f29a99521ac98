"""Environments built from package names: one for each set of inputs, kept in the cache.

If a wheel that a runtime names does not exist, all functions with a runtime raise InstallError.
"""

import contextlib
import datetime as dt
import hashlib
import json
import os
import platform
import re
import shutil
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import filelock
import msgspec

from harness.core.text.errors import UsageError, one_line
from harness.corpus.caches.cache import cache_root, fill_once
from harness.plan.target import Runtime, is_path
from harness.runtimes import npm
from harness.runtimes.installer import Installer, InstallError
from harness.runtimes.npm import Npm
from harness.runtimes.uv import Uv

_MANIFEST = "manifest.json"

SETTINGS = (
    *("UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_STRATEGY"),
    *("UV_FIND_LINKS", "UV_CONSTRAINT", "UV_OVERRIDE", "UV_EXCLUDE_NEWER", "UV_PRERELEASE"),
    *("UV_RESOLUTION", "UV_CONFIG_FILE", "UV_NO_CONFIG"),
)
"""Variables by which uv may find other packages under the same names."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_RELEASE = re.compile(r"onnxruntime[a-z0-9-]*==(.+)")
_SECRET = re.compile(r"(?<=://)[^/@\s]*@")


class EnvironmentManifest(msgspec.Struct, frozen=True, kw_only=True):
    """The description beside an environment.

    Attributes:
        requirements: The requirements of the runtime.
        python: Version of Python, as precisely as requested; empty for packages of npm.
        packages: Installed packages: ``name==version``, sorted.
        created: UTC time, ISO 8601.
        nbytes: Size of its files. uv's own cache may share some of them on the disk.
    """

    requirements: tuple[str, ...]
    python: str
    packages: tuple[str, ...]
    created: str
    nbytes: int


class KeptEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """An environment of the cache, with its description if that can be read.

    A process was last started from it at ``used_at``, in seconds since the epoch.
    """

    key: str
    manifest: EnvironmentManifest | None
    used_at: float


def built_python(runtime: Runtime) -> Path:
    """Return the interpreter of a runtime's environment, whether it has been built or not."""
    return _python(_entry(runtime))


def is_built(runtime: Runtime) -> bool:
    """Return whether a runtime needs no build, such as one without packages."""
    return not runtime.packages or _proof(_entry(runtime), runtime).is_file()


def modules(runtime: Runtime) -> Path:
    """Return the folder with the ``node_modules`` of a JavaScript runtime, built or not."""
    return _entry(runtime)


def answer_dependencies(runtime: Runtime) -> dict[str, str]:
    """Return what the CPU provider's answers in an environment depend on, besides the machine.

    An environment never changes once it is built.

    Returns:
        The keys are ``onnxruntime``, the release; ``environment``, its name; ``packages``, one on each line.
        It is empty for a runtime without packages, which can change, for a browser, and for one that is not
        built.
    """
    # The program that runs the packages also counts, and Node.js and browsers are updated.
    one = _read(_entry(runtime)) if runtime.packages and not runtime.is_javascript else None
    if one is None or one.manifest is None:
        return {}
    releases = (found[1] for name in one.manifest.packages if (found := _RELEASE.match(name)))
    return {
        "onnxruntime": next(releases, ""),
        "environment": one.key,
        "packages": "\n".join(one.manifest.packages),
    }


def installer(runtime: Runtime) -> Installer:
    """Return the installer for a runtime's environment."""
    return Npm() if runtime.is_javascript else Uv()


def build(runtime: Runtime, builder: Installer | None = None) -> Path:
    """Build a runtime's environment, unless it exists, and return a file of it: an interpreter if it has one.

    It waits for another process that is already building it. A caller that may cancel the build passes the
    ``builder``, one of ``installer``.

    Raises:
        InstallError: It cannot be built; nothing is left of it.
    """
    entry = _entry(runtime)
    try:
        _drop_orphaned(entry, runtime)
        fill_once(entry, lambda folder: _fill(folder, runtime, builder or installer(runtime)))
    except UsageError as error:
        raise InstallError(one_line(error)) from error
    except OSError as error:
        raise InstallError(f"{entry}: {one_line(error.strerror or error)}") from error
    return _proof(entry, runtime)


def note_use(runtime: Runtime) -> None:
    """Note the present time as the last use of a runtime's environment."""
    with contextlib.suppress(OSError):  # the cache belongs to another user
        os.utime(_entry(runtime) / _MANIFEST)


def kept() -> tuple[KeptEnvironment, ...]:
    """Return the environments of the cache, those used last first."""
    folders = _home().iterdir() if _home().is_dir() else ()
    found = [_read(folder) for folder in folders if folder.is_dir() and not folder.name.startswith(".")]
    return tuple(sorted(found, key=lambda one: (-one.used_at, one.key)))


def _read(folder: Path) -> KeptEnvironment:
    path = folder / _MANIFEST
    try:
        manifest = msgspec.json.decode(path.read_bytes(), type=EnvironmentManifest)
        used_at = path.stat().st_mtime
    except (OSError, ValueError):  # no JSON, or not UTF-8
        manifest, used_at = None, 0.0
    return KeptEnvironment(key=folder.name, manifest=manifest, used_at=used_at)


def prune_environments(*, older_than_s: float) -> Iterator[KeptEnvironment]:
    """Remove the environments that were last used so many seconds ago or more, and yield each.

    It also removes the remains of interrupted builds; running builds stay.
    """
    now = time.time()
    for orphan in _home().glob(".*"):
        _remove(orphan, key=orphan.name.split(".")[1])
    for one in kept():
        if now - one.used_at >= older_than_s and _remove(_home() / one.key, one.key):
            yield one


def _remove(folder: Path, key: str) -> bool:
    """Remove a folder; return False if a process builds it, or on Windows uses it."""
    try:
        with filelock.FileLock(_home() / f"{key}.lock", timeout=0):
            # Renamed first: an environment exists as a whole or not at all.
            going = folder.rename(folder.with_name(f".{key}.pruned")) if folder.name == key else folder
            shutil.rmtree(going, ignore_errors=True)
    except OSError:  # a lock that is taken raises one, too
        return False
    return True


def _home() -> Path:
    return cache_root() / "runtimes"


def _entry(runtime: Runtime) -> Path:
    """Return the folder of a runtime's environment; everything that it depends on is part of the name."""
    own: Any = [platform.python_version(), sysconfig.get_config_var("EXT_SUFFIX")]
    settings: tuple[str, ...] = SETTINGS
    if runtime.is_javascript:
        own, settings = [npm.DRIVER], npm.NPM_VARIABLES
    inputs = {
        "requirements": sorted(_with_state(requirement) for requirement in set(runtime.packages)),
        "python": _asked_python(runtime) or own,
        "platform": [sysconfig.get_platform(), platform.machine(), *platform.libc_ver()],
        "settings": {name: _SECRET.sub("", os.environ[name]) for name in settings if os.environ.get(name)},
    }
    text = json.dumps(inputs, sort_keys=True)
    return _home() / hashlib.sha256(text.encode()).hexdigest()[:20]


def _with_state(requirement: str) -> str:
    """Return a requirement; for a file with size and time, which distinguish it from others of its name."""
    if not is_path(requirement):
        return requirement
    path = Path(requirement)
    try:
        about = path.stat()
    except OSError as error:
        raise InstallError(f"{requirement}: {one_line(error.strerror or error)}") from error
    if path.is_dir():
        raise InstallError(f"{requirement} is a folder, whose changes would go unnoticed; name a wheel of it")
    return f"{requirement} {about.st_size} {about.st_mtime_ns}"


def _asked_python(runtime: Runtime) -> str:
    """Return the version of Python that uv has to find; empty if the harness's own fits."""
    asked = runtime.python_version or ""
    return "" if asked and f"{platform.python_version()}.".startswith(f"{asked}.") else asked


def _python(entry: Path) -> Path:
    return entry / "venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def _proof(entry: Path, runtime: Runtime) -> Path:
    """Return a file that exists in an environment as long as it can be used."""
    return entry / npm.INSTALLED if runtime.is_javascript else _python(entry)


def _drop_orphaned(entry: Path, runtime: Runtime) -> None:
    """Remove an environment whose Python has been uninstalled."""
    proof = _proof(entry, runtime)
    if entry.is_dir() and not proof.is_file():
        with filelock.FileLock(entry.with_name(f"{entry.name}.lock")):
            if not proof.is_file():
                shutil.rmtree(entry)


def _fill(folder: Path, runtime: Runtime, builder: Installer) -> None:
    requirements = sorted(set(runtime.packages))
    if isinstance(builder, Npm):
        driver = () if any(one.startswith("playwright-core@") for one in requirements) else (npm.DRIVER,)
        python, packages = "", npm.install_npm_packages(builder, [*requirements, *driver], folder)
    else:
        python, packages = _fill_venv(folder, runtime, requirements, builder)
    manifest = EnvironmentManifest(
        requirements=tuple(requirements),
        python=python,
        packages=packages,
        created=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        nbytes=sum(path.lstat().st_size for path in folder.rglob("*")),
    )
    (folder / _MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(manifest)))


def _fill_venv(
    folder: Path, runtime: Runtime, requirements: list[str], uv: Installer
) -> tuple[str, tuple[str, ...]]:
    """Make a Python environment; return the version of Python, and the packages."""
    venv, python = folder / "venv", _python(folder)
    asked = _asked_python(runtime)
    # The agent needs numpy, which not every build of onnxruntime requires.
    names = {found[0].lower() for one in requirements if (found := _NAME.match(one))}
    extra = () if "numpy" in names else ("numpy",)
    # Relocatable: it is renamed when complete.
    wanted = asked or sys.executable
    uv.run("venv", "--no-project", "--relocatable", "--python", wanted, str(venv), folder=folder)
    uv.run("pip", "install", "--python", str(python), "--", *requirements, *extra, folder=folder)
    frozen = uv.run("pip", "freeze", "--python", str(python), folder=folder)
    return asked or platform.python_version(), tuple(sorted(frozen.splitlines()))
