// The web server of a page: its files, and the messages that it takes and gives. Only this machine reaches it, and
// only with an address that nothing but the browser is told. Every program of the machine, and every page in a browser
// on it, can send requests: whatever they are, they are refused, and end nothing.

import { randomBytes, timingSafeEqual } from 'node:crypto';
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

const HEADERS_MS = 10_000; // in which a request must have come
const SECRET_BYTES = 16;
const HEAD_BYTES = 8; // of a message: see packet.mjs
const ENTRANCES = { '': 'page.html', agent: null, dist: null }; // folders of the page's addresses

/**
 * Return the parts of the path of a request behind the secret; null if it does not come from the page.
 *
 * @param {{url: string, headers: object}} request
 * @param {string} host Name and port of the server: another one in `Host` is a name that somebody has for this machine.
 */
export function pathOf({ url, headers }, host, secret) {
  if (headers.host !== host) return null;
  if (headers.origin !== undefined && headers.origin !== `http://${host}`) return null;
  if (!['same-origin', 'none', undefined].includes(headers['sec-fetch-site'])) return null;
  const [before, given, ...parts] = url.split(/[?#]/, 1)[0].split('/');
  if (before !== '' || given === undefined || !isEqual(given, secret)) return null;
  return parts;
}

function isEqual(given, secret) {
  const [one, other] = [Buffer.from(given), Buffer.from(secret)];
  return one.length === other.length && timingSafeEqual(one, other);
}

/** Serves one page. */
export class PageServer {
  #secret = randomBytes(SECRET_BYTES).toString('hex');
  #host = '';
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
    this.server = http.createServer({ headersTimeout: HEADERS_MS }, (request, response) => this.#answer(request, response));
  }

  /** Begin to serve, and return the address of the page. */
  async listen() {
    this.about.release = JSON.parse(fs.readFileSync(path.join(this.runtime, 'package.json'), 'utf8')).version;
    this.server.listen(0, '127.0.0.1');
    await once(this.server, 'listening');
    this.#host = `127.0.0.1:${this.server.address().port}`;
    return `http://${this.#host}/${this.#secret}/`;
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

  #answer(request, response) {
    response.on('error', () => {}); // it is gone
    const parts = pathOf(request, this.#host, this.#secret);
    if (!parts) return refuse(response, 403);
    const name = parts.join('/');
    if (request.method === 'POST') return this.#take(name, request, response);
    if (request.method !== 'GET') return refuse(response, 405);
    if (name === 'take') {
      this.#taker = response;
      return this.#pass();
    }
    if (name === 'about') return response.writeHead(200, ISOLATED).end(JSON.stringify(this.about));
    return this.#file(parts, response);
  }

  #file(parts, response) {
    const [folder, file] = parts;
    if (parts.length > 2 || !Object.hasOwn(ENTRANCES, folder)) return refuse(response, 404);
    const base = ENTRANCES[folder] ?? file ?? '';
    if (!/^[\w.-]+$/.test(base) || /^\.+$/.test(base)) return refuse(response, 404);
    const place = path.join(folder === 'dist' ? path.join(this.runtime, 'dist') : HERE, base);
    return fs.stat(place, (error, about) => {
      if (error || !about.isFile()) return refuse(response, 404);
      const stream = fs.createReadStream(place);
      stream.once('open', () => response.writeHead(200, { ...ISOLATED, 'Content-Type': TYPES[path.extname(base)] ?? 'text/plain' }));
      stream.once('error', () => response.destroy());
      return stream.pipe(response);
    });
  }

  async #take(name, request, response) {
    const chunks = [];
    try {
      for await (const chunk of request) chunks.push(chunk);
    } catch {
      return response.destroy(); // it was cut off
    }
    const body = Buffer.concat(chunks);
    if (!Object.hasOwn(this.#handlers, name)) return refuse(response, 404);
    if (name !== 'give') {
      const answer = await this.#handlers[name](body.toString());
      return response.writeHead(200, ISOLATED).end(JSON.stringify(answer ?? null));
    }
    if (body.length < HEAD_BYTES || body.readUInt32LE(0) + body.readUInt32LE(4) + HEAD_BYTES !== body.length) return refuse(response, 400);
    const json = body.readUInt32LE(0);
    this.#handlers.give(body.subarray(HEAD_BYTES, HEAD_BYTES + json), [body.subarray(HEAD_BYTES + json)]);
    return response.writeHead(200, ISOLATED).end('null');
  }
}

/** Answer a request with a status alone, and hear no more of who sent it. */
function refuse(response, status) {
  response.writeHead(status, { Connection: 'close' }).end();
}
