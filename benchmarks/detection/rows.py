"""What was measured, one row for each result that was judged."""

import msgspec


class Row(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One result.

    Attributes:
        model: Of which model.
        layers: Of a transformer whose depth varies.
        precision: What was computed in.
        fault: The kind of fault; None where the result is healthy.
        way: Of a healthy result: how it was computed. Of a fault: the node.
        effect: Root mean square of the error over that of healthy results; None for infinite.
        ratios: By the calibrated tolerance: rms and max, the largest of any output; None without noise.
        failed: Names of the policies under which it fails.
        doubtful: A healthy result that lies as far off as a fault: no policy is charged with it.
    """

    model: str
    layers: int | None = None
    precision: str
    fault: str | None = None
    way: str
    effect: float | None
    ratios: tuple[float, float] | None = None
    failed: tuple[str, ...] = ()
    doubtful: bool = False


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about one model.

    Attributes:
        model: Its name.
        draw: Of its weights and inputs.
        equal: Healthy results that equal the golden bit by bit; they are in no row.
        rows: What was judged.
        unseen: Name of a kind of fault -> sites where it changes no bit of any output.
        refused: ``fault at node: why`` for what onnxruntime does not run.
        absent: Healthy ways that gave no result, with the reason.
    """

    model: str
    draw: int
    equal: int
    rows: tuple[Row, ...]
    unseen: dict[str, int]
    refused: tuple[str, ...]
    absent: dict[str, str]


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """A whole run.

    Attributes:
        environment: Versions, and the processor.
        seconds: How long it took.
        models: Each model.
    """

    environment: dict[str, str]
    seconds: float
    models: tuple[Measured, ...]
