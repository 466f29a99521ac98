"""Sizes by which the symbolic dimensions of a model can be fixed."""

from harness.core.values.value import Tensor
from harness.corpus.case import Case
from harness.corpus.inputs.open_sizes import batch_dimensions, dimension_size
from harness.corpus.model.symbols import free_symbols


def fixed_sizes(case: Case, *, as_given: bool = False) -> dict[str, int]:
    """Return a size for each named dimension of the inputs, that of the first data.

    Of generated inputs the batch is 1, unless all sizes shall be ``as_given``: applications have that most
    often, and further inputs follow it. Empty if the model has no such dimension, or no data.
    """
    values = dict(case.data_sets[0].inputs) if case.data_sets else {}
    found: dict[str, int] = {}
    for port in case.ports:
        value = values.get(port.name)
        if isinstance(value, Tensor) and len(port.type.axes) == value.array.ndim:
            pairs = zip(port.type.axes, value.array.shape, strict=True)
            found |= {name: int(size) for name, size in pairs if name and name not in found}
    symbols = free_symbols(found)
    batch = () if as_given or case.recipe is None else batch_dimensions(symbols, case.ports)
    sizes = {name: 1 if name in batch else found[name] for name in symbols if name in found}
    return {name: dimension_size(name, sizes) or size for name, size in found.items()}
