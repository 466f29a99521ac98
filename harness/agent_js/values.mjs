// Conversion of values between wire form, for messages, and the tensors of onnxruntime's JavaScript API.

import { VIEWS, fromHalf } from './difference.mjs';
import { Unfeedable, sendable } from './errors.mjs';

// Node 20 has no Float16Array; there float16 tensors are made of their bits.
const FLOAT16 = globalThis.Float16Array ?? Uint16Array;

// Element types that the API takes -> the array that holds them. Packed types have two elements in a byte.
const ARRAYS = { ...VIEWS, float16: FLOAT16, int4: Uint8Array, uint4: Uint8Array };
export const DTYPES = [...Object.keys(ARRAYS), 'string'];

/**
 * Return a value in wire form as `InferenceSession.run` takes it.
 *
 * @throws {Unfeedable} The API cannot take it.
 */
export function toFeed(ort, wire) {
  if (wire === null) throw new Unfeedable("the JavaScript API takes no optional without a value");
  if (wire.sequence) throw new Unfeedable('the JavaScript API takes no sequences');
  if (wire.keys) throw new Unfeedable('the JavaScript API takes no maps');
  const { dtype, shape, data } = wire;
  if (dtype === 'string') {
    if (data.some((text) => text.includes('\0'))) throw new Unfeedable('the JavaScript API cuts texts at U+0000');
    return new ort.Tensor('string', data, shape);
  }
  const Kind = ARRAYS[dtype];
  if (!Kind) throw new Unfeedable(`the JavaScript API takes no ${dtype} tensors`);
  // A copy starts at an aligned address, which typed arrays need.
  const array = new Kind(data.slice().buffer);
  try {
    return new ort.Tensor(dtype, array, shape);
  } catch (error) {
    throw new Unfeedable(`the JavaScript API takes no ${dtype}[${shape}]: ${error.message}`);
  }
}

/**
 * Return an output of `InferenceSession.run` in wire form, with its own copy of the data.
 *
 * @throws {Unfeedable} The API gives a value that has no wire form.
 */
export async function toWire(value) {
  if (!value || !value.dims) throw new Unfeedable('the JavaScript API gives no values but tensors');
  const shape = Array.from(value.dims, Number);
  const array = value.location === 'cpu' || value.location === undefined ? value.data : await value.getData();
  if (value.type === 'string') return { dtype: 'string', shape, data: Array.from(array, (text) => sendable(String(text))) };
  const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength).slice();
  return { dtype: value.type, shape, data: bytes };
}

const MATRIX = 2; // fewest dimensions of a tensor that is data, as in harness.agent.other_inputs
const FLOATING = new Set(['float16', 'float32', 'float64']);
const INTEGERS = new Set(['int8', 'int16', 'int32', 'int64', 'uint8', 'uint16', 'uint32', 'uint64']);
const OTHERS = new Set(['string', 'bool']);

/**
 * Return the inputs in wire form with the elements of some tensors in reverse order; null if nothing would change.
 *
 * The rule is that of harness.agent.other_inputs: the CPU EP that made the golden has to get the same values.
 */
export function otherInputs(inputs) {
  for (const [kinds, dimensions] of [[FLOATING, MATRIX], [INTEGERS, MATRIX], [FLOATING, 1], [OTHERS, 1]]) {
    let changes = false;
    const changed = inputs.map(([name, wire]) => {
      if (!wire || !kinds.has(wire.dtype) || wire.shape.length < dimensions) return [name, wire];
      const reversed = reverse(wire);
      changes ||= !reversed.equal;
      return [name, reversed.equal ? wire : reversed.wire];
    });
    if (!changes) continue;
    const data = changed.map(([name, wire], index) => (isPadding(wire) ? inputs[index] : [name, wire]));
    return data.every(([, wire], index) => wire === inputs[index][1]) ? changed : data;
  }
  return null;
}

/** Return whether a tensor may be a mask of padding: zeros and ones, no row of which changes twice. */
function isPadding(wire) {
  if (!(FLOATING.has(wire?.dtype) || INTEGERS.has(wire?.dtype)) || wire.shape.length < MATRIX) return false;
  const { array, value } = elementsOf(wire);
  const length = wire.shape.at(-1);
  let changes = 0;
  let before = 0;
  return array.every((item, index) => {
    const number = Number(value(item));
    changes = index % length === 0 ? 0 : changes + (number !== before);
    before = number;
    return (number === 0 || number === 1) && changes <= 1;
  });
}

/** Return the elements of a tensor of numbers in wire form, and what each stands for. */
function elementsOf(wire) {
  const Kind = wire.dtype === 'float16' ? Uint16Array : ARRAYS[wire.dtype];
  return { array: new Kind(wire.data.slice().buffer), value: wire.dtype === 'float16' ? fromHalf : (item) => item };
}

/** Return a tensor's elements in reverse order, and whether that makes no difference to numpy's `array_equal`. */
function reverse(wire) {
  if (wire.dtype === 'string') {
    const data = [...wire.data].reverse();
    return { wire: { ...wire, data }, equal: data.every((text, index) => text === wire.data[index]) };
  }
  const { array: before, value } = elementsOf(wire);
  const after = before.slice().reverse();
  // NaN differs from itself, and the zeros are equal.
  const equal = after.every((item, index) => value(item) === value(before[index]));
  return { wire: { ...wire, data: new Uint8Array(after.buffer) }, equal };
}
