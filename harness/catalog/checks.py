"""What a provider file may not say although every value has the right type."""

import re
from collections import Counter
from collections.abc import Iterator

from harness.catalog.option import MAY_BE_EMPTY, Option, PrecisionMode
from harness.catalog.provider import Provider
from harness.core.errors import Problem, valid_names

_VERSION = re.compile(r"[0-9]+(\.[0-9]+)*(\.?(a|b|rc|dev|post)[0-9]+)?")
_RELEASES = re.compile(rf"((==|>=|<=|>|<)?{_VERSION.pattern})(, ?(==|>=|<=|>|<){_VERSION.pattern})*")
_MODE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")


def contradictions(provider: Provider, file: str) -> Iterator[Problem]:
    """Everything in one provider's file that contradicts itself or that nothing can be made of.

    Args:
        provider: What the file holds.
        file: Its name, for the messages.

    Yields:
        Problems in the order of the sections; ``where`` names the file and the key.
    """
    for key in ("listed_since", "deprecated_in", "removed_in"):
        yield from _in_version(getattr(provider, key), f"{file}: {key}")
    if len(set(provider.true_false)) == 1:
        yield Problem(where=f"{file}: true_false", what=f"both are {provider.true_false[0]!r}")
    yield from _repeated_options(provider, file)
    for option in provider.options:
        yield from _in_option(option, provider, f"{file}: option[{option.key}]")
    for name, count in Counter(mode.name for mode in provider.precision_modes).items():
        if count > 1:
            yield Problem(where=f"{file}: precision[{name}].name", what=f"{count} modes have this name")
    for mode in provider.precision_modes:
        yield from _in_precision(mode, provider, f"{file}: precision[{mode.name}]")
    yield from _in_probes(provider, file)
    for index, rule in enumerate(provider.versions):
        if not _RELEASES.fullmatch(rule.onnxruntime):
            here = f"{file}: version[{index}].onnxruntime"
            hint = 'write a release such as "1.23", ">=1.24.4" or ">=1.15, <1.18"'
            yield Problem(where=here, what=f"{rule.onnxruntime!r} is no release", hint=hint)


def _repeated_options(provider: Provider, file: str) -> Iterator[Problem]:
    """One key may stand twice where one entry is for the build and the other for the plugin."""
    for key in dict.fromkeys(option.key for option in provider.options):
        entries = [option for option in provider.options if option.key == key]
        if any(sum(option.taken(plugin=plugin) for option in entries) > 1 for plugin in (False, True)):
            hint = 'keep one, or say registered = "in_build" in one and registered = "plugin" in the other'
            what = f"{len(entries)} options have this key"
            yield Problem(where=f"{file}: option[{key}].key", what=what, hint=hint)


def _in_option(option: Option, provider: Provider, here: str) -> Iterator[Problem]:
    for key in ("since", "until", "deprecated_in"):
        yield from _in_version(getattr(option, key), f"{here}.{key}")
    bad_values = list(_in_values(option, here))
    yield from bad_values
    yield from _in_flags(option, here)
    if not bad_values:
        # Against a broken list every default would look wrong.
        yield from _in_default(option, provider, here)
        yield from _in_faster(option, provider, f"{here}.faster")


def _in_faster(option: Option, provider: Provider, here: str) -> Iterator[Problem]:
    for value in option.faster:
        wrong = option.problem(value, provider.true_false)
        if wrong or value == option.default:
            what = f"got {value!r}, {wrong or 'which is the default'}"
            yield Problem(where=here, what=what, hint=option.valid(value, provider.true_false))


def _in_values(option: Option, here: str) -> Iterator[Problem]:
    repeated = [value for value, count in Counter(option.values).items() if count > 1]
    if repeated:
        yield Problem(where=f"{here}.values", what=f"{repeated[0]!r} is in the list twice")
    if option.type == "choice":
        if not option.values:
            yield Problem(
                where=f"{here}.values", what="a choice has values", hint="list them, or make it a text"
            )
        if option.ranged:
            yield Problem(
                where=f"{here}.ranged", what="a choice has no range", hint="make it an int or a float"
            )
    elif option.type in ("int", "float", "bytes"):
        if option.ranged != bool(option.values):
            what = "a range has two values" if option.ranged else f"values of an {option.type} are its range"
            hint = 'write values = ["0", "3"] and ranged = true, or make it a choice'
            yield Problem(where=f"{here}.values", what=what, hint=hint)
        elif option.ranged and not _is_range(option.values):
            hint = "the lowest and the highest"
            yield Problem(where=f"{here}.values", what=f"{list(option.values)} is no range", hint=hint)
    elif option.values or option.ranged:
        key = "values" if option.values else "ranged"
        yield Problem(where=f"{here}.{key}", what=f"of no use to the type {option.type}")


def _is_range(values: tuple[str, ...]) -> bool:
    try:
        lowest, highest = (float(value) for value in values)
    except ValueError:
        return False
    return lowest <= highest


def _in_flags(option: Option, here: str) -> Iterator[Problem]:
    negative = [name for name, bit in option.flags.items() if bit < 0]
    if negative:
        yield Problem(where=f"{here}.flags", what=f"{negative[0]!r} has a negative value")
    if option.type == "flags":
        if not option.flags:
            hint = "name each with its value: flags = { A = 1, B = 2 }"
            yield Problem(where=f"{here}.flags", what="no flags are named", hint=hint)
        return
    if option.flags_by_name:
        yield Problem(where=f"{here}.flags_by_name", what=f"of no use to the type {option.type}")
    if option.type != "choice" and option.flags:
        yield Problem(where=f"{here}.flags", what=f"of no use to the type {option.type}")
    for name in option.flags if option.type == "choice" else ():
        if name not in option.values:
            hint = valid_names(name, option.values)
            yield Problem(where=f"{here}.flags", what=f"{name!r} is none of its values", hint=hint)


def _in_default(option: Option, provider: Provider, here: str) -> Iterator[Problem]:
    here = f"{here}.default"
    if option.default is None:
        if not option.no_default:
            hint = 'write default = "…", or why there is none: no_default = "not documented"'
            yield Problem(where=here, what="it has no default", hint=hint)
        return
    if option.no_default:
        yield Problem(
            where=here, what="it has a default, and a reason why it has none", hint="keep one of them"
        )
    if not option.default and option.type in MAY_BE_EMPTY:
        return
    if not option.default:
        hint = 'write it, or why there is none: no_default = "not documented"'
        yield Problem(where=here, what=f"an empty text is no {option.type}", hint=hint)
        return
    wrong = option.problem(option.default, provider.true_false)
    if wrong:
        hint = option.valid(option.default, provider.true_false)
        yield Problem(where=here, what=f"got {option.default!r}, {wrong}", hint=hint)


def _in_precision(mode: PrecisionMode, provider: Provider, here: str) -> Iterator[Problem]:
    if not _MODE_NAME.fullmatch(mode.name):
        hint = "letters, digits, and . _ + - between them: it is written behind `ep:`"
        yield Problem(where=f"{here}.name", what=f"{mode.name!r} is no name", hint=hint)
    if not mode.runnable and not mode.needs:
        yield Problem(where=f"{here}.needs", what="it cannot be run, and nothing says why")
    keys = {option.key for option in provider.options}
    for key, value in mode.options.items():
        entries = [option for option in provider.options if option.key == key]
        if not entries:
            what, hint = f"{provider.name} has no option {key!r}", valid_names(key, sorted(keys))
            yield Problem(where=f"{here}.options", what=what, hint=hint)
        for option in entries:
            wrong = option.problem(value, provider.booleans)
            if wrong:
                what, hint = f"{key}: got {value!r}, {wrong}", option.valid(value, provider.booleans)
                yield Problem(where=f"{here}.options", what=what, hint=hint)
    if set(mode.options) <= keys and not any(
        all(provider.option(key, plugin=plugin) for key in mode.options) for plugin in (False, True)
    ):
        what = "some of its options are for the plugin only, others for the build only"
        yield Problem(where=f"{here}.options", what=what, hint="make it two modes")


def _in_probes(provider: Provider, file: str) -> Iterator[Problem]:
    keys = sorted({option.key for option in provider.options})
    for number, probe in enumerate(provider.probes):
        here = f"{file}: probe[{number}]"
        if not probe.options and not probe.env:
            yield Problem(where=here, what="it is no other way", hint="give it options or env")
        for key in probe.options:
            if key not in keys:
                what = f"{provider.name} has no option {key!r}"
                yield Problem(where=f"{here}.options", what=what, hint=valid_names(key, keys))


def _in_version(version: str, here: str) -> Iterator[Problem]:
    if version and not _VERSION.fullmatch(version):
        hint = 'write a release such as "1.23" or "2.7.0"; what else there is to say belongs into the meaning'
        yield Problem(where=here, what=f"{version!r} is no release", hint=hint)
