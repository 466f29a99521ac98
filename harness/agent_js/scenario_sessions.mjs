// Scenario `sessions`: open, run and close many sessions in one process, one after the other. Memory that a session
// does not give back adds up, and damage by a teardown shows in the next session.

import { difference, equal } from './difference.mjs';
import { elapsed, finite } from './figures.mjs';

/** Points of a series at most; the harness takes no more. */
const POINTS = 64;

/** Open, run and close; the outputs furthest from the first session's are judged. The last session stays open. */
export async function play(job) {
  const { count, budget_s: budgetS } = job.job.scenario_settings;
  const seen = { createMs: [], closeMs: [], residentMib: [], first: null, worst: [], differing: 0 };
  const began = performance.now();
  try {
    for (let number = 1; number <= count; number += 1) {
      if (number > 1) {
        await job.enter('teardown');
        const started = performance.now();
        await job.close();
        seen.closeMs.push(elapsed(started));
        seen.residentMib.push(await job.host.residentMib());
        await job.enter('create');
      }
      await job.open();
      seen.createMs.push(job.createMs);
      compare(seen, await outputs(job));
      // A limit for safety: the harness tells in the record that sessions are missing.
      if (number > 1 && performance.now() - began > budgetS * 1000) break;
    }
  } finally {
    Object.assign(job.facts, factsOf(seen));
  }
  job.result.outputs = seen.worst.map(({ outputs: values }) => values);
}

/** Return the outputs of each data set. */
async function outputs(job) {
  const found = [];
  for (const inputs of job.job.data_sets) {
    await job.enter('run');
    found.push(await job.run(inputs));
    job.result.timings_ms.first_run ??= job.runMs;
  }
  return found;
}

/** Compare one more session's outputs, one list for each data set, with the first session's. */
function compare(seen, found) {
  seen.first ??= found;
  if (!seen.worst.length) seen.worst = found.map((values) => ({ apart: 0, outputs: values }));
  seen.differing += Number(found.some((values, index) => !equal(values, seen.first[index])));
  found.forEach((values, index) => {
    const apart = difference(seen.first[index], values);
    if (apart > seen.worst[index].apart) seen.worst[index] = { apart, outputs: values };
  });
}

function factsOf({ createMs, closeMs, residentMib, worst, differing }) {
  if (!createMs.length) return { count: 0 };
  return {
    count: createMs.length,
    create_first_ms: createMs[0],
    create_median_ms: median(createMs),
    create_max_ms: Math.max(...createMs),
    teardown_max_ms: Math.max(0, ...closeMs),
    differing_sessions: differing,
    difference: finite(Math.max(0, ...worst.map(({ apart }) => apart))),
    ...growth(residentMib.filter((each) => each !== null)),
  };
}

/** Return how the memory grew for each session of the second half, when pools and caches are filled. */
function growth(residentMib) {
  if (!residentMib.length) return {};
  const middle = Math.floor(residentMib.length / 2);
  const last = residentMib.at(-1);
  const sessions = Math.max(residentMib.length - 1 - middle, 1);
  return {
    rss_first_mib: residentMib[0],
    rss_last_mib: last,
    ...(residentMib.length > 1 && residentMib.length <= POINTS ? { rss_mib: residentMib } : {}),
    growth_mib: Math.round(((last - residentMib[middle]) / sessions) * 1000) / 1000,
  };
}

function median(values) {
  const sorted = [...values].sort((one, other) => one - other);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
