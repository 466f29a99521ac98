// Figures of jobs as messages carry them.

export const REPEAT_LIMIT_MS = 500; // a first run that took longer is not repeated, as in harness.agent.run

/** Return milliseconds since a reading of `performance.now()`. */
export function elapsed(started) {
  return Math.round((performance.now() - started) * 1e4) / 1e4;
}

/** Return a difference as a fact: JSON has no infinity. */
export function finite(value) {
  return Number.isFinite(value) ? value : 'inf';
}
