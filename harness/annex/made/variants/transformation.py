"""The definition of a transformation."""

from collections.abc import Callable, Collection

import msgspec
import onnx

from harness.annex.made.variants.draft import Draft, NewNodes, Type, result_of

MOVABLE = frozenset({"float32", "float16", "float64", "int64", "int32", "int8", "uint8", "bool"})
"""Types for which the CPU EP has kernels wherever elements only move."""

NUMERIC = frozenset({"float32", "int64", "int32"})
"""Types for which the CPU EP has arithmetic kernels, and that the operators of opset 13 accept."""


class Transformation(msgspec.Struct, frozen=True, kw_only=True):
    """One change of a model that keeps its answer.

    Attributes:
        name: Its name in steps and reports.
        apply: Changes a draft once and returns the place; an empty text if there is no place, and then
            nothing has changed. Its docstring proves that the answer stays.
        exact: Whether the answer stays to the last bit in every implementation of the standard; otherwise it
            stays within rounding noise.
    """

    name: str
    apply: Callable[[Draft], str]
    exact: bool = True


Build = Callable[[NewNodes, str, Type], str]
"""Adds nodes that return the tensor they read; returns an empty name if its type does not suit."""


def pair(name: str, build: Build, dtypes: Collection[str], *, exact: bool = True) -> Transformation:
    """Return the transformation that adds nodes which return their input on a drawn edge."""

    def apply(draft: Draft) -> str:
        edges = draft.edges(dtypes)
        for edge in draft.random.some(edges, len(edges)):
            part = NewNodes(draft)
            read = draft.name_at(edge)
            result = build(part, read, draft.type_of(read))
            if result:
                draft.reroute(edge, part, result)
                return read
        return ""

    apply.__doc__ = build.__doc__
    return Transformation(name=name, apply=apply, exact=exact)


ChangeNode = Callable[[NewNodes, onnx.NodeProto, Type], str]
"""Adds nodes that compute the same as a node of one output.

Returns an empty name if the node does not suit.
"""


NodeSelection = Collection[str] | Callable[[Draft], list[int]]
"""Operators, or a function that returns indices of nodes."""


def change(name: str, build: ChangeNode, places: NodeSelection, *, exact: bool = True) -> Transformation:
    """Return the transformation that replaces a drawn suitable node by others."""

    def apply(draft: Draft) -> str:
        indices = places(draft) if callable(places) else draft.nodes(places)
        for index in draft.random.some(indices, len(indices)):
            node, part = draft.graph.node[index], NewNodes(draft)
            kind = draft.type_of(node.input[0])
            fits = len(node.output) == 1 and kind.dtype in MOVABLE
            result = build(part, node, kind) if fits else ""
            if result:
                where = result_of(node)
                draft.replace(index, part, [result])
                return where
        return ""

    apply.__doc__ = build.__doc__
    return Transformation(name=name, apply=apply, exact=exact)
