// The table of models: filters, order, and a way through it by keyboard.

const form = document.getElementById("filter");
const shown = document.getElementById("filter-count");
const grid = document.querySelector("table.grid");
const heads = Array.from(grid.tHead.rows[0].cells).slice(1);
// Worst first.
const TONES = ["failed", "unsupported", "untested", "weak", "partial", "passed", "excluded", "skipped", "missing"];

// Rows in their original order: `first` is the number of the record behind the first square.
let squares = 0;
const suites = Array.from(grid.tBodies, (body) => {
  const name = body.rows[0].querySelector(".suite-name").textContent;
  const rows = Array.from(body.rows).slice(1).map((row) => {
    const cells = Array.from(row.cells).slice(1);
    const first = squares;
    squares += cells.filter((cell) => cell.className).length;
    return { row, cells, first, name: `${name}/${row.cells[0].textContent}`.toLowerCase() };
  });
  return { body, rows };
});

function toneOf(cell) {
  return cell.classList[0] ?? "";
}

function verdictOf(cell) {
  if (toneOf(cell) === "passed") {
    return "pass";
  }
  if (toneOf(cell) === "weak") {
    return "weak golden";
  }
  return toneOf(cell) === "partial" ? "pass partial" : /^\S+ ([^,!]*)/.exec(cell.textContent)?.[1].trim();
}

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

function filter() {
  const text = form.elements.q.value.trim().toLowerCase();
  const verdict = form.elements.verdict.value;
  const tones = Array.from(form.querySelectorAll("input:checked"), (box) => box.value);
  const wanted = columnsWanted();
  showColumns(wanted);
  const everything = !verdict && !tones.length;
  let count = 0;
  let total = 0;
  for (const { body, rows } of suites) {
    let visible = 0;
    for (const { row, cells, name } of rows) {
      const keep = name.includes(text) && (everything || cells.some((cell, index) =>
        wanted[index] && cell.className
        && (!verdict || verdictOf(cell) === verdict)
        && (!tones.length || tones.some((tone) => cell.classList.contains(tone)))));
      row.hidden = !keep;
      visible += keep;
    }
    body.hidden = !visible;
    count += visible;
    total += rows.length;
  }
  const narrowed = text || !everything;
  shown.textContent = narrowed ? `${count.toLocaleString("en")} of ${total.toLocaleString("en")} models` : "";
}

function rank(cell) {
  const found = TONES.indexOf(toneOf(cell));
  return found < 0 ? TONES.length : found;
}

function arrange(column, direction) {
  for (const { body, rows } of suites) {
    const sorted = direction
      ? rows.toSorted((one, other) => direction * (rank(one.cells[column]) - rank(other.cells[column])))
      : rows;
    body.append(...sorted.map(({ row }) => row));
  }
  heads.forEach((head, index) => {
    if (direction && index === column) {
      head.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
    } else {
      head.removeAttribute("aria-sort");
    }
  });
}

// Further state in the address, beside the filters and the order: the open cell.
const besides = new Map();

function keep() {
  const pairs = [...Array.from(new FormData(form)).filter(([, value]) => value), ...besides];
  const chosen = order.write(heads);
  if (chosen) {
    pairs.push(["sort", chosen]);
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
  if (column >= 0) {
    arrange(column, direction);
  }
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
    arrange(column, next);
    keep();
  });
});
form.addEventListener("input", () => {
  filter();
  keep();
});
form.addEventListener("reset", () => setTimeout(() => {
  arrange(-1, 0);
  filter();
  keep();
}));
form.addEventListener("submit", (event) => event.preventDefault());
form.hidden = false;
restore();
filter();
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
