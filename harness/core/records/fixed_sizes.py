"""Fixed sizes of symbolic dimensions, and the nodes that a provider leaves to the CPU without them."""

import json
import re

import msgspec

_BARE = re.compile(r"[A-Za-z0-9_-]+")


class FixedSizes(msgspec.Struct, frozen=True, kw_only=True):
    """The placement of a model with fixed sizes; a session was created, and nothing was run.

    Attributes:
        sizes: Symbolic dimension -> its size, as ``add_free_dimension_override_by_name`` takes it.
        ep_nodes: Nodes on the EP with fixed sizes; more than without.
        cpu_nodes: Nodes on the CPU EP with fixed sizes.
    """

    sizes: dict[str, int]
    ep_nodes: int
    cpu_nodes: int


def fixed_words(fixed: FixedSizes | None) -> str:
    """Return the effect of fixed sizes, with the lines for the matrix; empty if nothing is known."""
    if fixed is None:
        return ""
    told = ", ".join(f"`{name} = {size}`" for name, size in fixed.sizes.items())
    nodes = fixed.ep_nodes + fixed.cpu_nodes
    many = f"{fixed.ep_nodes:,} of {nodes:,}" if fixed.cpu_nodes else "1" if nodes == 1 else f"all {nodes:,}"
    table = ", ".join(f"{_key(name)} = {size}" for name, size in fixed.sizes.items())
    runs = "node runs" if nodes == 1 else "nodes run"
    return f"with {told} {many} {runs} on the EP: dimensions = {{ {table} }}, fixed = true in [[model]]"


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else json.dumps(name, ensure_ascii=False)
