"""Files that are no models, models that no CPU provider runs, and external data in the wrong place."""

# ruff: noqa: ARG001 - every kind is called alike

import gzip
import os
import random
from pathlib import Path

from foreign_making import (
    FLOAT,
    INVALID,
    LACKING,
    PASS,
    POSIX,
    added,
    external,
    info,
    kind,
    node_model,
    relu,
    save,
    sizes,
    text,
)
from onnx import helper

# --- no models ---


@kind(*INVALID)
def empty_file(folder: Path, rng: random.Random) -> None:
    (folder / "model.onnx").write_bytes(b"")


@kind(*INVALID)
def random_bytes(folder: Path, rng: random.Random) -> None:
    (folder / "model.onnx").write_bytes(rng.randbytes(rng.randint(1, 5000)))


@kind(*INVALID)
def cut_short(folder: Path, rng: random.Random) -> None:
    content = relu(sizes(rng)[0]).SerializeToString()
    (folder / "model.onnx").write_bytes(content[: -rng.randint(1, 20)])


@kind(*INVALID)
def web_page(folder: Path, rng: random.Random) -> None:
    (folder / "model.onnx").write_text("<!DOCTYPE html><title>404</title>")


@kind(*INVALID)
def lfs_pointer(folder: Path, rng: random.Random) -> None:
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{rng.randbytes(32).hex()}\nsize 98\n"
    (folder / "model.onnx").write_text(pointer)
    (folder / "model.tar.gz").write_text(pointer)


@kind(*INVALID)
def compressed(folder: Path, rng: random.Random) -> None:
    (folder / "model.onnx").write_bytes(gzip.compress(relu(4).SerializeToString()))


@kind(*INVALID)
def ort_format(folder: Path, rng: random.Random) -> None:
    (folder / "model.onnx").write_bytes(b"\x18\0\0\0ORTM" + rng.randbytes(50))


@kind(*INVALID, posix=True)
def dangling_link(folder: Path, rng: random.Random) -> None:
    (folder / "model.onnx").symlink_to("gone.onnx")


@kind(*INVALID, posix=True)
def link_to_itself(folder: Path, rng: random.Random) -> None:
    (folder / "model.onnx").symlink_to("model.onnx")


@kind(*INVALID, posix=True)
def pipe(folder: Path, rng: random.Random) -> None:
    os.mkfifo(folder / "model.onnx")


@kind(*INVALID, posix=True)
def device(folder: Path, rng: random.Random) -> None:
    (folder / "model.onnx").symlink_to("/dev/zero")


@kind(*PASS if POSIX and os.geteuid() == 0 else INVALID, posix=True)
def closed_file(folder: Path, rng: random.Random) -> None:
    save(folder, relu(4)).chmod(0)


@kind(*INVALID, posix=True)
def larger_than_two_gib(folder: Path, rng: random.Random) -> None:
    with save(folder, relu(4)).open("ab") as file:
        file.truncate(1 << 31)  # sparse: takes no room


# --- models that no CPU provider runs ---


@kind(*LACKING)
def newer_opset(folder: Path, rng: random.Random) -> None:
    save(
        folder,
        text(
            "agraph (float[2] x) => (float[2] y) { y = Relu(x) }", '<ir_version: 9, opset_import: ["" : 99]>'
        ),
    )


@kind(*LACKING)
def newer_format(folder: Path, rng: random.Random) -> None:
    model = relu(2)
    model.ir_version = 99
    save(folder, model)


@kind(*INVALID)
def no_opset(folder: Path, rng: random.Random) -> None:
    model = relu(2)
    del model.opset_import[:]
    save(folder, model)


@kind(*LACKING)
def custom_operator(folder: Path, rng: random.Random) -> None:
    save(folder, text("agraph (float[2] x) => (float[2] y) { y = mine.Magic(x) }"))


@kind(*INVALID)
def unknown_operator(folder: Path, rng: random.Random) -> None:
    save(folder, text("agraph (float[2] x) => (float[2] y) { y = Magic(x) }"))


@kind(*LACKING)
def foreign_context(folder: Path, rng: random.Random) -> None:
    node = helper.make_node(
        "EPContext", ["x"], ["y"], domain="com.microsoft", embed_mode=0, ep_cache_context="no.bin"
    )
    save(folder, node_model([node], [info("x", FLOAT, [2])], [info("y", FLOAT, [2])], []))


@kind(*LACKING)
def type_without_kernel(folder: Path, rng: random.Random) -> None:
    save(folder, text("agraph (bfloat16[2] x) => (bfloat16[2] y) { y = Add(x, x) }"))


@kind(*INVALID)
def wrong_types(folder: Path, rng: random.Random) -> None:
    save(folder, text("agraph (float[2] x, int64[2] i) => (float[2] y) { y = Add(x, i) }"))


@kind(*INVALID)
def wrong_shapes(folder: Path, rng: random.Random) -> None:
    first, second = sizes(rng)[0], 20
    save(folder, text(f"agraph (float[{first}] x, float[{second}] z) => (float[n] y) {{ y = Add(x, z) }}"))


@kind(*INVALID)
def cycle(folder: Path, rng: random.Random) -> None:
    nodes = [helper.make_node("Add", ["x", "b"], ["a"]), helper.make_node("Neg", ["a"], ["b"])]
    save(folder, node_model(nodes, [info("x", FLOAT, [2])], [info("b", FLOAT, [2])], []))


@kind(*INVALID)
def unknown_tensor(folder: Path, rng: random.Random) -> None:
    save(folder, node_model([helper.make_node("Relu", ["nobody"], ["y"])], [], [info("y", FLOAT, [2])], []))


@kind(*INVALID)
def two_of_one_name(folder: Path, rng: random.Random) -> None:
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Neg", ["x"], ["y"])]
    save(folder, node_model(nodes, [info("x", FLOAT, [2])], [info("y", FLOAT, [2])], []))


@kind(*INVALID)
def calls_itself(folder: Path, rng: random.Random) -> None:
    body = '<opset_import: ["" : 17, "mine" : 1], domain: "mine"> Again (a) => (b) { b = mine.Again(a) }'
    save(folder, text(f"agraph (float[2] x) => (float[2] y) {{ y = mine.Again(x) }} {body}"))


@kind(*INVALID)
def nested_too_deeply(folder: Path, rng: random.Random) -> None:
    graph = relu(2).graph.SerializeToString()
    for _ in range(200):  # protobuf itself does not write what it will not read
        attribute = _field(1, b"then_branch") + _field(6, graph) + b"\xa0\x01\x05"
        graph = _field(1, _field(4, b"If") + _field(1, b"c") + _field(2, b"y") + _field(5, attribute))
    (folder / "model.onnx").write_bytes(b"\x08\x09" + _field(7, graph))


def _field(number: int, content: bytes) -> bytes:
    length, spelled = len(content), b""
    while length >> 7:
        spelled += bytes([length & 127 | 128])
        length >>= 7
    return bytes([number << 3 | 2]) + spelled + bytes([length]) + content


@kind(*INVALID)
def names_that_are_no_text(folder: Path, rng: random.Random) -> None:
    content = relu(2).SerializeToString()
    (folder / "model.onnx").write_bytes(
        content.replace(b"agraph", b"agr\xffph").replace(b"\x01x", b"\x01\xff")
    )


@kind(*INVALID)
def weight_too_short(folder: Path, rng: random.Random) -> None:
    model = added(8)
    model.graph.initializer[0].raw_data = bytes(12)
    save(folder, model)


@kind(*INVALID)
def weight_of_negative_size(folder: Path, rng: random.Random) -> None:
    model = added(8)
    model.graph.initializer[0].dims[0] = -8
    save(folder, model)


# --- external data ---


def _external_kind(
    name: str, *, posix: bool = False, verdicts: tuple[str, ...] = INVALID, **entries: str
) -> None:
    def write(folder: Path, rng: random.Random) -> None:
        (folder / "inside").mkdir()
        (folder / "outside.bin").write_bytes(bytes(1 << 10))
        if posix:
            (folder / "inside" / "loop.bin").symlink_to("loop.bin")
            (folder / "inside" / "out.bin").symlink_to("../outside.bin")
            os.mkfifo(folder / "inside" / "pipe.bin")
        (folder / "inside" / "short.bin").write_bytes(bytes(4))
        save(folder / "inside", external(added(8), **entries))

    write.__name__ = name
    kind(*verdicts, posix=posix)(write)


_external_kind("external_missing", location="gone.bin")
_external_kind("external_too_short", verdicts=("no_golden",), location="short.bin")
_external_kind("external_behind_its_end", location="short.bin", offset="4096", length="32")
_external_kind("external_number_is_none", location="short.bin", offset="0x10")
_external_kind("external_negative", location="short.bin", offset="-4", length="4")
_external_kind("external_escapes", location="../outside.bin")
_external_kind("external_absolute", location="/etc/passwd")
_external_kind("external_of_windows", location="C:\\Windows\\win.ini")
_external_kind("external_nowhere")
_external_kind("external_null", location="a\0b")
_external_kind("external_endless_name", location="x" * 5000)
_external_kind("external_link_leads_out", posix=True, location="out.bin")
_external_kind("external_link_to_itself", posix=True, location="loop.bin")
_external_kind("external_pipe", posix=True, location="pipe.bin")
_external_kind("external_folder", location=".")
