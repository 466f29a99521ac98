// The table of models: filters, order, and a way through it by keyboard.

const form = document.getElementById("filter");
const shown = document.getElementById("filter-count");
const grid = document.querySelector("table.grid");
const heads = Array.from(grid.tHead.rows[0].cells).slice(1);
// Worst first.
const TONES = ["failed", "unsupported", "untested", "weak", "partial", "passed", "excluded", "skipped", "missing"];

// What a filter and an order look at: the classes and the verdict of a square.
function lookOf(classes, text) {
  const tone = classes[0] ?? "";
  const verdict = { passed: "pass", weak: "weak golden", partial: "pass partial" }[tone]
    ?? /^\S+ ([^,!]*)/.exec(text)?.[1].trim();
  return { tone, classes, verdict };
}

function toneOf(cell) {
  return cell.classList[0] ?? "";
}

// Rows in their original order: `first` is the number of the record behind the first square. Rows of other files
// have no element until they are shown.
let squares = 0;
const suites = Array.from(grid.tBodies, (body) => {
  const title = body.rows[0].querySelector(".suite-name").textContent;
  const rows = Array.from(body.rows).slice(1).map((row) => {
    const cells = Array.from(row.cells).slice(1);
    const first = squares;
    squares += cells.filter((cell) => cell.className).length;
    const looks = cells.map((cell) => (cell.className ? lookOf([...cell.classList], cell.textContent) : null));
    return { row, cells, looks, first, name: `${title}/${row.cells[0].textContent}`.toLowerCase() };
  });
  return { body, title, rows };
});

// Columns are hidden by a rule of the page's own style sheet: thousands of squares need not be touched.
const sheet = document.styleSheets[0];
let rules = 0;
function showColumns(wanted) {
  while (rules) {
    sheet.deleteRule(0);
    rules -= 1;
  }
  heads.forEach((_, index) => {
    if (!wanted[index]) {
      sheet.insertRule(`.grid tr > :nth-child(${index + 2}) { display: none; }`, 0);
      rules += 1;
    }
  });
}

function columnsWanted() {
  const wanted = heads.map(() => true);
  for (const select of form.querySelectorAll("select.columns")) {
    const columns = select.selectedOptions[0]?.dataset.columns;
    if (columns !== undefined) {
      const chosen = new Set(columns.split(" ").map(Number));
      wanted.forEach((_, index) => {
        wanted[index] &&= chosen.has(index);
      });
    }
  }
  return wanted;
}

const MOST_FROM_ELSEWHERE = 500;
let chosen = { column: -1, direction: 0 };

function elementOf({ file, model, looks }) {
  const row = document.createElement("tr");
  const head = document.createElement("th");
  head.scope = "row";
  const link = (text) => {
    const made = document.createElement("a");
    made.textContent = text;
    made.href = `${file}#?${new URLSearchParams({ q: model })}`;
    return made;
  };
  head.append(link(model));
  row.append(head);
  looks.forEach((look) => {
    const cell = row.insertCell();
    if (look) {
      cell.className = look.classes.join(" ");
      cell.append(link(`${look.text}${look.classes.includes("unexpected") ? " !" : ""}`));
      cell.firstChild.tabIndex = -1; // the link of the row leads there too
    }
  });
  return row;
}

function show() {
  const text = form.elements.q.value.trim().toLowerCase();
  const verdict = form.elements.verdict.value;
  const tones = Array.from(form.querySelectorAll("input:checked"), (box) => box.value);
  const wanted = columnsWanted();
  showColumns(wanted);
  const everything = !verdict && !tones.length;
  const narrowed = text || !everything;
  const { column, direction } = chosen;
  const reaches = narrowed || direction !== 0;
  let count = 0;
  let total = 0;
  let made = 0;
  let left = 0;
  for (const { body, rows } of suites) {
    let visible = 0;
    const ordered = direction
      ? rows.toSorted((one, other) => direction * (rank(one.looks[column]) - rank(other.looks[column])))
      : rows;
    for (const each of ordered) {
      const keep = each.name.includes(text) && (everything || each.looks.some((look, index) =>
        wanted[index] && look
        && (!verdict || look.verdict === verdict)
        && (!tones.length || tones.some((tone) => look.classes.includes(tone)))));
      count += keep;
      let shows = keep;
      if (each.file) {
        shows &&= reaches && made < MOST_FROM_ELSEWHERE;
        made += shows;
        left += keep && !shows;
        each.row ??= shows ? elementOf(each) : null;
      }
      if (each.row) {
        each.row.hidden = !shows;
      }
      visible += shows;
    }
    body.append(...ordered.filter(({ row }) => row).map(({ row }) => row));
    body.hidden = !visible;
    total += rows.length;
  }
  heads.forEach((head, index) => {
    if (direction && index === column) {
      head.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
    } else {
      head.removeAttribute("aria-sort");
    }
  });
  const some = reaches && left ? `; ${left.toLocaleString("en")} of them on other pages are not listed here` : "";
  const columns = wanted.filter(Boolean).length;
  const narrower = columns < wanted.length ? [`${columns} of ${wanted.length} columns`] : [];
  const fewer = narrowed || some
    ? [`${count.toLocaleString("en")} of ${total.toLocaleString("en")} models${some}`] : [];
  shown.textContent = [...fewer, ...narrower].join(", ");
}

function rank(look) {
  const found = TONES.indexOf(look?.tone ?? "");
  return found < 0 ? TONES.length : found;
}

// Further state in the address, beside the filters and the order: the open cell.
const besides = new Map();

function keep() {
  const pairs = [...Array.from(new FormData(form)).filter(([, value]) => value), ...besides];
  const sorted = order.write(heads);
  if (sorted) {
    pairs.push(["sort", sorted]);
  }
  state.write(pairs);
}

function restore() {
  const kept = state.read();
  for (const field of form.querySelectorAll("input, select")) {
    if (field.type === "checkbox") {
      field.checked = kept.getAll("family").includes(field.value);
    } else {
      field.value = kept.get(field.name) ?? "";
    }
    if (field.localName === "select" && field.selectedIndex < 0) {
      field.selectedIndex = 0; // a link to another run's value
    }
  }
  const { column, direction } = order.read(kept.get("sort"), heads);
  chosen = { column, direction: column < 0 ? 0 : direction };
}

heads.forEach((head, column) => {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "sort";
  button.title = "Order the models by this column, failures first";
  button.append(...head.childNodes);
  head.append(button);
  button.addEventListener("click", () => {
    const next = { ascending: -1, descending: 0 }[head.getAttribute("aria-sort")] ?? 1;
    chosen = { column, direction: next };
    show();
    keep();
  });
});
form.addEventListener("input", () => {
  show();
  keep();
});
form.addEventListener("reset", () => setTimeout(() => {
  chosen = { column: -1, direction: 0 };
  show();
  keep();
}));
form.addEventListener("submit", (event) => event.preventDefault());
form.hidden = false;
restore();
show();
const asked = state.read().get("cell");
// The links to the other pages of the table have the state from the start.
if (location.hash.startsWith("#?")) {
  keep();
}

// One square at a time can be reached by Tab; arrows go on from there.
let current = null;
function focusOn(cell) {
  current?.removeAttribute("tabindex");
  current = cell;
  cell.tabIndex = 0;
  cell.focus({ preventScroll: true });
  cell.scrollIntoView({ block: "nearest", inline: "nearest" });
}
function neighbour(cell, rows, columns) {
  const visible = Array.from(grid.querySelectorAll("tbody:not([hidden]) > tr:not(.suite):not([hidden])"));
  const row = visible[visible.indexOf(cell.parentElement) + rows];
  if (!columns) {
    return row?.cells[cell.cellIndex];
  }
  let next = cell;
  do {
    next = columns > 0 ? next.nextElementSibling : next.previousElementSibling;
  } while (next && getComputedStyle(next).display === "none");
  return next?.localName === "td" ? next : undefined;
}
const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
grid.addEventListener("keydown", (event) => {
  const cell = event.target.closest("td");
  const step = STEPS[event.key];
  if (cell && step) {
    const next = neighbour(cell, ...step);
    if (next) {
      focusOn(next);
    }
    event.preventDefault();
  }
});
addEventListener("keydown", (event) => {
  if (event.key === "/" && !/^(input|select|textarea)$/.test(event.target.localName ?? "")) {
    form.elements.q.focus();
    event.preventDefault();
  }
});
current = grid.querySelector("tbody tr:not(.suite):not([hidden]) td");
if (current) {
  current.tabIndex = 0;
}

// The index of all models, in the first of several files: a filter and an order then cover the rows of every file.
function suiteOf(title) {
  const known = suites.find((suite) => suite.title === title);
  if (known) {
    return known;
  }
  const body = grid.createTBody();
  const row = body.insertRow();
  row.className = "suite";
  const head = document.createElement("th");
  head.scope = "rowgroup";
  head.textContent = title;
  row.append(head, ...heads.map(() => document.createElement("td")));
  const made = { body, title, rows: [] };
  suites.push(made);
  return made;
}

async function addRowsOfOtherFiles() {
  const index = JSON.parse(await unpacked(everywhere));
  const starts = everywhere.dataset.files.split(" ").map(Number);
  const looks = index.looks.map(([classes, text]) => ({ ...lookOf(classes.split(" "), text), text }));
  let number = -1;
  for (const [title, models] of index.suites) {
    for (const [model, letters] of models) {
      number += 1;
      if (number >= starts[1]) {
        const page = starts.findLastIndex((start) => start <= number) + 1;
        const its = Array.from(letters, (letter) => looks[letter.codePointAt(0) - 97] ?? null);
        suiteOf(title).rows.push({
          file: `models-${page}.html`,
          model,
          looks: its,
          name: `${title}/${model}`.toLowerCase(),
        });
      }
    }
  }
}

const everywhere = document.getElementById("everywhere");
const ready = everywhere && "DecompressionStream" in window ? addRowsOfOtherFiles().then(show) : null;
