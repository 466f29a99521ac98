// An enhancement only: the page says everything without it.
"use strict";

// Following a link to a closed cell opens it.
function openTarget() {
  const target = document.getElementById(location.hash.slice(1));
  if (target instanceof HTMLDetailsElement) {
    target.open = true;
    target.scrollIntoView();
  }
}
addEventListener("hashchange", openTarget);
openTarget();

const form = document.getElementById("filter");
const text = document.getElementById("filter-text");
const shown = document.getElementById("filter-count");
const suites = Array.from(document.querySelectorAll(".grid tbody"), (body) => ({
  body,
  rows: Array.from(body.querySelectorAll("tr:not(.suite)"), (row) => ({
    row,
    name: (body.rows[0].cells[0].firstChild.data.trim() + "/" + row.cells[0].textContent).toLowerCase(),
    tones: new Set(Array.from(row.cells).flatMap((cell) => Array.from(cell.classList))),
  })),
}));

function filter() {
  const wanted = text.value.trim().toLowerCase();
  const tones = Array.from(form.querySelectorAll("input:checked"), (box) => box.value);
  let count = 0;
  let total = 0;
  for (const { body, rows } of suites) {
    let visible = 0;
    for (const { row, name, tones: found } of rows) {
      const keep = name.includes(wanted) && (!tones.length || tones.some((tone) => found.has(tone)));
      row.hidden = !keep;
      visible += keep;
    }
    body.hidden = !visible;
    count += visible;
    total += rows.length;
  }
  const narrowed = wanted || tones.length;
  shown.textContent = narrowed ? `${count.toLocaleString("en")} of ${total.toLocaleString("en")} models` : "";
}
form.addEventListener("input", filter);
form.addEventListener("submit", (event) => event.preventDefault());
form.hidden = false;
