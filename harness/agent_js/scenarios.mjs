// Values of the axis `scenario` that the JavaScript agent plays; it declines the others. Each is a function of a job.

import { play as ioBinding } from './scenario_bound.mjs';
import { play as ortFormat } from './scenario_ort.mjs';
import { play as sessions } from './scenario_sessions.mjs';
import { play as dynamicShapes } from './scenario_shapes.mjs';
import { play as cpuFallbackDisabled } from './scenario_whole.mjs';

export const scenarios = {
  cpu_fallback_disabled: cpuFallbackDisabled,
  dynamic_shapes: dynamicShapes, // the harness sends zero_size as this one, too
  from_bytes: fromBytes,
  io_binding: ioBinding,
  ort_format: ortFormat,
  sessions,
};

async function fromBytes(job) {
  job.facts.model_bytes = job.model.bytes.length;
  await job.open({}, job.model.bytes);
  await job.runDataSets();
}
