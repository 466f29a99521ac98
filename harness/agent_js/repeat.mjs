// Repeated runs: compared with the first one, bit by bit, as harness.agent.repeat does.

import { distance, equal } from './difference.mjs';

/** Compares runs with the first one, whose outputs are in wire form. */
export class Tally {
  constructor(first) {
    this.first = first;
    this.distinct = [first];
    this.runs = 1;
    this.differing = 0;
    this.furthest = null;
    this.apart = -1;
  }

  /** Compare the outputs of one more run. */
  add(outputs) {
    this.runs += 1;
    if (equal(outputs, this.first)) return;
    this.differing += 1;
    if (!this.distinct.some((known) => equal(known, outputs))) this.distinct.push(outputs);
    const apart = distance(this.first, outputs);
    if (apart > this.apart) [this.apart, this.furthest] = [apart, outputs];
  }

  /** Add what the runs gave to a result; the run furthest from the first one becomes `second`. */
  report(result, sessions = 1) {
    const maxAbs = this.furthest ? this.apart : 0;
    result.repeats = {
      runs: Math.floor(this.runs / sessions),
      sessions,
      distinct: this.distinct.length,
      differing: this.differing,
      max_abs: Number.isFinite(maxAbs) ? maxAbs : null,
    };
    if (this.furthest) result.second = this.furthest;
  }
}
