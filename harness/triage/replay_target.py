"""The target of a bundle, as far as a stranger may choose what runs on this machine."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from harness.catalog.catalog import find_provider
from harness.plan.target import LIBRARY_SUFFIXES, Target, from_here
from harness.triage.bundle_files import Bundle

_LOADERS = re.compile(
    r"(?i)^(?:LD_|DYLD_|PYTHON|PATH$|PATHEXT$|HOME$|TMPDIR$|TEMP$|TMP$|EP_HARNESS)|PRELOAD|_PROXY$"
)
"""Variables that decide which code a process loads, or where it connects to."""


def bundled_target(
    bundle: Bundle,
    *,
    plugin: str | None = None,
    options: Mapping[str, str] | None = None,
    device: Mapping[str, str] | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Target:
    """Return the target of a bundle's manifest, in the harness's own runtime.

    A plugin must be a package that the catalogue knows for its provider, and no value may name a file: a
    library would be loaded, a folder written. Whoever trusts such a value gives it.

    Args:
        bundle: The bundle.
        plugin: Package or library in place of the manifest's.
        options: Provider options on top of the manifest's.
        device: Device filter in place of the manifest's.
        environment: Where variables are looked up whose value was a path on the author's machine.

    Raises:
        UsageError: Something has to be given.
    """
    told = bundle.manifest.target
    given = dict(options or {})
    for key, value in told.options.items():
        if key not in given and names_a_file(value):
            what = f"the option {key} is {value!r}, which names a file"
            raise bundle.refused(what, f"give it: --option {key}=VALUE")
    return Target(
        name=told.name or "bundle",
        provider=told.provider,
        plugin=_plugin(bundle, plugin),
        device=dict(device or told.device),
        options={**told.options, **given},
        unchecked_options=True,
        env=_env(bundle, environment),
    )


def names_a_file(value: str) -> bool:
    """Whether a value may be a path or a library's name; a JSON object counts if any text in it does."""
    return "/" in value or "\\" in value or any(suffix in value.lower() for suffix in LIBRARY_SUFFIXES)


def _plugin(bundle: Bundle, given: str | None) -> str | None:
    told = bundle.manifest.target
    if given:
        return from_here(os.path.expanduser(given), Path.cwd())  # noqa: PTH111 - a package's name stays
    if told.plugin is None:
        return None
    known = find_provider(told.provider[0])
    if known is not None and told.plugin.package in known.plugin_packages:
        return told.plugin.package
    name = told.plugin.package or told.plugin.library
    what = f"its EP comes from {name!r}, which is not loaded on a bundle's word"
    raise bundle.refused(what, "give it: --plugin")


def _env(bundle: Bundle, environment: Mapping[str, str]) -> dict[str, str]:
    env: dict[str, str] = {}
    for name, value in bundle.manifest.target.env.items():
        if _LOADERS.search(name):
            what = f"it sets the variable {name}, which decides what code is loaded"
            raise bundle.refused(what, "name a target of yours: --target MATRIX:NAME")
        if not names_a_file(value):
            env[name] = value
        elif name in environment:
            env[name] = environment[name]
        else:
            what = f"the variable {name} is {value!r}, which names a file"
            raise bundle.refused(what, f"set {name} in the environment of this command")
    return env
