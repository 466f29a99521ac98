"""Training."""

from harness.operators.row import TRAINING, plain

ROWS = (*plain("Adagrad Adam Gradient Momentum", domains=(TRAINING,)),)
