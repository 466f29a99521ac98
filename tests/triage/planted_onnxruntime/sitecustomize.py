"""An onnxruntime whose CPU provider has a planted fault: a stand-in for an EP that is wrong in known places.

On the module path of a target's process it changes ``InferenceSession``. The variable ``PLANTED_FAULT`` holds
JSON: ``kind``, and what that kind needs.
"""

import importlib.abc
import importlib.util
import json
import os
import random
import signal
import sys
import time

FAULT = json.loads(os.environ.get("PLANTED_FAULT", "{}"))


class Planting(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name != "onnxruntime":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module

        def plant(module):
            execute(module)
            module.InferenceSession = planted(module.InferenceSession)

        spec.loader.exec_module = plant
        return spec


def planted(session_class):
    earlier = []

    class Planted(session_class):
        def __init__(self, model, options=None, *args, **more):
            import onnx

            given = onnx.load_model_from_string(model) if isinstance(model, bytes) else onnx.load(model)
            before, now = list(earlier), [node.op_type for node in given.graph.node]
            earlier.append(now)
            self.fault = FAULT if applies(given, options, before) else {}
            kind = self.fault.get("kind")
            if kind == "crash" and self.fault["phase"] == "create":
                die()
            if kind == "error" and self.fault["phase"] == "create":
                raise RuntimeError(self.fault["message"])
            if kind == "hang" and self.fault["phase"] == "create":
                time.sleep(1e6)
            if kind == "scale":
                scale(given, self.fault)
                model = given.SerializeToString()
            super().__init__(model, options, *args, **more)

        def run(self, names, feeds, run_options=None):
            self.misbehave()
            return super().run(names, feeds, run_options)

        def run_with_ort_values(self, names, feeds, run_options=None):
            self.misbehave()
            return super().run_with_ort_values(names, feeds, run_options)

        def misbehave(self):
            if self.fault.get("phase") != "run":
                return
            if self.fault["kind"] == "crash":
                die()
            if self.fault["kind"] == "error":
                raise RuntimeError(self.fault["message"])
            time.sleep(1e6)

    return Planted


def applies(model, options, before):
    """Whether the model has what the fault is about."""
    nodes = list(model.graph.node)
    if not any(is_guilty(node) for node in nodes):
        return False
    if random.random() >= FAULT.get("rate", 1.0):
        return False
    if "with" in FAULT:  # only together with another operator that reads its output or makes its input
        guilty = [node for node in nodes if is_guilty(node)]
        others = [node for node in nodes if node.op_type == FAULT["with"]]
        if not any(
            set(one.output) & set(other.input) or set(other.output) & set(one.input)
            for one in guilty
            for other in others
        ):
            return False
    if "optimizer" in FAULT:
        level = int(options.graph_optimization_level) if options is not None else 99
        key = "optimization.disable_specified_optimizers"
        try:
            off = options.get_session_config_entry(key).split(";")
        except Exception:
            off = []
        if level == 0 or FAULT["optimizer"] in off:
            return False
    return "after" not in FAULT or any(FAULT["after"] in ops for ops in before[-1:])


def is_guilty(node):
    if "node" in FAULT:
        return FAULT["node"] in {node.name, *node.output}
    return node.op_type == FAULT.get("op_type")


def scale(model, fault):
    """Multiply what the guilty nodes compute."""
    import numpy as np
    from onnx import helper, numpy_helper

    nodes = []
    for index, node in enumerate(model.graph.node):
        nodes.append(node)
        if is_guilty(node):
            out = node.output[0]
            node.output[0] = out + "_right"
            name = "planted_%d" % index
            factor = np.array(fault["factor"], np.float32)
            model.graph.initializer.append(numpy_helper.from_array(factor, name))
            nodes.append(helper.make_node("Mul", [node.output[0], name], [out]))
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def die():
    os.kill(os.getpid(), getattr(signal, FAULT.get("signal", "SIGSEGV")))
    time.sleep(10)


if FAULT:
    sys.meta_path.insert(0, Planting())
