"""Options checked with the catalogue, before any device is used."""

from collections.abc import Iterator, Mapping

import msgspec

from harness.catalog.option import Option
from harness.catalog.provider import Provider
from harness.core.text.errors import one_line, valid_names


class OptionRemark(msgspec.Struct, frozen=True, kw_only=True):
    """One remark about an option, in one sentence, and a hint, which may be empty.

    If the option is not wrong, this is a note, and the EP receives the option.
    """

    key: str
    wrong: bool
    what: str
    hint: str = ""


def check_options(
    provider: Provider, options: Mapping[str, str], *, plugin: bool, release: str = "", in_python: bool = True
) -> Iterator[OptionRemark]:
    """Check provider options with the catalogue; yield findings in the order of the options.

    Without documented options and without a documented treatment of unknown ones, everything is accepted.

    Args:
        provider: The catalogue's entry.
        options: Key -> value, as text.
        plugin: Whether the provider comes from a plugin library; otherwise it is part of the build.
        release: Release of onnxruntime; empty if unknown. It counts only for a provider in the build: plugins
            have their own releases.
        in_python: Whether sessions are created in Python, not in JavaScript.
    """
    if not provider.options and provider.unknown_options == "unconfirmed":
        return
    for key, value in options.items():
        option = provider.option(key, plugin=plugin)
        if option is None:
            yield _unknown(provider, key, plugin=plugin)
            continue
        problem = option.problem(value, provider.booleans)
        if in_python and not option.from_python:
            what = f"{provider.name} takes {key} in other languages only, not from Python"
            yield OptionRemark(key=key, wrong=True, what=what)
        elif problem:
            what = f"{provider.name}, {key}: got {one_line(repr(value), 80)}, {problem}"
            yield OptionRemark(key=key, wrong=True, what=what, hint=option.valid(value, provider.booleans))
        yield from _in_release(option, "" if plugin else release)


def _unknown(provider: Provider, key: str, *, plugin: bool) -> OptionRemark:
    shown = one_line(repr(key), 80)
    elsewhere = provider.option(key, plugin=not plugin)
    valid = [option.key for option in provider.options if option.taken(plugin=plugin)]
    if elsewhere:
        here, there = ("as a plugin", "in the build") if plugin else ("in the build", "as a plugin")
        what = f"{provider.name} takes {shown} only {there}, and here it is {here}"
        return OptionRemark(
            key=key, wrong=True, what=what, hint=f"meaning of {elsewhere.key}: {elsewhere.meaning}"
        )
    silently = "the EP would ignore it silently" if provider.unknown_options == "ignored" else ""
    if not valid:
        what = f"{provider.name} has no options, got {shown}"
        return OptionRemark(key=key, wrong=True, what=what, hint=silently)
    what = f"{provider.name} has no option {shown}" + (f", and {silently}" if silently else "")
    if provider.unknown_options == "passed_on":
        what += " that is documented; it goes to the vendor's compiler unchecked"
    refused = provider.unknown_options != "passed_on"
    return OptionRemark(key=key, wrong=refused, what=what, hint=valid_names(key, valid))


def _in_release(option: Option, release: str) -> Iterator[OptionRemark]:
    """Yield findings about the release; without a known release, at most notes."""
    key, used = option.key, _numbers(release)
    since, until, deprecated = map(_numbers, (option.since, option.until, option.deprecated_in))
    if used and used < since[: len(used)]:
        what = f"{key} needs onnxruntime {option.since} or newer, and this is {release}"
        yield OptionRemark(key=key, wrong=True, what=what)
    if until and (not used or used[: len(until)] > until):
        what = f"{key} was removed after {option.until}" + (f", and this is {release}" if used else "")
        yield OptionRemark(key=key, wrong=bool(used), what=what, hint=option.meaning)
    elif deprecated and (not used or used[: len(deprecated)] >= deprecated):
        what = f"{key} is deprecated since {option.deprecated_in}"
        yield OptionRemark(key=key, wrong=False, what=what, hint=option.meaning)


def _numbers(release: str) -> tuple[int, ...]:
    """Return the leading numbers of a release, for comparison: ``1.22.2.post1`` is 1.22.2."""
    numbers: list[int] = []
    for part in release.split("."):
        if not part.isdecimal():
            break
        numbers.append(int(part))
    return tuple(numbers)
