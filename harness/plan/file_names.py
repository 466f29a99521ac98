"""Whether a value from a stranger's file may name a file: a library would be loaded, a folder written."""

from harness.catalog.catalog import find_provider
from harness.plan.target import LIBRARY_SUFFIXES


def names_a_file(value: str) -> bool:
    """Whether a value may be a path or a library's name; a JSON object counts if any text in it does."""
    return "/" in value or "\\" in value or any(suffix in value.lower() for suffix in LIBRARY_SUFFIXES)


def option_names_a_file(provider: str, key: str, value: str) -> bool:
    """Whether a value of a provider option may name a file: it looks like one, or the option takes one."""
    if names_a_file(value):
        return True
    known = find_provider(provider) if value else None
    return known is not None and any(one.key == key and one.type == "path" for one in known.options)
