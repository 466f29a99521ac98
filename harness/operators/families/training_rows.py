"""Training."""

from harness.operators.row import TRAINING, plain

# fmt: off
ROWS = (
    *plain("Adagrad Adam Gradient Momentum", domains=(TRAINING,)),
)
# fmt: on
