// Scenarios `dynamic_shapes` and `zero_size`: one session, with another shape in each run.

import { equal } from './difference.mjs';
import { Tally } from './repeat.mjs';

const NOT_REPEATED_MS = -1;

/** Run each data set, twice if the job asks for it, and report the time of each run. */
export async function play(job) {
  const { facts, result } = job;
  Object.assign(facts, { run_ms: [], again_ms: [], differing_again: 0 });
  const twice = job.job.repeat?.runs > 1;
  await job.open();
  result.outputs = [];
  for (const inputs of job.job.data_sets) {
    await job.beginRun();
    const outputs = await job.run(inputs);
    result.timings_ms.first_run ??= job.runMs;
    result.outputs.push(outputs);
    facts.run_ms.push(job.runMs);
    if (!twice) {
      facts.again_ms.push(NOT_REPEATED_MS);
      continue;
    }
    await job.further();
    const again = await job.run(inputs);
    facts.again_ms.push(job.runMs);
    facts.differing_again += Number(!equal(again, outputs));
    if (result.outputs.length > 1) continue;
    const tally = new Tally(outputs);
    tally.add(again);
    tally.report(result);
  }
}
