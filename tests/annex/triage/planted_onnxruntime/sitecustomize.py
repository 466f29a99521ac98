"""An onnxruntime whose CPU provider has a planted fault: a stand-in for an EP that is wrong in known places.

On the module path of a target's process it changes ``InferenceSession``. The variable ``PLANTED_FAULT`` holds
JSON: ``kind`` (``scale``, ``bend``, ``error``, ``crash`` or ``hang``), the guilty nodes by ``op_type`` or
``node``, and what that kind needs. A fault may show only from the run ``run`` of a session on, while
``threads`` runs are under way, in the session ``session`` of one model in a row, or from ``size`` rows of an
input on. ``slow`` is an operator that is right and takes ``seconds``.
"""

import functools
import importlib.abc
import importlib.util
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

FAULT: dict[str, Any] = json.loads(os.environ.get("PLANTED_FAULT", "{}"))
FLOAT = 1  # of ONNX's TensorProto
DISABLED = "optimization.disable_specified_optimizers"


class Planting(importlib.abc.MetaPathFinder):
    def find_spec(self, name: str, *_: Any) -> Any:
        if name != "onnxruntime":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.loader is not None
        execute = spec.loader.exec_module

        def plant(module: Any) -> None:
            execute(module)
            module.InferenceSession = planted(module.InferenceSession)

        spec.loader.exec_module = plant  # type: ignore[method-assign]
        return spec


@functools.cache
def model_proto() -> Any:
    """ONNX's messages alone: the whole package takes as long as the rest of a process's start."""
    home = importlib.util.find_spec("onnx")
    assert home is not None
    assert home.origin is not None
    spec = importlib.util.spec_from_file_location("messages", Path(home.origin).with_name("onnx_ml_pb2.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.ModelProto


def planted(session_class: Any) -> Any:
    earlier: list[list[str]] = []

    class Planted(session_class):  # type: ignore[misc]
        def __init__(self, model: Any, options: Any = None, *args: Any, **more: Any) -> None:
            given = model_proto()()
            given.ParseFromString(model if isinstance(model, bytes) else Path(model).read_bytes())
            before = earlier if FAULT.get("long_after") else earlier[-1:]
            self.fault = FAULT if applies(given, options, before) else {}
            self.runs = self.at_once = 0
            self.lock = threading.Lock()
            earlier.append([node.op_type for node in given.graph.node])
            if "session" in FAULT and earlier[-FAULT["session"] :] != [earlier[-1]] * FAULT["session"]:
                self.fault = {}
            if FAULT.get("slow") in earlier[-1]:
                time.sleep(FAULT["seconds"])
            misbehave(self.fault, "create")
            if self.fault.get("kind") == "scale":
                scale(given, self.fault["factor"])
                model = given.SerializeToString()
            super().__init__(model, options, *args, **more)

        def run(self, *arguments: Any) -> Any:
            with self.lock:
                self.runs += 1
                self.at_once += 1
                number = self.runs
            if "threads" in FAULT:
                time.sleep(0.01)  # the others begin meanwhile
            fault = self.fault if shows(number, self.at_once, arguments[1]) else {}
            try:
                misbehave(fault, "run")
                outputs = super().run(*arguments)
            finally:
                if "threads" in FAULT:
                    time.sleep(0.01)  # none ends before the others have looked
                with self.lock:
                    self.at_once -= 1
            bent = fault.get("kind") == "bend"
            return [output * output.dtype.type(fault["factor"]) for output in outputs] if bent else outputs

    return Planted


def applies(model: Any, options: Any, before: list[list[str]]) -> bool:
    """Whether a session of the model, after those before, has what the fault is about."""
    nodes = list(model.graph.node)
    guilty = [node for node in nodes if is_guilty(node)]
    if not guilty or not has_its_turn():
        return False
    if "with" in FAULT:  # only beside another operator
        others = [node for node in nodes if node.op_type == FAULT["with"]]
        if not any(neighbours(one, other) for one in guilty for other in others):
            return False
    if "optimizer" in FAULT and FAULT["optimizer"] in switched_off(options):
        return False
    return "after" not in FAULT or any(FAULT["after"] in operators for operators in before)


def has_its_turn() -> bool:
    """Whether a session of a guilty model is one of those that are wrong: ``rate`` of them, evenly spread.

    Counted over all processes and not drawn, so that no test of a flaky fault is flaky itself.
    """
    if "rate" not in FAULT:
        return True
    with Path(FAULT["tally"]).open("ab") as tally:  # as long as there were sessions
        tally.write(b".")
        sessions = tally.tell()
    return int(sessions * FAULT["rate"]) > int((sessions - 1) * FAULT["rate"])


def shows(number: int, at_once: int, fed: Any) -> bool:
    """Whether a run of a session with the fault has it."""
    rows = max((len(value) if getattr(value, "shape", True) else 1 for value in fed.values()), default=0)
    enough = rows >= FAULT.get("size", 0) and at_once >= FAULT.get("threads", 1)
    return bool(enough and number >= FAULT.get("run", 1))


def switched_off(options: Any) -> list[str]:
    if options is None or int(options.graph_optimization_level) == 0:
        return [FAULT["optimizer"]]
    try:
        names: str = options.get_session_config_entry(DISABLED)
    except RuntimeError:  # the entry is not set
        return []
    return names.split(";")


def neighbours(one: Any, other: Any) -> bool:
    return bool(set(one.output) & set(other.input) or set(other.output) & set(one.input))


def is_guilty(node: Any) -> bool:
    if "node" in FAULT:
        return FAULT["node"] in {node.name, *node.output}
    return bool(node.op_type == FAULT["op_type"])


def scale(model: Any, factor: float) -> None:
    """Multiply what the guilty nodes compute."""
    nodes = []
    for index, node in enumerate(model.graph.node):
        nodes.append(node)
        if is_guilty(node):
            out = node.output[0]
            node.output[0], name = f"{out}_right", f"planted_{index}"
            model.graph.initializer.add(name=name, data_type=FLOAT, float_data=[factor])
            nodes.append(type(node)(op_type="Mul", input=[node.output[0], name], output=[out]))
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def misbehave(fault: dict[str, Any], phase: str) -> None:
    if fault.get("phase") != phase:
        return
    if fault["kind"] == "error":
        raise RuntimeError(fault["message"])
    if fault["kind"] == "crash":
        os.kill(os.getpid(), getattr(signal, fault["signal"]))
    time.sleep(1e6)


if FAULT:
    sys.meta_path.insert(0, Planting())
