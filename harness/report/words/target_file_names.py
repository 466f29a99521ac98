"""Names of files of which each target of a report has one."""

import hashlib
import re
from collections.abc import Iterable, Iterator

_MAX_NAME = 80


def target_file_names(labels: Iterable[str]) -> Iterator[str]:
    """Yield a name for each label: for URLs without escaping, unique even if case is ignored."""
    taken: set[str] = set()
    for label in labels:
        name = _file_name(label, taken)
        taken.add(name.casefold())
        yield name


def _file_name(label: str, taken: set[str]) -> str:
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", label).strip("-.")
    if name and len(name) <= _MAX_NAME and name.casefold() not in taken:
        return name
    return f"{name[:_MAX_NAME]}-{hashlib.sha256(label.encode()).hexdigest()[:8]}".lstrip("-")
