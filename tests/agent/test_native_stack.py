"""The tables that native stacks are read from: numbers, expressions, rules, symbols and mappings."""

import contextlib
import ctypes
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.agent.native_stack.demangle import LIBRARIES, Demangler
from harness.agent.native_stack.elf import ElfError, Image, Symbols, file_symbols
from harness.agent.native_stack.expression import evaluate
from harness.agent.native_stack.machine import AARCH64, X86_64
from harness.agent.native_stack.process_memory import Memory, Space
from harness.agent.native_stack.reader import Read, Reader, UnwindError
from harness.agent.native_stack.start import NATIVE_STACK_VARIABLE, UNAVAILABLE_PREFIX, start_if_asked
from harness.agent.native_stack.unwind_row import Factors, UnwindProgram
from harness.agent.native_stack.unwind_table import caller_by, rules_at
from tests.programs import write_program

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")
REGISTERS = {6: 0x1000, 7: 0x2000}


def memory_of(content: bytes) -> Read:
    def read(at: int, size: int) -> bytes:
        if not 0 <= at <= len(content) - size:
            raise OSError("outside")
        return content[at : at + size]

    return read


def reader_of(content: bytes) -> Reader:
    return Reader(memory_of(content), 0)


def leb(value: int) -> bytes:
    """DWARF 5, figures 5 and 6 of appendix C: a number of variable size, signed."""
    content = bytearray()
    while True:
        byte = value & 0x7F
        value >>= 7
        if (value == 0 and not byte & 0x40) or (value == -1 and byte & 0x40):
            return bytes([*content, byte])
        content.append(byte | 0x80)


@given(st.integers(-(1 << 62), (1 << 62) - 1))
def test_signed_numbers_of_variable_size(value: int) -> None:
    assert reader_of(leb(value)).signed_leb() == value


@pytest.mark.parametrize(
    ("content", "value"), [(b"\x02", 2), (b"\x7f", 127), (b"\x80\x01", 128), (b"\xb9\x64", 12857)]
)
def test_unsigned_numbers_of_variable_size(content: bytes, value: int) -> None:
    assert reader_of(content).leb() == value


def test_a_number_without_an_end_is_refused() -> None:
    with pytest.raises(UnwindError):
        reader_of(b"\x80" * 20).leb()


@pytest.mark.parametrize(
    ("encoding", "content", "value"),
    [
        (0x00, struct.pack("<Q", 0x1122334455667788), 0x1122334455667788),
        (0x1B, struct.pack("<i", -4), (1 << 64) - 4),
        (0x3B, struct.pack("<i", -4), 0x1000 - 4),
        (0x03, struct.pack("<I", 7), 7),
        (0x9B, struct.pack("<iQ", 4, 0xABC), 0xABC),
    ],
)
def test_pointers(encoding: int, content: bytes, value: int) -> None:
    assert reader_of(content).pointer(encoding, table=0x1000) == value


def test_an_unknown_pointer_is_refused() -> None:
    for encoding in (0x05, 0x50, 0x40):
        with pytest.raises(UnwindError):
            reader_of(bytes(16)).pointer(encoding)


@pytest.mark.parametrize(
    ("block", "value"),
    [
        (b"\x77\x08", 0x2008),  # breg7 8: the stack pointer and 8
        (b"\x35\x33\x1c", 2),  # 5 - 3
        (b"\x33\x35\x1c", (1 << 64) - 2),
        (b"\x31\x12\x22", 2),  # dup, plus
        (b"\x31\x32\x14\x1c", 1),  # over: 2 - 1
        (b"\x31\x32\x16\x1c", 1),  # swap: 2 - 1
        (b"\x31\x32\x33\x17\x1c", (1 << 64) - 1),  # rot: 3 1 2, so 1 - 2
        (b"\x31\x28\x01\x00\x35\x39", 9),  # bra over lit5
        (b"\x0b\xff\xff\x1a", None),
        (b"\x0b\xff\xff\x1f", 1),  # const2s -1, neg
        (b"\x0a\xff\xff\x34\x24", 0xFFFF0),  # const2u << 4
        (b"\x77\x08\x80\x00", None),
        # The lazy binding of x86-64's .plt, as binutils writes it: rsp + 8 + ((rip & 15) >= 11) * 8
        (b"\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22", None),
        (b"", None),
        (b"\x2f\xfd\xff", None),  # a loop without an end
        (b"\x05", None),
    ],
)
def test_expressions(block: bytes, value: int | None) -> None:
    if value is None:
        with pytest.raises(UnwindError):
            evaluate(block, REGISTERS, lambda *_: b"")
    else:
        assert evaluate(block, REGISTERS, lambda *_: b"") == value


def test_the_expression_of_lazy_binding() -> None:
    block = b"\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22"
    assert evaluate(block, {7: 0x2000, 16: 0x40A}, lambda *_: b"") == 0x2008
    assert evaluate(block, {7: 0x2000, 16: 0x40B}, lambda *_: b"") == 0x2010


@given(st.binary(max_size=40))
def test_no_expression_is_more_than_refused(block: bytes) -> None:
    try:
        value = evaluate(block, REGISTERS, lambda _, size: bytes(size), 5)
    except UnwindError:
        return
    assert 0 <= value < 1 << 64


# A function that pushes rbp, moves rsp to it, and pops it: what compilers write for most functions.
COMMON = b"\x0c\x07\x08\x90\x01"  # def_cfa rsp+8, offset rip at cfa-8
PUSHING = b"\x41\x0e\x10\x86\x02\x43\x0d\x06\x50\x0c\x07\x08"


@pytest.mark.parametrize(
    ("place", "frame", "saved"),
    [(0, (7, 8), None), (1, (7, 16), -16), (3, (7, 16), -16), (4, (6, 16), -16), (20, (7, 8), -16)],
)
def test_rules_depend_on_the_place(place: int, frame: tuple[int, int], saved: int | None) -> None:
    program = UnwindProgram(Factors(1, -8, 0), 0x100)
    program.begin(reader_of(COMMON), len(COMMON))
    row = program.run(reader_of(PUSHING), len(PUSHING), 0x100 + place)
    assert row.frame == frame
    assert row.rules[16] == ("at", -8)
    assert row.rules.get(6, ("at", None)) == ("at", saved)


def test_states_are_remembered_and_restored() -> None:
    program = UnwindProgram(Factors(1, -8, 0), 0)
    program.begin(reader_of(COMMON), len(COMMON))
    content = b"\x86\x02\x0a\x41\xc6\x0e\x20\x41\x0b"
    row = program.run(reader_of(content), len(content), 2)
    assert (row.frame, row.rules[6]) == ((7, 8), ("at", -16))


@given(st.binary(max_size=60))
def test_no_program_is_more_than_refused(content: bytes) -> None:
    program = UnwindProgram(Factors(1, -8, 0x1B), 0)
    try:
        program.run(reader_of(content), len(content), 1 << 64)
    except (UnwindError, OSError, IndexError):
        return


@given(st.binary(max_size=200), st.integers(0, 200))
def test_no_table_is_more_than_refused(content: bytes, at: int) -> None:
    read = memory_of(b"\x01\x1b\x03\x3b" + content)
    try:
        rules = rules_at(read, 0, at)
        if rules:
            caller_by(rules, REGISTERS, read, 7)
    except (UnwindError, OSError):
        return


def symbol(name: int, start: int, size: int, kind: int = 2, section: int = 1) -> bytes:
    return struct.pack("<IBBHQQ", name, kind, 0, section, start, size)


NAMES = b"\0first\0second\0alias\0"


def test_the_symbol_that_an_address_is_in() -> None:
    table = (
        symbol(0, 0, 0, 0, 0) + symbol(7, 0x200, 0x10) + symbol(1, 0x100, 0x20) + symbol(1, 0x300, 4, kind=1)
    )
    symbols = Symbols(table, NAMES)
    for address, name in ((0x100, "first"), (0x11F, "first"), (0x20F, "second")):
        found = symbols.find(address)
        assert found is not None
        assert found.name == name
    for address in (0, 0xFF, 0x120, 0x1FF, 0x210, 0x300):  # the last one is data
        assert symbols.find(address) is None


def test_a_symbol_of_unknown_size_reaches_to_the_next_one() -> None:
    symbols = Symbols(symbol(1, 0x100, 0) + symbol(7, 0x200, 0x10), NAMES)
    found = symbols.find(0x1FF)
    assert found is not None
    assert (found.name, found.start) == ("first", 0x100)


@given(st.binary(max_size=300), st.binary(max_size=40), st.integers(0, 1 << 64))
def test_no_table_of_symbols_is_an_error(table: bytes, strings: bytes, address: int) -> None:
    found = Symbols(table, strings).find(address)
    assert found is None or found.name


@linux_only
def test_files_that_are_no_libraries_have_no_symbols(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for content in (b"\x7fELF\x02\x01", b"\x7fELF\x02\x01" + bytes([255]) * 58, b"text" * 100):
        path.write_bytes(content)
        with contextlib.suppress(ElfError, ValueError, struct.error):
            assert file_symbols(str(path), content[:6]) is None
    os.mkfifo(tmp_path / "pipe")
    assert file_symbols(str(tmp_path / "pipe"), b"") is None
    assert file_symbols(str(path), b"another beginning") is None


def address_of(function: str) -> int:
    return ctypes.cast(ctypes.CDLL(None)[function], ctypes.c_void_p).value or 0


@linux_only
def test_a_library_of_this_process_in_memory_and_on_disk() -> None:
    address = address_of("qsort")
    libc = Space(Path("/proc/self/maps").read_text(encoding="utf-8")).find(address)
    assert libc is not None
    assert libc.is_code
    assert libc.base is not None
    memory = Memory(os.getpid())
    try:
        image = Image(memory.read, libc.base)
        assert image.unwind_table is not None
        in_memory, on_disk = image.symbols("/nowhere"), image.symbols(libc.path)
        assert in_memory is not None
        assert on_disk is not None
        for name in ("qsort", "getenv", "fclose", "abort"):
            start = address_of(name) - image.bias
            first, second = in_memory.find(start), on_disk.find(start)
            assert first is not None
            assert second is not None
            assert first.start == second.start == start
            assert name in first.name
            assert name in second.name
        start = address - image.bias
        rules = rules_at(memory.read, image.unwind_table, start + image.bias)
        assert rules is not None
        assert rules_at(memory.read, image.unwind_table, 16) is None
        for address in (8, -8, 1 << 47, 1 << 63):
            with pytest.raises(OSError, match=r"no memory|Input/output error"):
                memory.read(address, 8)
    finally:
        memory.close()


def test_mappings() -> None:
    space = Space(
        "1000-2000 r--p 00000000 08:01 7                  /lib/a\\012b.so (deleted)\n"
        "2000-3000 r-xp 00001000 08:01 7                  /lib/a\\012b.so (deleted)\n"
        "5000-6000 rwxp 00000000 00:00 0 \n"
        "nonsense\n"
        "6000-7000 r-xp 00004000 08:01 9                  /opt/whole.apk\n"
    )
    code = space.find(0x2FFF)
    assert code is not None
    assert (code.path, code.base, code.is_code) == ("/lib/a\nb.so (deleted)", 0x1000, True)
    assert space.find(0x3000) is None
    assert space.find(0xFFF) is None
    assert [space.is_code(at) for at in (0x1000, 0x2000, 0x5000, 0x6000, 0x7000)] == [
        False,
        True,
        True,
        True,
        False,
    ]
    whole = space.find(0x6000)
    assert whole is not None
    assert whole.base is None


def test_what_can_follow_a_call() -> None:
    calls = ("e800000000", "ffd0", "41ffd3", "ff5008", "ff9000010000", "ff14c5000000 00", "ff1500000000")
    for code in calls:
        assert X86_64.follows_call(bytes.fromhex(code).rjust(8, b"\x90")), code
    for code in ("c3", "e900000000", "ffe0", "4889e5"):
        assert not X86_64.follows_call(bytes.fromhex(code).rjust(8, b"\x90")), code
    for word in (0x94000010, 0x97FFFFFF, 0xD63F0100, 0xD63F0BFF, 0xD73F0A11):
        assert AARCH64.follows_call(bytes(4) + word.to_bytes(4, "little")), hex(word)
    for word in (0x14000010, 0xD65F03C0, 0xD503201F, 0xD61F0100):
        assert not AARCH64.follows_call(bytes(4) + word.to_bytes(4, "little")), hex(word)


def test_registers_have_the_numbers_of_unwind_tables() -> None:
    pc, registers = X86_64.read(struct.pack("<27Q", *range(27)))
    assert (pc, registers[7], registers[6], registers[0], registers[3]) == (16, 19, 4, 10, 5)
    pc, registers = AARCH64.read(struct.pack("<34Q", *range(34)))
    assert (pc, registers[31], registers[30], registers[29]) == (32, 31, 30, 29)
    assert AARCH64.code_address(0xF0B4_FFFF_7F00_1234) == 0xFFFF_7F00_1234  # signed
    assert X86_64.code_address(0x7FFF_7F00_1234) == 0x7FFF_7F00_1234


def can_be_loaded(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def test_names_of_functions() -> None:
    demangle = Demangler()
    assert demangle("run_kernel") == "run_kernel"
    assert demangle("_Z") == "_Z"
    assert demangle("_Znonsense") == "_Znonsense"
    assert demangle("_Z" + "1a" * 2000) == "_Z" + "1a" * 2000
    if not any(can_be_loaded(library) for library in LIBRARIES):
        pytest.skip("this machine has no C++ library")
    assert demangle("_ZN3qnn7ConvertERK4Nodei") == "qnn::Convert(Node const&, int)"


def test_nothing_is_started_unless_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("", "0", "yes"):
        monkeypatch.setenv(NATIVE_STACK_VARIABLE, value)
        assert start_if_asked() == ""
    monkeypatch.delenv(NATIVE_STACK_VARIABLE)
    assert start_if_asked() == ""


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"platform": "win32"}, "only Linux lets an ordinary process read the stack of another one"),
        ({"platform": "darwin"}, "only Linux lets an ordinary process read the stack of another one"),
        ({"executable": ""}, "this Python does not know its own path, so it cannot start a watcher"),
        ({"executable": "/nowhere/python"}, "No such file or directory"),
    ],
)
def test_where_it_cannot_work_it_says_so(
    monkeypatch: pytest.MonkeyPatch, change: dict[str, str], why: str
) -> None:
    monkeypatch.setenv(NATIVE_STACK_VARIABLE, "1")
    for name, value in change.items():
        monkeypatch.setattr(sys, name, value)
    state = start_if_asked()
    assert state.startswith(UNAVAILABLE_PREFIX)
    assert why in state


@linux_only
def test_a_watcher_that_says_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mute = tmp_path / "python"
    write_program(mute, "#!/bin/sh\nexit 3\n")
    monkeypatch.setenv(NATIVE_STACK_VARIABLE, "1")
    monkeypatch.setattr(sys, "executable", str(mute))
    assert start_if_asked().startswith(UNAVAILABLE_PREFIX)


@linux_only
@pytest.mark.skipif(shutil.which("readelf") is None, reason="binutils are not installed")
def test_symbols_agree_with_binutils() -> None:
    library = os.path.realpath(sys.executable)
    rows = subprocess.run(["readelf", "-W", "--syms", library], check=True, capture_output=True, text=True)
    wanted: dict[int, set[str]] = {}
    for line in rows.stdout.splitlines():
        row = line.split()
        if len(row) == 8 and row[3] in {"FUNC", "IFUNC", "NOTYPE"} and row[6] != "UND" and row[2] != "0":
            wanted.setdefault(int(row[1], 16), set()).add(row[7].partition("@")[0])
    symbols = file_symbols(library, Path(library).read_bytes()[:512])
    assert symbols is not None
    for start, names in wanted.items():
        found = symbols.find(start)
        assert found is not None
        assert found.start == start
        assert found.name in names
