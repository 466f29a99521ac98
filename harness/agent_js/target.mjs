// A provider with its options, and how its sessions are made.

import { OptionRejected, Unavailable, Unfeedable, Unsupported, textOf } from './errors.mjs';
import { placedGroups } from './placement.mjs';

// A Relu over float32[4] at opset 13, IR 7: the smallest model that any provider runs; as in harness.agent.session_target.
const PROBE_MODEL = Uint8Array.from(
  ('080712003a330a0c0a0178120179220452656c751201705a0f0a0178120a0a08080112040a020804' +
    '620f0a0179120a0a08080112040a02080442040a00100d')
    .match(/../g)
    .map((pair) => parseInt(pair, 16)),
);
const PROBE_INPUT = [-2.0, -0.5, 0.5, 3.0]; // exact at every precision that a provider may use
export const CPU = 'CPUExecutionProvider';

// The provider's name in onnxruntime -> its name in the JavaScript API, and what the log calls it.
const PROVIDERS = {
  CPUExecutionProvider: { name: 'cpu', logged: [CPU] },
  WebGpuExecutionProvider: { name: 'webgpu', logged: ['WebGpuExecutionProvider'] },
  JsExecutionProvider: { name: 'webgpu', logged: ['JsExecutionProvider'] },
  WebNNExecutionProvider: { name: 'webnn', logged: ['WebNNExecutionProvider', 'WEBNN'] },
  CUDAExecutionProvider: { name: 'cuda', logged: ['CUDAExecutionProvider'] },
  TensorrtExecutionProvider: { name: 'tensorrt', logged: ['TensorrtExecutionProvider'] },
  DmlExecutionProvider: { name: 'dml', logged: ['DmlExecutionProvider'] },
  CoreMLExecutionProvider: { name: 'coreml', logged: ['CoreMLExecutionProvider'] },
};

const GRAPH_CAPTURE = 'enableGraphCapture';

const LEVELS = { all: 'all', extended: 'extended', basic: 'basic', disabled: 'disabled', layout: 'layout' };

/** A provider with its options, as sessions of this process use it. */
export class Target {
  /**
   * @param ort onnxruntime's module.
   * @param config The configuration message of the harness.
   * @param {string[]} offered Names of the API's providers that this build has.
   * @param fingerprint Receives the facts about the target.
   * @throws {Unavailable} The target cannot be used.
   */
  constructor(ort, config, offered, fingerprint) {
    this.ort = ort;
    this.chain = [...config.providers];
    this.options = { ...config.options };
    this.entries = { ...config.session };
    Object.assign(fingerprint, { providers: this.chain, options: this.options });
    if (config.plugin) {
      throw new Unavailable('version_conflict', 'the JavaScript API of onnxruntime registers no plugin library');
    }
    for (const name of this.chain) {
      const known = PROVIDERS[name];
      if (!known || !offered.includes(known.name)) {
        throw new Unavailable('not_in_build', `${name} is not in this onnxruntime; it has ${offered.join(', ')}`);
      }
    }
    if (this.chain.filter((name) => name !== CPU).length > 1) {
      throw new Unavailable('not_in_build', 'this agent serves one provider before the CPU, no longer chain');
    }
  }

  /** Names under which the log lists the provider. */
  get logged() {
    return PROVIDERS[this.chain[0]].logged;
  }

  /** The provider's name in the JavaScript API. */
  get apiName() {
    return PROVIDERS[this.chain[0]].name;
  }

  /**
   * Make a session of a one-node model; if that fails, find the option that is refused.
   *
   * @param host Whose log shows where the node was placed.
   * @throws {OptionRejected | Unavailable}
   */
  async checkOptions(host) {
    host.beginLog();
    const { [GRAPH_CAPTURE]: capture, ...options } = this.options;
    if (capture !== undefined && !(['0', '1'].includes(capture) && this.apiName === 'webgpu')) {
      throw new OptionRejected(GRAPH_CAPTURE, `the JavaScript API takes "1" with WebGPU, not "${capture}"`);
    }
    const error = await this.#refusal(options); // captured commands would tie the held session to some buffers
    const groups = placedGroups(host.endLog()) ?? [];
    if (error === null) {
      const other = groups.find(({ provider }) => provider && provider !== CPU && !this.logged.includes(provider));
      if (!other) return;
      throw new Unavailable('not_in_build', `this build has ${other.provider} in place of ${this.chain[0]}`);
    }
    for (const key of Object.keys(options)) {
      const { [key]: _, ...others } = options;
      if ((await this.#refusal(others)) === null) throw new OptionRejected(key, error);
    }
    const keys = Object.keys(options).join(', ');
    if (keys && (await this.#refusal({})) === null) throw new OptionRejected(keys, error);
    throw new Unavailable(causeOf(error), error);
  }

  async #refusal(options) {
    try {
      // Kept as long as the process: the last session's end would also free what its sessions share.
      this.held = await this.ort.InferenceSession.create(PROBE_MODEL.slice(), this.settings({}, options));
      return null;
    } catch (error) {
      return textOf(error);
    }
  }

  /** Return what is wrong with the provider in this process; empty if it still computes. */
  async sickness() {
    const expected = PROBE_INPUT.map((value) => Math.max(value, 0));
    try {
      const { y } = await this.held.run({ x: new this.ort.Tensor('float32', Float32Array.from(PROBE_INPUT), [4]) });
      const found = Array.from(await y.getData());
      if (found.every((value, index) => value === expected[index])) return '';
      return `it computes Relu([${PROBE_INPUT}]) as [${found}]`.slice(0, 200);
    } catch (error) {
      return textOf(error);
    }
  }

  /** Whether the provider records the commands of a run, and replays them. */
  get capturesGraph() {
    return this.options[GRAPH_CAPTURE] === '1';
  }

  /** Return the session options that a job asks for, on the CPU provider. */
  cpuSettings(job) {
    return { ...this.settings(job, {}), executionProviders: [{ name: PROVIDERS[CPU].name }] };
  }

  /** Return the session options that a job asks for. */
  settings(job, options = this.options) {
    const level = LEVELS[job.graph_optimization ?? 'all'];
    if (!level) throw new Unfeedable(`the JavaScript API has no optimization level "${job.graph_optimization}"`);
    const { [GRAPH_CAPTURE]: capture, ...others } = options;
    return {
      executionProviders: [{ name: this.apiName, ...others }],
      ...(capture === '1' && { enableGraphCapture: true }), // an option of the session in this API
      graphOptimizationLevel: level,
      executionMode: job.execution_mode === 'parallel' ? 'parallel' : 'sequential',
      intraOpNumThreads: job.intra_op_threads ?? 1,
      interOpNumThreads: 1,
      logSeverityLevel: 0, // verbose: the log has the placement
      ...(job.fixed && { freeDimensionOverrides: job.fixed }),
      extra: nested({ ...this.entries, ...job.entries }),
    };
  }
}

/** Return session options with further ones, entry by entry. */
export function combined(settings, further) {
  const extra = { ...settings.extra };
  for (const [key, table] of Object.entries(further.extra ?? {})) extra[key] = { ...extra[key], ...table };
  return { ...settings, ...further, extra };
}

/** Return session configuration entries as the API takes them: `a.b` as `{a: {b: ...}}`. */
function nested(entries) {
  const tree = {};
  for (const [key, value] of Object.entries(entries)) {
    const path = key.split('.');
    const last = path.pop();
    let here = tree;
    for (const part of path) {
      if (!Object.hasOwn(here, part)) here[part] = {};
      here = here[part];
      if (typeof here !== 'object') throw new Unsupported(`the JavaScript API cannot set the session entry ${key}`);
    }
    here[last] = value;
  }
  return tree;
}

/** Return the cause of a provider that makes no session. */
function causeOf(message) {
  if (/adapter|device|not supported|not available|no available backend/i.test(message)) return 'no_device';
  return 'registration_failed';
}
