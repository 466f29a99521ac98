// The connection of an agent's process to its harness: hello, greeting, and the stream of bytes behind them.

import { once } from 'node:events';
import net from 'node:net';
import process from 'node:process';

const PROTOCOL = 1;
const HELLO_VARIABLE = 'EP_HARNESS_HELLO';
const HELLO_LIMIT = 65536;

/**
 * Answer the hello, and return the stream and the mode in which the agent sends.
 *
 * @param {string} agent What the agent is, for people.
 * @param {Object<string, string>} declines What it does not do, and why.
 * @returns {Promise<{input: import('stream').Readable, output: import('stream').Writable, mode: string}>}
 */
export async function open(agent, declines) {
  const hello = parsed(process.env[HELLO_VARIABLE] ?? (await firstLine(process.stdin)));
  delete process.env[HELLO_VARIABLE];
  const mode = hello.modes.find((each) => each === 'binary' || each === 'line');
  const stream = hello.connect ? await connected(hello.connect) : null;
  const [input, output] = stream ? [stream, stream] : [process.stdin, process.stdout];
  const greeting = { protocol: PROTOCOL, token: hello.token, mode, agent, declines };
  output.write(`ep-agent ${JSON.stringify(greeting).replace(/[^\x20-\x7e]/g, escaped)}\n`);
  if (!hello.protocols.includes(PROTOCOL) || !mode) process.exit(0);
  return { input, output, mode };
}

function parsed(line) {
  const found = /^ep-harness (\{.*\})\r?$/.exec(line.trimEnd());
  if (!found) throw new Error('no hello of a harness on standard input; docs/reference/agent-protocol.md has its form');
  return JSON.parse(found[1]);
}

/** Return the first line of a stream; what follows it stays in the stream. */
async function firstLine(stream) {
  let read = Buffer.alloc(0);
  for (;;) {
    const chunk = stream.read();
    if (chunk === null) {
      if (stream.readableEnded) throw new Error('standard input ended before a hello came');
      await Promise.race([once(stream, 'readable'), once(stream, 'end')]);
      continue;
    }
    read = Buffer.concat([read, chunk]);
    const end = read.indexOf(10);
    if (end >= 0) {
      if (end + 1 < read.length) stream.unshift(read.subarray(end + 1));
      return read.toString('utf8', 0, end);
    }
    if (read.length > HELLO_LIMIT) throw new Error('no hello of a harness on standard input');
  }
}

async function connected(address) {
  const found = /^tcp:\/\/([^:/]+):(\d+)\/?$/.exec(address);
  if (!found) throw new Error(`this agent cannot connect to ${address}; it knows tcp://HOST:PORT`);
  const socket = net.connect({ host: found[1], port: Number(found[2]), noDelay: true });
  await once(socket, 'connect');
  return socket;
}

function escaped(character) {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
