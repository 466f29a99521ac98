// What a provider prints, as results quote it.

export const OUTPUT_LIMIT = 16384; // characters for one cell, from its head and its tail; as in harness.agent.safe_text

// Informational and verbose lines of onnxruntime's log, which only placement needs.
const LOGGED = /\[[VI]:onnxruntime:/;

/** Return printed text without the lines that the agent itself asked for, with the middle cut if it is long. */
export function withoutLog(text) {
  const kept = text
    .split('\n')
    .filter((line) => !LOGGED.test(line))
    .join('\n');
  if (kept.length <= OUTPUT_LIMIT) return kept;
  const half = OUTPUT_LIMIT / 2;
  return `${kept.slice(0, half)}\n[... ${kept.length - OUTPUT_LIMIT} characters cut ...]\n${kept.slice(-half)}`;
}
