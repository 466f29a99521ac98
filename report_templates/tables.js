// Tables are sorted by a click on a heading, and filtered by name.

const tables = Array.from(document.querySelectorAll("table.sortable"), (table) => ({
  table,
  body: table.tBodies[0],
  rows: Array.from(table.tBodies[0].rows),
}));

function sortValue(row, column) {
  const cell = row.cells[column];
  const given = cell.dataset.sort;
  return given === undefined ? cell.textContent.trim().toLowerCase() : Number(given);
}

function order({ table, body, rows }, column, direction) {
  const sorted = column < 0 ? rows : rows.map((row, index) => ({ row, index, value: sortValue(row, column) }))
    .sort((one, other) => {
      const less = one.value < other.value ? -1 : one.value > other.value ? 1 : 0;
      return direction * less || one.index - other.index;
    })
    .map(({ row }) => row);
  body.append(...sorted);
  Array.from(table.tHead.rows[0].cells).forEach((head, index) => {
    if (index === column) {
      head.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
    } else {
      head.removeAttribute("aria-sort");
    }
  });
}

function narrow(input) {
  const { rows } = tables.find(({ table }) => table.id === input.dataset.table);
  const wanted = input.value.trim().toLowerCase();
  let shown = 0;
  for (const row of rows) {
    row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted);
    shown += !row.hidden;
  }
  const count = input.closest(".filter").querySelector("output");
  count.textContent = wanted ? `${shown.toLocaleString("en")} of ${rows.length.toLocaleString("en")}` : "";
}

const inputs = Array.from(document.querySelectorAll(".table-filter"));

function keep() {
  const pairs = state.read(); // other filters of the page have theirs in it
  tables.forEach(({ table }, index) => {
    const head = Array.from(table.tHead.rows[0].cells).findIndex((cell) => cell.hasAttribute("aria-sort"));
    pairs.delete(`sort${index}`);
    if (head >= 0) {
      const falling = table.tHead.rows[0].cells[head].getAttribute("aria-sort") === "descending";
      pairs.set(`sort${index}`, `${falling ? "-" : ""}${head}`);
    }
  });
  for (const input of inputs) {
    pairs.delete(`q.${input.dataset.table}`);
    if (input.value) {
      pairs.set(`q.${input.dataset.table}`, input.value);
    }
  }
  state.write(pairs);
}

tables.forEach((one, index) => {
  Array.from(one.table.tHead.rows[0].cells).forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const now = head.getAttribute("aria-sort");
      // Numbers are mostly wanted largest first.
      const first = one.rows.length && one.rows[0].cells[column].dataset.sort !== undefined ? -1 : 1;
      const direction = now === null ? first : now === (first > 0 ? "ascending" : "descending") ? -first : 0;
      order(one, direction ? column : -1, direction);
      keep();
    });
  });
  const [, falling, column] = /^(-?)(\d+)$/.exec(state.read().get(`sort${index}`) ?? "") ?? [];
  if (column !== undefined && Number(column) < one.table.tHead.rows[0].cells.length) {
    order(one, Number(column), falling ? -1 : 1);
  }
});
for (const input of inputs) {
  input.closest(".filter").hidden = false;
  input.value = state.read().get(`q.${input.dataset.table}`) ?? "";
  input.addEventListener("input", () => {
    narrow(input);
    keep();
  });
  narrow(input);
}
