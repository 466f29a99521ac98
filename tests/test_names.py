"""A public name stands for one thing in the whole package, and so does the name of a module."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import harness

ROOT = Path(harness.__file__).parent

ROLES = {
    "__init__": "Python's name for a package",
    "__main__": "Python's name for what `python -m` runs",
    "command": "declares the commands of its package",
    "reference": "writes a page of docs/reference",
    "roster": "lists the models of a suite that is built by code, without building any",
}
"""Names that modules may share, at most eight beside ``__init__``: each is a role, with what it does."""

FUNCTION_ROLES = {
    "main": "what a process runs",
    "play": "runs a job of the agent, one module for each kind of job",
    "reference": "writes the page of a module ``reference``",
}
OF_A_PLACE = {
    "agent/float64/ops/": "compute an ONNX operator",
    "agent/float64/casts.py": "compute an ONNX operator",
    "agent/float64/control.py": "compute an ONNX operator",
    "corpus/corners/": "make models of an ONNX operator",
    "annex/made/decoders/": "build a layer",
    "annex/made/forms/": "relate the shapes of an ONNX operator",
    "annex/made/grown/": "add an ONNX operator to a graph",
    "annex/made/variants/": "change a graph by an ONNX operator",
    "annex/made/zoo/": "build a layer",
}
"""Where functions share names, such as those of operators: the place tells what they do."""

CHOSEN_BY_NAME = ("agent/precision/", "agent/scenarios/", "operators/families/")
"""Where all modules have the same functions and constants, and one is chosen by its name."""

COMMANDS = "cli/"
"""Where a function has the name of its command."""

DECLARING = ("/command.py", "_command.py")
"""Modules whose constants have the names of their commands."""


def sources() -> list[Path]:
    """The modules of the package, without the scripts of a bundle, which a wheel has inside."""
    return sorted(path for path in ROOT.rglob("*.py") if "_data" not in path.relative_to(ROOT).parts)


def test_the_name_of_a_module_is_used_once() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in sources():
        places[path.stem].append(path.relative_to(ROOT).as_posix())
    assert {name: found for name, found in places.items() if len(found) > 1 and name not in ROLES} == {}
    assert [name for name in ROLES if len(places[name]) < 2] == [], "a role of one module is none"
    assert len(ROLES) - 1 <= 8


def test_a_public_name_is_defined_once() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in sources():
        where = path.relative_to(ROOT).as_posix()
        for name in set(defined(path)):
            if not has_a_role(name, where):
                places[name].append(where)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def has_a_role(name: str, where: str) -> bool:
    """Whether a function may have a name that others have: its place says which of them it is."""
    if where.startswith(CHOSEN_BY_NAME) and not is_type(name):
        return True
    if where.endswith(DECLARING) and name.isupper():
        return True
    return name.islower() and (name in FUNCTION_ROLES or where.startswith((*OF_A_PLACE, COMMANDS)))


def defined(path: Path) -> Iterator[str]:
    """Yield the public names that a file defines at its top, under an ``if`` or ``try`` too."""
    pending: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while pending:
        node = pending.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                names = [child.name]
            elif isinstance(child, (ast.Assign, ast.AnnAssign)):
                targets = child.targets if isinstance(child, ast.Assign) else [child.target]
                names = [
                    each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)
                ]
            else:
                names = []
                pending += [child] if isinstance(child, (ast.If, ast.Try, ast.With)) else []
            yield from (name for name in names if not name.startswith("_"))


def is_type(name: str) -> bool:
    return name[0].isupper() and any(letter.islower() for letter in name)


def test_a_second_definition_is_found(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(
        "import ast\nclass A1: pass\nif ast:\n    Kind: object = int\n    _Own = 1\ndef f():\n    Inner = 1\n"
    )
    assert sorted(defined(tmp_path / "one.py")) == ["A1", "Kind", "f"]
    assert has_a_role("conv", "annex/made/forms/windows.py")
    assert not has_a_role("conv", "corpus/model/nodes.py")
    assert not has_a_role("Conv", "corpus/forms/windows.py")
