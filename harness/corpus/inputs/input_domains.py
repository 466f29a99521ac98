"""The values that the inputs of a model may hold, by all that the model shows."""

from typing import TYPE_CHECKING

from harness.corpus.inputs.attention_masks import with_attention_masks
from harness.corpus.inputs.domain_walk import domains_of
from harness.corpus.inputs.named_lengths import with_named_lengths
from harness.corpus.inputs.tables.table_columns import with_table_columns
from harness.corpus.model.port import Port
from harness.operators.value_domains import Domain

if TYPE_CHECKING:
    import onnx


def input_domains(model: "onnx.ModelProto", ports: tuple[Port, ...]) -> dict[str, Domain]:
    """Return the values that inputs may hold, by name; inputs without restriction are left out."""
    domains = with_named_lengths(domains_of(model), ports)
    return with_attention_masks(with_table_columns(domains, model), model)
