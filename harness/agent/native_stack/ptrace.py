"""The calls of Linux's ptrace that the watcher makes."""

from __future__ import annotations

import ctypes
import os
import struct
from typing import NamedTuple

CONTINUE, GET_SIGINFO, GET_REGISTERS = 7, 0x4202, 0x4204
DETACH, SEIZE, INTERRUPT, LISTEN = 17, 0x4206, 0x4207, 0x4208
TRACE_CLONE = 8
"""The option to trace new threads, too."""

EVENT_STOP = 128
"""The event of a new thread, of an interrupted one and of one that a SIGSTOP stopped."""

ALL_CHILDREN = 0x40000000
"""``__WALL`` of waitpid: threads, too."""

NT_PRSTATUS = 1
SIGINFO_BYTES = 128
MOST_REGISTER_BYTES = 1024

_call = ctypes.CDLL(None, use_errno=True).ptrace
_call.restype = ctypes.c_long
_call.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


class SignalInfo(NamedTuple):
    """The system's information about a signal.

    Attributes:
        code: The reason; positive if the system generated it.
        address: The address of a fault; else meaningless.
    """

    signal: int
    code: int
    address: int


class _Vector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def request(what: int, thread: int, address: int = 0, data: int = 0) -> None:
    """Make one call."""
    if _call(what, thread, address, data) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def registers(thread: int) -> bytes:
    """Return the general registers of a stopped thread as the system lays them out."""
    buffer = ctypes.create_string_buffer(MOST_REGISTER_BYTES)
    vector = _Vector(ctypes.addressof(buffer), len(buffer))
    request(GET_REGISTERS, thread, NT_PRSTATUS, ctypes.addressof(vector))
    return buffer.raw[: vector.length]


def signal_info(thread: int) -> SignalInfo:
    """Return the known facts about the signal at which a thread has stopped."""
    buffer = ctypes.create_string_buffer(SIGINFO_BYTES)
    request(GET_SIGINFO, thread, 0, ctypes.addressof(buffer))
    signal, _, code = struct.unpack_from("iii", buffer.raw)
    (address,) = struct.unpack_from("Q", buffer.raw, 16)
    return SignalInfo(signal, code, address)
