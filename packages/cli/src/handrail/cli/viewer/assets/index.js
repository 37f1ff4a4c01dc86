// The page of a folder: a row for each session, to be sorted and found.

const data = JSON.parse(document.getElementById("data").textContent);
const columns = [
  ["Session", (entry) => entry.title.toLowerCase(), naming],
  ["State", (entry) => entry.state, (entry) => make("span", entry.ok ? "good" : "bad", `${entry.ok ? "✓" : "✗"} ${entry.state}`, entry.sealed ? make("span", "dim", ", sealed") : null)],
  ["Agents", (entry) => (entry.agents ?? []).length, (entry) => make("span", "", (entry.agents ?? []).slice(0, 12).join(", "), (entry.agents ?? []).length > 12 ? make("span", "dim", ` and ${entry.agents.length - 12} more`) : null)],
  ["Messages", (entry) => entry.messages ?? 0, (entry) => number(entry.messages ?? 0)],
  ["Handoffs", (entry) => entry.handoffs ?? 0, (entry) => number(entry.handoffs ?? 0)],
  ["Tokens", (entry) => entry.tokens ?? 0, (entry) => number(entry.tokens ?? 0)],
  ["Errors", (entry) => entry.errors ?? 0, (entry) => make("span", entry.errors ? "bad" : "", number(entry.errors ?? 0))],
  ["Begun (UTC)", (entry) => entry.begun ?? 0, (entry) => `${day(entry.begun)} ${clock(entry.begun)}`],
];
let sorted = 7;
let upward = false;

function naming(entry) {
  const made = make("div", "");
  if (entry.page) {
    const link = make("a", "", entry.title);
    link.href = `./${entry.page.split("/").map(encodeURIComponent).join("/")}`;
    made.append(link);
  } else made.append(make("span", "", entry.title));
  made.append(make("div", "dim", entry.file));
  if (entry.problem) made.append(make("div", "bad", entry.problem));
  return made;
}

function table() {
  const wanted = document.getElementById("query").value.toLowerCase();
  const shown = data.entries.filter((entry) => [entry.title, entry.file, entry.state, entry.problem ?? "", ...(entry.agents ?? [])].join("\n").toLowerCase().includes(wanted));
  const value = columns[sorted][1];
  shown.sort((one, other) => (value(one) < value(other) ? -1 : value(one) > value(other) ? 1 : 0) * (upward ? 1 : -1));
  const head = make("tr");
  columns.forEach(([name], at) => {
    const knob = button(name, () => {
      upward = at === sorted ? !upward : at < 3;
      sorted = at;
      table();
      document.querySelectorAll("th button")[at].focus();
    });
    const cell = make("th", at > 2 && at < 7 ? "num" : "", knob);
    cell.scope = "col";
    cell.setAttribute("aria-sort", at === sorted ? (upward ? "ascending" : "descending") : "none");
    if (at === sorted) knob.append(make("span", "arrow", upward ? " ↑" : " ↓"));
    head.append(cell);
  });
  const body = make("tbody");
  for (const entry of shown) {
    const row = make("tr");
    columns.forEach(([name, , cell], at) => {
      const made = make("td", at > 2 && at < 7 ? "num" : "", cell(entry));
      made.dataset.name = name;
      row.append(made);
    });
    body.append(row);
  }
  const made = make("table", "sessions", make("thead", "", head), body);
  document.getElementById("list").replaceChildren(shown.length ? made : make("p", "empty", "No session is like that."));
  document.getElementById("found").textContent = wanted ? `${shown.length} of ${data.entries.length}` : "";
}

document.title = `Sessions in ${data.folder}`;
const broken = data.entries.filter((entry) => !entry.ok).length;
document.getElementById("head").append(
  make("h1", "", `Sessions in ${data.folder}`),
  make("p", "dim", `${counted(data.entries.length, "session")}${broken ? `, ${broken} of them not intact` : ", all intact"}${data.passed_over ? `; ${counted(data.passed_over, "other file")} passed over` : ""}`),
);
theme();
document.getElementById("find").addEventListener("submit", (event) => event.preventDefault());
document.getElementById("query").addEventListener("input", table);
table();
