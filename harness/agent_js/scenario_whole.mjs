// Scenario `cpu_fallback_disabled`: a session that may leave no node to the CPU provider.

import { Unsupported, textOf } from './errors.mjs';
import { CPU } from './target.mjs';

const REFUSAL = /fallback to (?:the )?(?:default )?CPU EP/;

/** Make a session without fallback to the CPU provider, and run it. */
export async function play(job) {
  if (job.target.chain.includes(CPU)) throw new Unsupported(`the target names ${CPU} itself`);
  try {
    await job.open({ extra: { session: { disable_cpu_ep_fallback: '1' } } });
  } catch (error) {
    if (REFUSAL.test(textOf(error))) throw new Unsupported(textOf(error));
    throw error;
  }
  job.facts.refused = false;
  await job.runDataSets();
}
