// Which provider each node was assigned to, from what onnxruntime writes into its verbose log when a session is
// made. The JavaScript API offers nothing else: no assignment record, and in a browser no file for a profile.

const PLACED = /VerifyEachNodeIsAssignedToAnEp\]\s+(All nodes|Node\(s\)) placed on \[([^\]]*)\]\. Number of nodes: (\d+)/;
const NODE = /VerifyEachNodeIsAssignedToAnEp\]\s+([^\s(]+) \(/;
const BEGIN = /VerifyEachNodeIsAssignedToAnEp\] Node placements/;
const MARK = 'VerifyEachNodeIsAssignedToAnEp';

// Copies between devices, which onnxruntime inserts after it has assigned the nodes.
const COPIES = new Set(['MemcpyToHost', 'MemcpyFromHost']);

/**
 * Return what the log says about a session.
 *
 * @param {string} log What was printed while one session was made.
 * @returns {{provider: string, count: number, ops: Object<string, number> | null}[] | null} One entry for each
 *   provider in each graph; `ops` is null where the log lists no nodes. Null if the log is no evidence.
 */
export function placedGroups(log) {
  if (!log.includes(MARK)) return null;
  const groups = [];
  let begun = false;
  let rest = 0;
  for (const line of log.split('\n')) {
    if (!line.includes(MARK)) continue;
    if (BEGIN.test(line)) {
      begun = true;
      continue;
    }
    const placed = PLACED.exec(line);
    if (placed) {
      if (rest) return null; // the nodes of the group before are not all there
      const count = Number(placed[3]);
      const all = placed[1] === 'All nodes';
      groups.push({ provider: placed[2], count, ops: all ? null : {} });
      rest = all ? 0 : count;
      continue;
    }
    const node = NODE.exec(line);
    if (node && rest) {
      const { ops } = groups[groups.length - 1];
      ops[node[1]] = (ops[node[1]] ?? 0) + 1;
      rest -= 1;
    }
  }
  return begun && !rest ? groups : null;
}

/** Return whether a text from a model could pass for a line of the log: then the log is no evidence. */
export function couldForge(bytes) {
  const mark = new TextEncoder().encode(MARK);
  outer: for (let at = bytes.indexOf(mark[0]); at >= 0; at = bytes.indexOf(mark[0], at + 1)) {
    for (let index = 1; index < mark.length; index += 1) if (bytes[at + index] !== mark[index]) continue outer;
    return true;
  }
  return false;
}

/**
 * Return the placement as the result of a job has it.
 *
 * Where all nodes went to one provider, the log gives their number only. Their operators are then those of the
 * model, as far as they depend on its inputs: what onnxruntime merged or replaced is not seen.
 *
 * @param groups From `placedGroups`.
 * @param {string[]} own Names under which the log lists the target's provider.
 * @param {() => Object<string, number>} modelOps Operators of the model with the number of their nodes.
 */
export function placementOf(groups, own, modelOps) {
  const counts = { true: {}, false: {} };
  const nodes = { true: 0, false: 0 };
  for (const { provider, count, ops } of groups) {
    const side = own.includes(provider);
    const listed = ops ?? (count ? modelOps() : {});
    for (const [op, number] of Object.entries(listed)) {
      if (COPIES.has(op)) continue;
      counts[side][op] = (counts[side][op] ?? 0) + number;
      if (ops) nodes[side] += number;
    }
    if (!ops) nodes[side] += count;
  }
  return {
    ep_nodes: nodes.true,
    cpu_nodes: nodes.false,
    ep_ops: counts.true,
    cpu_ops: counts.false,
    partitions: nodes.true, // what a compiling provider has fused is one node of the log
    source: 'log',
  };
}
