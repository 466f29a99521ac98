"""What an agent tells about the times of a model."""

from typing import Any


def told_latency(samples_ns: list[Any], **changes: Any) -> dict[str, Any]:
    """Return the message of an agent about runs of these times; ``changes`` are other fields of it."""
    return {
        "samples_ns": samples_ns,
        "warm_up": 0,
        "stopped_by": "budget",
        "io": "copied",
        "intra_op_threads": 1,
        "inter_op_threads": 1,
        "waiting_threads": None,
        "host_peak_mib": None,
        "device_mib": None,
    } | changes
