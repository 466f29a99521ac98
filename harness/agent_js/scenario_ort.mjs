// Scenario `ort_format`: convert the model to ORT format, as a minimal build needs it, then load it.

import { Unsupported, textOf } from './errors.mjs';
import { elapsed } from './figures.mjs';
import { CPU, combined } from './target.mjs';

// Inserts operators that only the CPU provider has; as in harness.agent.scenarios.ort_format.
const LAYOUT_OPTIMIZER = 'NchwcTransformer';

/** Convert with the CPU provider at the job's optimization level, load with the target, run. */
export async function play(job) {
  const { host, model, target } = job;
  const level = job.job.graph_optimization ?? 'all';
  const disabled = target.chain[0] === CPU ? [] : [LAYOUT_OPTIMIZER];
  const file = host.scratchFile('model.ort');
  try {
    const started = performance.now();
    try {
      const settings = combined(target.cpuSettings(job.job), {
        optimizedModelFilePath: file,
        extra: {
          session: { save_model_format: 'ORT' },
          ...(disabled.length && { optimization: { disable_specified_optimizers: disabled.join(';') } }),
        },
      });
      const writer = await target.ort.InferenceSession.create(model.path ?? model.bytes, settings);
      await writer.release();
    } catch (error) {
      await job.open(); // if this fails too, the format is not the cause
      throw new Unsupported(`onnxruntime does not write this model in ORT format: ${textOf(error)}`);
    }
    const stored = host.read(file);
    Object.assign(job.facts, {
      converted_with: CPU,
      level,
      convert_ms: elapsed(started),
      model_bytes: model.bytes.length,
      ort_bytes: stored.length,
      disabled_optimizers: disabled,
    });
    await job.open({}, file);
  } finally {
    host.discard(file);
  }
  await job.runDataSets();
}
