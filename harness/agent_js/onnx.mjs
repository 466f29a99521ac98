// The operators of a serialized ONNX model, read without a protobuf library.
// Field numbers are those of onnx.proto: ModelProto.graph 7; GraphProto.node 1, initializer 5, output 12;
// NodeProto.input 1, output 2, op_type 4, attribute 5; AttributeProto.g 6, graphs 11; TensorProto.name 8.

const decoder = new TextDecoder();

/**
 * Return operator -> number of the nodes that depend on an input of the model, subgraphs included.
 *
 * @param {Uint8Array} bytes The model.
 * @returns {Object<string, number>} Empty if it cannot be read.
 */
export function operators(bytes) {
  const counts = {};
  try {
    for (const [field, value] of fields(bytes)) if (field === 7) countGraph(value, counts, new Set());
  } catch {
    return {};
  }
  return counts;
}

/** Count the nodes of a graph; `outer` has the names from around it that do not change. */
function countGraph(bytes, counts, outer) {
  const constants = new Set(outer);
  const nodes = [];
  for (const [field, value] of fields(bytes)) {
    if (field === 1) nodes.push(node(value));
    if (field === 5) constants.add(text(value, 8));
  }
  // In topological order, as ONNX demands.
  for (const { op, inputs, outputs, graphs } of nodes) {
    // Without inputs, a node gives the same each time, unless it draws random numbers.
    const fixed = !graphs.length && !op.startsWith('Random') && inputs.every((name) => !name || constants.has(name));
    if (fixed) {
      for (const name of outputs) constants.add(name);
      continue;
    }
    counts[op] = (counts[op] ?? 0) + 1;
    for (const graph of graphs) countGraph(graph, counts, constants);
  }
}

function node(bytes) {
  const found = { op: '', inputs: [], outputs: [], graphs: [] };
  for (const [field, value] of fields(bytes)) {
    if (field === 1) found.inputs.push(decoder.decode(value));
    else if (field === 2) found.outputs.push(decoder.decode(value));
    else if (field === 4) found.op = decoder.decode(value);
    else if (field === 5) for (const [inner, graph] of fields(value)) if (inner === 6 || inner === 11) found.graphs.push(graph);
  }
  return found;
}

function text(bytes, wanted) {
  for (const [field, value] of fields(bytes)) if (field === wanted) return decoder.decode(value);
  return '';
}

/** Yield number and content of each length-delimited field of a protobuf message. */
function* fields(bytes) {
  let at = 0;
  const varint = () => {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      if (at >= bytes.length) throw new RangeError('the message is cut off');
      const byte = bytes[at++];
      value += (byte & 127) * factor;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const key = varint();
    const kind = key % 8;
    if (kind === 2) {
      const end = varint() + at;
      if (end > bytes.length) throw new RangeError('the message is cut off');
      yield [Math.floor(key / 8), bytes.subarray(at, end)];
      at = end;
    } else if (kind === 0) varint();
    else if (kind === 1) at += 8;
    else if (kind === 5) at += 4;
    else throw new RangeError('no field of a message');
  }
}
