"""Checks of a matrix file beyond the types of its values: contradictions, repetitions, unknown names."""

from collections.abc import Iterator, Sequence
from os.path import realpath
from pathlib import Path
from typing import Any, TypeVar

from harness.catalog.catalog import find_provider, load_catalog
from harness.core.agreement.agree_key import agree_problems
from harness.core.files.structure import OPTION, FilePlace
from harness.core.records.facts import CPU_PROVIDER
from harness.core.records.model_settings import contradicting_inputs
from harness.core.text.errors import Problem, valid_names
from harness.plan.expectation import exit_problems
from harness.plan.file_format import RuntimeTable
from harness.plan.function_module import has_module
from harness.plan.known_provider import known_provider
from harness.plan.option_checks import option_problems, own_precision_problems, precision_problems
from harness.plan.places import places_problems
from harness.plan.runs_entry import latency_problems, repeat_problems
from harness.plan.scenarios import Scenarios
from harness.plan.selector import TRUE_FALSE, SelectorTable, one_or_more, text
from harness.plan.tolerance_entry import tolerance_problems
from harness.plan.where import where_problems

_Where = TypeVar("_Where")


def contradictions(table: dict[str, Any], place: FilePlace, folder: Path) -> Iterator[Problem]:
    """Yield contradictions and settings without effect, in the order of the sections.

    Values of a wrong type are skipped individually: ``deviations`` reports them, and their neighbours are
    still checked. Relative folders of models start at ``folder``.
    """
    models = table.get("models", {})
    if isinstance(models, dict):
        yield from _in_models(models, place.key("models"), folder)
    for here, entry in _tables(table, place, "model"):
        yield from _in_model(entry, here, folder)
    targets = _tables(table, place, "target")
    axes, axes_place = table.get("axes"), place.key("axes")
    yield from _in_axes(axes, axes_place, [target for _, target in targets])
    for here, target in targets:
        yield from _in_chain(target, here)
        yield from _in_runtime(target.get("runtime"), here.key("runtime"))
        yield from places_problems(target.get("places"), here.key("places"))
        yield from _in_axes(target.get("axes"), here.key("axes"), [target])
        yield from own_precision_problems(target, here)
    yield from option_problems(targets, axes, axes_place)
    every_axes = [axes, *(target.get("axes") for _, target in targets)]
    yield from _in_scenarios(table.get("scenarios"), place.key("scenarios"), every_axes)
    for here, name in _repeated([(here, target.get("name")) for here, target in targets]):
        what = f"another target has the name {name!r}"
        yield here.key("name").problem(what, "give each target its own name")
    for here, entry in _tables(table, place, "tolerance"):
        yield from tolerance_problems(entry, here)
    for here, entry in _tables(table, place, "latency"):
        yield from latency_problems(entry, here)
    for here, entry in _tables(table, place, "repeat"):
        yield from repeat_problems(entry, here)
    yield from _in_selecting(table, place)


def _in_selecting(table: dict[str, Any], place: FilePlace) -> Iterator[Problem]:
    for here, entry in _tables(table, place, "expect"):
        yield from where_problems(entry.get("where"), here.key("where"))
        yield from exit_problems(entry, here)
    for section in ("exclude", "expect"):
        for here, entry in _tables(table, place, section):
            if not any(key in SelectorTable.__struct_fields__ or key.startswith(OPTION) for key in entry):
                valid = ", ".join([*SelectorTable.__struct_fields__, f'"{OPTION}<key>"'])
                what = "this entry has no selector, so it matches every cell"
                yield here.problem(what, f"add one or more of {valid}")


def _in_models(models: dict[str, Any], place: FilePlace, folder: Path) -> Iterator[Problem]:
    if not any(models.get(key) for key in ("suites", "folders", "packages")):
        hint = 'write suites = ["onnx-node"], folders = ["models"] or packages = ["phi.ortpackage"]'
        yield place.problem("there are no suites, no folders and no packages", hint)
    suites = _items(models.get("suites"), place.key("suites"))
    for here, written in (
        entry for key in ("folders", "packages") for entry in _items(models.get(key), place.key(key))
    ):
        name = (folder / written).name
        # ".." has no name of its own.
        suites.append((here, name if name != ".." else Path(realpath(folder / written)).name))
    for here, name in _repeated(suites):
        hint = "remove one; a folder's base name is its suite's name"
        yield here.problem(f"the suite {name!r} is listed twice", hint)


def _in_model(entry: dict[str, Any], place: FilePlace, folder: Path) -> Iterator[Problem]:
    if not any(entry.get(key) for key in ("dimensions", "inputs", "vary", "agree")):
        hint = "add one of them, or remove the entry"
        yield place.problem("this entry sets neither dimensions, inputs, vary nor agree", hint)
    yield from contradicting_inputs(entry.get("inputs"), place.key("inputs"))
    yield from agree_problems(entry.get("agree"), place.key("agree"), lambda name: has_module(name, folder))


def _in_axes(axes: object, place: FilePlace, targets: Sequence[dict[str, Any]]) -> Iterator[Problem]:
    if not isinstance(axes, dict):
        return
    known = known_provider(targets[0].get("provider")) if len(targets) == 1 else None
    booleans = known.true_false if known else TRUE_FALSE
    for axis, values in axes.items():
        found = _items(values, place.key(axis), (str, int, float))
        for here, value in _repeated([(here, text(value, booleans)) for here, value in found]):
            yield here.problem(f"{value!r} is listed twice", "remove one")
    providers = [chain for target in targets if isinstance(chain := target.get("provider"), str | list)]
    firsts = [name for chain in providers for name in one_or_more(chain)[:1] if isinstance(name, str)]
    own = [name for target in targets for name in _own_precisions(target)]
    yield from precision_problems(axes.get("precision"), place.key("precision"), firsts, own)


def _own_precisions(target: dict[str, Any]) -> list[str]:
    modes = target.get("precisions")
    return list(modes) if isinstance(modes, dict) else []


def _in_scenarios(settings: object, place: FilePlace, every_axes: Sequence[object]) -> Iterator[Problem]:
    """Yield a problem for settings of a scenario that no cell has."""
    lists = [axes.get("scenario") for axes in every_axes if isinstance(axes, dict)]
    played = {name for values in lists if isinstance(values, list) for name in map(str, values)}
    for name in settings if isinstance(settings, dict) else ():
        if name in Scenarios.__struct_fields__ and name not in played:
            hint = f"add {name!r} to `scenario` of [axes] or of a target, or remove the settings"
            yield place.key(name).problem("no cell has this scenario", hint)


def _in_chain(target: dict[str, Any], place: FilePlace) -> Iterator[Problem]:
    here = place.key("provider")
    written = target.get("provider")
    chain = [(here, written)] if isinstance(written, str) else _items(written, here)
    for here, name in chain:
        known = find_provider(name)
        if (known is None or known.name != name) and "plugin" not in target and name:
            hint = f"did you mean {known.name!r}?" if known else valid_names(name, load_catalog().names)
            hint += " (with `plugin`, any name is valid)"
            yield here.problem(f"unknown execution provider {name!r}", hint)
    for here, name in chain[:-1]:
        if name == CPU_PROVIDER:
            hint = "put it last, or leave it out: onnxruntime adds it"
            yield here.problem(f"{CPU_PROVIDER} takes every node, so that later providers get none", hint)
    for here, name in _repeated(chain):
        yield here.problem(f"{name!r} is listed twice", "remove one")


_BESIDE = {
    "python_version": ("packages",),
    "channel": ("ssh", "adb", "command", "agent"),
    "flags": ("browser",),
    "threads": ("browser",),
}
"""Keys of a runtime -> others that they need: without all of those they have no effect."""

_JAVASCRIPT = {"node": "onnxruntime-node", "browser": "onnxruntime-web"}
"""Runtimes other than Python -> the npm package that they need."""

_TOGETHER = (
    *(["python", "ssh"], ["packages", "node"], ["packages", "browser"]),
    *(["ssh", "agent"], ["command", "agent"], ["adb", "agent"]),
)
"""Keys of a runtime that must be used together."""


def _in_runtime(runtime: object, place: FilePlace) -> Iterator[Problem]:
    if not isinstance(runtime, dict):
        return
    given = [key for key in RuntimeTable.__struct_fields__ if key in runtime and key not in _BESIDE]
    for key, needed in _BESIDE.items():
        if key in runtime and not runtime.keys() & set(needed):
            what = f"this has no effect without {' or '.join(f'`{each}`' for each in needed)}"
            hint = "add one, or remove this" if len(needed) > 1 else "add that, or remove this"
            yield place.key(key).problem(what, hint)
    for key, package in _JAVASCRIPT.items():
        if key in runtime and "packages" not in runtime:
            hint = f'add packages = ["{package}@1.30.0"], or another release'
            yield place.key(key).problem("it needs `packages` of npm", hint)
        if key in runtime and "python_version" in runtime:
            yield place.key("python_version").problem(f"this has no effect beside `{key}`", "remove it")
    if given == ["adb"]:
        hint = 'add agent = ["./my_agent"], or reach a Python over there by `command`'
        yield place.key("adb").problem("it needs `agent`: a phone has no Python", hint)
    if len(given) > 1 and given not in _TOGETHER:
        what = f"got {' and '.join(given)}, which exclude each other"
        yield place.problem(what, f"keep one of {', '.join(given)}")


def _items(values: object, place: FilePlace, kinds: tuple[type, ...] = (str,)) -> list[tuple[FilePlace, Any]]:
    """Return the values of some types in a list with their places; nothing if it is not a list."""
    if not isinstance(values, list):
        return []
    return [
        (place.item(index), value)
        for index, value in enumerate(values)
        if isinstance(value, kinds) and "\0" not in str(value)
    ]


def _tables(table: dict[str, Any], place: FilePlace, section: str) -> list[tuple[FilePlace, dict[str, Any]]]:
    entries = table.get(section)
    if not isinstance(entries, list):
        return []
    here = place.key(section)
    return [(here.item(index), entry) for index, entry in enumerate(entries) if isinstance(entry, dict)]


def _repeated(named: Sequence[tuple[_Where, object]]) -> Iterator[tuple[_Where, str]]:
    """Yield the second and further occurrences of each name."""
    seen: set[str] = set()
    for where, name in named:
        if isinstance(name, str) and name:
            if name in seen:
                yield where, name
            seen.add(name)
