"""Names of the inputs that LoRA adapters feed, in a model that the harness has given such inputs."""

ADAPTER_PREFIX = "ep_harness.lora."
"""The number of the adapter follows, a dot, and the matrix: ``A`` or ``B``.

``harness.corpus.derived.lora_copy``, which makes such models, travels with no agent, so it has a constant of
its own.
"""


def adapter_of(name: str) -> str:
    """Return the number of the adapter that feeds an input; empty if none does."""
    return name[len(ADAPTER_PREFIX) :].partition(".")[0] if name.startswith(ADAPTER_PREFIX) else ""
