// One job: its session, its runs, and what they showed.

import { Unfeedable, Unsupported, kindOf, sendable, textOf } from './errors.mjs';
import { PROGRESS_MS, elapsed } from './figures.mjs';
import { tooMuch } from './limits.mjs';
import { operators } from './onnx.mjs';
import { couldForge, placedGroups, placementOf } from './placement.mjs';
import { Tally } from './repeat.mjs';
import { scenarios } from './scenarios.mjs';
import { combined } from './target.mjs';
import { otherInputs, toFeed, toWire } from './values.mjs';

// Texts of the API's own code, not of onnxruntime: it has no such values, whatever the provider.
const API_LIMITS = [
  /^Unsupported data type: \d+$/,
  /^unsupported data type: /i,
  /non-?\s?tensor typed value is not supported/i,
  /^Unsupported tensor type/,
  /^unsupported type: u?int4$/,
  /^Tensor\.type is not supported: /,
  /^Non tensor type is temporarily not supported/,
];

// What a job may ask for that needs Python, and so is declined.
const DECLINED = [
  ['evaluate', 'onnx.reference needs Python'],
  ['make', 'the conversion of a model needs Python'],
  ['form', 'the API does not give the optimized model'],
  ['latency', 'the agent measures no latency'],
];

// Every other key of a job is one that this agent knows: what it does not know changes the question.
const KNOWN = new Set([
  'model', 'data_sets', 'graph_optimization', 'execution_mode', 'scenario', 'scenario_settings', 'other', 'repeat',
  'intra_op_threads', 'entries', 'fixed',
]);

/** One job in progress; `result` receives the findings, one by one. */
export class Job {
  /**
   * @param {import('./target.mjs').Target} target The provider.
   * @param host What the agent runs in: Node, or a page.
   * @param job The job.
   * @param model Its model: `bytes`, `path` if the session can read a file, and `external` files.
   * @param {(phase: string) => Promise<void>} enter Reports a phase.
   */
  constructor(target, host, job, model, enter) {
    this.target = target;
    this.host = host;
    this.job = job;
    this.model = model;
    this.scenario = null;
    this.session = null;
    this.reportedAt = 0; // when the latest run was reported
    this.sick = ''; // what is wrong with the provider in this process, after an error
    this.facts = {}; // of the scenario
    this.log = '';
    this.result = { status: 'ok', phase: 'create', timings_ms: {} };
    this.enter = async (phase) => {
      this.result.phase = phase;
      await enter(phase);
    };
  }

  /** Play the job, and return its result: whatever is thrown becomes a part of it. */
  async play() {
    try {
      this.#choose();
      if (this.scenario) await this.scenario(this);
      else {
        await this.open();
        await this.runDataSets();
      }
      this.#conclude();
      this.#fit();
    } catch (error) {
      await this.#fail(error);
    }
    if (this.scenario) this.result.scenario = this.facts; // as far as it came, in a failed job too
    this.result.output = this.host.printed();
    return this.result;
  }

  /** Close the judged session. */
  async close() {
    const { session } = this;
    this.session = null;
    await session?.release();
  }

  #choose() {
    for (const [key, why] of DECLINED) if (key in this.job) throw new Unsupported(why);
    const refused = this.host.refuses(this.job);
    if (refused) throw new Unsupported(refused);
    const unknown = Object.keys(this.job).find((key) => !KNOWN.has(key));
    if (unknown) throw new Unsupported(`the JavaScript agent does not know the key ${unknown} of a job`);
    const name = this.job.scenario;
    if (this.target.capturesGraph && name !== 'io_binding') {
      throw new Unsupported('what a run records is tied to buffers on the GPU: it needs the scenario io_binding');
    }
    if (!name) return;
    if (!Object.hasOwn(scenarios, name)) throw new Unsupported(`the JavaScript agent has no scenario ${name}`);
    this.scenario = scenarios[name];
  }

  /**
   * Make the session that is judged, and take down how long that took and what the log says.
   *
   * @param {object} further Session options beyond those of the job.
   * @param {string | Uint8Array | null} stored What to load in place of the job's model.
   */
  async open(further = {}, stored = null) {
    const { ort } = this.target;
    const settings = combined(this.target.settings(this.job), further);
    const { path, bytes, external } = this.model;
    if (external?.length && !stored) settings.externalData = external;
    const source = stored ?? path ?? bytes;
    this.host.beginLog();
    const started = performance.now();
    try {
      this.session = await this.host.unlessLost(ort.InferenceSession.create(source, settings));
    } finally {
      this.log = this.host.endLog();
    }
    this.createMs = elapsed(started);
    this.result.timings_ms.create ??= this.createMs;
    this.result.names = Array.from(this.session.outputNames, sendable);
  }

  /** Run once on inputs in wire form, and return the outputs in wire form. */
  async run(inputs) {
    return this.runFed(this.feeds(inputs));
  }

  /** Return inputs in wire form as the session takes them. */
  feeds(inputs) {
    this.#checkNames(inputs.map(([name]) => name));
    return Object.fromEntries(inputs.map(([name, wire]) => [name, toFeed(this.target.ort, wire)]));
  }

  /** Run once on tensors of the API, and return the outputs in wire form. */
  async runFed(feeds) {
    const names = this.session.outputNames;
    const started = performance.now();
    // The log of the session is verbose, for the placement; a run's own need not be.
    const found = await this.host.unlessLost(this.session.run(feeds, { logSeverityLevel: 2 }));
    this.runMs = elapsed(started);
    this.outputsOn = names.map((name) => `${sendable(name).slice(0, 60)}: ${found[name].location ?? 'cpu'}`);
    const outputs = [];
    for (const name of names) outputs.push(await this.host.unlessLost(toWire(found[name])));
    for (const name of names) found[name].dispose();
    return outputs;
  }

  /** Refuse inputs that the session does not have: the API would leave them out without a word. */
  #checkNames(given) {
    if (given.some((name) => name.includes('\0'))) throw new Unfeedable('the JavaScript API cuts names at U+0000');
    const known = new Set(this.session.inputNames);
    const surplus = given.find((name) => !known.has(name));
    if (surplus !== undefined) throw new RangeError(`the model has no input ${JSON.stringify(surplus).slice(0, 100)}`);
  }

  /** Run all data sets, then other inputs and the first data set again, if the job asks for it. */
  async runDataSets() {
    const { result } = this;
    const { data_sets: dataSets } = this.job;
    result.outputs = [];
    for (const inputs of dataSets) {
      await this.beginRun();
      result.outputs.push(await this.run(inputs));
      result.timings_ms.first_run ??= this.runMs;
    }
    const other = this.job.other && otherInputs(dataSets[0]);
    if (other) {
      try {
        await this.further();
        result.other = await this.run(other);
      } catch (error) {
        // The model may refuse these inputs; and what the API cannot take is no fault of the provider.
        if (!(error instanceof Unfeedable)) result.other_error = `${kindOf(error)}: ${textOf(error)}`;
      }
    }
    if (this.job.repeat) await this.#repeat();
  }

  /** Report a run: it has the whole limit of time. */
  async beginRun() {
    this.reportedAt = performance.now();
    await this.enter('run');
  }

  /** Report a further run, unless the latest report is fresh: reports take longer than small models do. */
  async further() {
    if (performance.now() - this.reportedAt > PROGRESS_MS) await this.beginRun();
  }

  /** Make the runs of the first data set that are still missing. */
  async #repeat() {
    const { runs, sessions } = this.job.repeat;
    const tally = new Tally(this.result.outputs[0]);
    for (let session = 0; session < sessions; session += 1) {
      if (session) {
        await this.enter('teardown');
        await this.close();
        await this.enter('create');
        await this.open();
        await this.beginRun();
      }
      for (let run = session ? 0 : 1; run < runs; run += 1) {
        await this.further();
        tally.add(await this.run(this.job.data_sets[0]));
      }
    }
    tally.report(this.result, sessions);
  }

  /** Report the providers, and which of them got each node. */
  #conclude() {
    const unknown = 'the placement cannot be known: ';
    const bytes = this.model.bytes;
    if (couldForge(bytes)) throw new Unsupported(`${unknown}the model contains text of the log that shows it`);
    const groups = placedGroups(this.log);
    if (!groups) throw new Unsupported(`${unknown}the log does not list the nodes of the session`);
    this.result.placement = placementOf(groups, this.target.logged, () => operators(bytes));
    // The API does not list a session's providers. A provider that was left out would have no node in the log.
    this.result.providers = this.target.chain;
    this.result.providers_after = this.target.chain;
  }

  /** Refuse to send what no message can hold. */
  #fit() {
    const { outputs, other, second } = this.result;
    const problem = tooMuch([outputs, other, second]);
    if (!problem) return;
    for (const key of ['outputs', 'other', 'second']) delete this.result[key];
    throw new Unfeedable(problem);
  }

  async #fail(error) {
    let message = textOf(error);
    if (error instanceof Unfeedable || API_LIMITS.some((pattern) => pattern.test(message))) {
      Object.assign(this.result, { status: 'unfeedable', message });
    } else if (error instanceof Unsupported) {
      Object.assign(this.result, { status: 'unsupported', message });
    } else {
      const exhausted = this.host.exhausted(message);
      if (exhausted) message = `${message} (out of memory)`;
      this.sick = exhausted || (await this.target.sickness());
      // An error can come before the news that the device is lost.
      const lost = this.sick && (await this.host.lost());
      if (lost) message = `${lost}; ${message}`;
      Object.assign(this.result, { status: 'error', kind: lost ? 'DeviceLost' : kindOf(error), message });
    }
  }
}
