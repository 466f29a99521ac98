// Frames, in which messages travel between a harness and the process of an agent; docs/reference/agent-protocol.md.

import { crc32 } from './crc32.mjs';

const MODES = { binary: '#b', line: '#l' };
const LINE_CHARACTERS = 4000;
const HEADER = /^#([bl]) (0|[1-9]\d{0,9}) (0|[1-9]\d{0,9}) ([0-9a-f]{8})\r?$/;
const HEADER_LIMIT = 64;
const MOST_JSON = 2 ** 25;
const MOST_BINARY = 1.25 * 2 ** 30;

/** Return a frame as buffers to be written one after the other. */
export function frame(mode, json, parts) {
  const size = parts.reduce((sum, part) => sum + part.length, 0);
  const sum = parts.reduce((before, part) => crc32(part, before), crc32(json));
  const header = `${MODES[mode]} ${json.length} ${size} ${sum.toString(16).padStart(8, '0')}\n`;
  if (mode === 'binary') return [Buffer.from(header), json, ...parts, Buffer.from('\n')];
  const text = Buffer.concat([json, ...parts]).toString('base64');
  const lines = text.match(new RegExp(`.{1,${LINE_CHARACTERS}}`, 'g')) ?? [''];
  return [Buffer.from(`${header}${lines.join('\n')}\n`)];
}

/** Reads frames from the chunks of a stream. */
export class FrameReader {
  #chunks = [];
  #length = 0;
  #header = null;
  #lines = [];

  /**
   * Yield the frames that a chunk completes.
   *
   * @throws {Error} It is no frame; what follows cannot be trusted.
   */
  *feed(chunk) {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    for (let found; (found = this.#next()); ) yield found;
  }

  #next() {
    if (!this.#header) {
      const line = this.#line(HEADER_LIMIT);
      if (line === null) return null;
      const parsed = HEADER.exec(line);
      if (!parsed) throw new Error(`not the header of a frame: ${JSON.stringify(line)}`);
      const [json, binary] = [Number(parsed[2]), Number(parsed[3])];
      if (json > MOST_JSON || binary > MOST_BINARY) throw new Error('a frame that is too long');
      this.#header = { line: parsed[1] === 'l', json, binary, crc: parseInt(parsed[4], 16) };
      this.#lines = [];
    }
    const body = this.#header.line ? this.#lineBody() : this.#binaryBody();
    if (!body) return null;
    const { json, crc } = this.#header;
    this.#header = null;
    if (crc32(body) !== crc) throw new Error('a frame whose CRC-32 differs');
    // Not a Buffer, whose slices share memory and which JSON writes in its own way.
    const plain = new Uint8Array(body.buffer, body.byteOffset, body.length);
    return { json: plain.subarray(0, json), binary: plain.subarray(json) };
  }

  #binaryBody() {
    const size = this.#header.json + this.#header.binary;
    if (this.#length < size + 1) return null;
    const taken = this.#take(size + 1);
    if (taken[size] !== 10) throw new Error('a frame without its line feed');
    return taken.subarray(0, size);
  }

  #lineBody() {
    const size = this.#header.json + this.#header.binary;
    const characters = Math.ceil(size / 3) * 4;
    let have = this.#lines.reduce((sum, line) => sum + line.length, 0);
    while (have < characters || !this.#lines.length) {
      const line = this.#line(LINE_CHARACTERS + 2);
      if (line === null) return null;
      this.#lines.push(line.replace(/\r$/, ''));
      have += this.#lines.at(-1).length;
    }
    const text = this.#lines.join('');
    const body = Buffer.from(text, 'base64');
    if (text.length !== characters || body.length !== size) throw new Error('a frame of another length than it says');
    return body;
  }

  /** Return the next line without its end; null if it has not arrived whole. */
  #line(limit) {
    this.#chunks = this.#chunks.length > 1 ? [Buffer.concat(this.#chunks)] : this.#chunks;
    const end = this.#chunks.length ? this.#chunks[0].indexOf(10) : -1;
    if (end > limit || (end < 0 && this.#length > limit)) throw new Error('not a frame');
    return end < 0 ? null : this.#take(end + 1).toString('latin1', 0, end);
  }

  #take(size) {
    if (this.#chunks.length > 1) this.#chunks = [Buffer.concat(this.#chunks)];
    const [all] = this.#chunks;
    this.#length -= size;
    this.#chunks = this.#length ? [all.subarray(size)] : [];
    return all.subarray(0, size);
  }
}
