"""Random numbers."""

from harness.operators.row import BookRow
from harness.operators.value_domains import Domain

# fmt: off
ROWS = (
    BookRow("Bernoulli", values={0: Domain(low=0.0, high=1.0)}, random=True, typed_as_input=True),
    BookRow("Multinomial", random=True),
    BookRow("RandomNormal", random=True, float32_unless="dtype"),
    BookRow("RandomNormalLike", random=True, typed_as_input=True),
    BookRow("RandomUniform", random=True, float32_unless="dtype"),
    BookRow("RandomUniformLike", random=True, typed_as_input=True),
)
# fmt: on
