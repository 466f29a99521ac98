// Models as jobs name them: a path that this process can read, or a list of files that the harness sends.

const KEPT_BYTES = 256 * 2 ** 20; // of models that came from the harness: several cells have the same one

/** The models of a channel. */
export class Models {
  constructor(channel, host) {
    this.channel = channel;
    this.host = host;
    this.kept = new Map(); // digest -> model, the one used last at the end
    this.bytes = 0;
  }

  /**
   * Return a model: its `bytes`, its `path` if it has one, and its `external` files.
   *
   * @param {number} job The job that needs it.
   * @param {string | {digest: string, files: [string, number, string][]}} model As the job names it.
   */
  async get(job, model) {
    if (typeof model === 'string') return { path: model, bytes: this.host.read(model), external: [] };
    const known = this.kept.get(model.digest);
    if (known) {
      this.kept.delete(model.digest);
      this.kept.set(model.digest, known);
      return known;
    }
    const outside = model.files.find(([name]) => !isInside(name));
    if (outside) throw new Error(`${outside[0].slice(-60)} is not inside the folder of the model`);
    const files = [];
    for (const [name, size, sha256] of model.files) {
      const data = await this.#fetch(job, name, size);
      if ((await digest(data)) !== sha256) throw new Error(`${name} changed during the transfer`);
      files.push({ path: name, data });
    }
    const [{ data: bytes }, ...external] = files;
    this.#keep(model.digest, { bytes, external });
    return { bytes, external };
  }

  async #fetch(job, name, size) {
    const data = new Uint8Array(size);
    for (let offset = 0; offset < size; ) {
      const arriving = this.channel.piece(job, name, offset); // before the answer can come
      await this.channel.send(['need', job, name, offset]);
      const content = await arriving;
      if (!content?.length || offset + content.length > size) throw new Error(`${name} can no longer be read`);
      data.set(content, offset);
      offset += content.length;
    }
    return data;
  }

  #keep(key, model) {
    const size = ({ bytes, external }) => external.reduce((sum, { data }) => sum + data.length, bytes.length);
    this.kept.set(key, model);
    this.bytes += size(model);
    for (const [oldest, other] of this.kept) {
      if (this.bytes <= KEPT_BYTES || oldest === key) break;
      this.kept.delete(oldest);
      this.bytes -= size(other);
    }
  }
}

/** Return whether a name leads to a file below the folder of its model. */
function isInside(name) {
  return !/^[/\\]|^[A-Za-z]:|\\/.test(name) && name.split('/').every((part) => part && part !== '.' && part !== '..');
}

async function digest(data) {
  const { subtle } = globalThis.crypto ?? (await import('node:crypto')).webcrypto; // Node.js 18 has no global one
  const sum = new Uint8Array(await subtle.digest('SHA-256', data));
  return Array.from(sum, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
