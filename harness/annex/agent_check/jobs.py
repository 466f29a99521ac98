"""Checks of jobs: results, their order, and their content."""

import numpy as np

from harness.annex.agent_check.bench import Bench, JobReply, floats
from harness.annex.agent_check.bitwise import same
from harness.annex.agent_check.check_group import CheckGroup
from harness.annex.agent_check.early_ends import FaultError
from harness.annex.agent_check.models import MODELS, model, odd_names
from harness.core.values.value import tensor

JOBS = CheckGroup("jobs")

X, Y = floats(-1.0, -4.0, -9.0), floats(1.0, 2.0, 3.0)
_MOST = (1 << 53) - 1
"""The largest identity of a job."""


def negate(bench: Bench, **fields: object) -> JobReply:
    """Let the shared process compute Sqrt(Abs(Neg(x))); the answer must be right."""
    answer = bench.ask(bench.path("negated"), {"x": X}, **fields)
    same(answer.output, Y)
    return answer


JOBS.add("a job has a result, and the right one", negate)


@JOBS.check("the phase run is reported before the result")
def _tells_run(bench: Bench) -> None:
    if "run" not in negate(bench).phases:
        raise FaultError("order", "no message said that the model runs, so a hang cannot be placed")


@JOBS.check("the phases come in their order")
def _phases_in_order(bench: Bench) -> None:
    phases = negate(bench).phases
    if "create" in phases[phases.index("run") + 1 :] if "run" in phases else False:
        raise FaultError("order", f"the phases were {', '.join(phases)}")


@JOBS.check("a session has names, providers and times")
def _tells_session(bench: Bench) -> None:
    result = negate(bench).result
    if result.names != ["y"]:
        raise FaultError("form", f"names are {result.names}, not those of the outputs")
    if not result.providers or not result.providers_after:
        raise FaultError("form", "a list of providers is empty")
    if not {"create", "first_run"} <= result.timings_ms.keys():
        raise FaultError("form", "timings_ms lacks create or first_run")


@JOBS.check("every node has its place")
def _places_nodes(bench: Bench) -> None:
    placed = negate(bench, graph_optimization="disabled").result.placement
    if placed is None:
        raise FaultError("placement", "there is none")
    nodes = placed.ep_nodes + placed.cpu_nodes
    if placed.source == "unknown":
        if nodes:
            raise FaultError("placement", "it is unknown and counts nodes")
    elif nodes != 3:  # noqa: PLR2004 - Neg, Abs, Sqrt
        raise FaultError("placement", f"{nodes} nodes have a place, and the model has 3")


@JOBS.check("counts by operator are those of the nodes")
def _counts_operators(bench: Bench) -> None:
    placed = negate(bench, graph_optimization="disabled").result.placement
    if placed is not None and (
        sum(placed.ep_ops.values()) != placed.ep_nodes or sum(placed.cpu_ops.values()) != placed.cpu_nodes
    ):
        raise FaultError("placement", "ep_ops or cpu_ops have other sums than ep_nodes and cpu_nodes")


JOBS.add("two jobs in a row", lambda bench: [negate(bench), negate(bench)])


@JOBS.check("jobs that wait are served in order")
def _serves_in_order(bench: Bench) -> None:
    dialogue, path = bench.shared(), bench.path("negated")
    numbers = (7001, 7002, 7003, 7004)
    given = {number: floats(-float(number)) for number in numbers}
    dialogue.send(*(("job", number, bench.job(path, {"x": given[number]})) for number in numbers))
    for number in numbers:
        expected = tensor(np.sqrt(-given[number].array))
        same(bench.answer(dialogue, number).output, expected)


@JOBS.check("a job has any identity below 2^53")
def _keeps_identity(bench: Bench) -> None:
    for number in (0, _MOST):
        bench.send_job(bench.shared(), number, bench.path("negated"), {"x": X})
        same(bench.answer(bench.shared(), number).output, Y)


@JOBS.check("data sets are run in order")
def _runs_data_sets(bench: Bench) -> None:
    given = [floats(*(-4.0,) * size) for size in (1, 3, 2)]
    answer = bench.ask(bench.path("negated"), *({"x": one} for one in given))
    for index, one in enumerate(given):
        same(answer.outputs(index)[0][1], tensor(np.sqrt(-one.array)), f"data set {index}")


@JOBS.check("outputs have the order of their names")
def _orders_outputs(bench: Bench) -> None:
    given = floats(-1.0, 4.0)
    outputs = dict(bench.ask(bench.path("two"), {"x": given}).outputs())
    same(outputs.get("a"), floats(1.0, 4.0), "a")
    same(outputs.get("b"), floats(1.0, -4.0), "b")


@JOBS.check("inputs go by their names")
def _names_inputs(bench: Bench) -> None:
    answer = bench.ask(bench.path("subtracted"), {"q": floats(1.0), "p": floats(5.0)})
    same(answer.output, floats(4.0))


JOBS.add(
    "a model without inputs",
    lambda bench: same(bench.ask(bench.path("constant")).output, floats(1.0, 2.0)),
)


@JOBS.check("names with any characters")
def _odd_names(bench: Bench) -> None:
    for name in ("a b/c:d ", "\u00fc\u4e2d\U0001f600", "\0bytes"):
        path = bench.path(f"odd{len(name)}{ord(name[0])}", odd_names(name))
        answer = bench.ask(path, {f"{name}in": X})
        same(answer.output, tensor(-X.array), f"the output of {name!r}")
        if answer.result.names != [f"{name}out"]:
            raise FaultError("value", f"the output {name}out is called {answer.result.names}")


@JOBS.check("a model's path with any characters")
def _odd_path(bench: Bench) -> None:
    path = bench.folder("\u00fc \u4e2d %20") / "my model #1.onnx"
    path.write_bytes(model(MODELS["negated"]).SerializeToString())
    same(bench.ask(path, {"x": X}).output, Y)


@JOBS.check("times after a job make sense")
def _tells_times(bench: Bench) -> None:
    after = negate(bench).after
    if after.sick:
        raise FaultError("form", f"it calls itself sick after a right answer: {after.sick}")
    if after.teardown_ms > after.took_ms:
        raise FaultError("form", "teardown_ms is more than took_ms")


@JOBS.check("a run that repeats itself has no second outputs")
def _no_second(bench: Bench) -> None:
    if negate(bench).result.second is not None:
        raise FaultError("value", "second is there, though every run gives the same bits")
