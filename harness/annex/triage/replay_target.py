"""The target of a bundle, as far as a stranger may decide what runs on this machine."""

import os
from collections.abc import Mapping
from pathlib import Path

from harness.annex.triage.bundle_files import Bundle
from harness.catalog.catalog import find_provider
from harness.plan.file_names import names_a_file, option_names_a_file
from harness.plan.target import Target, from_here


def bundled_target(
    bundle: Bundle,
    *,
    plugin: str | None = None,
    options: Mapping[str, str] | None = None,
    device: Mapping[str, str] | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Target:
    """Return the target of a bundle's manifest, in the harness's own runtime.

    The catalogue must list the plugin's package, and each variable, for the provider. No value may name a
    file, since onnxruntime would load a library or write a folder. The user can supply other values.

    Args:
        bundle: The bundle.
        plugin: Package or library in place of the manifest's.
        options: Provider options on top of the manifest's.
        device: Device filter in place of the manifest's.
        environment: Where a variable is looked up if its value was a path on the author's machine.

    Raises:
        UsageError: The user has to supply something.
    """
    told = bundle.manifest.target
    given = dict(options or {})
    for key, value in told.options.items():
        if key not in given and any(option_names_a_file(name, key, value) for name in told.provider):
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
    """Return the variables to set: those of the catalogue, and others with this user's values."""
    providers = filter(None, map(find_provider, bundle.manifest.target.provider))
    allowed = {variable.name for known in providers for variable in known.variables}
    env: dict[str, str] = {}
    for name, value in bundle.manifest.target.env.items():
        is_path = names_a_file(value)
        if name in allowed and not is_path:
            env[name] = value
        elif name in environment and (is_path or environment[name] == value):
            env[name] = environment[name]
        elif is_path:
            what = f"the variable {name} is {value!r}, which names a file"
            raise bundle.refused(what, f"set {name} in the environment of this command")
        else:
            what = f"it sets the variable {name}, which the catalogue does not have for its provider"
            hint = f"set {name}={value!r} in the environment of this command, or give --target MATRIX:NAME"
            raise bundle.refused(what, hint)
    return env
