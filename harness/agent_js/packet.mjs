// Messages between browser.mjs and its page: the lengths of JSON and binary values, and both, one after the other.

const HEAD_BYTES = 8;

/** Return a message's JSON and binary values as a list of byte arrays. */
export function packet(json, parts) {
  const head = new DataView(new ArrayBuffer(HEAD_BYTES));
  head.setUint32(0, json.length, true);
  head.setUint32(4, parts.reduce((sum, part) => sum + part.length, 0), true);
  return [new Uint8Array(head.buffer), json, ...parts];
}

/** Yield JSON and binary values of each message in a content that `packet` has made. */
export function* packets(content) {
  const view = new DataView(content.buffer, content.byteOffset, content.byteLength);
  for (let at = 0; at < content.length; ) {
    const json = at + HEAD_BYTES;
    const binary = json + view.getUint32(at, true);
    const end = binary + view.getUint32(at + 4, true);
    if (end > content.length) throw new Error('a message that is cut off');
    yield { json: content.subarray(json, binary), binary: content.subarray(binary, end) };
    at = end;
  }
}
