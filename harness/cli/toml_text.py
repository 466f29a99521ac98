"""Keys and values as TOML spells them, for the matrix files that commands write."""

import json
from collections.abc import Mapping


def key(name: str) -> str:
    """A key, in quotes where it needs them."""
    return name if name.replace("_", "").replace("-", "").isalnum() and name.isascii() else text(name)


def text(value: object) -> str:
    """A text. JSON's escapes are TOML's, but for pairs of surrogates; and TOML wants one more."""
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def inline_table(table: Mapping[str, object]) -> str:
    """A table of texts in one line."""
    return f"{{ {', '.join(f'{key(name)} = {text(value)}' for name, value in table.items())} }}"
