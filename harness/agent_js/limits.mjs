// What fits into one message; docs/reference/agent-protocol.md.

const TENSOR_BYTES = 2 ** 30;
const TEXT_BYTES = 24 * 2 ** 20; // of texts, which are in the JSON
const ESCAPE_BYTES = 6; // of one character, at most

/** Return why values in wire form do not fit into one message; empty if they do. */
export function tooMuch(values) {
  const found = { binary: 0, text: 0 };
  count(values, found);
  if (found.text > TEXT_BYTES) return `the texts of the outputs take more than the ${TEXT_BYTES / 2 ** 20} MiB that fit into one message`;
  return found.binary > TENSOR_BYTES ? 'the outputs take more than the 1024 MiB that fit into one message' : '';
}

function count(value, found) {
  if (typeof value === 'string') found.text += ESCAPE_BYTES * value.length + 3;
  else if (value instanceof Uint8Array) found.binary += value.length;
  else if (Array.isArray(value)) for (const each of value) count(each, found);
  else if (value && typeof value === 'object') {
    for (const key of ['data', 'sequence', 'keys', 'values']) if (key in value) count(value[key], found);
  }
}
