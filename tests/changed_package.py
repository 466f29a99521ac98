"""A copy of the package with a few lines more, for tests of the recipes in CONTRIBUTING.md."""

import shutil
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]


def changed_package(home: Path, changes: Mapping[str, Mapping[str, str]]) -> Path:
    """Copy the package and its templates into a folder, to be put on the path.

    Args:
        changes: File of the repository -> what is added before which text, which stands there once.
    """
    shutil.copytree(ROOT / "harness", home / "harness", ignore=shutil.ignore_patterns("__pycache__", "_data"))
    shutil.copytree(ROOT / "report_templates", home / "report_templates")
    for folder in ("matrices", "golden"):
        if (ROOT / folder).is_dir():
            (home / folder).symlink_to(ROOT / folder)
    for name, added in changes.items():
        text = (ROOT / name).read_text("utf-8")
        for before, more in added.items():
            assert text.count(before) == 1, before
            text = text.replace(before, more + before)
        (home / name).write_text(text, encoding="utf-8")
    return home
