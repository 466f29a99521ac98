// A drawer shows everything recorded about the cell of a square. The page contains its records, compressed;
// they are unpacked when the first one is needed, and shown as text, never as markup.

const MOST_IN_A_ROW = 8;
const drawer = document.getElementById("drawer");
let lines = null;

async function records() {
  lines ??= unpacked(document.getElementById("archive"));
  return (await lines).split("\n");
}

async function entry(number) {
  return JSON.parse((await records())[number]);
}

// Terminal colours are removed; invisible characters are spelled out, as everywhere in the report.
const ANSI = /\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])/g;
const INVISIBLE = /[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff\p{Cs}\u{e0000}-\u{e0fff}]/gu;
function visible(text) {
  return text.replace(ANSI, "").replace(INVISIBLE, (c) => `\\u${c.codePointAt(0).toString(16).padStart(4, "0")}`);
}

function element(name, text, className = "") {
  const made = document.createElement(name);
  made.textContent = visible(String(text));
  made.className = className;
  return made;
}

function shownValue(value) {
  if (value === null) {
    return "–";
  }
  if (typeof value === "number") {
    return Number.isInteger(value) ? value.toLocaleString("en") : Number(value.toPrecision(4)).toString();
  }
  if (Array.isArray(value)) {
    return value.map(shownValue).join(", ");
  }
  if (typeof value === "object") {
    return Object.entries(value).map(([key, inner]) => `${key} ${shownValue(inner)}`).join(", ");
  }
  return String(value);
}

function isTable(value) {
  return Array.isArray(value) && value.length > 0 && value.every((item) => item !== null && typeof item === "object");
}

// A list in a row of a table, such as a divergence for each position, must not make the table endless.
function shownPart(value) {
  const long = Array.isArray(value) && value.length > MOST_IN_A_ROW;
  return long ? `${shownValue(value.slice(0, MOST_IN_A_ROW))}, … ${value.length.toLocaleString("en")} in all` : shownValue(value);
}

// A nested table of a row, such as its noise, becomes columns: "noise rms".
function flat(row) {
  return Object.fromEntries(Object.entries(row).flatMap(([key, value]) => {
    const nested = value !== null && typeof value === "object" && !Array.isArray(value);
    return nested ? Object.entries(value).map(([inner, part]) => [`${key} ${inner}`, part]) : [[key, value]];
  }));
}

function tableOf(items) {
  const rows = items.map(flat);
  const keys = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const table = document.createElement("table");
  table.className = "metrics";
  const head = table.createTHead().insertRow();
  head.append(...keys.map((key) => Object.assign(element("th", key.replaceAll("_", " ")), { scope: "col" })));
  const body = table.createTBody();
  for (const row of rows) {
    body.insertRow().append(...keys.map((key) => element("td", shownPart(row[key] ?? null))));
  }
  const box = document.createElement("div");
  box.className = "scroll";
  box.append(table);
  return box;
}

function pairs(record, path = "") {
  return Object.entries(record).flatMap(([key, value]) => {
    const name = `${path}${key.replaceAll("_", " ")}`;
    const nested = value !== null && typeof value === "object" && !Array.isArray(value);
    return nested && !path ? pairs(value, `${name}: `) : [[name, value]];
  });
}

const every = suites.flatMap(({ rows }) => rows);

function numberOf(cell) {
  const { first, cells } = every.find(({ row }) => row === cell.parentElement) ?? {};
  return cells && first + cells.slice(0, cells.indexOf(cell)).filter((other) => other.className).length;
}

function squareOf(number) {
  const { first, cells } = every.findLast((row) => row.first <= number && row.cells.some((cell) => cell.className));
  return cells.filter((cell) => cell.className)[number - first];
}

async function open(cell) {
  const number = numberOf(cell);
  const [command, { schema, cell: id, verdict, ...record }] = await entry(number);
  const close = element("button", "Close", "close");
  close.type = "button";
  close.addEventListener("click", () => drawer.close());
  const title = element("h2", verdict.replaceAll("_", " "));
  title.id = "drawer-title";
  const list = document.createElement("dl");
  const tables = [];
  for (const [key, value] of pairs(record)) {
    if (isTable(value)) {
      tables.push(element("h3", key), tableOf(value));
    } else {
      list.append(element("dt", key), element("dd", shownValue(value)));
    }
  }
  const code = element("code", command, "command");
  const again = document.createElement("p");
  again.append(code, " ", copyButton(code));
  const parts = [close, title, element("p", id, "id"), again, list, ...tables];
  const link = cell.querySelector("a");
  if (link) {
    const more = document.createElement("p");
    more.append(Object.assign(element("a", "Details of this cell, with the output of its process"), { href: link.href }));
    parts.splice(4, 0, more);
  }
  drawer.className = toneOf(cell);
  drawer.replaceChildren(...parts);
  drawer.showModal();
  drawer.scrollTop = 0;
  besides.set("cell", id);
  keep();
}

// A link to a cell opens it; the first of several files leads to the one that has it.
async function openAsked(id) {
  const number = (await records()).findIndex((line) => line && JSON.parse(line)[1].cell === id);
  if (number >= 0) {
    const cell = squareOf(number);
    cell.scrollIntoView({ block: "center" });
    open(cell);
    return;
  }
  await ready;
  const model = decodeURIComponent(id.slice(0, id.lastIndexOf("["))).toLowerCase();
  const elsewhere = suites.flatMap(({ rows }) => rows).find(({ file, name }) => file && name === model);
  if (elsewhere) {
    location.replace(`${elsewhere.file}#?${new URLSearchParams({ cell: id })}`);
  }
}

// A browser that cannot unpack follows the links to the details instead.
const unpacks = "DecompressionStream" in window;
if (unpacks) {
  for (const link of grid.querySelectorAll("tbody td a")) {
    link.tabIndex = -1; // its square opens the drawer, which has the link
  }
}

grid.addEventListener("click", (event) => {
  const cell = event.target.closest("tbody tr:not(.suite) td");
  if (unpacks && cell?.className && numberOf(cell) !== undefined && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
    event.preventDefault();
    focusOn(cell);
    open(cell);
  }
});
grid.addEventListener("keydown", (event) => {
  const cell = event.target.closest("td");
  if (unpacks && (event.key === "Enter" || event.key === " ") && cell?.className) {
    event.preventDefault();
    if (numberOf(cell) === undefined) {
      cell.querySelector("a").click(); // of another file
    } else {
      open(cell);
    }
  }
});
drawer.addEventListener("click", (event) => {
  if (event.target === drawer) {
    drawer.close();
  }
});
// The event comes some time after the closing; the drawer may be open again by then.
drawer.addEventListener("close", () => {
  if (!drawer.open) {
    besides.delete("cell");
    keep();
  }
});
if (unpacks && asked) {
  openAsked(asked);
}
