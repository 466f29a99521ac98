// Inputs in buffers of WebGPU, where the API can take them from there.

// Element types that `Tensor.fromGpuBuffer` takes, without the packed ones.
export const TYPES = new Set(['float32', 'float16', 'int32', 'int64', 'uint32', 'uint8', 'bool']);
const STEP_BYTES = 16; // to which onnxruntime rounds the size of its own buffers

/**
 * Return feeds whose tensors lie in buffers of a device as far as they can, and what was copied.
 *
 * @param gpu A `GPUDevice`; null where the agent cannot make buffers.
 * @param {Object<string, object>} given Tensors in the CPU's memory, by name.
 * @param ort onnxruntime's module.
 */
export function onDevice(gpu, given, ort) {
  const buffers = new Map();
  const bytes = [];
  const feeds = {};
  let reason = gpu ? '' : 'the JavaScript API takes inputs from the memory of the CPU only here';
  for (const [name, tensor] of Object.entries(given)) {
    const { type: dataType, dims } = tensor;
    if (!gpu || !TYPES.has(dataType) || !tensor.size) {
      feeds[name] = tensor;
      if (gpu) reason = `no buffer of WebGPU for ${dataType}[${dims}]`;
      continue;
    }
    const size = Math.ceil(tensor.data.byteLength / STEP_BYTES) * STEP_BYTES;
    const { STORAGE, COPY_SRC, COPY_DST } = GPUBufferUsage;
    const buffer = gpu.createBuffer({ size, usage: STORAGE | COPY_SRC | COPY_DST });
    buffers.set(name, buffer);
    bytes.push(tensor.data.byteLength);
    feeds[name] = ort.Tensor.fromGpuBuffer(buffer, { dataType, dims });
  }
  const write = (tensors) => {
    for (const [name, buffer] of buffers) {
      const { buffer: memory, byteOffset, byteLength } = tensors[name].data;
      const padded = new Uint8Array(buffer.size);
      padded.set(new Uint8Array(memory, byteOffset, byteLength));
      gpu.queue.writeBuffer(buffer, 0, padded);
    }
  };
  write(given);
  return {
    feeds,
    bytes,
    reason,
    places: Object.keys(given).map((name) => [name, buffers.has(name) ? 'gpu-buffer' : 'cpu']),
    write,
    destroy: () => buffers.forEach((buffer) => buffer.destroy()),
  };
}
