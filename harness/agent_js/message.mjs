// Messages as JSON and binary values, which the JSON refers to by position; docs/reference/agent-protocol.md.

const BYTES = '\0bytes'; // key of a binary value: its offset behind the JSON, and its length
const BYTES_IN_JSON = JSON.stringify(BYTES);

/**
 * Return a message as its JSON and its binary values.
 *
 * @returns {{json: Uint8Array, parts: Uint8Array[]}}
 */
export function pack(message) {
  const parts = [];
  let end = 0;
  const text = JSON.stringify(message, (_, value) => {
    if (!(value instanceof Uint8Array)) return value;
    const start = end;
    end += value.length;
    parts.push(value);
    return { [BYTES]: [start, value.length] };
  });
  return { json: new TextEncoder().encode(text), parts };
}

/**
 * Return the message of a JSON text and the binary values behind it.
 *
 * @throws {Error} The JSON does not fit the binary values.
 */
export function unpack(json, binary) {
  const text = new TextDecoder('utf-8', { fatal: true }).decode(json);
  if (!text.includes(BYTES_IN_JSON)) return JSON.parse(text);
  return JSON.parse(text, (_, value) => {
    if (value === null || typeof value !== 'object' || !Array.isArray(value[BYTES])) return value;
    if (Object.keys(value).length !== 1) return value;
    const [start, length] = value[BYTES];
    if (!(start >= 0 && length >= 0 && start + length <= binary.length)) throw new Error('a message lacks binary values');
    return binary.subarray(start, start + length);
  });
}

/** The messages that have arrived: those that wait for their turn, and pieces of models that are waited for. */
export class Inbox {
  #waiting = [];
  #receiver = null;
  #pieces = new Map();
  #ended = false;

  /** Take a message that has arrived. */
  put(message) {
    if (message[0] === 'model') {
      const [, job, name, offset, content] = message;
      const key = pieceKey(job, name, offset);
      this.#pieces.get(key)?.resolve(content);
      this.#pieces.delete(key);
    } else if (this.#receiver) {
      this.#receiver(message);
      this.#receiver = null;
    } else this.#waiting.push(message);
  }

  /** No message will come any more. */
  end() {
    this.#ended = true;
    this.#receiver?.(null);
    for (const { reject } of this.#pieces.values()) reject(new Error('the harness has ended'));
  }

  /** Return the next message that is not a piece of a model; null at the end. */
  async receive() {
    if (this.#waiting.length) return this.#waiting.shift();
    if (this.#ended) return null;
    return new Promise((resolve) => {
      this.#receiver = resolve;
    });
  }

  /** Return a piece of a model's file, once it has come; null if the harness cannot read it. */
  piece(job, name, offset) {
    return new Promise((resolve, reject) => {
      if (this.#ended) reject(new Error('the harness has ended'));
      this.#pieces.set(pieceKey(job, name, offset), { resolve, reject });
    });
  }
}

function pieceKey(job, name, offset) {
  return JSON.stringify([job, name, offset]);
}
