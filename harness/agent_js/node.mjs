// The agent for Node: this process talks to the harness, and a child of it runs onnxruntime, which computes on the
// main thread. So the end of the harness is noticed, and what native code prints stays apart from the messages.
//
// Usage: node node.mjs --modules FOLDER, with onnxruntime-node in FOLDER/node_modules.

import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import { declines } from './declines.mjs';
import { open } from './link.mjs';

const GRACE_MS = 4000; // the protocol gives a busy agent five seconds to end

const { values: options } = parseArgs({ options: { modules: { type: 'string' } } });
const { input, output, mode } = await open(
  'onnxruntime-node',
  declines({
    // Release 1.30.0 gives such a tensor, and aborts the process where it is read.
    'scenario:io_binding': 'the API keeps outputs on the device (preferredOutputLocation) in onnxruntime-web only',
  }),
);

const printed = printFile();
const child = spawn(
  process.execPath,
  [fileURLToPath(new URL('node_child.mjs', import.meta.url)), options.modules ?? process.cwd(), mode],
  { stdio: ['pipe', printed, printed, 'pipe'] },
);
const fromChild = child.stdio[3];

input.pipe(child.stdin);
fromChild.pipe(output, { end: false });
for (const stream of [child.stdin, input, output, fromChild]) stream.on('error', () => {}); // the ends tell more
input.once('end', () => setTimeout(() => child.kill('SIGKILL'), GRACE_MS).unref());
for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
process.on('SIGINT', () => {}); // on Ctrl-C the harness stops its agents

child.once('close', (code, signal) => {
  const end = () => endLike(code, signal);
  setTimeout(end, GRACE_MS); // if nobody reads what is still to be written
  output.end(end);
});

/** End as the child has ended. */
function endLike(code, signal) {
  if (signal === null || process.platform === 'win32') process.exit(code ?? 1);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
  setTimeout(() => process.exit(1), 1000); // a signal that does not end this process
}

/** Return a descriptor for all that is printed: stderr if the child can read it back, else a temporary file. */
function printFile() {
  if (fs.fstatSync(2).isFile()) return 2;
  const file = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'ep-harness-')), 'output.txt');
  const descriptor = fs.openSync(file, 'a+');
  if (process.platform !== 'win32') fs.rmSync(path.dirname(file), { recursive: true });
  return descriptor;
}
