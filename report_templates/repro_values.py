"""Reads ONNX's test data (``input_0.pb``) without the package onnx, and compares outputs with it."""

import ctypes
import json
import math
import os

import numpy as np

NUMPY = {1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool"}
NUMPY.update({10: "float16", 11: "float64", 12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128"})
STRING = 8
# Element types that numpy lacks, by their number in ONNX: name, and width in bits.
NARROW = {16: ("bfloat16", 16), 17: ("float8e4m3fn", 8), 18: ("float8e4m3fnuz", 8), 19: ("float8e5m2", 8)}
NARROW.update({20: ("float8e5m2fnuz", 8), 21: ("uint4", 4), 22: ("int4", 4), 23: ("float4e2m1", 4)})
NARROW.update({24: ("float8e8m0", 8), 25: ("uint2", 2), 26: ("int2", 2)})
NUMBERS = {name: number for number, (name, _) in NARROW.items()}
MAPPED = {"float": "float32", "double": "float64", "int64": "int64", "string": "O"}


class Tensor:
    """A tensor: its element type (``bfloat16``), its raw bytes, and an array that numpy can compute with."""

    def __init__(self, dtype, shape, raw):
        self.dtype, self.shape, self.raw = dtype, tuple(shape), raw
        self.as_codes = False  # elements of a type that has no numpy counterpart
        if dtype in ("string", *NUMPY.values()):
            data = np.array(raw, object) if dtype == "string" else np.frombuffer(raw, dtype)
            self.array = data.reshape(shape)
            return
        bits = NARROW[NUMBERS[dtype]][1]
        if dtype == "bfloat16":  # the upper half of a float32
            data = (np.frombuffer(raw, "<u2").astype("<u4") << 16).view("<f4")
        else:  # elements narrower than a byte are packed, the first one in the low bits
            codes = np.frombuffer(raw, np.uint8)[:, None] >> np.arange(0, 8, bits, dtype=np.uint8)
            data = (codes & (2**bits - 1)).reshape(-1)[: math.prod(shape)].astype(np.int16)
            if dtype.startswith("int"):
                data -= (data >= 2 ** (bits - 1)) * np.int16(2**bits)
            self.as_codes = dtype.startswith("float")
        self.array = data.reshape(shape)

    def feed(self, ort):
        """Return what ``InferenceSession.run`` takes."""
        if self.dtype not in NUMBERS:
            return self.array
        value = ort.OrtValue.ortvalue_from_shape_and_type(list(self.shape), NUMBERS[self.dtype])
        if self.raw:
            ctypes.memmove(value.data_ptr(), self.raw, len(self.raw))
        return value


def read(folder, value):
    """Return an entry of the manifest: a Tensor, a list of values, a dict, or None for an empty optional."""
    with open(os.path.join(folder, value["file"]), "rb") as file:
        home = os.path.dirname(os.path.join(folder, value["file"]))
        return _value(file.read(), value["kind"], home)


def feeds(value, ort):
    """Return a value as ``InferenceSession.run`` takes it."""
    if isinstance(value, Tensor):
        return value.feed(ort)
    if isinstance(value, dict):
        return dict(zip(value["keys"].array.tolist(), value["values"].array.tolist()))
    return [feeds(item, ort) for item in value] if isinstance(value, list) else None


def narrow(ort_type):
    """Return ``bfloat16`` for ``tensor(bfloat16)``; empty for a type that numpy can hold."""
    inner = ort_type[len("tensor(") : -1].lower()
    return inner if inner in NUMBERS else ""


def found(output, ort_type=""):
    """Return an output of a session in the form of ``read``."""
    if output is None:
        return None
    if isinstance(output, dict):  # map(int64,tensor(float))
        kinds = ort_type[ort_type.rfind("map(") + 4 :].rstrip(")").split(",tensor(")
        names = [MAPPED.get(kind) for kind in kinds] if len(kinds) == 2 else [None, None]
        keys, values = np.array(list(output), names[0]), np.array(list(output.values()), names[1])
        return {"keys": found(keys), "values": found(values)}
    if isinstance(output, (list, tuple)):
        return [found(item, ort_type) for item in output]
    if hasattr(output, "data_ptr"):  # an OrtValue
        dtype = narrow(output.data_type())
        if not dtype:
            return found(output.numpy())
        size = math.ceil(math.prod(output.shape()) * NARROW[NUMBERS[dtype]][1] / 8)
        return Tensor(dtype, output.shape(), ctypes.string_at(output.data_ptr(), size) if size else b"")
    array = np.asarray(output)
    if array.dtype.kind in "OUS":
        return Tensor("string", array.shape, [str(item) for item in array.ravel().tolist()])
    return Tensor(array.dtype.name, array.shape, array.tobytes())


def compare(name, expected, given, limit):
    """Return ``(wrong, line)`` of each tensor in an output; a limit of None leaves its values alone."""
    wanted, got = dict(_leaves(name, expected)), dict(_leaves(name, given))
    if list(wanted) != list(got):
        return [(True, f"{name}: expected the structure {list(wanted)}, found {list(got)}")]
    return [_compare(leaf, wanted[leaf], got[leaf], limit) for leaf in wanted]


def _compare(name, expected, given, limit):
    if expected is None or given is None:
        return expected is not given, f"{name}: an empty optional"
    for what in ("dtype", "shape"):
        one, other = getattr(expected, what), getattr(given, what)
        if one != other:
            return True, f"{name}: expected {what} {one}, found {other}"
    one, other = expected.array.ravel(), given.array.ravel()
    if expected.dtype == "string" or expected.as_codes:
        unequal = one != other
        distance = float(np.mean(unequal)) if one.size else 0.0
        special = np.zeros(one.size, bool)
    else:
        wide = np.complex128 if one.dtype.kind == "c" else np.float64
        unequal, (one, other) = one != other, (one.astype(wide), other.astype(wide))
        special = ~(np.isfinite(one) & np.isfinite(other))
        distance, unequal = _distance(one, other, unequal, special, expected.array.dtype.kind in "iu")
        special &= ~((one == other) | (np.isnan(one) & np.isnan(other)))
    wrong = bool(special.any()) or (limit is not None and distance > limit)
    line = f"{name}: {expected.dtype}{list(expected.shape)}"
    line += f"; distance {distance:.3g} from the expected values, limit {limit}"
    if special.any():
        line += f"; {special.sum()} elements differ in NaN or infinity"
    for at in np.argsort(-np.where(special, np.inf, unequal), kind="stable")[:3]:
        if special[at] or unequal[at]:
            place = [int(i) for i in np.unravel_index(at, expected.shape)]
            line += (
                f"\n    at {place}: expected {json.dumps(str(one[at]))}, found {json.dumps(str(other[at]))}"
            )
    return wrong, line


def _distance(expected, given, unequal, special, whole):
    """Return ``norm(given - expected) / norm(expected)`` over finite elements, and each one's error."""
    one, other = np.where(special, 0, expected), np.where(special, 0, given)
    scale = max(np.abs(one).max(initial=0), np.abs(other).max(initial=0)) or 1.0
    apart = np.abs(other / scale - one / scale)
    if whole:  # float64 does not tell all integers apart
        apart[unequal & (apart == 0)] = 1 / scale
    norm, error = np.linalg.norm(one / scale), np.linalg.norm(apart)
    return float(error / norm if norm else math.inf if error else 0.0), apart


def _leaves(name, value):
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _leaves(f"{name}[{index}]", item)
    elif isinstance(value, dict):
        for part, item in value.items():
            yield f"{name}.{part}", item
    else:
        yield name, value


def _value(data, kind, home):
    if kind == "tensor":
        return _tensor(data, home)
    if kind == "map":  # keys: 3 or, for strings, 4; values: a sequence of scalars
        fields = list(_fields(data))
        strings = [one.decode() for number, one in fields if number == 4]
        keys = [key for number, one in fields if number == 3 for key in _integers(one)]
        key_type = next(one for number, one in fields if number == 2)
        items = [
            item for number, one in fields if number == 5 for item in _value(one, "sequence(tensor)", home)
        ]
        values = np.array([item.array.item() for item in items], items[0].array.dtype)
        keys = strings if key_type == STRING else np.array(keys, "int64").astype(NUMPY[key_type])
        return {"keys": found(np.array(keys, object if strings else None)), "values": found(values)}
    outer, _, inner = kind.partition("(")
    items = [_value(one, inner[:-1], home) for number, one in _fields(data) if 3 <= number <= 7]
    return items if outer == "sequence" else items[0] if items else None


def _tensor(data, home):
    shape, raw, strings, number, outside = [], b"", [], 0, {}
    for field, one in _fields(data):
        if field == 1:
            shape += _integers(one)
        elif field == 2:
            number = one
        elif field == 6:
            strings.append(one.decode())
        elif field == 9:
            raw = one
        elif field == 13:  # the bytes lie in another file
            entry = dict(_fields(one))
            outside[entry[1].decode()] = entry[2].decode()
    if outside:
        with open(os.path.join(home, os.path.basename(outside["location"])), "rb") as file:
            file.seek(int(outside["offset"]))
            raw = file.read(int(outside["length"]))
    if number == STRING:
        return Tensor("string", shape, strings)
    return Tensor(NUMPY[number] if number in NUMPY else NARROW[number][0], shape, raw)


def _fields(data):
    """Yield ``(number, content)`` of a protobuf message: an integer, or bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        if key & 7 == 0:
            one, at = _varint(data, at)
        else:
            size, at = _varint(data, at) if key & 7 == 2 else ({1: 8, 5: 4}[key & 7], at)
            one, at = data[at : at + size], at + size
        yield key >> 3, one


def _integers(content):
    """Return the signed integers of a repeated field, packed or not."""
    values, at = [] if isinstance(content, bytes) else [content], 0
    while isinstance(content, bytes) and at < len(content):
        value, at = _varint(content, at)
        values.append(value)
    return [value - (1 << 64) if value >> 63 else value for value in values]


def _varint(data, at):
    value, shift = 0, 0
    while True:
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if not data[at - 1] & 128:
            return value, at
