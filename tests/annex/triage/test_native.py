"""What is read from the text of a native stack, whatever a process prints around it or in its place."""

import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.agent.native_stack import block
from harness.core.records.fault import Frame, NativeCrash
from harness.engine.processes.native_crash import involved_libraries, native_crash

TAIL = "#9\tlibc.so.6\t+0x85\t__libc_start_main\n"


def printed(*frames: tuple[str, int, str], name: str = "SIGSEGV", address: int = 16) -> str:
    lines = [block.FrameText(*frame) for frame in frames]
    first = block.first_line(name, 1, address, "42 'python'")
    return first + "".join(block.frame_line(*pair) for pair in enumerate(lines)) + block.END + "\n"


def test_a_block_is_read_as_it_was_printed() -> None:
    frames = (
        ("libc.so.6", 0x85, "memcpy"),
        ("libqnn provider.so", 0x1B, "qnn::Convert(Node const&, int)"),
        ("libqnn provider.so", 0x2F10, ""),
        (block.JIT, 3, ""),
    )
    text = "a warning without an end" + printed(*frames)
    assert native_crash(text) == NativeCrash(
        signal="SIGSEGV",
        frames=tuple(Frame(library=lib, offset=offset, function=fn) for lib, offset, fn in frames),
        culprit="libqnn provider.so",
        address="0x10",
    )


def test_output_without_a_stack_has_no_crash() -> None:
    assert native_crash("") is None
    assert native_crash("Segmentation fault\n#0\tlibqnn.so\t+0x1\n") is None
    assert native_crash(f"said in a line: {block.BEGIN}SIGSEGV, thread 1\n") is None


def test_a_block_whose_end_is_cut_off_gives_the_frames_that_are_there() -> None:
    text = printed(("libqnn.so", 1, "f"), ("libqnn.so", 2, "g"))
    crash = native_crash(text[: text.index("#1") + 8])
    assert crash is not None
    assert [frame.function for frame in crash.frames] == ["f"]


@pytest.mark.parametrize(
    "library",
    [
        *("libc.so.6", "libc-2.31.so", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "ld-2.31.so"),
        *(
            "libc.musl-x86_64.so.1",
            "ld-musl-aarch64.so.1",
            "libpthread.so.0",
            "libpthread-2.31.so",
            "libm.so.6",
        ),
        *("libgcc_s.so.1", "libstdc++.so.6.0.30", "libc++.so.1", "libc++abi.so.1.0", "libffi.so.8.1.2"),
        *(
            "libffi-9c3a1b2f.so.8",
            "python3.11",
            "python3",
            "libpython3.11.so.1.0",
            "linux-vdso.so.1",
            "[vdso]",
        ),
        *(
            "_ctypes.cpython-311-x86_64-linux-gnu.so",
            "libtcmalloc_minimal.so.4",
            "libjemalloc.so.2",
            block.JIT,
        ),
    ],
)
def test_libraries_of_the_system_are_never_blamed(library: str) -> None:
    crash = native_crash(printed((library, 1, "f"), ("libmine.so", 2, "g")))
    assert crash is not None
    assert crash.culprit == "libmine.so"
    alone = native_crash(printed((library, 1, "f")))
    assert alone is not None
    assert alone.culprit == ""


@pytest.mark.parametrize(
    "library",
    [
        *(
            "libcudart.so.12",
            "libcublas.so",
            "libmkl.so",
            "libmatrix.so",
            "libdlprim.so",
            "libonnxruntime.so.1",
        ),
        *("python_ep.so", "libpythonic.so", "ld.so.plugin", "onnxruntime_pybind11_state.so", "liblibc.so"),
    ],
)
def test_libraries_with_names_like_those_are(library: str) -> None:
    crash = native_crash(printed((library, 1, "f"), ("libother.so", 2, "g")))
    assert crash is not None
    assert crash.culprit == library


def test_the_libraries_on_the_stack_are_told_innermost_first() -> None:
    names = ("libc.so.6", "libort.so", "libqnn.so", "libort.so", "python3.11")
    crash = native_crash(printed(*((name, 1, "f") for name in names)))
    assert crash is not None
    assert involved_libraries(crash) == ("libort.so", "libqnn.so")


def test_of_several_blocks_the_first_with_a_culprit_counts() -> None:
    agent = printed(("libc.so.6", 1, "kill"), ("python3.11", 2, ""), name="SIGABRT")
    crash = native_crash(printed(("libqnn.so", 1, "f"), name="SIGABRT") + agent)
    assert crash is not None
    assert crash.culprit == "libqnn.so"
    crash = native_crash(agent + printed(("libqnn.so", 1, "f"), name="SIGABRT"))
    assert crash is not None
    assert crash.culprit == "libqnn.so"
    crash = native_crash(agent)
    assert crash is not None
    assert crash.frames[0].function == "kill"


names = st.text(max_size=400) | st.text("\n\t#+\x1b\u202e", max_size=20)


@given(st.lists(st.tuples(names, st.integers(0, (1 << 64) - 1), names), max_size=8), names)
def test_no_name_can_break_out_of_its_place(frames: list[tuple[str, int, str]], before: str) -> None:
    text = printed(*frames)
    assert len(text.splitlines()) == len(frames) + 3
    crash = native_crash(before.replace(block.BEGIN, "") + text)
    assert crash is not None
    assert crash.signal == "SIGSEGV"
    read = [frame for frame in frames if frame[0]]
    assert len(crash.frames) == (
        len(frames) if len(read) == len(frames) else frames.index(next(f for f in frames if not f[0]))
    )
    for frame, (library, offset, function) in zip(crash.frames, frames, strict=False):
        assert frame.offset == offset
        assert frame.library == block.printable(library)
        assert frame.function == block.printable(function)


@given(st.text(), st.text(block.BEGIN + "SIG#\t+0x1\n ,thread", max_size=300))
def test_no_output_is_an_error(anything: str, like_a_block: str) -> None:
    for text in (
        anything,
        like_a_block,
        block.BEGIN + like_a_block,
        anything + block.BEGIN + "SIGSEGV, thread",
    ):
        crash = native_crash(text)
        assert crash is None or crash.signal


@given(st.text(), st.text())
def test_a_block_can_be_taken_out(before: str, after: str) -> None:
    before, after = (text.replace("ep-harness", "").replace("#", "") for text in (before, after))
    stack = printed(("libmy_bad_alloc.so", 1, "throw_bad_alloc"))
    assert block.without_stacks(before + stack + after) == before + after
    assert block.without_stacks(before + stack[: stack.index(block.END) - 5]) == before
    assert block.without_stacks(before) == before


def test_addresses_are_told_of_signals_that_have_one() -> None:
    assert " at 0x10," in block.first_line("SIGSEGV", 1, 16, "1")
    for name, code in (("SIGSEGV", block.SENT_BY_KERNEL), ("SIGSEGV", -6), ("SIGABRT", 1), ("SIGSYS", 1)):
        assert " at " not in block.first_line(name, code, 16, "1")


def test_signals_have_the_names_of_verdicts() -> None:
    assert block.signal_name(signal.SIGSEGV) == "SIGSEGV"
    assert block.signal_name(200) == "signal 200"
    crash = native_crash(printed(("a.so", 1, ""), name="signal 200"))
    assert crash is not None
    assert crash.signal == "signal 200"


def test_two_of_the_longest_blocks_fit_into_what_is_kept() -> None:
    longest = block.frame_line(63, block.FrameText("l" * 1000, (1 << 64) - 1, "f" * 1000, is_guess=True))
    first = block.first_line("SIGSEGV", 1, (1 << 64) - 1, "t" * 1000)
    assert 2 * (block.MOST_BLOCK_BYTES + len(longest) + len(first) + len(block.END)) < 16384
