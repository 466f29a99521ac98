// Errors in a target that are distinct from what a provider raises; the names are those of harness.agent.target_errors.

/** The target cannot be used. */
export class Unavailable extends Error {
  constructor(cause, reason) {
    super(reason);
    this.code = cause;
  }
}

/** A provider option is refused. */
export class OptionRejected extends Error {
  constructor(key, reason) {
    super(reason);
    this.key = key;
  }
}

/** The JavaScript API of this onnxruntime cannot take or give a value; never the provider's fault. */
export class Unfeedable extends Error {}

/** The provider, or this agent, refuses what a job needs, with a clear message. */
export class Unsupported extends Error {}

/** The device of the provider is lost: no session of this process computes any more. */
export class DeviceLost extends Error {}

// Errors of onnxruntime have no code in JavaScript. Where Python's class is NotImplemented, the text has these words.
const NO_KERNEL = 'Could not find an implementation for ';
const LIMIT = 4000; // characters of a message, as harness.agent.safe_text.clean

for (const each of [Unavailable, OptionRejected, Unfeedable, Unsupported, DeviceLost]) {
  each.prototype.name = each.name; // an error's own class is its kind
}

/** Return the text of anything that was thrown, of bounded length and without half surrogate pairs. */
export function textOf(error, limit = LIMIT) {
  let text;
  try {
    text = String(error instanceof Error ? error.message : error);
  } catch {
    text = 'an error without a readable text';
  }
  if (text.length <= limit) return sendable(text);
  const tail = Math.floor(limit / 2);
  return sendable(text.slice(0, limit - tail) + text.slice(text.length - tail));
}

/** Return the name of the class of anything that was thrown; that of Python for an operator without a kernel. */
export function kindOf(error) {
  if (textOf(error).includes(NO_KERNEL)) return 'NotImplemented';
  // emscripten throws bare numbers for C++ exceptions.
  return error instanceof Error ? sendable(String(error.name).slice(0, 100)) : typeof error;
}

/** Return a text that UTF-8 can encode. */
export function sendable(text) {
  return text.toWellFormed ? text.toWellFormed() : new TextDecoder().decode(new TextEncoder().encode(text));
}
