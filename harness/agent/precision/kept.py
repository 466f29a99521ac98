"""The nodes that a conversion leaves in float32: the model itself lists them."""

from __future__ import annotations

import json
from typing import Any

KEPT = "ep_harness.float32_nodes"
"""Key of the model's metadata: names of nodes, as a JSON array."""


def kept_nodes(model: Any) -> list[str]:
    """Return the names of the nodes that stay in float32; empty if the model lists none."""
    for entry in model.metadata_props:
        if entry.key == KEPT:
            names = json.loads(entry.value)
            return [str(name) for name in names] if isinstance(names, list) else []
    return []
