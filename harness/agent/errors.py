"""What can go wrong in a target, where an exception of its own tells it from what a provider raises."""

from __future__ import annotations


class UnavailableError(Exception):
    """The target cannot be used; ``args`` are the cause and the reason."""


class OptionRejectedError(Exception):
    """A provider option is refused; ``args`` are the option's key and the reason."""


class FallbackError(Exception):
    """onnxruntime made a session on other providers than it was asked for, without an error of its own."""


class UnfeedableError(Exception):
    """A value that the Python API of this onnxruntime cannot take or give; never the provider's fault."""


class UnsupportedError(Exception):
    """The provider, or this onnxruntime, refuses what a scenario asks for, and says so."""


class NoRoomError(UnfeedableError):
    """Tensors that fit neither into a folder for them nor into a message."""


class DoesNotApplyError(Exception):
    """A model has no form at a precision; the text says why."""
