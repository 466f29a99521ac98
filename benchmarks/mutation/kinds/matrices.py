"""Matrix files: their text, and the tree of their tables."""

import json
import tomllib
from pathlib import Path
from typing import Any

from benchmarks.mutation.attempt import Attempt
from benchmarks.mutation.changes import changed_bytes
from benchmarks.mutation.commands import Commands
from benchmarks.mutation.kinds.a_run import write_innocent
from tests.mutations import changed
from tests.plan.test_fuzz_matrix import MATRIX


class Matrices:
    """The matrix of ``tests/plan``, which has something of everything."""

    def __init__(self, home: Path, commands: Commands) -> None:
        self._cache = str(home / "cache")

    def attempt(self, made: Attempt) -> None:
        """List the plan of a changed one; nothing of it is started."""
        write_innocent(made.folder / "models")
        content = MATRIX.replace('suites = ["onnx-node"]', "suites = []").encode()
        if made.rng.random() < 0.6:
            tree = changed(tomllib.loads(content.decode()), made.rng.randint(1, 3), made.rng.choice)
            content = _toml(tree).encode(errors="surrogatepass")
        else:
            content = changed_bytes(content, made.rng)
        (made.folder / "m.toml").write_bytes(content)
        made.run(
            "list", "m.toml", *made.rng.choice(((), ("--count",), ("--json",))), EP_HARNESS_CACHE=self._cache
        )


def _toml(tree: Any) -> str:
    """Write tables inline, which is as valid; what TOML lacks is a text."""
    if not isinstance(tree, dict):
        return f"x = {_value(tree)}\n"
    return "".join(f"{json.dumps(key)} = {_value(value)}\n" for key, value in tree.items())


def _value(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return repr(value)
        case dict():
            inner = ", ".join(f"{json.dumps(str(key))} = {_value(each)}" for key, each in value.items())
            return f"{{ {inner} }}"
        case list():
            return f"[{', '.join(map(_value, value))}]"
        case _:
            return json.dumps(str(value))
