"""Names of the inputs that LoRA adapters feed, in a model that the harness has given such inputs."""

PREFIX = "ep_harness.lora."
"""The number of the adapter follows, a dot, and the matrix: ``A`` or ``B``."""


def adapter_of(name: str) -> str:
    """Return the number of the adapter that feeds an input; empty if none does."""
    return name[len(PREFIX) :].partition(".")[0] if name.startswith(PREFIX) else ""
