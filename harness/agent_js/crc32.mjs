// CRC-32 as of zip, gzip and PNG.

import zlib from 'node:zlib';

const POLYNOMIAL = 0xedb88320; // of RFC 1952, reversed

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? POLYNOMIAL ^ (value >>> 1) : value >>> 1;
  return value;
});

/** Return the CRC-32 of bytes, continued from that of what comes before them. */
export const crc32 = zlib.crc32 ?? inJavaScript; // before Node.js 20.15 there is none

/** Return the same without the help of Node.js, some ten times slower. */
export function inJavaScript(bytes, before = 0) {
  let value = ~before;
  for (let index = 0; index < bytes.length; index += 1) value = TABLE[(value ^ bytes[index]) & 255] ^ (value >>> 8);
  return ~value >>> 0;
}
