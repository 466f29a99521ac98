"""Names of C++ functions in readable form, from this machine's C++ library."""

from __future__ import annotations

import ctypes

LIBRARIES = ("libstdc++.so.6", "libc++abi.so.1", "libc++.so.1")
MOST_CHARACTERS = 2000
"""A longer name stays unchanged: the time for some names grows faster than their length."""


class Demangler:
    """Translates names; without a C++ library it returns them unchanged."""

    def __init__(self) -> None:
        self._free = ctypes.CDLL(None).free
        self._free.argtypes, self._free.restype = [ctypes.c_void_p], None
        self._call = None
        for name in LIBRARIES:
            try:
                # As text: in a class, Python changes a name that begins with two underscores.
                self._call = getattr(ctypes.CDLL(name), "__cxa_demangle")
            except (OSError, AttributeError):
                continue
            self._call.restype = ctypes.c_void_p
            self._call.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
            break

    def __call__(self, name: str) -> str:
        """Return the readable form of a symbol's name; the name itself if it has none."""
        if self._call is None or not name.startswith("_Z") or len(name) > MOST_CHARACTERS:
            return name
        status = ctypes.c_int()
        text = self._call(name.encode("utf-8", "replace"), None, None, ctypes.addressof(status))
        if not text:
            return name
        try:
            content = ctypes.cast(text, ctypes.c_char_p).value
            return content.decode("utf-8", "replace") if content else name
        finally:
            self._free(text)
