// Differences between any two sides. The page has all verdicts, compressed; texts of others are shown as text,
// never as markup. An address has the sides as a and b; from and to, of releases before, mean the same.

const MOST_ROWS = 2000;

function made(name, text, className = "") {
  const element = document.createElement(name);
  element.textContent = text;
  element.className = className;
  return element;
}

const table = document.getElementById("differences");

function verdictCell(label, side, [words, tone, standing], name) {
  const cell = document.createElement("td");
  cell.dataset.label = label;
  const chip = made("span", words, `chip ${tone}`);
  if (standing === "passed" || !side.linked) {
    cell.append(chip);
  } else {
    const link = document.createElement("a");
    const inQuery = table.dataset.link.includes("#?");
    link.href = table.dataset.link
      .replace("{id}", () => side.id)
      .replace("{case}", () => (inQuery ? encodeURIComponent(name) : name.replaceAll(" ", "+")));
    link.append(chip);
    cell.append(link);
  }
  return cell;
}

function compare({ cases, groups, verdicts }, from, to) {
  const told = (side) => (side.name === groups[side.group].name ? side.name : `${groups[side.group].name}: ${side.name}`);
  document.getElementById("sides").textContent = `A is ${told(from)}. B is ${told(to)}.`;
  const of = (side, index) => verdicts[side.verdicts.charCodeAt(index) - 97];
  const rows = [];
  const counts = { gained: 0, lost: 0, changed: 0 };
  cases.forEach((name, index) => {
    const [before, after] = [of(from, index), of(to, index)];
    if (before === after) {
      return;
    }
    const passes = [before[2] === "passed", after[2] === "passed"];
    counts[passes[0] === passes[1] ? "changed" : passes[1] ? "gained" : "lost"] += 1;
    rows.push([passes[0] ? 0 : passes[1] ? 1 : 2, name, before, after]);
  });
  rows.sort(([one], [other]) => one - other); // what was lost first
  table.tBodies[0].replaceChildren(...rows.slice(0, MOST_ROWS).map(([, name, before, after]) => {
    const row = document.createElement("tr");
    const head = made("th", name);
    head.scope = "row";
    row.append(head, verdictCell("A", from, before, name), verdictCell("B", to, after, name));
    return row;
  }));
  table.hidden = rows.length === 0;
  const more = document.getElementById("more");
  more.hidden = rows.length <= MOST_ROWS;
  more.textContent = `and ${(rows.length - MOST_ROWS).toLocaleString("en")} more`;
  document.getElementById("count").textContent = `${counts.gained} gained, ${counts.lost} lost, ${counts.changed} other `
    + `changes; ${cases.length - rows.length} of ${cases.length} cases have the same verdict.`;
}

async function start() {
  const told = JSON.parse(await unpacked(document.getElementById("archive")));
  const choice = document.getElementById("choice");
  const [from, to] = choice.querySelectorAll("select");
  const of = new Map(told.sides.map((one) => [one.id, one]));
  told.groups.forEach(({ ids }, index) => {
    const first = told.sides.find(({ group }) => group === index);
    for (const id of ids) {
      if (!of.has(id)) {
        of.set(id, first); // a provider on a device, or a device: its newest one
      }
    }
  });
  for (const select of [from, to]) {
    const groups = told.groups.map(({ name }) => Object.assign(document.createElement("optgroup"), { label: name }));
    for (const { id, group, name } of told.sides) {
      const option = made("option", name);
      option.value = id;
      groups[group].append(option);
    }
    select.append(...groups);
  }
  const show = () => {
    if (of.has(from.value) && of.has(to.value)) {
      compare(told, of.get(from.value), of.get(to.value));
    }
  };
  const choose = () => {
    const pairs = state.read();
    const asked = [pairs.get("a") ?? pairs.get("from"), pairs.get("b") ?? pairs.get("to")];
    const gone = asked.filter((id) => id !== null && !of.has(id));
    from.value = (of.get(asked[0]) ?? told.sides[Math.min(1, told.sides.length - 1)]).id;
    to.value = (of.get(asked[1]) ?? told.sides[0]).id;
    show();
    if (gone.length) {
      table.hidden = true;
      document.getElementById("count").textContent = "A side of this address is not here any more. Choose two others.";
    }
  };
  const keep = () => {
    const pairs = state.read();
    for (const old of ["from", "to"]) {
      pairs.delete(old);
    }
    pairs.set("a", from.value);
    pairs.set("b", to.value);
    state.write(pairs);
    show();
  };
  from.addEventListener("input", keep);
  to.addEventListener("input", keep);
  document.getElementById("swap").addEventListener("click", () => {
    [from.value, to.value] = [to.value, from.value];
    keep();
  });
  addEventListener("hashchange", choose);
  choose();
  choice.hidden = false;
}
start();
