// A row of the feed as elements: a message with its parts, a boundary as a card, or a note of one line.

const data = JSON.parse(document.getElementById("data").textContent);
const opened = new Map();
const slices = new Map();
const SHORT = 1800;
const MORE = 60000;

let all = false;
let refresh = () => {};
let goTo = () => {};

const colours = new Map();
for (const lane of data.lanes) if (!colours.has(lane.name)) colours.set(lane.name, colours.size % 8);
const places = new Map();
data.rows.forEach((row, place) => {
  if (row.kind !== "message") return;
  for (const id of [row.message.id, ...Object.values(row.results ?? {}).map((result) => result.id)]) {
    if (id && !places.has(id)) places.set(id, place);
  }
});

function colour(element, name) {
  element.dataset.colour = colours.get(name) ?? "none";
  return element;
}

function isOpen(key) {
  return opened.get(key) ?? all;
}

function fold(place, key, label, inner, name) {
  const open = isOpen(key);
  const knob = button("", () => {
    opened.set(key, !open);
    refresh(place, key);
  }, `fold ${name ?? ""}`);
  knob.dataset.key = key;
  knob.setAttribute("aria-expanded", String(open));
  knob.append(make("span", "arrow", open ? "▾" : "▸"), ...label.flatMap((each) => [" ", each]));
  return open ? [knob, ...inner()] : [knob];
}

// Text in full where it is short, else a piece of it and what shows more.
function long(place, key, text, name, limit = SHORT) {
  const [from, to] = slices.get(key) ?? [0, cut(text, limit)];
  const made = [make("div", `text ${name ?? ""}`, text.slice(from, to))];
  made[0].dir = "auto";
  if (to < text.length) made[0].classList.add("cut");
  const widen = (start, end) => () => {
    slices.set(key, [start, end]);
    refresh(place);
  };
  if (from > 0) made.unshift(button(`${size(from)} before`, widen(Math.max(0, from - MORE), to), "more"));
  if (to < text.length) {
    const left = text.length - to;
    made.push(button(left > MORE ? `more of the ${size(left)} left` : `${size(left)} more`, widen(from, to + MORE), "more"));
  }
  return made;
}

function cut(text, limit) {
  if (text.length <= limit + 200) {
    const lines = text.split("\n", 32);
    if (lines.length < 32) return text.length;
    return lines.slice(0, 24).join("\n").length;
  }
  const lines = text.slice(0, limit).split("\n", 25);
  const end = Math.min(limit, lines.length > 24 ? lines.slice(0, 24).join("\n").length : limit);
  const code = text.charCodeAt(end - 1);
  return code >= 0xd800 && code < 0xdc00 ? end + 1 : end;
}

function label(text, name) {
  return make("span", `label ${name ?? ""}`, text);
}

function labels(message) {
  const made = [];
  if (message.sensitivity) made.push(label(message.sensitivity, message.sensitivity === "public" ? "" : "secret"));
  if (message.pinned) made.push(label("pinned"));
  if (message.is_error) made.push(label("error", "bad"));
  if (message.synthetic) made.push(label("synthetic"));
  return made;
}

function link(id, text, name) {
  const made = make("a", name, text);
  made.href = `#m-${encodeURIComponent(id)}`;
  return made;
}

function add(head, ...inner) {
  for (const each of inner) head.append(" ", each);
}

function draw(place) {
  const row = data.rows[place];
  const article = document.createElement("article");
  article.className = `row ${row.kind}${row.bad ? " bad" : ""}`;
  article.tabIndex = -1;
  article.dataset.place = place;
  article.id = row.kind === "message" && row.message.id ? `m-${row.message.id}` : `l-${row.line}`;
  const inner = { message: drawMessage, boundary: drawBoundary, call: drawCall, note: drawNote }[row.kind](row, place);
  article.setAttribute("aria-label", nameOf(row));
  article.append(rail(row, place), make("div", "inner", ...inner));
  return article;
}

function nameOf(row) {
  if (row.kind === "boundary") return `${row.what === "subagent" ? "sub-agent" : "handoff"} ${row.number}, ${row.source} to ${row.target}`;
  if (row.kind === "message") return [row.message.agent || row.message.role, clock(row.message.created_at)].filter(Boolean).join(", ");
  return row.kind === "call" ? "model call" : row.what;
}

const byColumn = Array.from({ length: data.columns ?? 1 }, () => []);
data.lanes.forEach((lane) => byColumn[lane.column ?? 0].push(lane));

function rail(row, place) {
  const made = make("div", "rail");
  made.setAttribute("aria-hidden", "true");
  byColumn.forEach((lanes, column) => {
    const lane = lanes.findLast((each) => (each.first ?? 0) <= place && place <= (each.last ?? 0));
    if (!lane) return;
    const line = colour(make("i", `lane${lane.depth ? " deep" : ""}`), lane.name);
    if ((lane.first ?? 0) === place) line.classList.add("first");
    if ((lane.last ?? 0) === place) line.classList.add("last");
    line.style.setProperty("--column", column);
    made.append(line);
  });
  const own = data.lanes[row.lane ?? 0];
  if (!own || row.lane === -1) return made;
  const by = row.kind === "message" && row.message.role === "assistant" ? row.message.agent ?? own.name : own.name;
  const from = own.column ?? 0;
  if (row.kind === "boundary") {
    const to = data.lanes[row.to ?? 0].column ?? 0;
    const way = colour(make("i", `way${to < from ? " left" : ""}`), row.target);
    way.style.setProperty("--column", Math.min(from, to));
    way.style.setProperty("--span", Math.abs(to - from));
    made.append(way);
  }
  const dot = colour(make("i", `dot ${row.kind}${row.kind === "message" && row.message.role !== "assistant" ? " hollow" : ""}`), by);
  dot.style.setProperty("--column", from);
  made.append(dot);
  return made;
}

function who(row) {
  const { message } = row;
  const own = data.lanes[row.lane ?? 0]?.name ?? "";
  if (message.role === "assistant") return colour(make("span", "who", message.agent || own || "assistant"), message.agent || own);
  if (message.role === "tool") return make("span", "who", `result of ${message.name || message.call_id || "a call"}`);
  return make("span", "who", message.role);
}

function drawMessage(row, place) {
  const { message } = row;
  const head = make("header", "", who(row));
  const own = data.lanes[row.lane ?? 0];
  if (own && (message.role !== "assistant" || (message.agent && message.agent !== own.name)) && data.lanes.length > 1) {
    add(head, make("span", "to", `${message.role === "user" ? "to" : "in the view of"} ${own.name}`));
  }
  add(head, ...labels(message));
  if (row.aside) add(head, label("aside: in no view"));
  if (row.rejects) add(head, label("says what was wrong"));
  if (row.edited) add(head, label("result changed by a hook"));
  add(head, make("span", "gap"));
  if (row.call) add(head, spent(row.call));
  if (message.created_at) add(head, time(message.created_at));
  if (message.id) add(head, link(message.id, "#", "anchor"));
  const parts = message.content ?? [];
  const made = [head, ...parts.flatMap((part, at) => drawPart(row, place, part, at))];
  if (!parts.length) made.push(make("div", "empty", "nothing was said"));
  return made;
}

function time(at) {
  const made = make("time", "", clock(at));
  made.dateTime = iso(at);
  made.title = `${day(at)} ${clock(at)} UTC`;
  return made;
}

function spent(call) {
  const said = [];
  if (call.model) said.push(call.model);
  if (call.input || call.output) said.push(`${number(call.input ?? 0)} in${call.cached ? ` (${number(call.cached)} cached)` : ""}`, `${number(call.output ?? 0)} out`);
  if (call.cost) said.push(dollars(call.cost));
  if ((call.attempt ?? 1) > 1) said.push(`attempt ${call.attempt}`);
  if (call.finish && !["stop", "tool_calls", "end_turn"].includes(call.finish)) said.push(call.finish);
  const made = make("span", "spent", said.join(" · "));
  made.title = `model call of step ${call.step ?? 0}${call.reasoning ? `, ${number(call.reasoning)} tokens of reasoning` : ""}`;
  return made;
}

function drawPart(row, place, part, at) {
  const key = `${place}/${at}`;
  const tags = part.sensitivity ? [label(part.sensitivity, part.sensitivity === "public" ? "" : "secret")] : [];
  switch (part.kind) {
    case "text":
      return [...tags, ...long(place, key, part.text, "", row.message.role === "system" ? 500 : SHORT)];
    case "reasoning": {
      const told = part.text ? size(part.text.length) : "no text";
      const more = part.data ? `, and ${size(part.data.length)} of ${part.provider || "provider"} data` : "";
      return fold(place, key, [label("reasoning", "quiet"), ...tags, make("span", "dim", `${told}${more}`)], () => [
        ...(part.text ? long(place, key, part.text, "thought") : []),
        ...(part.data ? long(place, `${key}d`, part.data, "code") : []),
      ]);
    }
    case "tool_call":
      return drawToolCall(row, place, part, at, tags);
    case "refusal":
      return [label("refusal", "bad"), ...tags, ...long(place, key, part.text)];
    case "opaque":
      return fold(place, key, [label(part.type), ...tags, make("span", "dim", `of ${part.provider}, kept as it came, ${size(part.data.length)}`)], () =>
        long(place, key, indented(part.data), "code"));
    default: {
      const said = [part.media_type, part.name, part.url && part.url.length > 300 ? `${part.url.slice(0, 300)}…` : part.url, part.data, part.digest && `sha256 ${part.digest.slice(0, 12)}…`];
      return [make("div", "media", label(part.kind, "quiet"), ...tags, make("span", "dim", said.filter(Boolean).join(" · ")))];
    }
  }
}

function drawToolCall(row, place, part, at, tags) {
  const key = `${place}/${at}`;
  const result = row.results?.[at];
  const starts = row.starts?.[at] ?? (result ? 1 : 0);
  const args = part.arguments ?? "";
  const label1 = [make("b", "", part.name), make("span", "args", args === "{}" ? "" : args.slice(0, 300)), ...tags];
  if (part.transfer) label1.push(label("handoff", "quiet"));
  if (starts > 1) label1.push(label(`started ${starts} times`));
  if (row.ran?.[at] !== undefined) label1.push(label("ran with other arguments"));
  const state = result ? null : make("div", "outcome dim", starts ? "↳ started, and no result was written" : "↳ no result");
  const call = make("div", `use${result?.is_error ? " bad" : ""}`);
  call.append(...fold(place, key, label1, () => [
    make("div", "what", "arguments"),
    ...long(place, `${key}a`, indented(args || "{}"), "code"),
    ...(row.ran?.[at] !== undefined ? [make("div", "what", "ran with"), ...long(place, `${key}r`, indented(row.ran[at] || "{}"), "code")] : []),
    ...(result ? drawResult(place, key, result) : []),
  ], "toolcall"));
  if (state) call.append(state);
  else if (!isOpen(key)) call.append(make("div", "outcome", "↳ ", ...labels(result), preview(result)));
  return [call];
}

function drawResult(place, key, result) {
  const head = make("div", "what", "result ", ...labels(result), result.created_at ? time(result.created_at) : null);
  const inner = (result.content ?? []).flatMap((part, at) => {
    const own = `${key}.${at}`;
    if (part.kind !== "text") return drawPart({ message: result }, place, part, own);
    return long(place, own, indented(part.text), result.is_error ? "code bad" : "code");
  });
  return [head, ...inner];
}

function preview(message) {
  const secret = [message, ...(message.content ?? [])].some((each) => each.sensitivity === "secret");
  if (secret) return make("span", "dim", "folded, as it is secret");
  const words = sayings(message);
  return make("span", "dim", words.slice(0, 300) || "nothing");
}

// A message on one line: its words, and the calls it makes.
function sayings(message) {
  const said = (message.content ?? []).map((part) => {
    if (part.kind === "text" || part.kind === "refusal") return part.text.slice(0, 400);
    if (part.kind === "tool_call") return `${part.name}(${(part.arguments ?? "").slice(0, 120)})`;
    return `[${part.kind}]`;
  });
  return said.join(" ").replace(/\s+/g, " ").trim();
}

function drawCall(row) {
  const { call } = row;
  const what = call.error ? "a model call that failed" : `a model call for ${call.purpose ?? "answer"} that no message came of`;
  return [make("header", "", make("span", "what", what), make("span", "gap"), spent(call)), call.error ? make("div", "text bad", call.error.slice(0, 4000)) : null];
}

function drawNote(row, place) {
  const head = [make("span", "what", row.what), make("span", "line", row.head.slice(0, 2000))];
  const at = row.at ? [time(row.at)] : [];
  if (!row.text && !row.messages) return [make("header", "", ...head, make("span", "gap"), ...at)];
  return fold(place, `${place}/n`, [...head, make("span", "gap"), ...at], () => [
    ...(row.text ? long(place, `${place}/t`, row.text, /^[[{]/.test(row.text) ? "code" : "") : []),
    ...(row.messages ?? []).flatMap((message, at2) => [
      make("div", "what", `${message.role} ${message.id ?? ""}`),
      ...(message.content ?? []).flatMap((part, at3) => drawPart({ message }, place, part, `n${at2}.${at3}`)),
    ]),
  ]);
}
