// The agent inside a browser's page; browser.mjs, which serves this file, carries the messages.

import { serve } from './agent.mjs';
import { DeviceLost, Unavailable, Unsupported, textOf } from './errors.mjs';
import { Inbox, pack, unpack } from './message.mjs';
import { packet, packets } from './packet.mjs';
import { withoutLog } from './printed.mjs';

// Provider -> the bundle of onnxruntime-web that has it.
const BUNDLES = {
  CPUExecutionProvider: 'ort.wasm.min.mjs',
  WebGpuExecutionProvider: 'ort.webgpu.min.mjs', // onnxruntime's own WebGPU provider, in C++
  JsExecutionProvider: 'ort.min.mjs', // "jsep": the older one, with kernels in JavaScript
  WebNNExecutionProvider: 'ort.all.min.mjs',
};
const OFFERED = ['cpu', 'webgpu', 'webnn']; // names of the API; whether the browser has them is found out below
const WEBNN_DEVICES = ['cpu', 'gpu', 'npu'];

const printed = [];
// Before onnxruntime is loaded: its compiled code keeps the console's functions that it finds then.
for (const name of ['debug', 'log', 'info', 'warn', 'error']) {
  console[name] = (...items) => printed.push(items.map((item) => textOf(item)).join(' '));
}
addEventListener('error', ({ message }) => printed.push(message));
addEventListener('unhandledrejection', ({ reason }) => printed.push(textOf(reason)));

const about = await (await fetch('about')).json();
const inbox = new Inbox();
let sending = Promise.resolve();

const channel = {
  receive: () => inbox.receive(),
  piece: (...asked) => inbox.piece(...asked),
  send(message) {
    const { json, parts } = pack(message);
    // One after the other: requests of their own could overtake each other.
    sending = sending.then(() => post('give', new Blob(packet(json, parts))));
    return sending;
  },
};

// onnxruntime, its check of sizes (where addresses have 32 bits, what overflows cannot be addressed), emscripten, and
// JavaScript's engine.
const NO_MEMORY = /bad_alloc|safeint\b.*integer overflow|Aborted\(OOM\)|(?:Array buffer allocation|WebAssembly\.Memory.*allocate)/is;

const LOST_AFTER_MS = 3000; // an error can come before the news that the device is lost, and that is looked into
let device = null;
let lostReason = '';
let whenLost = new Promise(() => {});
let began = 0;

const host = {
  /** Return why a page cannot do a job; empty if it can. */
  refuses({ execution_mode: mode, intra_op_threads: threads }) {
    if (mode === 'parallel') return 'onnxruntime-web runs operators one after the other';
    return threads === undefined ? '' : 'the threads of a page belong to its runtime, not to a session';
  },
  async fingerprint() {
    return { platform: about.platform, machine: about.machine, browser: about.browser, user_agent: navigator.userAgent };
  },
  async load(config, fingerprint) {
    const [provider] = config.providers;
    const bundle = BUNDLES[provider];
    if (!bundle) throw new Unavailable('not_in_build', `onnxruntime-web has no ${provider}; it has ${Object.keys(BUNDLES).join(', ')}`);
    fingerprint.packages = { 'onnxruntime-web': about.release };
    fingerprint.onnxruntime = about.release;
    fingerprint.bundle = bundle;
    fingerprint.threads = about.threads;
    fingerprint.cross_origin_isolated = crossOriginIsolated;
    fingerprint.available_providers = Object.keys(BUNDLES);
    if (provider === 'WebNNExecutionProvider') fingerprint.devices = await webnnDevices();
    else if (bundle !== BUNDLES.CPUExecutionProvider) fingerprint.devices = await gpuDevices();
    const ort = await loaded(bundle);
    ort.env.wasm.numThreads = about.threads;
    ort.env.wasm.wasmPaths = new URL('dist/', location.href).href;
    return { ort, offered: OFFERED };
  },
  /** Watch the device of the provider, once a session has been made. */
  async watch(ort) {
    device = (await ort.env.webgpu?.device) ?? null;
    if (!device?.lost) return;
    whenLost = device.lost.then(async ({ reason, message }) => {
      lostReason = `the WebGPU device is lost: ${reason}: ${message}`;
      await post('lost', new Blob([lostReason])); // ends everything if the GPU process is gone
      throw new DeviceLost(lostReason);
    });
    whenLost.catch(() => {});
  },
  read() {
    throw new Error('a page reads no files');
  },
  scratchFile() {
    throw new Unsupported('onnxruntime-web gives no page the file that it writes');
  },
  discard() {},
  device: async () => device,
  beginLog() {
    began = printed.length;
  },
  endLog: () => printed.slice(began).join('\n'),
  printed: () => withoutLog(printed.join('\n')),
  forgetPrinted() {
    printed.length = 0;
  },
  unlessLost: (promise) => Promise.race([promise, whenLost]),
  /** Return why the device is lost, after an error; empty if it is not. */
  async lost() {
    if (device) await Promise.race([whenLost.catch(() => {}), new Promise((resolve) => setTimeout(resolve, LOST_AFTER_MS))]);
    return lostReason;
  },
  /** Return why no further job may run here, if an error says that memory ran out; else an empty text. */
  exhausted: (message) => (NO_MEMORY.test(message) ? 'wasm addresses 4 GiB, and gives none back' : ''),
  processorMs: () => 0, // a page cannot know it
  residentMib: async () => (await post('memory')).json(),
};

async function loaded(bundle) {
  try {
    const module = await import(`./dist/${bundle}`.replace('./', new URL('.', location.href).href));
    return module.default ?? module;
  } catch (error) {
    throw new Unavailable('not_in_build', `onnxruntime-web ${about.release} has no ${bundle}: ${textOf(error)}`);
  }
}

async function gpuDevices() {
  if (!navigator.gpu) throw new Unavailable('no_device', 'this browser has no WebGPU: there is no navigator.gpu');
  const adapter = await navigator.gpu.requestAdapter();
  if (!adapter) throw new Unavailable('no_device', 'this browser has no WebGPU adapter: requestAdapter() gave null; without a GPU, see docs/how-to/browser.md');
  const { vendor, architecture, device, description } = adapter.info;
  const limits = {};
  for (const name of ['maxBufferSize', 'maxStorageBufferBindingSize', 'maxComputeInvocationsPerWorkgroup']) {
    limits[name] = String(adapter.limits[name]);
  }
  const features = Array.from(adapter.features).sort().join(' ');
  return [{ device: { type: 'GPU', vendor, architecture, device, description }, metadata: { features, ...limits } }];
}

/** Return the devices of WebNN; what the browser answers instead of one is its reason. */
async function webnnDevices() {
  if (!navigator.ml) throw new Unavailable('no_device', 'this browser has no WebNN: there is no navigator.ml');
  const found = [];
  const refused = [];
  for (const deviceType of WEBNN_DEVICES) {
    try {
      await navigator.ml.createContext({ deviceType });
      found.push({ device: { type: deviceType.toUpperCase() }, metadata: {} });
    } catch (error) {
      refused.push(`${deviceType}: ${textOf(error, 200)}`);
    }
  }
  if (!found.length) throw new Unavailable('no_device', `WebNN has no device here: ${refused.join('; ')}`);
  return found;
}

function post(path, body) {
  return fetch(path, { method: 'POST', body });
}

async function receive() {
  for (;;) {
    const answer = await fetch('take');
    if (answer.status === 204) break;
    for (const { json, binary } of packets(new Uint8Array(await answer.arrayBuffer()))) inbox.put(unpack(json, binary));
  }
  inbox.end();
}

receive().catch((error) => {
  printed.push(textOf(error));
  inbox.end();
});
try {
  await serve(channel, host);
  await sending;
  await post('end');
} catch (error) {
  await post('end', new Blob([textOf(error)]));
}
