// Differences between any two submissions of a profile. The page has all verdicts, compressed; texts of submissions
// are shown as text, never as markup.

async function unpack() {
  const packed = Uint8Array.from(atob(document.getElementById("archive").textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

function made(name, text, className = "") {
  const element = document.createElement(name);
  element.textContent = text;
  element.className = className;
  return element;
}

function verdictCell(label, submission, [words, tone, standing], name) {
  const cell = document.createElement("td");
  cell.dataset.label = label;
  const chip = made("span", words, `chip ${tone}`);
  if (standing === "passed") {
    cell.append(chip);
  } else {
    const link = document.createElement("a");
    link.href = `../../s/${submission.id}/index.html#case-${name.replaceAll(" ", "+")}`;
    link.append(chip);
    cell.append(link);
  }
  return cell;
}

function compare({ cases, verdicts, submissions }, from, to) {
  const of = (submission, index) => verdicts[submission.verdicts.charCodeAt(index) - 97];
  const rows = [];
  const counts = { gained: 0, lost: 0, changed: 0 };
  cases.forEach((name, index) => {
    const [before, after] = [of(from, index), of(to, index)];
    if (before === after) {
      return;
    }
    const passes = [before[2] === "passed", after[2] === "passed"];
    counts[passes[0] === passes[1] ? "changed" : passes[1] ? "gained" : "lost"] += 1;
    const row = document.createElement("tr");
    const head = made("th", name);
    head.scope = "row";
    row.append(head, verdictCell("From", from, before, name), verdictCell("To", to, after, name));
    rows.push([passes[0] ? 0 : passes[1] ? 1 : 2, row]);
  });
  rows.sort(([one], [other]) => one - other); // what was lost first
  const table = document.getElementById("changes");
  table.tBodies[0].replaceChildren(...rows.map(([, row]) => row));
  table.hidden = rows.length === 0;
  document.getElementById("count").textContent = `${counts.gained} gained, ${counts.lost} lost, ${counts.changed} other `
    + `changes; ${cases.length - rows.length} of ${cases.length} cases have the same verdict.`;
}

async function start() {
  const told = await unpack();
  const choice = document.getElementById("choice");
  const [from, to] = choice.querySelectorAll("select");
  const of = new Map(told.submissions.map((one) => [one.id, one]));
  for (const select of [from, to]) {
    let group = null;
    for (const { id, line, name } of told.submissions) {
      if (group?.label !== line) {
        group = document.createElement("optgroup");
        group.label = line;
        select.append(group);
      }
      const option = made("option", name);
      option.value = id;
      group.append(option);
    }
  }
  const show = () => {
    if (of.has(from.value) && of.has(to.value)) {
      compare(told, of.get(from.value), of.get(to.value));
    }
  };
  const choose = () => {
    const asked = state.read();
    const gone = ["from", "to"].filter((name) => asked.has(name) && !of.has(asked.get(name)));
    from.value = of.has(asked.get("from")) ? asked.get("from") : told.submissions[Math.min(1, told.submissions.length - 1)].id;
    to.value = of.has(asked.get("to")) ? asked.get("to") : told.submissions[0].id;
    show();
    if (gone.length) {
      document.getElementById("changes").hidden = true;
      document.getElementById("count").textContent = "A submission of this address is not published any more. Choose two others.";
    }
  };
  const keep = () => {
    state.write({ from: from.value, to: to.value });
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
