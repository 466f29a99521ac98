// How far two results of the same model are apart; the rules are those of harness.agent.difference.

/** Element types of whole bytes -> the array that has their bits. */
export const VIEWS = {
  bool: Uint8Array,
  float16: Uint16Array, // decoded below: Node.js before 24 has no Float16Array
  float32: Float32Array,
  float64: Float64Array,
  int8: Int8Array,
  int16: Int16Array,
  int32: Int32Array,
  int64: BigInt64Array,
  uint8: Uint8Array,
  uint16: Uint16Array,
  uint32: Uint32Array,
  uint64: BigUint64Array,
};

/** Return whether two values in wire form have the same bits. */
export function sameBits(one, other) {
  if (one.dtype !== other.dtype || one.shape.length !== other.shape.length) return false;
  if (one.shape.some((extent, axis) => extent !== other.shape[axis])) return false;
  return one.data.length === other.data.length && one.data.every((item, index) => item === other.data[index]);
}

/** Return whether outputs in wire form have the same bits. */
export function equal(some, others) {
  return some.length === others.length && some.every((wire, index) => sameBits(wire, others[index]));
}

/** Return the largest absolute difference between outputs; infinite where there is no such number. */
export function distance(some, others) {
  return furthest(some, others, false);
}

/**
 * Return the largest difference divided by the largest value of its output.
 *
 * It is 0 if the bits are the same; infinite if shapes, types, texts or the places of non-finite values differ.
 */
export function difference(some, others) {
  return furthest(some, others, true);
}

function furthest(some, others, relative) {
  return some.reduce((most, wire, index) => Math.max(most, apart(wire, others[index], relative)), 0);
}

function apart(one, other, relative) {
  if (!other || one.dtype !== other.dtype || String(one.shape) !== String(other.shape)) return Infinity;
  if (sameBits(one, other)) return 0;
  if (!VIEWS[one.dtype]) return Infinity; // texts, and packed elements
  const [left, right] = [numbers(one), numbers(other)];
  let furthest = 0;
  let largest = 0;
  for (let index = 0; index < left.length; index += 1) {
    const [value, against] = [left[index], right[index]];
    if (!Number.isFinite(value) || !Number.isFinite(against)) {
      if (!Object.is(value, against)) return Infinity;
      continue;
    }
    furthest = Math.max(furthest, Math.abs(value - against));
    largest = Math.max(largest, Math.abs(value));
  }
  return relative ? furthest / (largest || 1) : furthest;
}

/** Return the elements of a value in wire form as numbers. */
export function numbers({ dtype, data }) {
  const view = new VIEWS[dtype](data.slice().buffer); // a copy starts at an aligned address
  return Float64Array.from(view, dtype === 'float16' ? fromHalf : Number);
}

/** Return the number that the bits of a float16 stand for. */
export function fromHalf(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0x1f) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? (1024 + fraction) * 2 ** (exponent - 25) : fraction * 2 ** -24);
}
