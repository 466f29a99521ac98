"""Strangers' models that are good, however odd, and some that nothing can be held against."""

# ruff: noqa: ARG001 - every kind is called alike

import random
import tarfile
from pathlib import Path

import numpy as np
from foreign_making import (
    DISPUTED,
    FLOAT,
    PASS,
    add_file,
    added,
    data_sets,
    external,
    info,
    kind,
    node_model,
    relu,
    save,
    sizes,
    text,
    tree,
    weight,
)
from onnx import TensorProto, helper, numpy_helper


@kind(*PASS)
def convolution(folder: Path, rng: random.Random) -> None:
    channels, size = sizes(rng, 2)
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"]), helper.make_node("Relu", ["c"], ["y"])]
    x, y = info("x", FLOAT, ["N", 3, size + 2, size + 2]), info("y", FLOAT, None)
    save(folder, node_model(nodes, [x], [y], [weight(rng, "w", channels, 3, 3, 3)]))


@kind(*PASS)
def perceptron(folder: Path, rng: random.Random) -> None:
    before, after = sizes(rng, 2)
    nodes = [helper.make_node("Gemm", ["x", "w", "b"], ["c"]), helper.make_node("Softmax", ["c"], ["y"])]
    x, y = info("x", FLOAT, ["batch", before]), info("y", FLOAT, None)
    weights = [weight(rng, "w", before, after), weight(rng, "b", after)]
    save(folder, node_model(nodes, [x], [y], weights))


@kind(*PASS)
def zoo_layout(folder: Path, rng: random.Random) -> None:
    (size,) = sizes(rng)
    save(folder, relu(size))
    for home, x, y in data_sets(folder, size, 3):
        home.mkdir()
        (home / "input_0.pb").write_bytes(numpy_helper.from_array(x).SerializeToString())
        (home / "output_0.pb").write_bytes(numpy_helper.from_array(y).SerializeToString())


@kind(*PASS)
def data_as_npy(folder: Path, rng: random.Random) -> None:
    (size,) = sizes(rng)
    save(folder, relu(size))
    for home, x, y in data_sets(folder, size):
        home.mkdir()
        np.save(home / "input_0.npy", x)
        np.save(home / "output_0.npy", y)


@kind(*PASS)
def data_as_npz(folder: Path, rng: random.Random) -> None:
    (size,) = sizes(rng)
    save(folder, relu(size))
    for home, x, y in data_sets(folder, size):
        home.mkdir()
        np.savez(home / "inputs.npz", x=x)
        np.savez_compressed(home / "outputs.npz", y=y)


@kind(*PASS)
def zoo_npz(folder: Path, rng: random.Random) -> None:
    (size,) = sizes(rng)
    save(folder, relu(size))
    for home, x, y in data_sets(folder, size, 2):
        np.savez(folder / f"{home.name.replace('_set', '')}.npz", inputs=[x], outputs=[y])


@kind(*PASS)
def zoo_archive(folder: Path, rng: random.Random) -> None:
    (size,) = sizes(rng)
    path = save(folder, relu(size), "model/net-7.onnx")
    with tarfile.open(path.with_suffix(".tar.gz"), "w:gz") as archive:
        add_file(archive, "net/net-7.onnx", path.read_bytes())
        for home, x, y in data_sets(folder, size):
            add_file(archive, f"net/{home.name}/._input_0.pb", b"of macOS")
            add_file(archive, f"net/{home.name}/input_0.pb", numpy_helper.from_array(x).SerializeToString())
            add_file(archive, f"net/{home.name}/output_0.pb", numpy_helper.from_array(y).SerializeToString())


@kind(*PASS)
def external_data(folder: Path, rng: random.Random) -> None:
    (size,) = sizes(rng)
    save(folder, external(added(size), location="model.onnx_data", offset="64", length=str(4 * size)))
    (folder / "model.onnx_data").write_bytes(bytes(64) + np.arange(size, dtype=np.float32).tobytes())


@kind(*PASS)
def external_data_below(folder: Path, rng: random.Random) -> None:
    (size,) = sizes(rng)
    save(folder, external(added(size), location="weights/all.bin"))
    (folder / "weights").mkdir()
    (folder / "weights" / "all.bin").write_bytes(np.arange(size, dtype=np.float32).tobytes())


@kind(*PASS)
def token_ids(folder: Path, rng: random.Random) -> None:
    rows = rng.randint(50, 1000)
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["e"]),
        helper.make_node("Gather", ["places", "position_ids"], ["p"]),
        helper.make_node("Add", ["e", "p"], ["s"]),
        helper.make_node("Cast", ["attention_mask"], ["m"], to=FLOAT),
        helper.make_node("Unsqueeze", ["m", "last"], ["u"]),
        helper.make_node("Mul", ["s", "u"], ["y"]),
    ]
    names = ("input_ids", "position_ids", "attention_mask")
    inputs = [info(name, TensorProto.INT64, ["batch", "sequence"]) for name in names]
    weights = [weight(rng, "table", rows, 4), weight(rng, "places", 16, 4)]
    weights.append(numpy_helper.from_array(np.array([2]), "last"))
    save(folder, node_model(nodes, inputs, [info("y", FLOAT, None)], weights))


@kind(*PASS)
def decoder_with_past(folder: Path, rng: random.Random) -> None:
    (width,) = sizes(rng)
    model = text(f"""agraph (float[batch, past_sequence_length, {width}] past, float[batch, seq, {width}] x,
        float[batch, total] attention_bias) => (float[b, t, {width}] y) <int64[1] last = {{2}}> {{
            all = Concat<axis = 1>(past, x)
            bias = Unsqueeze(attention_bias, last)
            y = Add(all, bias) }}""")
    model.graph.input[2].type.tensor_type.shape.dim[1].dim_param = "past_sequence_length + 2*seq"
    model.graph.input[1].type.tensor_type.shape.dim[1].dim_param = "2*seq"
    save(folder, model)


@kind(*PASS)
def side_file(folder: Path, rng: random.Random) -> None:
    (length,) = sizes(rng)
    # Gather with ids that only the side file tells: the table is computed, so its rows are not declared.
    save(
        folder,
        text("""agraph (int64[batch, seq] words) => (float[batch, seq] y)
        <int64[1] rows = {32}> {
            table = ConstantOfShape<value = float[1] {2.0}>(rows)
            y = Gather(table, words) }"""),
    )
    (folder / "model.onnx.toml").write_text(
        f"dimensions = {{ seq = {length} }}\ninputs = {{ words = {{ low = 20, high = 32 }} }}\n"
    )


@kind("folded")
def no_inputs(folder: Path, rng: random.Random) -> None:
    (size,) = sizes(rng)
    model = node_model(
        [helper.make_node("Neg", ["w"], ["y"])], [], [info("y", FLOAT, None)], [weight(rng, "w", size)]
    )
    save(folder, model)


@kind(*PASS)
def texts(folder: Path, rng: random.Random) -> None:
    (size,) = sizes(rng)
    look_up = 'ai.onnx.ml.LabelEncoder<keys_strings = ["alpha", "beta"], values_int64s = [1, 2]>'
    save(folder, text(f"agraph (string[{size}] x) => (int64[{size}] y) {{ y = {look_up}(x) }}"))


@kind(*PASS)
def sequences(folder: Path, rng: random.Random) -> None:
    (size,) = sizes(rng)
    save(
        folder, text(f"agraph (float[{size}] x) => (seq(float[{size}]) y) {{ y = SequenceConstruct(x, x) }}")
    )


@kind(*PASS)
def tree_ensemble(folder: Path, rng: random.Random) -> None:
    save(folder, tree(rng.randint(2, 9)))


@kind(*PASS)
def quantized(folder: Path, rng: random.Random) -> None:
    (size,) = sizes(rng)
    save(
        folder,
        text(f"""agraph (float[{size}] x) => (float[{size}] y) <float s = {{0.05}}, uint8 z = {{128}}> {{
            q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) r = Relu(d)
            p = QuantizeLinear(r, s, z) y = DequantizeLinear(p, s, z) }}"""),
    )


@kind(*PASS)
def half_precision(folder: Path, rng: random.Random) -> None:
    (size,) = sizes(rng)
    save(folder, text(f"agraph (float16[{size}] x) => (float16[{size}] y) {{ y = Sigmoid(x) }}"))


@kind(*PASS)
def control_flow(folder: Path, rng: random.Random) -> None:
    (size,) = sizes(rng)
    save(
        folder,
        text(f"""agraph (float[{size}] x, bool c) => (float[{size}] y) {{
            y = If (c) <then_branch = t () => (float[{size}] a) {{ a = Neg(x) }},
                        else_branch = e () => (float[{size}] b) {{ b = Abs(x) }}> }}"""),
    )


@kind(*PASS)
def local_function(folder: Path, rng: random.Random) -> None:
    (size,) = sizes(rng)
    body = '<opset_import: ["" : 17], domain: "mine"> Twice (a) => (b) { b = Add(a, a) }'
    save(folder, text(f"agraph (float[{size}] x) => (float[{size}] y) {{ y = mine.Twice(x) }} {body}"))


@kind(*PASS)
def nan_results(folder: Path, rng: random.Random) -> None:
    size = 40 + sizes(rng)[0]
    save(folder, text(f"agraph (float[{size}] x) => (float[{size}] y) {{ y = Log(x) }}"))


@kind(*PASS)
def empty_batch(folder: Path, rng: random.Random) -> None:
    (size,) = sizes(rng)
    save(folder, text(f"agraph (float[0, {size}] x) => (float[0, {size}] y) {{ y = Relu(x) }}"))


@kind(*PASS)
def scalars(folder: Path, rng: random.Random) -> None:
    save(folder, text("agraph (float x) => (float y) { y = Exp(x) }"))


@kind(*PASS)
def input_is_output(folder: Path, rng: random.Random) -> None:
    (size,) = sizes(rng)
    save(folder, text(f"agraph (float[{size}] x) => (float[{size}] y, float[{size}] x) {{ y = Relu(x) }}"))


@kind(*PASS, posix=True)
def strange_name(folder: Path, rng: random.Random) -> None:
    save(folder, relu(sizes(rng)[0]), "[1] a::b $(id) <b>&'\"% モデル\n\x1b[31m.onnx")


@kind(*PASS)
def shouted_suffix(folder: Path, rng: random.Random) -> None:
    save(folder, relu(sizes(rng)[0]), "MODEL.ONNX")


@kind(*PASS, posix=True)
def link_to_a_model(folder: Path, rng: random.Random) -> None:
    blob = save(folder, relu(sizes(rng)[0]), "blobs/0123")
    (folder / "model.onnx").symlink_to(blob.relative_to(folder))


@kind(*PASS, posix=True)
def linked_download(folder: Path, rng: random.Random) -> None:
    """As in a download cache: the model and its weights are links to files elsewhere, side by side."""
    (size,) = sizes(rng)
    save(folder, external(added(size), location="model.onnx_data"), "blobs/model.onnx.blob")
    (folder / "blobs" / "model.onnx_data").write_bytes(np.arange(size, dtype=np.float32).tobytes())
    (folder / "snapshot").mkdir()
    (folder / "snapshot" / "model.onnx").symlink_to("../blobs/model.onnx.blob")
    (folder / "snapshot" / "model.onnx_data").symlink_to("../blobs/model.onnx_data")


@kind(*PASS)
def folder_named_like_a_model(folder: Path, rng: random.Random) -> None:
    save(folder, relu(sizes(rng)[0]), "net.onnx/inside.onnx")


@kind(*PASS, posix=True)
def loop_of_links(folder: Path, rng: random.Random) -> None:
    save(folder, relu(sizes(rng)[0]))
    (folder / "again").symlink_to(".")
    (folder / "up").symlink_to("..")


@kind(*PASS)
def resource_forks(folder: Path, rng: random.Random) -> None:
    save(folder, relu(sizes(rng)[0]))
    (folder / "._model.onnx").write_bytes(b"\0\5\x16\7\0\2\0\0Mac OS X")


@kind(*DISPUTED)
def draws_numbers(folder: Path, rng: random.Random) -> None:
    (size,) = sizes(rng)
    save(
        folder,
        text(f"agraph (float[{size}] x) => (float[{size}] y) {{ r = RandomNormalLike(x) y = Add(x, r) }}"),
    )


@kind(*DISPUTED)
def wrong_expected_data(folder: Path, rng: random.Random) -> None:
    (size,) = sizes(rng)
    save(folder, relu(size))
    for home, x, y in data_sets(folder, size):
        home.mkdir()
        np.save(home / "input_0.npy", x)
        np.save(home / "output_0.npy", y + 5)
