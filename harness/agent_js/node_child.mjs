// The process in which onnxruntime-node runs; node.mjs starts it. Messages come on descriptor 0 and go to descriptor
// 3; what native code prints goes to a file on descriptors 1 and 2.

import fs from 'node:fs';
import { createRequire } from 'node:module';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import process from 'node:process';

import { serve } from './agent.mjs';
import { Unavailable, textOf } from './errors.mjs';
import { FrameReader, frame } from './frames.mjs';
import { Inbox, pack, unpack } from './message.mjs';
import { OUTPUT_LIMIT, withoutLog } from './printed.mjs';

const [folder, mode] = process.argv.slice(2);
const output = new net.Socket({ fd: 3, writable: true, readable: false });
const inbox = new Inbox();
const reader = new FrameReader();
process.stdin.on('data', (chunk) => {
  for (const { json, binary } of reader.feed(chunk)) inbox.put(unpack(json, binary));
});
process.stdin.once('end', () => inbox.end());

const channel = {
  receive: () => inbox.receive(),
  piece: (...asked) => inbox.piece(...asked),
  send(message) {
    const { json, parts } = pack(message);
    output.cork();
    const buffers = frame(mode, json, parts);
    const written = new Promise((resolve, reject) => {
      buffers.forEach((buffer, index) => {
        output.write(buffer, index === buffers.length - 1 ? (error) => (error ? reject(error) : resolve()) : undefined);
      });
    });
    output.uncork();
    return written;
  },
};

let began = 0;
let processor = process.cpuUsage();

const host = {
  refuses: () => '',
  async fingerprint() {
    return {
      node: process.versions.node,
      platform: `${os.type()} ${os.release()}`,
      machine: os.machine(),
      processor: { model: os.cpus()[0]?.model ?? '', count: os.cpus().length },
    };
  },
  /** Import onnxruntime-node before the configuration is known. */
  async importEarly(fingerprint) {
    const require = createRequire(path.join(path.resolve(folder), 'package.json'));
    let ort;
    try {
      ort = require('onnxruntime-node');
      fingerprint.onnxruntime = ort.env.versions.node ?? ort.env.versions.common;
      fingerprint.packages = { 'onnxruntime-node': require('onnxruntime-node/package.json').version };
    } catch (error) {
      const missing = error.code === 'MODULE_NOT_FOUND' && /'onnxruntime-node'/.test(error.message);
      throw new Unavailable(missing ? 'not_installed' : 'import_failed', textOf(error).split('\n')[0]);
    }
    // "bundled" ones are compiled in; others need libraries that the package leaves to a script.
    const offered = ort.listSupportedBackends().map(({ name }) => name);
    fingerprint.available_providers = offered;
    return { ort, offered };
  },
  read: (file) => new Uint8Array(fs.readFileSync(file)),
  scratchFile: (name) => path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'ep-harness-')), name),
  discard: (file) => fs.rmSync(path.dirname(file), { recursive: true, force: true }),
  device: async () => null, // Node.js has no WebGPU of its own, in which buffers could be made
  beginLog() {
    began = fs.fstatSync(2).size;
  },
  endLog() {
    return read(began, fs.fstatSync(2).size);
  },
  printed() {
    return withoutLog(read(0, fs.fstatSync(2).size));
  },
  forgetPrinted() {
    fs.ftruncateSync(2, 0);
  },
  unlessLost: (promise) => promise, // this API does not tell of lost devices; the next session shows it
  lost: async () => '',
  exhausted: () => '', // memory is given back, and onnxruntime itself reports that it ran out
  processorMs() {
    const used = process.cpuUsage(processor);
    processor = process.cpuUsage();
    return (used.user + used.system) / 1000;
  },
  residentMib: async () => process.memoryUsage.rss() / 2 ** 20,
};

function read(from, to) {
  const size = Math.min(to - from, 64 * OUTPUT_LIMIT);
  const buffer = Buffer.alloc(Math.max(size, 0));
  let done = 0;
  while (done < buffer.length) {
    const count = fs.readSync(2, buffer, done, buffer.length - done, to - buffer.length + done);
    if (!count) break;
    done += count;
  }
  return buffer.toString('utf8', 0, done);
}

process.on('SIGINT', () => {}); // on Ctrl-C the harness stops its agents
await serve(channel, host);
await new Promise((resolve) => output.end(resolve));
process.exit(0);
