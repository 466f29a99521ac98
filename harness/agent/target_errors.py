"""Errors in a target, as distinct from those that a provider raises."""

from __future__ import annotations


class UnavailableError(Exception):
    """The target cannot be used; ``args`` are the cause and the reason."""


class OptionRejectedError(Exception):
    """A provider option is refused; ``args`` are the option's key and the reason."""


class FallbackError(Exception):
    """onnxruntime silently created a session without a requested provider."""


class UnfeedableError(Exception):
    """This onnxruntime's Python API cannot take or give a value; never the provider's fault."""


class UnsupportedError(Exception):
    """The provider, or this onnxruntime, refuses a need of a scenario, with a clear message."""


class ApiMissingError(UnsupportedError):
    """This onnxruntime has no such API, whatever the provider; the text names the first release with it."""


class MissingOutputsError(Exception):
    """A run returned fewer values than the session has outputs."""


class NoRoomError(UnfeedableError):
    """Tensors fit neither into a folder nor into a message."""


class DoesNotApplyError(Exception):
    """A model has no form at a precision; the text gives the reason."""


class NotWatchedError(Exception):
    """This system does not report something; the text names it."""
