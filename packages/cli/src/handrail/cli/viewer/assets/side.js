// What stands above and beside the feed: the title and the verdict, totals, tokens, agents and boundaries.

const LISTED = 400;

function drawHead(head) {
  const { verified } = data;
  const until = data.ended > data.begun ? ` to ${day(data.ended) === day(data.begun) ? "" : `${day(data.ended)}, `}${clock(data.ended)}` : "";
  const when = data.begun ? `${day(data.begun)}, ${clock(data.begun)}${until} UTC` : data.written ? `written ${day(data.written)}, ${clock(data.written)} UTC` : "";
  const said = [when, data.ended > data.begun ? lasted(data.ended - data.begun) : "", data.source ? `imported from ${data.source}` : "", data.format];
  head.append(make("h1", "", data.title || "A session without a title"), make("p", "dim", said.filter(Boolean).join(" · ")));
  const verdict = make("p", `verdict ${verified.ok ? "good" : "bad"}`, make("b", "", verified.ok ? "✓ " : "✗ ", verified.state), verified.text.slice(verified.state.length));
  head.append(verdict);
  if (verified.details) head.append(list(verified.details, "details bad"));
  if (data.remarks) {
    const more = make("details", "remarks", make("summary", "", counted(data.remarks.length, "remark")), list(data.remarks, "details"));
    head.append(more);
  }
}

function list(lines, name) {
  const shown = lines.slice(0, LISTED);
  const made = make("ul", name, ...shown.map((line) => make("li", "", line)));
  if (lines.length > shown.length) made.append(make("li", "dim", `and ${number(lines.length - shown.length)} more`));
  return made;
}

function drawSide(side) {
  side.append(totals(), panel("Tokens", tokenChart()), panel("Agents", agents()));
  if (data.rows.some((row) => row.kind === "boundary")) side.append(panel("Handoffs and sub-agents", boundaries()));
}

function panel(title, inner) {
  const made = make("details", "panel", make("summary", "", make("h2", "", title)), inner);
  made.open = matchMedia("(min-width: 1000px)").matches;
  return made;
}

function totals() {
  const { totals: sum } = data;
  const entries = [["messages", number(sum.messages ?? 0)], ["model calls", number(sum.calls ?? 0)]];
  if (sum.input || sum.output) entries.push(["tokens in", number(sum.input ?? 0)], ["tokens out", number(sum.output ?? 0)]);
  if (sum.priced) entries.push([sum.priced < sum.calls ? `cost of ${sum.priced} calls` : "cost", dollars(sum.cost ?? 0)]);
  entries.push(["tool calls", number(sum.tools ?? 0)], ["handoffs", number(sum.handoffs ?? 0)]);
  if (sum.subagents) entries.push(["sub-agents", number(sum.subagents)]);
  entries.push(["errors", number(sum.errors ?? 0)]);
  return make("dl", "totals", ...entries.map(([name, value]) => make("div", name === "errors" && sum.errors ? "bad" : "", make("dt", "", name), make("dd", "", value))));
}

// The lanes of one agent at one place: a sub-agent's calls together.
function groups() {
  const made = new Map();
  data.lanes.forEach((lane, place) => {
    const name = lane.path.replace(/@[^/]*/g, "");
    const group = made.get(name) ?? { name, agent: lane.name, lanes: [], messages: 0, tokens: 0, depth: lane.depth ?? 0 };
    group.lanes.push(place);
    group.messages += lane.messages ?? 0;
    group.tokens += lane.tokens ?? 0;
    made.set(name, group);
  });
  return [...made.values()];
}

function agents() {
  const found = groups();
  if (!found.length) return make("p", "dim", "No agent took part.");
  const made = make("div", "agents");
  for (const group of found.slice(0, LISTED)) {
    const knob = button("", () => choose(knob.getAttribute("aria-pressed") === "true" ? null : group), "agent");
    const within = group.depth ? ` in ${group.name.split("/").slice(0, -1).join(" / ")}` : "";
    const calls = group.depth && group.lanes.length > 1 ? `, ${group.lanes.length} calls` : "";
    const tokens = group.tokens ? `, ${number(group.tokens)} tokens` : "";
    knob.dataset.group = group.name;
    knob.setAttribute("aria-pressed", "false");
    knob.title = "Show this agent alone, or everyone again";
    knob.append(colour(make("i", "dot"), group.agent), colour(make("span", "who", group.agent), group.agent), make("span", "dim", `${within} ${counted(group.messages, "message")}${calls}${tokens}`));
    made.append(knob);
  }
  if (found.length > LISTED) made.append(make("p", "dim", `and ${number(found.length - LISTED)} more`));
  const everyone = button("Show everyone", () => choose(null), "more");
  everyone.id = "everyone";
  everyone.hidden = true;
  made.append(everyone);
  return made;
}

function boundaries() {
  const made = make("ol", "boundaries");
  const found = [...data.rows.entries()].filter(([, row]) => row.kind === "boundary");
  for (const [place, row] of found.slice(0, LISTED)) {
    const knob = button("", () => goTo(place), "boundary-link");
    knob.append(make("span", "dim", `${row.number} `), colour(make("span", "who", row.source), row.source), make("span", "dim", row.what === "subagent" ? " asks " : " → "), colour(make("span", "who", row.target), row.target), make("span", "dim", ` ${number(row.after ?? 0)}${row.before === undefined ? "" : ` of ${number(row.before)}`}`));
    made.append(make("li", "", knob));
  }
  if (found.length > LISTED) made.append(make("li", "dim", `and ${number(found.length - LISTED)} more; h goes from one to the next`));
  return made;
}
