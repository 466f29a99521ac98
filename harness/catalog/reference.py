"""The reference of all providers, generated from the catalogue: ``docs/reference/providers.md``."""

from collections.abc import Iterable, Iterator, Sequence

from harness.catalog.bindings import BINDINGS, RUST_PROVIDERS
from harness.catalog.catalog import Catalog
from harness.catalog.option import Option, PrecisionMode
from harness.catalog.provider import Provider

_HEAD = """\
# Execution providers

What public documents say about each execution provider of current and former ONNX Runtime releases, and
about plugins. A run shows whether one works on a machine. `tox -e generate` generates
this page from the files in `matrices/providers`.

Notes in the tables of options: *numerics* marks an option that changes results; *plugin only* and *build
only* an option of one registration; *not from Python* an option of other languages. Numbers in the last
column refer to the provider's sources.
"""

_ERROR_OF = {
    "result": "1 + abs(y)",
    "first_input": "the largest magnitude in the row that is multiplied",
    "rounding": "a unit in the last place",
}
"""Place of an allowed error -> the unit of its size."""


def reference(catalog: Catalog) -> str:
    """Return the page as Markdown: an index, then one section for each provider."""
    index = _table(
        ("provider", "vendor", "computes on", "state", "registration", "options", "precision modes"),
        (
            (
                f"[{_plain(provider.name)}](#{provider.name.lower()})",
                _plain(provider.vendor),
                provider.kind,
                provider.state,
                ", ".join(provider.registration),
                str(len(provider.options)),
                str(len(provider.precision_modes)),
            )
            for provider in catalog.providers
        ),
    )
    sections = (line for each in catalog.providers for line in _section(each))
    return "\n".join([_HEAD, *index, *sections, *_bindings()])


def _bindings() -> Iterator[str]:
    yield from ("", "## Libraries of other languages", "")
    yield from ("[The agent in C](../how-to/native-agent.md) opens the library that a program ships.", "")
    heads = ("language", "package", "library", "providers besides the CPU EP", "known from")
    yield from _table(heads, (tuple(map(_plain, row)) for row in BINDINGS))
    yield from ("", "### Providers of Rust's ort", "")
    rust = ("provider", "feature", "supported", "binaries", "linked statically")
    yield from _table(rust, (tuple(map(_plain, row)) for row in RUST_PROVIDERS))


def _section(provider: Provider) -> Iterator[str]:
    sources = _sources(provider)
    yield from ("", f"## {_plain(provider.name)}", "")
    yield from _table(("fact", ""), _facts(provider))
    if provider.options:
        yield from ("", f"### Options of {_plain(provider.name)}", "")
        columns = ("option", "takes", "default", "meaning", "notes", "sources")
        yield from _table(columns, (_option_row(option, sources) for option in provider.options))
    if provider.dynamic_options:
        yield from ("", f"### Dynamic options of {_plain(provider.name)}", "")
        yield from ("`set_ep_dynamic_options` changes them while a session is open.", "")
        heads = ("option", "takes", "devices", "meaning", "sources")
        dynamic = (
            (
                _code(one.key),
                _codes(one.values),
                ", ".join(one.devices) or "all",
                _plain(one.meaning),
                _numbers(one.source, sources),
            )
            for one in provider.dynamic_options
        )
        yield from _table(heads, dynamic)
    if provider.variables:
        yield from ("", f"### Variables of {_plain(provider.name)}", "")
        yield from (
            "[Bundles](bundle.md#without-running-anything-of-it) may set these environment variables.",
            "",
        )
        variables = (
            (_code(one.name), _plain(one.meaning), _numbers(one.source, sources))
            for one in provider.variables
        )
        yield from _table(("variable", "meaning", "sources"), variables)
    if provider.precision_modes:
        yield from ("", f"### Precision modes of {_plain(provider.name)}", "")
        columns = ("mode", "computes in", "chosen by", "meaning", "needs", "sources")
        yield from _table(columns, (_precision_row(mode, sources) for mode in provider.precision_modes))
    if provider.operators is not None:
        yield from ("", f"### Operators of {_plain(provider.name)}", "")
        listed = [
            f"{_code(name)} ({_plain(limit)})" if limit else _code(name)
            for name, limit in provider.operators.operators.items()
        ]
        numbers = _numbers(provider.operators.source, sources)
        yield f"{', '.join(listed)}. Sources: {numbers}." if listed else f"Sources with the list: {numbers}."
    if provider.accuracy:
        yield from ("", f"### Accuracy of {_plain(provider.name)}", "")
        heads = ("operators", "largest error", "as a part of", "allowed by", "sources")
        allowed = (
            (
                _codes(one.operators),
                f"{one.error:.3g}",
                _ERROR_OF[one.of],
                _plain(one.document),
                _numbers(one.source, sources),
            )
            for one in provider.accuracy
        )
        yield from _table(heads, allowed)
    if provider.versions:
        yield from ("", f"### Versions of {_plain(provider.name)}", "")
        rules = (
            (_code(v.onnxruntime), _plain(v.needs), _numbers(v.source, sources)) for v in provider.versions
        )
        yield from _table(("release", "what goes with it", "sources"), rules)
    yield from ("", f"### Sources of {_plain(provider.name)}", "")
    yield from (f"{number}. {_plain(source)}" for number, source in enumerate(sources, start=1))


def _facts(provider: Provider) -> Iterator[tuple[str, str]]:
    releases = {
        "listed since": provider.listed_since,
        "deprecated in": provider.deprecated_in,
        "removed in": provider.removed_in,
    }
    yes, no = provider.true_false
    others = _codes(spelling for spelling in provider.booleans if spelling not in provider.true_false)
    spelled = f"{_code(yes)} and {_code(no)}" + (f"; also read: {others}" if others else "")
    facts = {
        "Also called": _codes(provider.aliases),
        "Vendor": _plain(provider.vendor),
        "Computes on": f"{provider.kind}, hardware {_code(provider.hardware)}",
        "State": provider.state + (f": {_plain(provider.state_note)}" if provider.state_note else ""),
        "onnxruntime": ", ".join(f"{word} {release}" for word, release in releases.items() if release),
        "Platforms": ", ".join(provider.platforms),
        "Registration": ", ".join(provider.registration),
        "Wheels": _codes(provider.wheels),
        "Plugin package": _codes(provider.plugin_packages),
        "IO binding": _code(provider.binding_device) if provider.binding_device else "",
        "Computes float32 in": _delivered(provider),
        "Unknown options": provider.unknown_options.replace("_", " "),
        "Captures graphs": f"with {_code(f'{provider.graph_capture}=1')}" if provider.graph_capture else "",
        "Unknown dynamic options": provider.unknown_dynamic_options if provider.dynamic_options else "",
        "Booleans": spelled if any(option.type == "bool" for option in provider.options) else "",
        "Where it is missing": _plain(provider.advice),
        "Where it finds no device": _plain(provider.device_advice),
        "Libraries": "; ".join(
            f"{_codes(name for name, what in provider.libraries.items() if what == brings)}: {_plain(brings)}"
            for brings in dict.fromkeys(provider.libraries.values())
        ),
        "Tried": "; ".join(
            f"{how} {', '.join(releases)}"
            for how, releases in (
                ("in the build of onnxruntime", provider.tried.in_build),
                ("as a plugin", provider.tried.plugin),
            )
            if releases
        ),
        "`doctor` also tries": "; ".join(
            f"{_codes(f'{key}={value}' for key, value in {**probe.options, **probe.env}.items())} "
            f"({_plain(probe.meaning)})"
            for probe in provider.probes
        ),
    }
    yield from ((name, fact) for name, fact in facts.items() if fact)


def _delivered(provider: Provider) -> str:
    """Return the coarser precisions of a provider's own default, and where; empty if there are none."""
    if not provider.delivers:
        return ""
    needs = (
        f"{precision} on a processor with one of {_codes(features)}"
        for precision, features in provider.delivers_if.items()
    )
    told = f"{' or '.join(provider.delivers)} by its own default, on some devices"
    return "; ".join([told, *needs])


def _option_row(option: Option, sources: Sequence[str]) -> tuple[str, ...]:
    """Return the cells of one option in its table; ``sources`` are all sources of its provider, by number."""
    if option.default is None:
        default = f"none: {_plain(option.no_default)}" if option.no_default else "none"
    else:
        default = _code(option.default) if option.default else "empty"
    notes = {
        "numerics": option.changes_numerics,
        f"`advise` tries {_codes(option.faster)}": option.faster,
        f"since {option.since}": option.since,
        f"until {option.until}": option.until,
        f"deprecated in {option.deprecated_in}": option.deprecated_in,
        f"{option.registered.removeprefix('in_')} only": option.registered != "both",
        "not from Python": not option.from_python,
    }
    return (
        _code(option.key),
        _takes(option),
        default,
        _plain(option.meaning),
        ", ".join(note for note, holds in notes.items() if holds),
        _numbers(option.source, sources),
    )


def _precision_row(mode: PrecisionMode, sources: Sequence[str]) -> tuple[str, ...]:
    """Return the cells of one precision mode in its table; arguments as of ``_option_row``."""
    chosen = {"": mode.options, "session ": mode.session, "environment ": mode.env, "on device ": mode.device}
    entries = [
        f"{kind}{_code(f'{key}={value}')}" for kind, table in chosen.items() for key, value in table.items()
    ]
    return (
        _code(mode.name),
        mode.computes.replace("_", " "),
        ", ".join(entries) if entries or mode.runnable else "nothing that Python reaches",
        _plain(mode.meaning),
        _plain(mode.needs),
        _numbers(mode.source, sources),
    )


def _takes(option: Option) -> str:
    match option.type:
        case "choice":
            return ", ".join(
                _code(value) + (f" ({option.flags[value]})" if value in option.flags else "")
                for value in option.values
            )
        case "flags":
            bits = ", ".join(f"{_code(name)} ({bit})" for name, bit in option.flags.items())
            return f"{'names' if option.flags_by_name else 'the sum'} of {bits}"
        case _:
            return option.type + (f" from {' to '.join(option.values)}" if option.ranged else "")


def _sources(provider: Provider) -> list[str]:
    """Return every source of the file once, those of the provider itself first."""
    lists = [provider.source]
    lists += [option.source for option in provider.options]
    lists += [option.source for option in provider.dynamic_options]
    lists += [variable.source for variable in provider.variables]
    lists += [mode.source for mode in provider.precision_modes]
    lists += [one.source for one in provider.accuracy]
    lists += [rule.source for rule in provider.versions]
    lists += [provider.operators.source] if provider.operators is not None else []
    return list(dict.fromkeys(source for each in lists for source in each))


def _numbers(used: Iterable[str], sources: Sequence[str]) -> str:
    return ", ".join(str(sources.index(source) + 1) for source in used)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    yield from (f"| {' | '.join(row)} |" for row in rows)


def _plain(text: str) -> str:
    """Return text for a cell: one line, without the ends of cells and the beginnings of tags."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def _code(text: str) -> str:
    """Return text for a cell as code; the fence is longer than any run of backticks inside."""
    fence = "``" if "`" in text else "`"
    room = " " if "`" in text else ""
    return f"{fence}{room}{' '.join(text.split())}{room}{fence}".replace("|", "\\|")


def _codes(texts: Iterable[str]) -> str:
    return ", ".join(map(_code, texts))
