"""A fault of one Relu, for bundles."""

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import onnx
import onnx.parser

from harness.annex.triage.bundle import BundleContents, ModelSource
from harness.core.records.fault import (
    Condition,
    Fault,
    GraphNode,
    GraphTensor,
    ReducedModel,
    Repetition,
    Signature,
)
from harness.core.records.verdict import Verdict
from harness.core.values.value import tensor
from harness.plan.target import Target

TEXT = """<ir_version: 8, opset_import: ["" : 17]>
agraph (float[2,3] x) => (float[2,3] y) { y = Relu(x) }"""
CPU = "CPUExecutionProvider"

Contents = Callable[..., BundleContents]


def model_bytes(text: str = TEXT) -> bytes:
    content: bytes = onnx.parser.parse_model(text).SerializeToString()
    return content


def fault_of(verdict: Verdict, **more: Any) -> Fault:
    signature = Signature(
        verdict=verdict, **{key: more.pop(key) for key in ("message", "cause") if key in more}
    )
    confirmed = more.pop("confirmation", Repetition(outcome="always", trials=3, failures=3))
    node = GraphNode(name="relu", op_type="Relu", inputs=("x",), outputs=("y",), guilty=True)
    one = GraphTensor(name="x", role="input", dtype="float32", shape="2x3")
    settings = {
        "id": "F0123456789",
        "sentence": "The EP computes Relu wrongly",
        "target": "here",
        "provider": CPU,
        "representative": "s/m[here]",
        "cells": ("s/m[here]",),
        "reduced": ReducedModel(nodes=(node,), tensors=(one,), bytes=90, nodes_before=40, bytes_before=9000),
        "conditions": (Condition(kind="option", name="fast", value="0", fails=False, verdict="pass"),),
    }
    return Fault(signature=signature, confirmation=confirmed, **{**settings, **more})


def contents(
    verdict: Verdict = Verdict.MISMATCH, fault: dict[str, Any] | None = None, **changes: Any
) -> BundleContents:
    """Make contents: ``expected`` is right, ``found`` is off by one, unless a test changes them."""
    given = np.arange(-3, 3, dtype=np.float32).reshape(2, 3)
    right = np.maximum(given, 0)
    made = BundleContents(
        fault=fault_of(verdict, **(fault or {})),
        model=ModelSource(content=model_bytes()),
        inputs=(("x", tensor(given)),),
        expected=(("y", tensor(right)),),
        found=(("y", tensor(right + np.float32(1))),) if verdict is Verdict.MISMATCH else (),
        limits={"y": 1e-3},
        target=Target(name="here", provider=(CPU,)),
        time_limit_s=60,
    )
    return msgspec.structs.replace(made, **changes)
