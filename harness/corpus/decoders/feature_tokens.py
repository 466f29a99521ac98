"""How many tokens of a text the features of a picture or a sound take."""

from harness.core.values.value import Tensor
from harness.corpus.beside.session_chain import Stage
from harness.corpus.case import Case
from harness.corpus.model.model_errors import blame
from harness.corpus.model.model_file import load_lean


def feature_tokens(case: Case) -> dict[int, int] | str:
    """Return the tokens whose places features take, and how many of them belong to one text.

    The numbers follow from the sizes of the given pictures and sounds. None for a folder without features.

    Returns:
        Why they are not known, in words.
    """
    found: dict[int, int] = {}
    if case.chain is None:
        return found
    for features in case.chain.features:
        stage = next(
            one
            for one in case.chain.stages
            if one.prompt is not None and features.value in one.prompt.outputs.values()
        )
        count, rows = _count(case, stage, features.value)
        if not count or count % rows:
            return (
                f"the number of features that its model {stage.name!r} gives does not follow from its input"
            )
        found[features.token] = found.get(features.token, 0) + count // rows
    return found


def _count(case: Case, stage: Stage, value: str) -> tuple[int, int]:
    """Return the number of features, 0 if it is unknown, and of the pictures or sounds that they are of."""
    import onnx

    assert stage.prompt is not None  # noqa: S101 - it gives the value
    with blame(stage.file):
        model = load_lean(stage.file)
    given = dict(case.data_sets[0].inputs)
    symbols = {port.name: port.type.symbols for port in case.ports}
    rows = 1
    for port in model.graph.input:
        name = stage.prompt.inputs.get(port.name, "")
        tensor = given.get(name)
        if isinstance(tensor, Tensor):
            for dim, size in zip(port.type.tensor_type.shape.dim, tensor.array.shape, strict=False):
                dim.dim_value = size
            if symbols[name] and symbols[name][0] is not None:
                rows = max(rows, tensor.array.shape[0])
    own = next(own for own, passed in stage.prompt.outputs.items() if passed == value)
    output = next(one for one in model.graph.output if one.name == own)
    rank = len(output.type.tensor_type.shape.dim)
    output.type.tensor_type.ClearField("shape")
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    dims = next(one for one in inferred.graph.output if one.name == own).type.tensor_type.shape.dim
    sizes = [one.dim_value for one in dims] if len(dims) == rank else [0]
    count = 1
    for size in sizes[:-1]:
        count *= size
    return count, rows
