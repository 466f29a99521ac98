"""Checks of a provider file beyond the types of its values."""

import re
from collections import Counter
from collections.abc import Iterator

from harness.catalog.option import MAY_BE_EMPTY, Option, PrecisionMode
from harness.catalog.provider import Provider, TriedReleases
from harness.core.files.structure import FilePlace
from harness.core.text.errors import Problem, valid_names

_VERSION = re.compile(r"[0-9]+(\.[0-9]+)*(\.?(a|b|rc|dev|post)[0-9]+)?")
_RELEASES = re.compile(rf"((==|>=|<=|>|<)?{_VERSION.pattern})(, ?(==|>=|<=|>|<){_VERSION.pattern})*")
_MODE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")


def provider_contradictions(provider: Provider, file: str) -> Iterator[Problem]:
    """Yield contradictions and unusable values, in the order of the sections."""
    for key in ("listed_since", "deprecated_in", "removed_in"):
        yield from _in_version(getattr(provider, key), FilePlace(file, key))
    yield from _in_tried(provider.tried, FilePlace(file, "tried"))
    if len(set(provider.true_false)) == 1:
        yield FilePlace(file, "true_false").problem(f"true and false are both {provider.true_false[0]!r}")
    yield from _repeated_options(provider, file)
    for option in provider.options:
        yield from _in_option(option, provider, FilePlace(file, f"option[{option.key}]"))
    for kind, named in (("variable", provider.variables), ("precision", provider.precision_modes)):
        for name, count in Counter(one.name for one in named).items():
            if count > 1:
                yield FilePlace(file, f"{kind}[{name}].name").problem(f"{count} entries have this name")
    for mode in provider.precision_modes:
        yield from _in_precision(mode, provider, FilePlace(file, f"precision[{mode.name}]"))
    yield from _in_probes(provider, file)
    for index, rule in enumerate(provider.versions):
        if not _RELEASES.fullmatch(rule.onnxruntime):
            here = FilePlace(file, f"version[{index}].onnxruntime")
            hint = 'write a release such as "1.23", ">=1.24.4" or ">=1.15, <1.18"'
            yield here.problem(f"{rule.onnxruntime!r} is not a release", hint)


def _in_tried(tried: TriedReleases, here: FilePlace) -> Iterator[Problem]:
    for key in ("in_build", "plugin"):
        for version in getattr(tried, key):
            yield from _in_version(version, here.key(key))


def _repeated_options(provider: Provider, file: str) -> Iterator[Problem]:
    """Yield repeated keys; one entry for the build and one for the plugin may have the same key."""
    for key in dict.fromkeys(option.key for option in provider.options):
        entries = [option for option in provider.options if option.key == key]
        if any(sum(option.taken(plugin=plugin) for option in entries) > 1 for plugin in (False, True)):
            hint = 'keep one, or set registered = "in_build" in one and registered = "plugin" in the other'
            yield FilePlace(file, f"option[{key}].key").problem(f"{len(entries)} options have this key", hint)


def _in_option(option: Option, provider: Provider, here: FilePlace) -> Iterator[Problem]:
    for key in ("since", "until", "deprecated_in"):
        yield from _in_version(getattr(option, key), here.key(key))
    bad_values = list(_in_values(option, here))
    yield from bad_values
    yield from _in_flags(option, here)
    if not bad_values:
        # With a broken list every default would look wrong.
        yield from _in_default(option, provider, here)
        yield from _in_faster(option, provider, here.key("faster"))


def _in_faster(option: Option, provider: Provider, here: FilePlace) -> Iterator[Problem]:
    for value in option.faster:
        yield from _in_value(option, value, provider.true_false, here)
        if value == option.default:
            yield here.problem(f"got {value!r}, which is the default")


def _in_value(
    option: Option, value: str, booleans: tuple[str, ...], here: FilePlace, key: str = ""
) -> Iterator[Problem]:
    wrong = option.problem(value, booleans)
    if wrong:
        yield here.problem(f"{key}got {value!r}, {wrong}", option.valid(value, booleans))


def _in_values(option: Option, here: FilePlace) -> Iterator[Problem]:
    repeated = [value for value, count in Counter(option.values).items() if count > 1]
    if repeated:
        yield here.key("values").problem(f"{repeated[0]!r} is listed twice")
    if option.type == "choice":
        if not option.values:
            yield here.key("values").problem("a choice needs values", "list them, or make it a text")
        if option.ranged:
            yield here.key("ranged").problem("a choice has no range", "make it an int or a float")
    elif option.type in ("int", "float", "bytes"):
        if option.ranged != bool(option.values):
            what = "a range has two values" if option.ranged else f"values of an {option.type} are its range"
            hint = 'write values = ["0", "3"] and ranged = true, or make it a choice'
            yield here.key("values").problem(what, hint)
        elif option.ranged and not _is_range(option.values):
            hint = "write the lowest and the highest number"
            yield here.key("values").problem(f"{list(option.values)} is not a range", hint)
    elif option.values or option.ranged:
        key = "values" if option.values else "ranged"
        yield here.key(key).problem(f"not used by the type {option.type}")


def _is_range(values: tuple[str, ...]) -> bool:
    try:
        lowest, highest = (float(value) for value in values)
    except ValueError:
        return False
    return lowest <= highest


def _in_flags(option: Option, here: FilePlace) -> Iterator[Problem]:
    negative = [name for name, bit in option.flags.items() if bit < 0]
    if negative:
        yield here.key("flags").problem(f"{negative[0]!r} has a negative value")
    if option.type == "flags":
        if not option.flags:
            hint = "name each with its value: flags = { A = 1, B = 2 }"
            yield here.key("flags").problem("no flags are named", hint)
        return
    if option.flags_by_name:
        yield here.key("flags_by_name").problem(f"not used by the type {option.type}")
    if option.type != "choice" and option.flags:
        yield here.key("flags").problem(f"not used by the type {option.type}")
    for name in option.flags if option.type == "choice" else ():
        if name not in option.values:
            hint = valid_names(name, option.values)
            yield here.key("flags").problem(f"{name!r} is not one of its values", hint)


def _in_default(option: Option, provider: Provider, here: FilePlace) -> Iterator[Problem]:
    here = here.key("default")
    if option.default is None:
        if not option.no_default:
            hint = 'write default = "…", or why there is none: no_default = "not documented"'
            yield here.problem("no default is given", hint)
        return
    if option.no_default:
        yield here.problem("there is a default, and a reason why there is none", "keep one of them")
    if not option.default and option.type in MAY_BE_EMPTY:
        return
    if not option.default:
        hint = 'write it, or why there is none: no_default = "not documented"'
        yield here.problem(f"an empty text is not a valid {option.type}", hint)
        return
    yield from _in_value(option, option.default, provider.true_false, here)


def _in_precision(mode: PrecisionMode, provider: Provider, here: FilePlace) -> Iterator[Problem]:
    if not _MODE_NAME.fullmatch(mode.name):
        hint = "valid: letters and digits, and between them . _ + -; the matrix has it after `ep:`"
        yield here.key("name").problem(f"{mode.name!r} is not a valid name", hint)
    if not mode.runnable and not mode.needs:
        yield here.key("needs").problem("the mode cannot be run, and the reason is missing")
    keys = {option.key for option in provider.options}
    for key, value in mode.options.items():
        entries = [option for option in provider.options if option.key == key]
        if not entries:
            what, hint = f"{provider.name} has no option {key!r}", valid_names(key, sorted(keys))
            yield here.key("options").problem(what, hint)
        for option in entries:
            yield from _in_value(option, value, provider.booleans, here.key("options"), f"{key}: ")
    if set(mode.options) <= keys and not any(
        all(provider.option(key, plugin=plugin) for key in mode.options) for plugin in (False, True)
    ):
        what = "some of its options are for the plugin only, others for the build only"
        yield here.key("options").problem(what, "make it two modes")


def _in_probes(provider: Provider, file: str) -> Iterator[Problem]:
    keys = sorted({option.key for option in provider.options})
    for number, probe in enumerate(provider.probes):
        here = FilePlace(file, f"probe[{number}]")
        if not probe.options and not probe.env:
            yield here.problem("this probe changes nothing", "give it options or env")
        for key in probe.options:
            if key not in keys:
                what = f"{provider.name} has no option {key!r}"
                yield here.key("options").problem(what, valid_names(key, keys))


def _in_version(version: str, here: FilePlace) -> Iterator[Problem]:
    if version and not _VERSION.fullmatch(version):
        hint = 'write a release such as "1.23" or "2.7.0"; further text belongs in the meaning'
        yield here.problem(f"{version!r} is not a release", hint)
