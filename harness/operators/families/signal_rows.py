"""Fourier transforms and what goes with them."""

from harness.operators.row import BookRow
from harness.operators.value_domains import Domain

# fmt: off
ROWS = (
    BookRow("BlackmanWindow", even="all", values={0: Domain(low=4, high=9)}, float32_inside=True,
        float32_unless="output_datatype"),
    BookRow("DFT", units=16, even="all", transform=True, control_inputs=(1, 2), terms="transformed_axis",
        multiplies=True, axes_input=2, float32_inside=True, products="transform"),
    BookRow("HammingWindow", even="all", values={0: Domain(low=4, high=9)}, float32_inside=True,
        float32_unless="output_datatype"),
    BookRow("HannWindow", even="all", values={0: Domain(low=4, high=9)}, float32_inside=True,
        float32_unless="output_datatype"),
    BookRow("MelWeightMatrix", float32_inside=True, float32_unless="output_datatype"),
    BookRow("STFT", units=16, even="all", transform=True, control_inputs=(1, 3), terms="third_input",
        multiplies=True, float32_inside=True, fit="stft", products="transform"),
)
# fmt: on
