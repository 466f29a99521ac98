// The agent for Node and browsers: serves one harness over a channel. docs/reference/agent-protocol.md has the
// messages. The two places where it runs are node.mjs and page.mjs; each gives it a channel and a host.

import { OptionRejected, Unavailable, kindOf, textOf } from './errors.mjs';
import { elapsed } from './figures.mjs';
import { Job } from './job.mjs';
import { Models } from './models.mjs';
import { Target } from './target.mjs';

/**
 * Serve one harness until it sends `stop` or the channel closes.
 *
 * @param channel `send(message)` and `receive()`, which gives null at its end.
 * @param host What the agent runs in.
 */
export async function serve(channel, host) {
  const fingerprint = await host.fingerprint();
  let target;
  try {
    const loadedEarly = await host.importEarly?.(fingerprint);
    await channel.send(['imported']);
    const message = await channel.receive(); // a spare process waits here until it is needed
    if (message?.[0] !== 'config') return;
    const config = message[1];
    const { ort, offered } = loadedEarly ?? (await host.load(config, fingerprint));
    target = new Target(ort, config, offered, fingerprint);
    await target.checkOptions(host);
    await host.watch?.(ort);
  } catch (error) {
    if (error instanceof OptionRejected) {
      await channel.send(['rejected', error.key, textOf(error), host.printed(), fingerprint]);
    } else if (error instanceof Unavailable) {
      await channel.send(['unavailable', error.code, textOf(error), host.printed(), fingerprint]);
    } else {
      await channel.send(['failed', `${kindOf(error)}: ${textOf(error)}`]);
    }
    return;
  }
  host.forgetPrinted();
  await channel.send(['ready', fingerprint]);
  const models = new Models(channel, host);
  for (let message; (message = await channel.receive()) !== null; ) {
    if (message[0] === 'stop') return;
    if (message[0] !== 'job') continue; // a piece of a model that another job asked for
    if (!(await serveJob(channel, host, target, models, message[1], message[2]))) return;
  }
}

/** Run one job, send the result, and close the session; return whether the process is fit for another job. */
async function serveJob(channel, host, target, models, id, job) {
  const began = performance.now();
  const { result, session } = await play(channel, host, target, models, id, job);
  await channel.send(['result', id, result]);
  const closing = performance.now();
  let sick = session?.sick ?? '';
  try {
    await session?.close();
  } catch (error) {
    sick ||= `the session cannot be closed: ${textOf(error)}`;
  }
  const after = {
    teardown_ms: elapsed(closing),
    took_ms: elapsed(began),
    processor_ms: host.processorMs(),
    rss_mib: await host.residentMib(),
  };
  if (sick) after.sick = sick;
  host.forgetPrinted(); // what a teardown prints does not belong to the next cell
  await channel.send(['done', id, after]);
  return !sick;
}

async function play(channel, host, target, models, id, job) {
  let model;
  try {
    model = await models.get(id, job.model);
  } catch (error) {
    const message = `the model did not arrive: ${kindOf(error)}: ${textOf(error)}`;
    return { result: { status: 'unfeedable', phase: 'create', timings_ms: {}, message, output: host.printed() } };
  }
  const session = new Job(target, host, job, model, (phase) => channel.send(['phase', id, phase]));
  return { result: await session.play(), session };
}
