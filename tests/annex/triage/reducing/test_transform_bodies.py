"""Transformations of If, Loop, Scan and the model's own functions."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest

from harness.annex.triage.transform.bodies import fewer_body_nodes
from harness.annex.triage.transform.control_flow import inlined_bodies
from harness.annex.triage.transform.function_nodes import fewer_function_nodes
from harness.annex.triage.transform.functions import inlined_functions
from tests.annex.triage.reducing.reductions import apply, subject
from tests.kit import run_on_cpu

X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)

BRANCHES = """
    <ir_version: 8, opset_import: ["": 17]>
    g (float[2,3] x, bool c) => (float[2,3] y) {
        [before] a = Abs(x)
        [choose] b = If (c) <
            then_branch = g1 () => (float[2,3] r) {
                [then1] t = Neg(a) [then2] u = Sin(t) [then3] r = Cos(u)
            },
            else_branch = g2 () => (float[2,3] r2) <float k = {2}> {
                [else1] t = Exp(a) [else2] r2 = Mul(t, k)
            }
        >
        [after] y = Sqrt(b)
    }
"""


def every_name(model: onnx.ModelProto) -> set[str]:
    found = {node.name for function in model.functions for node in function.node}
    pending = list(model.graph.node)
    while pending:
        node = pending.pop()
        found.add(node.name)
        for attribute in node.attribute:
            pending += attribute.g.node
    return found


def holds(*names: str) -> Callable[[onnx.ModelProto, Any], bool]:
    return lambda model, _: set(names) <= every_name(model)


@pytest.mark.parametrize("condition", [True, False])
def test_the_branch_that_is_taken_replaces_if(condition: bool) -> None:  # noqa: FBT001
    start = subject(BRANCHES, x=X, c=np.array(condition))
    net = apply(inlined_bodies, start)
    inner = ["then1", "then2", "then3"] if condition else ["else1", "else2"]
    assert [node.name for node in net.nodes] == ["before", *inner, "after"]
    before = run_on_cpu(start.proto(), {"x": X, "c": np.array(condition)})
    np.testing.assert_array_equal(run_on_cpu(net.subject().proto(), {"x": X})[0], before[0])


def test_names_of_a_body_never_meet_those_around_it() -> None:
    start = subject(
        """<ir_version: 8, opset_import: ["": 17]>
        g (float[2,3] x, bool c) => (float[2,3] y, float[2,3] z) {
            y = If (c) <
                then_branch = g1 () => (float[2,3] r) { t = Neg(x) r = Sin(t) },
                else_branch = g2 () => (float[2,3] r) { r = Exp(x) }
            >
            z = If (c) <
                then_branch = g3 () => (float[2,3] r) { t = Abs(x) r = Cos(t) },
                else_branch = g4 () => (float[2,3] r) { r = Exp(x) }
            >
        }""",
        x=X,
        c=np.array(True),  # noqa: FBT003
    )
    net = apply(inlined_bodies, start)
    assert [node.op_type for node in net.nodes] == ["Neg", "Sin", "Abs", "Cos"]


def test_fewer_nodes_in_a_branch() -> None:
    start = subject(BRANCHES, x=X, c=np.array(True))  # noqa: FBT003
    net = apply(fewer_body_nodes, start, holds("choose", "then2", "else2"))
    assert every_name(net.subject().proto()) == {"before", "choose", "then2", "else2", "after"}


LOOP = """
    <ir_version: 8, opset_import: ["": 17]>
    g (float[2,3] x) => (float[2,3] y) <int64 trips = {3}> {
        [loop] y, all = Loop (trips, "", x) <
            body = b (int64 i, bool go, float[2,3] v) => (bool go2, float[2,3] w, float[2,3] s) {
                [on] go2 = Identity(go) [sin] s = Sin(v) [neg] n = Neg(s) [exp] w = Exp(n)
            }
        >
    }
"""


def loop_model(*, scanned: bool) -> str:
    text = LOOP.replace('(trips, "", x)', "(trips, , x)")
    return text.replace("=> (float[2,3] y) <", "=> (float[2,3] y, float[3,2,3] all) <") if scanned else text


def test_one_turn_replaces_loop() -> None:
    net = apply(inlined_bodies, subject(loop_model(scanned=False), x=X))
    assert [node.name for node in net.nodes] == ["sin", "neg", "exp"]
    np.testing.assert_allclose(run_on_cpu(net.subject().proto(), {"x": X})[0], np.exp(-np.sin(X)), rtol=1e-5)


def test_a_loop_whose_slices_are_an_output_stays() -> None:
    start = subject(loop_model(scanned=True), x=X)
    assert [node.name for node in apply(inlined_bodies, start).nodes] == ["loop"]
    net = apply(fewer_body_nodes, start, holds("loop", "exp"))
    assert every_name(net.subject().proto()) == {"loop", "on", "sin", "exp"}


def test_one_turn_replaces_scan() -> None:
    start = subject(
        """<ir_version: 8, opset_import: ["": 17]>
        g (float[2] h, float[2,5] xs) => (float[2] y) {
            [scan] y, ys = Scan (h, xs) <
                num_scan_inputs = 1, scan_input_axes = [1], scan_input_directions = [1],
                body = b (float[2] v, float[2] e) => (float[2] w, float[2] o) {
                    [add] w = Add(v, e) [same] o = Identity(w)
                }
            >
        }""",
        h=np.ones(2, np.float32),
        xs=np.arange(10, dtype=np.float32).reshape(2, 5),
    )
    net = apply(inlined_bodies, start)
    assert [node.name for node in net.nodes] == ["add"]
    fed = {name: value.array for name, value in net.subject().inputs}  # type: ignore[union-attr]
    np.testing.assert_array_equal(run_on_cpu(net.subject().proto(), fed)[0], [5.0, 10.0])


FUNCTIONS = """
    <ir_version: 9, opset_import: ["": 17, "own": 1, "other": 1]>
    g (float[2,3] x) => (float[2,3] y) { [first] a = own.twice(x) [second] y = other.outer(a) }
    <domain: "own", opset_import: ["": 17]>
    twice (v) => (w) { [double] w = Add(v, v) }
    <domain: "other", opset_import: ["": 17, "own": 1]>
    outer (v) => (w) { [inner] t = own.twice(v) [sin] u = Sin(t) [cos] w = Cos(u) }
"""


def test_functions_are_inlined() -> None:
    start = subject(FUNCTIONS, x=X)
    net = apply(inlined_functions, start)
    assert [node.op_type for node in net.nodes] == ["Add", "Add", "Sin", "Cos"]
    assert not net.functions
    np.testing.assert_array_equal(
        run_on_cpu(net.subject().proto(), {"x": X})[0], run_on_cpu(start.proto(), {"x": X})[0]
    )


def test_a_node_that_must_stay_is_found_again_outside_of_its_function() -> None:
    net = apply(inlined_functions, subject(FUNCTIONS, x=X), keep={"sin"}.__contains__)
    origins = {net.origins.get(node.name, node.name) for node in net.nodes}
    assert {"double", "sin", "cos"} == origins


def test_a_call_that_must_stay_is_not_inlined() -> None:
    net = apply(inlined_functions, subject(FUNCTIONS, x=X), keep={"first"}.__contains__)
    assert [node.op_type for node in net.nodes] == ["own.twice", "own.twice", "Sin", "Cos"]


def test_fewer_nodes_in_a_function() -> None:
    net = apply(fewer_function_nodes, subject(FUNCTIONS, x=X), holds("second", "cos"))
    assert [[node.name for node in function.node] for function in net.functions] == [["double"], ["cos"]]
