"""Each floor imports only floors below it, and loads nothing heavy on import."""

import ast
import functools
import graphlib
import json
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

import harness

ROOT = Path(harness.__file__).parent
VALUES = frozenset({"numpy", "ml_dtypes", "msgspec"})


class Floor(msgspec.Struct, frozen=True):
    """What a floor may import: other floors, and distributions beside the standard library.

    ``lazy`` names what may be imported inside functions only, so that importing the floor does not load it.
    """

    floors: frozenset[str]
    third_party: frozenset[str]
    lazy: frozenset[str] = frozenset()


def floor(floors: str, third_party: frozenset[str], lazy: str = "") -> Floor:
    companions = {other for name in third_party for other in COMES_WITH.get(name, ())}
    return Floor(frozenset(floors.split()), third_party | companions, frozenset(lazy.split()))


COMES_WITH = {"onnx": {"google"}, "jinja2": {"markupsafe"}, "pytest": {"pluggy"}}
GROUND = {"data_files", "doors", "__version__"}
"""Beside the floors, below all that may know where they are installed: not ``core``, not ``agent``."""


BELOW_ENGINE = "operators core catalog plan corpus golden agent runtimes places"
EVERYTHING = f"{BELOW_ENGINE} engine studies run report judge"
ANNEXES = {
    "advise": "",
    "agent_check": "",
    "conformance": "",
    "fuzz": "annex.made annex.triage",
    "made": "",
    "pack": "annex.advise",
    "publication": "annex.conformance",
    "speed": "",
    "store": "",
    "trace": "annex.triage",
    "triage": "annex.made",
}
"""Annex -> the others that it may import. No other floor imports an annex."""
FRONT_END = VALUES | {"onnx", "filelock", "jinja2", "platformdirs", "pytest", "rich"}
TABLE = {
    "operators": floor("", frozenset({"msgspec"})),
    "core": floor("operators", VALUES),
    "catalog": floor("operators core", VALUES),
    "plan": floor("operators core catalog", VALUES),
    "corpus": floor("operators core", VALUES | {"onnx", "filelock", "platformdirs"}, "onnxruntime"),
    "golden": floor("operators core corpus", VALUES | {"onnx", "filelock", "platformdirs"}, "onnxruntime"),
    # Travels into any Python: not even the packages that every other floor has.
    "agent": floor("", frozenset({"numpy"}), "onnxruntime onnx"),
    # As the agent, it runs in any Python.
    "record": floor("", frozenset({"numpy"}), "onnxruntime"),
    "runtimes": floor(
        "operators core catalog plan corpus agent", VALUES | {"onnx", "filelock", "platformdirs"}
    ),
    "places": floor("operators core catalog plan runtimes", VALUES),
    "engine": floor(BELOW_ENGINE, VALUES | {"onnx", "filelock", "platformdirs"}),
    "studies": floor(f"{BELOW_ENGINE} engine", VALUES | {"onnx", "filelock", "platformdirs"}),
    "run": floor(f"{BELOW_ENGINE} engine", VALUES | {"onnx", "filelock", "platformdirs"}),
    "report": floor("operators core catalog plan", VALUES | {"jinja2"}, "networkx"),
    "judge": floor(
        f"{BELOW_ENGINE} engine run report", VALUES | {"onnx", "filelock", "jinja2", "platformdirs"}
    ),
    "annex.made": floor(
        "operators core corpus", VALUES | {"onnx", "filelock", "platformdirs"}, "onnxruntime"
    ),
    "annex.triage": floor(f"{BELOW_ENGINE} engine", VALUES | {"onnx", "filelock", "platformdirs"}),
    "annex.trace": floor(f"{BELOW_ENGINE} engine studies", VALUES | {"onnx", "filelock", "platformdirs"}),
    "annex.fuzz": floor(f"{BELOW_ENGINE} engine run", VALUES | {"onnx", "filelock", "platformdirs"}),
    "annex.agent_check": floor(f"{BELOW_ENGINE} engine", VALUES | {"onnx", "filelock", "platformdirs"}),
    "annex.pack": floor(f"{BELOW_ENGINE} engine studies", VALUES | {"onnx", "filelock", "platformdirs"}),
    "annex.speed": floor(
        f"{BELOW_ENGINE} engine studies report", VALUES | {"onnx", "filelock", "jinja2", "platformdirs"}
    ),
    "annex.advise": floor(
        f"{BELOW_ENGINE} engine studies report", VALUES | {"onnx", "filelock", "jinja2", "platformdirs"}
    ),
    "annex.conformance": floor(
        f"{BELOW_ENGINE} engine studies run report",
        VALUES | {"onnx", "filelock", "jinja2", "platformdirs"},
        "sigstore",
    ),
    "annex.publication": floor(
        # Verification of ``conformance`` compares as the engine does; no floor 2 is used beside that.
        f"{BELOW_ENGINE} engine studies run report",
        VALUES | {"jinja2", "onnx", "filelock", "platformdirs"},
        "sigstore",
    ),
    # What a run is, and the trends of runs, are the report's; DuckDB comes with an extra.
    "annex.store": floor(
        "operators core catalog plan corpus report",
        VALUES | {"jinja2", "onnx", "filelock", "platformdirs"},
        "duckdb",
    ),
    "pytest_plugin": floor(EVERYTHING, FRONT_END),
    "cli": floor(EVERYTHING, FRONT_END),
}
WATCHED = FRONT_END | {"duckdb", "networkx", "onnxruntime", "google", "markupsafe", "pluggy"}
FOR_TYPES = {"_typeshed"}
"""Of the standard library's types: no Python can import it."""
FORBIDDEN_MODULES = {"pickle", "cPickle", "_pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}

IMPORT_ALL = """
import importlib, json, pkgutil, sys
package = importlib.import_module(sys.argv[1])
for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    if not module.name.rpartition(".")[2].startswith(("__main__", "command")):
        importlib.import_module(module.name)
print(json.dumps(sorted(sys.modules)))
"""


def may_know(name: str) -> set[str]:
    """The parts of the package that a floor may import, itself included."""
    ground = set() if name in {"operators", "core", "agent", "record"} else GROUND
    annexes = ANNEXES.get(name.removeprefix("annex."), "").split()
    return {name, *TABLE[name].floors, *annexes, *ground}


def floor_of(module: str) -> str:
    """Return the floor of a module by its full name: a folder of ``harness``, or one of its annexes."""
    parts = module.split(".")[1:]
    return ".".join(parts[:2] if parts[:1] == ["annex"] else parts[:1])


def sources(name: str) -> list[Path]:
    return sorted(ROOT.joinpath(*name.split(".")).rglob("*.py"))


def is_front_end(path: Path) -> bool:
    """Whether a module is one of a command beside the package that it is about: ``command.py`` and others."""
    beside = path.parent.parent in (ROOT, ROOT / "annex") and path.parent.name != "cli"
    return beside and path.stem.startswith("command")


def rules_of(path: Path, name: str) -> tuple[set[str], frozenset[str]]:
    """The parts of the package, and the distributions, that a module of a floor may import.

    A front end beside its package may import what that may, and what those in ``cli`` may.
    """
    rules = TABLE[name]
    if is_front_end(path):
        return may_know(name) | may_know("cli"), rules.third_party | rules.lazy | FRONT_END
    return may_know(name), rules.third_party | rules.lazy


def imports(path: Path) -> frozenset[str]:
    """Every module that a file imports, at its top or inside a function, by its full name."""
    return read(path)[0]


@functools.cache
def read(path: Path) -> tuple[frozenset[str], tuple[str, ...]]:
    """What a file imports, and where it may start a shell or read a pickle: each file is parsed once."""
    names: set[str] = set()
    dangers: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.keyword) and node.arg in {"shell", "allow_pickle"}:
            if not (isinstance(node.value, ast.Constant) and node.value.value is False):
                dangers.append(f"{path}:{node.value.lineno}: {node.arg}")
        elif isinstance(node, ast.Attribute):
            if (getattr(node.value, "id", ""), node.attr) in {("os", "system"), ("os", "popen")}:
                dangers.append(f"{path}:{node.lineno}: os.{node.attr}")
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            # ``from harness import plan`` names the floor on its right side.
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(names), tuple(dangers)


def test_every_floor_is_in_the_table() -> None:
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"annex"}
    annexes = {f"annex.{path.parent.name}" for path in ROOT.glob("annex/*/__init__.py")}
    assert packages | annexes == set(TABLE)
    assert {f"annex.{name}" for name in ANNEXES} == annexes


@pytest.mark.parametrize("name", TABLE)
def test_a_floor_names_only_what_it_may(name: str) -> None:
    assert sources(name)
    for path in sources(name):
        floors, third_party = rules_of(path, name)
        for module in imports(path):
            top = module.partition(".")[0]
            if top == "harness":
                assert floor_of(module) in floors, f"{path} imports {module}"
            elif top not in sys.stdlib_module_names | FOR_TYPES:
                assert top in third_party, f"{path} imports {module}"


def test_no_floor_imports_an_annex() -> None:
    assert not [name for name, rules in TABLE.items() for other in rules.floors if other.startswith("annex")]


def test_every_annex_has_a_page() -> None:
    for name in ANNEXES:
        page = (ROOT / "annex" / name / "README.md").read_text("utf-8")
        assert len(page.splitlines()) <= 60
        for file in re.findall(r"`([\w/]+\.py)`", page):
            assert [*(ROOT / "annex" / name).rglob(file)], f"{name}: {file}"


@pytest.mark.parametrize("name", TABLE)
def test_importing_a_floor_loads_only_what_it_may(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, f"harness.{name}"],
        capture_output=True,
        check=False,
        cwd=ROOT.parent,
        encoding="utf-8",
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    loaded = json.loads(done.stdout.splitlines()[-1])
    tops = {module.partition(".")[0] for module in loaded}
    assert tops & (WATCHED - TABLE[name].third_party) == set()
    floors = {floor_of(module) for module in loaded if module.startswith("harness.")}
    assert floors - {"annex"} <= may_know(name)


@pytest.mark.parametrize(
    "path", sorted(ROOT.rglob("*.py")), ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_no_pickle_and_no_shell(path: Path) -> None:
    assert {module.partition(".")[0] for module in imports(path)} & FORBIDDEN_MODULES == set()
    assert read(path)[1] == ()


def test_no_module_imports_itself_through_others() -> None:
    """Imports inside functions and for types count, too: a reader should not need both modules at once."""
    modules = {module_name(path): path for path in ROOT.rglob("*.py")}
    graph = {
        name: {
            other for other in imports(path) | parents(imports(path)) if other in modules and other != name
        }
        for name, path in modules.items()
    }
    for name in graph:  # a package is imported before anything in it
        graph[name] -= {package for package in graph if name.startswith(package + ".")}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        pytest.fail(f"a circle: {' -> '.join(error.args[1])}")


SEVERAL = 2
WITH_PACKAGES = sorted(
    path.parent
    for path in ROOT.rglob("__init__.py")
    if path.parent != ROOT and len([*path.parent.glob("*/__init__.py")]) >= SEVERAL
)


def imported_packages(folder: Path) -> dict[str, set[str]]:
    """Each package of a folder, and the others of that folder that it imports."""
    packages = {module_name(path): path.parent for path in folder.glob("*/__init__.py")}
    return {
        name: {
            other
            for path in place.rglob("*.py")
            for imported in imports(path)
            for other in packages
            if other != name and f"{imported}.".startswith(f"{other}.")
        }
        for name, place in packages.items()
    }


@pytest.mark.parametrize("folder", WITH_PACKAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_packages_of_a_folder_have_an_order(folder: Path) -> None:
    """Each imports only those before it, so that a reader knows in which to begin."""
    try:
        graphlib.TopologicalSorter(imported_packages(folder)).prepare()
    except graphlib.CycleError as error:
        pytest.fail(f"a circle: {' -> '.join(error.args[1])}")


def module_name(path: Path) -> str:
    parts = ("harness", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def parents(names: frozenset[str]) -> set[str]:
    """``from a.b import c`` names ``a.b.c``; where ``c`` is no module, ``a.b`` is what is imported."""
    return {name.rpartition(".")[0] for name in names}
