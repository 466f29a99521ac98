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

function arrange({ table, body, rows }, column, direction) {
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

function keyOf(table, index) {
  return `sort.${table.id || index}`;
}

function keep() {
  const pairs = state.read(); // other filters of the page have theirs in it
  tables.forEach(({ table }, index) => {
    pairs.delete(`sort${index}`);
    pairs.delete(keyOf(table, index));
    const chosen = order.write(Array.from(table.tHead.rows[0].cells));
    if (chosen) {
      pairs.set(keyOf(table, index), chosen);
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
      arrange(one, direction ? column : -1, direction);
      keep();
    });
  });
  const kept = state.read().get(keyOf(one.table, index)) ?? state.read().get(`sort${index}`);
  const { column, direction } = order.read(kept, Array.from(one.table.tHead.rows[0].cells));
  if (column >= 0) {
    arrange(one, column, direction);
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
