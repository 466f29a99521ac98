// Only an enhancement: every page has all of its content without it.
"use strict";

// The state of a page is in the fragment, "#?key=value", which works for files as it does on a server.
const state = {
  read() {
    return new URLSearchParams(location.hash.startsWith("#?") ? location.hash.slice(2) : "");
  },
  write(pairs) {
    const text = new URLSearchParams(pairs).toString();
    history.replaceState(null, "", text ? `#?${text}` : location.pathname + location.search);
    // The links to the other pages of a table pass the state on.
    for (const link of document.querySelectorAll("nav.pages a")) {
      link.hash = text ? `?${text}` : "";
    }
  },
};

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
