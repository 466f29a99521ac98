// The agent for browsers: this process talks to the harness, drives a browser, and carries messages to and from its
// page, which runs onnxruntime-web.
//
// Usage: node browser.mjs --modules FOLDER --browser EXECUTABLE [--flag=--SWITCH]... [--threads N], with
// onnxruntime-web and playwright-core in FOLDER/node_modules.

import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';

import { declines } from './declines.mjs';
import { textOf } from './errors.mjs';
import { FrameReader, frame } from './frames.mjs';
import { open } from './link.mjs';
import { pack } from './message.mjs';
import { PageServer } from './page_server.mjs';
import { startBrowser } from './page_browser.mjs';

const GRACE_MS = 4000; // the protocol gives a busy agent five seconds to end

const { values: options } = parseArgs({
  options: {
    modules: { type: 'string', default: process.cwd() },
    browser: { type: 'string', default: 'chromium' },
    flag: { type: 'string', multiple: true, default: [] },
    threads: { type: 'string', default: '1' },
  },
});
const { input, output, mode } = await open(
  'onnxruntime-web',
  declines({
    paths: 'a page reads no files',
    'scenario:ort_format': 'onnxruntime-web gives no page the file that it writes',
    intra_op_threads: 'the threads of a page belong to its runtime, not to a session',
    'execution_mode:parallel': 'onnxruntime-web runs operators one after the other',
  }),
);

let ending = false;
let browser = null;
const send = (json, parts) => frame(mode, json, parts).forEach((buffer) => output.write(buffer));

/** End this process, with a reason if that is no order of the harness. */
async function end(reason = '') {
  if (ending) return;
  ending = true;
  if (reason) {
    const { json, parts } = pack(['failed', reason]);
    send(json, parts);
    process.stderr.write(`${reason}\n`);
  }
  await Promise.race([browser?.close(), new Promise((resolve) => setTimeout(resolve, GRACE_MS))]);
  setTimeout(() => process.exit(0), GRACE_MS); // if nobody reads what is still to be written
  output.end(() => process.exit(0));
}

process.on('uncaughtException', (error) => end(`the agent's own error: ${textOf(error)}`));
process.on('unhandledRejection', (error) => end(`the agent's own error: ${textOf(error)}`));
for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => end());
process.on('SIGINT', () => {}); // on Ctrl-C the harness stops its agents

/** Return the path of a program; its name if nothing on the search path is called so. */
function found(program) {
  if (path.basename(program) !== program) return program;
  const places = (process.env.PATH ?? '').split(path.delimiter).filter(Boolean);
  return places.map((folder) => path.join(folder, program)).find((each) => fs.existsSync(each)) ?? program;
}

const server = new PageServer(path.join(options.modules, 'node_modules', 'onnxruntime-web'), {
  threads: Number(options.threads),
  platform: `${os.type()} ${os.release()}`,
  machine: os.machine(),
});
const reader = new FrameReader();
input.on('data', (chunk) => {
  for (const { json, binary } of reader.feed(chunk)) server.put(json, binary);
});
input.once('end', () => {
  server.finish();
  setTimeout(() => end(), GRACE_MS).unref();
});
output.on('error', () => end());

try {
  const address = await server.listen();
  const require = createRequire(path.join(path.resolve(options.modules), 'package.json'));
  const { chromium } = require('playwright-core');
  browser = await startBrowser(chromium, found(options.browser), options.flag, end);
  server.about.browser = browser.version;
  server.on({
    give: send,
    end: (reason) => end(reason && `the page's own error: ${reason}`),
    memory: () => browser.residentMib(),
    lost: async (reason) => {
      if (await browser.gpuProcessDied()) await end(`the GPU process died: ${reason}`);
    },
  });
  await browser.visit(address);
} catch (error) {
  const reason = textOf(error).split('\n')[0];
  const { json, parts } = pack(['unavailable', 'import_failed', `no page could be opened: ${reason}`, textOf(error), {}]);
  send(json, parts);
  await end();
}
