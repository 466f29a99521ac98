"""An onnxruntime whose CPU provider has one fault of generating text: a stand-in for an EP.

On the module path of a target's process it changes ``InferenceSession``; ``GENERATION_FAULT`` names the
fault. A model that the fault cannot befall is computed rightly.
"""

import os
from typing import Any

FAULT = os.environ.get("GENERATION_FAULT", "")


def planted(module: Any) -> Any:
    healthy_class = module.InferenceSession

    class Planted(healthy_class):  # type: ignore[misc]
        """Computes a spoilt model, or spoils what goes in and out."""

        def __init__(self, model: Any, sess_options: Any = None, *args: Any, **more: Any) -> None:
            from benchmarks.generation.faults import FAULTS

            fault = FAULTS[FAULT]
            spoilt = spoilt_model(model) if fault.plant is not None else None
            super().__init__(model if spoilt is None else spoilt, sess_options, *args, **more)
            names = {port.name for port in self.get_inputs()}
            befallen = fault.use is not None and "input_ids" in names
            self.use = fault.use() if befallen and fault.use is not None else None

        def run(self, names: Any, feeds: Any, *more: Any) -> Any:
            if self.use is None:
                return super().run(names, feeds, *more)
            every = [port.name for port in self.get_outputs()]
            found = dict(zip(every, super().run(every, self.use.before(dict(feeds)), *more), strict=True))
            results = self.use.after(dict(feeds), found)
            return [results[name] for name in names or every]

        def io_binding(self) -> Any:
            binding = super().io_binding()
            return binding if self.use is None else watched(binding)

        def run_with_iobinding(self, binding: Any, *more: Any) -> Any:
            result = super().run_with_iobinding(binding, *more)
            if self.use is not None:
                new = binding.fed["input_ids"].shape[1]
                past = binding.fed["attention_mask"].shape[1] - new
                for name, value in binding.shared.items():
                    content = self.use.shared(name, value.numpy().copy(), past, new)
                    if content is not None:
                        value.update_inplace(content)
            return result

    return Planted


def watched(binding: Any) -> Any:
    """Let a binding remember what is fed, and which buffers are both input and output."""
    binding.fed, binding.shared, given = {}, {}, {}
    bind_cpu, bind_input, bind_output = (
        binding.bind_cpu_input,
        binding.bind_ortvalue_input,
        binding.bind_ortvalue_output,
    )

    def cpu_input(name: str, array: Any) -> None:
        binding.fed[name] = array
        bind_cpu(name, array)

    def ortvalue_input(name: str, value: Any) -> None:
        given[id(value)] = name
        bind_input(name, value)

    def ortvalue_output(name: str, value: Any) -> None:
        if id(value) in given:
            binding.shared[given[id(value)]] = value
        bind_output(name, value)

    binding.bind_cpu_input = cpu_input
    binding.bind_ortvalue_input = ortvalue_input
    binding.bind_ortvalue_output = ortvalue_output
    return binding


def spoilt_model(given: Any) -> bytes | None:
    """Return the model with its fault; None where it has nothing for the fault to befall."""
    import onnx

    from benchmarks.generation.plant import spoilt

    model = onnx.load_model_from_string(given) if isinstance(given, bytes) else onnx.load(given)
    made = spoilt(model, FAULT)
    return None if made is None else made.SerializeToString()


if FAULT:
    from benchmarks.planting import plant

    plant(planted)
