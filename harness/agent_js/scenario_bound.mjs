// Scenario `io_binding`: inputs and outputs stay in the provider's own memory.

import { difference } from './difference.mjs';
import { Unsupported, sendable, textOf } from './errors.mjs';
import { finite } from './figures.mjs';
import { TYPES, onDevice } from './gpu_tensor.mjs';
import { Tally } from './repeat.mjs';
import { otherInputs } from './values.mjs';

const LOCATIONS = { webgpu: 'gpu-buffer', webnn: 'ml-tensor' };
const NO_CAPTURE = /graph capture|cuda graph/i; // onnxruntime's words where a node is left to the CPU

/** Run with bound values; compare with a session that gives its outputs to the CPU. */
export async function play(job) {
  const { result, target } = job;
  const location = LOCATIONS[target.apiName];
  if (!location) throw new Unsupported(`the JavaScript API keeps no tensors on the device of ${target.chain[0]}`);
  const { locations, plain } = await unbound(job, location);
  await job.enter('create');
  try {
    await job.open({ preferredOutputLocation: locations });
  } catch (error) {
    if (target.capturesGraph && NO_CAPTURE.test(textOf(error))) throw new Unsupported(textOf(error));
    throw error;
  }
  result.outputs = [];
  const gpu = await job.host.device();
  for (const [index, inputs] of job.job.data_sets.entries()) {
    await job.beginRun();
    const bound = onDevice(gpu, job.feeds(inputs), target.ort);
    try {
      // What was recorded must read the buffers anew: it is recorded with other values than those that count.
      const other = target.capturesGraph && otherInputs(inputs);
      if (other) {
        bound.write(job.feeds(other));
        await job.runFed(bound.feeds);
        bound.write(job.feeds(inputs));
      }
      const outputs = await job.runFed(bound.feeds);
      result.timings_ms.first_run ??= job.runMs;
      result.outputs.push(outputs);
      Object.assign(job.facts, factsOf(job, bound, outputs));
      if (index === 0) await repeat(job, bound, outputs);
    } finally {
      bound.destroy();
    }
  }
  if (!plain) return;
  const apart = Math.max(...result.outputs.map((outputs, index) => difference(plain[index], outputs)));
  job.facts.equal_to_plain = apart === 0;
  if (apart) job.facts.difference = finite(apart);
}

/** Make the further runs that the job asks for, with what is bound already. */
async function repeat(job, bound, first) {
  if (!job.job.repeat) return;
  const tally = new Tally(first);
  for (let run = 1; run < job.job.repeat.runs; run += 1) {
    await job.further();
    tally.add(await job.runFed(bound.feeds));
  }
  tally.report(job.result);
}

/** Return where each output can lie, and the outputs without binding; null where commands are recorded. */
async function unbound(job, location) {
  const { target } = job;
  if (target.capturesGraph) return { locations: location, plain: null };
  await job.open();
  const metadata = job.session.outputMetadata ?? [];
  const locations = Object.fromEntries(
    job.session.outputNames.map((name, index) => [name, TYPES.has(metadata[index]?.type) ? location : 'cpu']),
  );
  const plain = [];
  for (const inputs of job.job.data_sets) {
    await job.enter('run');
    plain.push(await job.run(inputs));
  }
  await job.enter('teardown');
  await job.close();
  return { locations, plain };
}

function factsOf(job, bound, outputs) {
  const fromDevice = outputs.filter((_, index) => !job.outputsOn[index].endsWith(': cpu'));
  return {
    on_device: bound.bytes.length + fromDevice.length > 0,
    inputs_on: bound.places.map(([name, place]) => `${sendable(name).slice(0, 60)}: ${place}`),
    outputs_on: job.outputsOn,
    copies_to_device: bound.bytes.length,
    bytes_to_device: bound.bytes.reduce((sum, size) => sum + size, 0),
    copies_from_device: fromDevice.length,
    bytes_from_device: fromDevice.reduce((sum, { data }) => sum + data.length, 0),
    ...(bound.reason && { reason: bound.reason }),
  };
}
