// Only an enhancement: every page has all of its content without it.
"use strict";

// The state of a page is in the fragment, "#?key=value", which works for files as it does on a server.
const state = {
  read() {
    return new URLSearchParams(location.hash.startsWith("#?") ? location.hash.slice(2) : "");
  },
  write(pairs) {
    const kept = new URLSearchParams(pairs);
    const embed = this.read().get("embed");
    if (embed !== null) {
      kept.set("embed", embed); // whatever a table changes, the page stays embedded
    }
    const text = kept.toString();
    history.replaceState(null, "", text ? `#?${text}` : location.pathname + location.search);
    // The links to the other pages of a table pass the state on.
    for (const link of document.querySelectorAll("nav.pages a, a.same-state")) {
      link.hash = text ? `?${text}` : "";
    }
  },
};

// An order in the address: a heading by its words, so that it stays when columns are added. Numbers are those of
// releases before.
const order = {
  word(head) {
    return head.textContent.trim().toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "");
  },
  write(heads) {
    const head = heads.find((one) => one.hasAttribute("aria-sort"));
    return head && `${head.getAttribute("aria-sort") === "descending" ? "-" : ""}${this.word(head)}`;
  },
  read(text, heads) {
    const [, falling, name] = /^(-?)(.+)$/.exec(text ?? "") ?? [];
    const named = heads.findIndex((head) => this.word(head) === name);
    const column = named < 0 && /^\d+$/.test(name ?? "") && Number(name) < heads.length ? Number(name) : named;
    return { column, direction: falling ? -1 : 1 };
  },
};

// "#?embed" leaves the content alone, for an iframe; "#?embed=ID" only the section of this id, or around it.
function embed() {
  const wanted = state.read().get("embed");
  document.documentElement.classList.toggle("embedded", wanted !== null);
  const part = wanted ? document.getElementById(wanted) : null;
  for (const child of document.querySelector("main").children) {
    child.classList.toggle("left-out", part !== null && !child.contains(part));
  }
  for (const link of document.links) {
    link.target = wanted === null ? "" : "_top";
  }
}
addEventListener("hashchange", embed);
embed();

// Base64 of zlib, in an element of the page.
async function unpacked(element) {
  const packed = Uint8Array.from(atob(element.textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).text();
}

// Following a link to a closed cell opens it.
function openTarget() {
  const target = location.hash.startsWith("#?") ? null : document.getElementById(location.hash.slice(1));
  if (target instanceof HTMLDetailsElement) {
    target.open = true;
    target.scrollIntoView();
  }
}
addEventListener("hashchange", openTarget);
openTarget();

// A command can be copied. If the page has no access to the clipboard, as for files, it is selected.
function copyButton(code) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    const range = document.createRange();
    range.selectNodeContents(code);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    let copied = false;
    try {
      await navigator.clipboard.writeText(code.textContent);
      copied = true;
    } catch {
      copied = document.execCommand("copy");
    }
    button.textContent = copied ? "Copied" : "Selected";
  });
  return button;
}
for (const code of document.querySelectorAll("code.command")) {
  code.after(" ", copyButton(code));
}
for (const hint of document.querySelectorAll("p.script")) {
  hint.hidden = false;
}
