// A browser with one page, driven by playwright-core, and how it ends.

import fs from 'node:fs';
import process from 'node:process';

const PAGE_BYTES = 4096; // of Linux's statm; x86-64 and most ARM systems
const GPU_LOOKS = 15;
const GPU_LOOK_MS = 100;

/**
 * Start a browser.
 *
 * @param chromium Of playwright-core.
 * @param {string} executable The browser's program.
 * @param {string[]} flags Further switches.
 * @param {(reason: string) => void} onEnd Called if the page or the browser ends by itself.
 */
export async function startBrowser(chromium, executable, flags, onEnd) {
  const isRoot = process.getuid?.() === 0; // Chromium's sandbox refuses the superuser
  const browser = await chromium.launch({
    executablePath: executable,
    args: flags,
    chromiumSandbox: !isRoot,
    handleSIGINT: false,
    handleSIGTERM: false,
    handleSIGHUP: false,
  });
  browser.once('disconnected', () => onEnd('the browser ended'));
  const session = await browser.newBrowserCDPSession();
  const processes = async (type) => {
    const { processInfo } = await session.send('SystemInfo.getProcessInfo');
    return processInfo.filter((each) => each.type === type).map(({ id }) => id);
  };
  session.on('Target.targetCrashed', ({ status, errorCode }) => {
    onEnd(`the tab crashed: ${status === 'oom' ? 'out of memory' : status}, code ${errorCode}`);
  });
  await session.send('Target.setDiscoverTargets', { discover: true });
  let gpu = [];
  return {
    version: browser.version(),
    async visit(address) {
      const page = await browser.newPage();
      page.once('crash', () => setTimeout(() => onEnd('the tab crashed'), 500)); // the event above says more
      await page.goto(address);
      gpu = await processes('GPU');
    },
    /** Whether the GPU process is another one than at the beginning. */
    async gpuProcessDied() {
      // The browser lists a dead process until it has noticed.
      for (let look = 0; look < GPU_LOOKS; look += 1) {
        const now = await processes('GPU');
        if (!now.some((id) => gpu.includes(id))) return true;
        await new Promise((resolve) => setTimeout(resolve, GPU_LOOK_MS));
      }
      return false;
    },
    /** Resident memory of the page's process in MiB; null where the system does not say. */
    async residentMib() {
      let most = null;
      for (const id of await processes('renderer')) {
        try {
          const pages = Number(fs.readFileSync(`/proc/${id}/statm`, 'utf8').split(' ')[1]);
          most = Math.max(most ?? 0, (pages * PAGE_BYTES) / 2 ** 20);
        } catch {
          // another system than Linux, or it has just ended
        }
      }
      return most;
    },
    close: () => browser.close(),
  };
}
