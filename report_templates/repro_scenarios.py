"""Runs a model beside others, in the caller's buffers, with weights from memory, with adapters, compiled."""

import contextlib
import os
import shutil

import numpy as np
from repro_onnx import (
    companions,
    stored_weights,
    with_other_activations,
    with_other_weights,
    with_stored_weights,
)
from repro_session import CPU, HERE, run
from repro_values import NUMPY, feeds, found

PATTERN = 0x5A  # each byte of a buffer before a run
GUARD, GUARD_BYTE = 256, 0xC3  # bytes before and after a buffer
LORA = "ep_harness.lora."  # before the number of the adapter that feeds an input
WAYS = (
    ("file", "file", False),
    ("file", "file", True),
    ("bytes", "file", True),
    ("file", "bytes", True),
    ("file", "callback", True),
)


def model_bytes():
    """Return the bundle's model."""
    with open(os.path.join(HERE, "model.onnx"), "rb") as file:
        return file.read()


def sessions_of_others(target):
    """Yield in words, and as a session, each model of the same shapes that can be made from the bundle's."""
    for what, other in companions(model_bytes()).items():
        with contextlib.suppress(Exception):  # such as an activation function of integers
            yield what, target.made(other, target.settings())


def behind_another(ort, held, target, sets):
    """Run a companion with everything changed before the model runs for the first time."""
    other = with_other_activations(with_other_weights(model_bytes()))
    with contextlib.suppress(Exception):
        beside = target.made(other, target.settings())
        run(ort, beside, sets[0][0])
        yield "behind a model of the same shapes", 0, run(ort, held[0], sets[0][0])


def beside_others(ort, held, target, sets):
    """Run the model and each companion in turns; make the model again, then close the companion."""
    inputs = sets[0][0]
    for what, beside in sessions_of_others(target):
        words = f"in the company of a model {what}"
        run(ort, beside, inputs)
        yield words, 0, run(ort, held[0], inputs)
        held.clear()
        run(ort, beside, inputs)
        held.append(target.session("model.onnx"))
        yield words, 0, run(ort, held[0], inputs)
        run(ort, beside, inputs)
        del beside
        yield words, 0, run(ort, held[0], inputs)


class Buffers:
    """A guarded buffer for each output, which lies in the CPU's memory."""

    def __init__(self, ort, session, outputs):
        self.session, self.whole, self.values = session, {}, {}
        self.types = {port.name: port.type for port in session.get_outputs()}
        for name, output in outputs.items():
            array = output.array
            whole = self.whole[name] = np.full(array.nbytes + 2 * GUARD, GUARD_BYTE, np.uint8)
            inner = whole[GUARD : GUARD + array.nbytes].view(array.dtype).reshape(array.shape)
            inner[...] = np.full(array.nbytes, PATTERN, np.uint8).view(array.dtype).reshape(array.shape)
            self.values[name] = ort.OrtValue.ortvalue_from_numpy(inner)

    def run(self, session, fed):
        """Run a session into the buffers, and return what they hold."""
        binding = session.io_binding()
        for name, value in fed.items():
            binding.bind_cpu_input(name, value)
        for name, value in self.values.items():
            binding.bind_ortvalue_output(name, value)
        session.run_with_iobinding(binding)
        for name, whole in self.whole.items():
            for side, guard in (("before", whole[:GUARD]), ("after", whole[-GUARD:])):
                if count := int((guard != GUARD_BYTE).sum()):
                    raise RuntimeError(f"output {name}: {count} bytes {side} its buffer were written")
        return {name: found(np.array(value.numpy()), self.types[name]) for name, value in self.values.items()}


def buffer_runs(ort, held, target, sets):
    """Run into buffers with a pattern, again, and into those that each companion has used."""
    for number, (inputs, _) in enumerate(sets):
        fed = {name: feeds(value, ort) for name, value in inputs.items()}
        buffers = Buffers(ort, held[0], run(ort, held[0], inputs))
        yield "in buffers filled with a pattern", number, buffers.run(held[0], fed)
        yield "in buffers used again", number, buffers.run(held[0], fed)
        for what, beside in sessions_of_others(target) if number == 0 else ():
            buffers.run(beside, fed)
            yield f"in buffers that a model {what} has used", number, buffers.run(held[0], fed)


def weight_runs(ort, held, target, sets):
    """Run with weights from memory: the file absent, other contents in the file, and shared by sessions."""
    yield "with the weights' file", 0, run(ort, held[0], sets[0][0])
    weights, content, values, home = stored_weights(model_bytes()), {}, {}, HERE
    if not weights:  # they lie in the model: put them beside a copy
        home = os.path.join(target.folder, "given")
        os.makedirs(home)
        for name, part in zip(
            ("model.onnx", "weights.bin"), with_stored_weights(model_bytes(), "weights.bin")
        ):
            with open(os.path.join(home, name), "wb") as file:
                file.write(part)
    given = os.path.join(home, "model.onnx")
    with open(given, "rb") as file:
        weights = stored_weights(file.read())
    for weight in weights:
        with open(os.path.join(home, weight.file), "rb") as file:
            content[weight.file] = file.read()
        part = content[weight.file][weight.offset :][: weight.nbytes]
        array = np.frombuffer(part, NUMPY[weight.data_type]).reshape(weight.shape).copy()
        values[weight.name] = ort.OrtValue.ortvalue_from_numpy(array)
    model = os.path.join(target.folder, "alone.onnx")
    shutil.copyfile(given, model)
    add = {"with weights as values": ("add_external_initializers", (list(values), list(values.values())))}
    sizes = [len(part) for part in content.values()]
    in_memory = (
        "add_external_initializers_from_files_in_memory",
        (list(content), list(content.values()), sizes),
    )
    add["with the weights' file in memory"] = in_memory
    for file in ("the file absent", "other contents in the file") if weights else ():
        for name, part in content.items() if file != "the file absent" else ():
            with open(os.path.join(target.folder, name), "wb") as other:
                other.write(part[::-1])
        for words, (function, arguments) in add.items():
            settings = target.settings()
            if hasattr(settings, function):
                getattr(settings, function)(*arguments)
                yield f"{words}, {file}", 0, run(ort, target.made(model, settings), sets[0][0])
    sharing = []
    for _ in range(2 if weights else 0):
        settings = target.settings()
        for name, value in values.items():
            settings.add_initializer(name, value)
        sharing.append(target.made(given, settings))
        for session in sharing:
            yield "with weights that sessions share", 0, run(ort, session, sets[0][0])


def adapter_runs(ort, held, target, sets):
    """Run each data set with its adapters, which are loaded from files for their run."""
    session = held[0]
    ports = session.get_outputs()
    for number, (inputs, _) in enumerate(sets):
        options, adapters, values = ort.RunOptions(), [], {}
        for name in [name for name in inputs if name.startswith(LORA)]:
            own = values.setdefault(name[len(LORA) :].partition(".")[0], {})
            own[name] = ort.OrtValue.ortvalue_from_numpy(inputs[name].array)
        for key, own in values.items():
            written, path = ort.AdapterFormat(), os.path.join(target.folder, key + ".onnx_adapter")
            written.set_adapter_version(1)
            written.set_model_version(1)
            written.set_parameters(own)
            written.export_adapter(path)
            adapters.append(ort.LoraAdapter())
            adapters[-1].Load(path)
            options.add_active_adapter(adapters[-1])
        fed = {name: feeds(value, ort) for name, value in inputs.items() if not name.startswith(LORA)}
        results = session.run([port.name for port in ports], fed, options)
        outputs = {port.name: found(value, port.type) for port, value in zip(ports, results)}
        yield f"with {len(adapters)} adapters", number, outputs


def compiled_runs(ort, held, target, sets):
    """Compile in each way, move the result, and run it; then ask a CPU session and this one about it."""
    yield "not compiled", 0, run(ort, held[0], sets[0][0])
    for number, (source, sink, embedded) in enumerate(WAYS if hasattr(ort, "ModelCompiler") else ()):
        words = f"from {source} to {sink}, embed_mode {int(embedded)}"
        folder = os.path.join(target.folder, str(number))
        os.makedirs(os.path.join(folder, "out"))
        path = os.path.join(folder, "out", "compiled.onnx")
        settings = target.settings()
        if target.devices:
            settings.add_provider_for_devices(target.devices, target.options)
        elif target.chain[0] != CPU:
            settings.add_provider(target.chain[0], target.options)
        model = model_bytes()
        given = model if source == "bytes" and not stored_weights(model) else os.path.join(HERE, "model.onnx")
        try:
            compiler = ort.ModelCompiler(settings, given, embed_compiled_data_into_model=embedded)
            if sink == "file":
                compiler.compile_to_file(path)
            else:
                with open(path, "wb") as file:
                    file.write(compiler.compile_to_bytes())
        except Exception as error:
            raise RuntimeError(f"compiling {words}: {error}") from error
        os.rename(os.path.join(folder, "out"), os.path.join(folder, "installed"))
        try:
            session = target.made(os.path.join(folder, "installed", "compiled.onnx"), target.settings())
            outputs = run(ort, session, sets[0][0])
        except Exception as error:
            raise RuntimeError(f"compiled {words}, moved, loaded by a fresh process: {error}") from error
        yield f"compiled {words}", 0, outputs
