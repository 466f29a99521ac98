"""Run a command and pass on what it prints, as some channels do: ``line_filter.py HOW COMMAND...``.

``lines``: whole lines only, as srun does. ``crlf``: also ends lines as a terminal does. ``seven``: also takes
the highest bit from each byte. ``noise``: says good morning first, without ending the line.
"""

import os
import subprocess
import sys
import threading

HOW, *COMMAND = sys.argv[1:]


def passed(line: bytes) -> bytes:
    if HOW == "crlf":
        return line.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    return bytes(byte & 0x7F for byte in line) if HOW == "seven" else line


def forward_input(sink: int) -> None:
    while data := os.read(0, 65536):
        os.write(sink, data)
    os.close(sink)


def write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


if HOW == "noise":
    write(b"Good morning!\nLast login: today $ ")
child = subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
assert child.stdin is not None
assert child.stdout is not None
threading.Thread(target=forward_input, args=(child.stdin.fileno(),), daemon=True).start()
held = b""
while data := os.read(child.stdout.fileno(), 65536):
    whole, ending, rest = (held + data).rpartition(b"\n")
    write(passed(whole + ending))
    held = rest
sys.exit(child.wait())
