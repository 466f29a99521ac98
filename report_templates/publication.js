// The rows of the start page, by level; the search of tables.js looks at names alone, this one at all texts.
for (const input of document.querySelectorAll(".all-filter")) {
  const rows = Array.from(document.getElementById(input.dataset.of).tBodies[0].rows);
  const level = document.getElementById("level");
  const show = () => {
    const wanted = input.value.trim().toLowerCase();
    for (const row of rows) {
      row.hidden = !row.textContent.toLowerCase().includes(wanted)
        || (level.value !== "" && !row.dataset.levels.split(" ").includes(level.value));
    }
  };
  input.closest(".filter").hidden = false;
  input.addEventListener("input", show);
  level.addEventListener("change", show);
}
