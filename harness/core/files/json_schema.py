"""JSON Schemas of the files that this package writes, published in docs/reference."""

import inspect
from typing import Any

import msgspec


def json_schema_of(kind: Any, title: str) -> dict[str, Any]:
    """Return the JSON Schema of a file, or of a line: a struct, or a union of structs."""
    (root,), definitions = msgspec.json.schema_components(
        (kind,), schema_hook=_hook, ref_template="#/$defs/{name}"
    )
    for table in definitions.values():
        if "description" in table:  # a docstring; Python itself removes its indentation from 3.13 on
            table["description"] = inspect.cleandoc(table["description"])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"ort-ep-harness: {title}",
        **root,
        "$defs": definitions,
    }


def _hook(kind: type) -> dict[str, Any]:
    if kind is object:  # facts about an environment: any JSON
        return {"description": "any JSON value"}
    raise NotImplementedError(kind)
