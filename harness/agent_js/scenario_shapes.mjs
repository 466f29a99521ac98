// Scenarios `dynamic_shapes` and `zero_size`: one session, with another shape in each run.

import { equal } from './difference.mjs';
import { REPEAT_LIMIT_MS } from './figures.mjs';

const NOT_REPEATED_MS = -1;

/** Run each data set, twice if the first run was quick, and report the time of each run. */
export async function play(job) {
  const { facts, result } = job;
  Object.assign(facts, { run_ms: [], again_ms: [], differing_again: 0 });
  await job.open();
  result.outputs = [];
  for (const inputs of job.job.data_sets) {
    await job.enter('run');
    const outputs = await job.run(inputs);
    result.timings_ms.first_run ??= job.runMs;
    result.outputs.push(outputs);
    facts.run_ms.push(job.runMs);
    if (job.runMs >= REPEAT_LIMIT_MS) {
      facts.again_ms.push(NOT_REPEATED_MS);
      continue;
    }
    const again = await job.run(inputs);
    facts.again_ms.push(job.runMs);
    if (equal(again, outputs)) continue;
    facts.differing_again += 1;
    if (result.outputs.length === 1) job.takeSecond(again);
  }
}
