// The web server of a page: its files, and the messages that it takes and gives. Only this machine reaches it, and
// only with an address that nothing but the browser is told.

import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { packet } from './packet.mjs';

const HERE = path.dirname(fileURLToPath(import.meta.url));
const TYPES = { '.html': 'text/html', '.mjs': 'text/javascript', '.js': 'text/javascript', '.wasm': 'application/wasm' };

// With these a page is isolated, and only isolated pages get SharedArrayBuffer, which wasm's threads need.
const ISOLATED = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
  'Cross-Origin-Resource-Policy': 'same-origin',
};

/** Serves one page. */
export class PageServer {
  #secret = randomBytes(16).toString('hex');
  #waiting = [];
  #taker = null;
  #finished = false;
  #handlers = {};

  /**
   * @param {string} runtime The folder of onnxruntime-web.
   * @param about What the page asks for first.
   */
  constructor(runtime, about) {
    this.runtime = runtime;
    this.about = about;
    this.server = http.createServer((request, response) => this.#answer(request, response));
  }

  /** Begin to serve, and return the address of the page. */
  async listen() {
    this.about.release = JSON.parse(fs.readFileSync(path.join(this.runtime, 'package.json'), 'utf8')).version;
    this.server.listen(0, '127.0.0.1');
    await once(this.server, 'listening');
    return `http://127.0.0.1:${this.server.address().port}/${this.#secret}/`;
  }

  /** Set what is called with what the page sends: `give`, `end`, `memory` and `lost`. */
  on(handlers) {
    this.#handlers = handlers;
  }

  /** Pass a message on to the page. */
  put(json, binary) {
    this.#waiting.push(...packet(json, [binary]));
    this.#pass();
  }

  /** Tell the page that no message will come any more. */
  finish() {
    this.#finished = true;
    this.#pass();
  }

  #pass() {
    if (!this.#taker || !(this.#waiting.length || this.#finished)) return;
    const content = Buffer.concat(this.#waiting);
    this.#taker.writeHead(content.length ? 200 : 204, ISOLATED).end(content.length ? content : undefined);
    this.#waiting = [];
    this.#taker = null;
  }

  async #answer(request, response) {
    const { pathname } = new URL(request.url, 'http://page');
    const [, secret, ...parts] = pathname.split('/');
    if (secret !== this.#secret) return response.writeHead(404).end();
    const name = parts.join('/');
    if (request.method === 'POST') return this.#take(name, request, response);
    if (name === 'take') {
      this.#taker = response;
      return this.#pass();
    }
    if (name === 'about') return response.writeHead(200, ISOLATED).end(JSON.stringify(this.about));
    return this.#file(parts, response);
  }

  #file(parts, response) {
    const [folder, file] = parts;
    const known = { '': [HERE, 'page.html'], agent: [HERE, file], dist: [path.join(this.runtime, 'dist'), file] }[folder];
    if (!known || parts.length > 2 || path.basename(known[1] ?? '') !== known[1]) return response.writeHead(404).end();
    const [home, base] = known;
    const stream = fs.createReadStream(path.join(home, base));
    stream.once('open', () => response.writeHead(200, { ...ISOLATED, 'Content-Type': TYPES[path.extname(base)] ?? 'text/plain' }));
    stream.once('error', () => response.writeHead(404).end());
    return stream.pipe(response);
  }

  async #take(name, request, response) {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    let answer = null;
    if (name === 'give') {
      const json = body.readUInt32LE(0);
      this.#handlers.give(body.subarray(8, 8 + json), [body.subarray(8 + json)]);
    } else if (Object.hasOwn(this.#handlers, name)) answer = await this.#handlers[name](body.toString());
    else return response.writeHead(404).end();
    return response.writeHead(200, ISOLATED).end(JSON.stringify(answer ?? null));
  }
}
