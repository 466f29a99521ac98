"""Errors in a target that are distinct from what a provider raises."""

from __future__ import annotations


class UnavailableError(Exception):
    """The target cannot be used; ``args`` are the cause and the reason."""


class OptionRejectedError(Exception):
    """A provider option is refused; ``args`` are the option's key and the reason."""


class FallbackError(Exception):
    """onnxruntime silently made a session without a provider that was asked for."""


class UnfeedableError(Exception):
    """The Python API of this onnxruntime cannot take or give a value; never the provider's fault."""


class UnsupportedError(Exception):
    """The provider, or this onnxruntime, refuses what a scenario needs, with a clear message."""


class MissingOutputsError(Exception):
    """A run returned fewer values than the session has outputs."""


class NoRoomError(UnfeedableError):
    """Tensors fit neither into a folder nor into a message."""


class DoesNotApplyError(Exception):
    """A model has no form at a precision; the text says why."""


class NotWatchedError(Exception):
    """This system does not tell; the text says what."""
