"""A provider file to damage."""

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.catalog.catalog import read_catalog
from harness.catalog.provider import Provider
from harness.core.text.errors import Problem, UsageError

GOOD = """
schema = 1
name = "XExecutionProvider"
aliases = ["X"]
vendor = "V"
kind = "gpu"
hardware = "h"
state = "active"
platforms = ["linux"]
registration = ["plugin"]
advice = "none"
unknown_options = "refused"
true_false = ["True", "False"]
source = ["a page"]

[[option]]
key = "fast"
type = "bool"
default = "False"
meaning = "Faster."
since = "1.22"
source = ["a page"]

[[option]]
key = "mode"
type = "choice"
values = ["low", "high"]
default = "low"
meaning = "How."
source = ["a page"]

[[option]]
key = "level"
type = "int"
values = ["0", "3"]
ranged = true
default = "1"
meaning = "How much."
source = ["a page"]

[[option]]
key = "kernels"
type = "flags"
flags = { FLASH = 1, MATH = 16 }
default = "0"
meaning = "Which."
source = ["a page"]

[[precision]]
name = "fp16"
computes = "float16"
options = { fast = "True", mode = "high" }
meaning = "Half."
source = ["a page"]

[[probe]]
options = { fast = "True" }
needs_file = "/opt/driver.json"
meaning = "In software."

[[version]]
onnxruntime = ">=1.22, <1.24"
needs = "Driver 5"
source = ["a page"]
"""


@pytest.fixture
def good() -> str:
    """The text of a provider file that holds one of everything."""
    return GOOD


@pytest.fixture
def problems_of(tmp_path: Path) -> Callable[[str], tuple[Problem, ...]]:
    """What the reader says about a file of that text: nothing about a good one."""

    def read(text: str) -> tuple[Problem, ...]:
        (tmp_path / "x.toml").write_text(text, encoding="utf-8")
        try:
            read_catalog(tmp_path)
        except UsageError as error:
            return tuple(error.problems)
        return ()

    return read


@pytest.fixture
def provider(tmp_path: Path) -> Provider:
    """The provider of the good file."""
    (tmp_path / "x.toml").write_text(GOOD, encoding="utf-8")
    return read_catalog(tmp_path).providers[0]
