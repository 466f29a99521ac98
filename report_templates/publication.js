// Filters of tables: a search over all texts of a row, and selects over its words, such as data-level. The choice
// is in the address. An input with data-least has a least value: a version or a day; several tables may have one
// of the same name. Least values are kept from page to page: old results rot.
// A row "suite" is the heading of its tbody, and is there while a row of it is.
const filters = [];
for (const filter of document.querySelectorAll(".filter[data-of]")) {
  const bodies = Array.from(document.getElementById(filter.dataset.of).tBodies);
  const rows = bodies.flatMap((body) => Array.from(body.rows)).filter((row) => !row.classList.contains("suite"));
  const texts = new Map(rows.map((row) => [
    row,
    (row.dataset.words ?? `${row.textContent} ${row.parentElement.querySelector(".suite > th")?.textContent ?? ""}`).toLowerCase(),
  ]));
  const inputs = Array.from(filter.querySelectorAll("input, select"));
  const count = filter.querySelector("output");
  // Numbers of a version or a date, the missing ones 0: 1.9 is less than 1.24.
  const numbers = (text) => (text.match(/\d+/g) ?? []).map(Number);
  const isLess = (one, other) => {
    const [mine, theirs] = [numbers(one), numbers(other)];
    const place = theirs.findIndex((number, index) => number !== (mine[index] ?? 0));
    return place >= 0 && (mine[place] ?? 0) < theirs[place];
  };
  const show = () => {
    let shown = 0;
    for (const row of rows) {
      row.hidden = !inputs.every((input) => {
        const { name, value } = input;
        const { least } = input.dataset;
        if (name === "q") {
          return value.toLowerCase().split(/\s+/).every((word) => texts.get(row).includes(word));
        }
        if (value !== "" && least) {
          return !isLess(row.dataset[least], value);
        }
        return value === "" || row.dataset[name].split(" ").includes(value);
      });
      shown += !row.hidden;
    }
    for (const heading of document.querySelectorAll(`#${filter.dataset.of} .suite`)) {
      heading.hidden = Array.from(heading.parentElement.rows).every((row) => row === heading || row.hidden);
    }
    count.textContent = shown < rows.length ? `${shown.toLocaleString("en")} of ${rows.length.toLocaleString("en")}` : "";
  };
  filter.hidden = false;
  filters.push(() => {
    for (const input of inputs) {
      const kept = state.read().get(input.name) ?? "";
      if (input.value !== kept) {
        input.value = kept;
      }
      if (input.value !== kept) { // a choice that this page does not have
        input.value = "";
      }
    }
    show();
  });
  for (const input of inputs) {
    input.addEventListener("input", () => {
      const pairs = state.read();
      inputs.forEach(({ name, value }) => (value ? pairs.set(name, value) : pairs.delete(name)));
      state.write(pairs);
      filters.forEach((take) => take());
    });
  }
}
filters.forEach((take) => take());

// A comparison has no rows to leave out, and its address once had its first side as "from".
const links = Array.from(document.links).filter(
  (link) => !link.hash && link.pathname.endsWith(".html") && !link.pathname.endsWith("/compare.html"),
);
function passOn() {
  const kept = Array.from(state.read()).filter(([name]) => /^(from|onnxruntime|version\..*)$/.test(name));
  for (const link of links) {
    link.hash = kept.length ? `?${new URLSearchParams(kept)}` : "";
  }
}
addEventListener("input", passOn);
passOn();
