// Figures of jobs as messages carry them.

export const PROGRESS_MS = 100; // between reports that runs go on: the harness limits the time of one run

/** Return milliseconds since a reading of `performance.now()`. */
export function elapsed(started) {
  return Math.round((performance.now() - started) * 1e4) / 1e4;
}

/** Return a difference as a fact: JSON has no infinity. */
export function finite(value) {
  return Number.isFinite(value) ? value : 'inf';
}
