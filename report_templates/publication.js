// Filters of tables: a search over all texts of a row, and selects over its words, such as data-level. The choice
// is in the address. An input with data-least has a least value: a version or a day.
// The least day is kept from page to page: old results rot.
// A row "suite" is the heading of its tbody, and is there while a row of it is.
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
  for (const input of inputs) {
    const kept = state.read().get(input.name) ?? "";
    input.value = kept;
    if (input.value !== kept) {
      input.value = "";
    }
    input.addEventListener("input", () => {
      show();
      const pairs = state.read();
      inputs.forEach(({ name, value }) => (value ? pairs.set(name, value) : pairs.delete(name)));
      state.write(pairs);
    });
  }
  show();
}
function passOn() {
  const from = state.read().get("from");
  for (const link of document.querySelectorAll("header nav a")) {
    link.hash = from ? `?${new URLSearchParams({ from })}` : "";
  }
}
addEventListener("input", passOn);
passOn();
