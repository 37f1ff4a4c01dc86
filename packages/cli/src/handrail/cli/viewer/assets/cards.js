// A handoff, or the call of a sub-agent: who to whom, what crossed, what stayed and why, and by what filter.

function drawBoundary(row, place) {
  const sub = row.what === "subagent";
  const head = make("header", "",
    make("span", "what", `${sub ? "sub-agent" : "handoff"} ${row.number}`),
    colour(make("span", "who", row.source), row.source), make("span", "dim", sub ? "asks" : "→"),
    colour(make("span", "who", row.target), row.target),
    row.edited ? label("changed by a hook") : null,
    row.back ? label("the way back") : null,
    make("span", "gap"), make("span", "dim", row.step ? `step ${row.step}` : ""), row.at ? time(row.at) : null);
  const made = [head];
  for (const [at, note] of (row.notes ?? []).entries()) {
    const tag = note.sensitivity ? label(note.sensitivity, "secret") : null;
    made.push(make("div", "why", make("span", "what", note.label), tag, ...long(place, `${place}/w${at}`, note.text, "", 600)));
  }
  made.push(numbers(row));
  if (row.problem) made.push(make("div", "text bad", row.problem));
  if (!row.problem || row.passed) made.push(make("div", "sides", crossed(row, place), stayed(row, place)));
  made.push(...drawFilter(row, place));
  if (row.end) made.push(...ending(row, place));
  return made;
}

function numbers(row) {
  const said = [make("b", "", `${number(row.after ?? 0)} crossed`)];
  if (row.before !== undefined) said.push(` of ${counted(row.before, "message")}`);
  const made = (row.passed ?? []).filter((each) => each.message).length;
  if (made) said.push(`, ${made} changed or made here`);
  if (row.tokens_before !== undefined && row.tokens_after !== undefined) {
    const [before, after] = [row.tokens_before, row.tokens_after];
    const change = before && before !== after ? ` (${after <= before ? "−" : "+"}${Math.round((Math.abs(after - before) / before) * 100)} %)` : "";
    said.push(make("span", "tokens", `${number(before)} → ${number(after)} tokens${change}`));
    if (row.counter) said.push(` counted now by ${row.counter}`);
  }
  return make("div", "numbers", ...said);
}

function crossed(row, place) {
  const list = make("ul");
  const passed = row.passed ?? [];
  const key = `${place}/c`;
  const shown = isOpen(key) ? passed : passed.slice(0, 6);
  shown.forEach((each, at) => list.append(crossing(each, row, place, at)));
  const left = passed.length - shown.length + (row.passed_more ?? 0);
  return make("section", "side over", make("h3", "", "Crossed"),
    passed.length ? list : make("p", "dim", row.problem ? "not known" : "nothing"),
    rest(place, key, left, passed.length > 6, row.passed_more ?? 0));
}

function crossing(each, row, place, at) {
  if (!each.message) return make("li", "", summary(each.id));
  const key = `${place}/p${at}`;
  const changed = places.has(each.id);
  const item = make("li");
  item.append(...fold(place, key, [make("span", "saying", `${each.message.agent || each.message.role}: ${sayings(each.message)}`)], () =>
    (each.message.content ?? []).flatMap((part, part_at) => drawPart({ message: each.message }, place, part, `p${at}.${part_at}`))));
  item.append(make("div", "because", label(changed ? "changed" : "made here", "quiet"), each.why && each.why !== "changed" && each.why !== "made here" ? ` ${each.why}` : ""));
  return item;
}

function summary(id) {
  const place = places.get(id);
  if (place === undefined) return make("span", "saying dim", `the message ${id}`);
  const row = data.rows[place];
  const result = Object.values(row.results ?? {}).find((each) => each.id === id);
  const message = result ?? row.message;
  const name = result ? `result of ${message.name || message.call_id}` : message.agent || message.role;
  const secret = [message, ...(message.content ?? [])].some((each) => each.sensitivity === "secret");
  const made = link(id, "", "saying");
  made.append(colour(make("b", "", name), message.role === "assistant" ? name : ""));
  if (secret) made.append(label("secret", "secret"));
  write(made, secret ? "" : ` ${sayings(message).slice(0, 200)}`);
  return made;
}

function stayed(row, place) {
  const side = make("section", "side under", make("h3", "", "Stayed"));
  const groups = row.stayed ?? [];
  groups.forEach((group, at) => {
    const key = `${place}/s${at}`;
    const shown = isOpen(key) ? group.ids : group.ids.slice(0, group.count > 4 ? 2 : 4);
    side.append(make("p", "because", `${number(group.count)}: ${group.why}`));
    side.append(make("ul", "", ...shown.map((id) => make("li", "", summary(id)))));
    side.append(rest(place, key, group.count - shown.length, group.ids.length > (group.count > 4 ? 2 : 4), group.count - group.ids.length));
  });
  if (!groups.length) side.append(make("p", "dim", row.problem ? "not known" : "nothing"));
  return side;
}

// What shows the rest of a list, or says how many more there are.
function rest(place, key, left, foldable, unlisted) {
  if (!foldable) return left ? make("p", "dim", `and ${number(left)} more`) : document.createDocumentFragment();
  const open = isOpen(key);
  const knob = button(open ? "fewer" : `${number(left - unlisted)} more`, () => {
    opened.set(key, !open);
    refresh(place, key);
  }, "more");
  knob.dataset.key = key;
  const made = document.createDocumentFragment();
  made.append(knob);
  if (unlisted) made.append(make("span", "dim", ` and ${number(unlisted)} that are not listed here`));
  return made;
}

function drawFilter(row, place) {
  const ran = (row.steps ?? []).some((step) => (step.before ?? 0) >= 0 && step.after !== undefined && step.after >= 0 && step.before !== -1);
  const words = (row.steps ?? []).map((step) => step.text.replace(/^\| /, "")).join(" | ");
  return fold(place, `${place}/f`, [make("span", "what", "filter"), make("span", "args", words.slice(0, 500))], () => [
    ...(ran ? [steps(row.steps)] : []),
    ...(row.returns ? [make("div", "what", "and back"), make("div", "text code", row.returns)] : []),
    make("div", "what", "descriptor"), ...long(place, `${place}/d`, row.descriptor ?? "", "code", 600),
  ]);
}

function steps(all_steps) {
  const table = make("table", "", make("caption", "what", "what each step was given, and what it left"));
  for (const step of all_steps) {
    table.append(make("tr", "", make("td", "code", step.text), make("td", "num", `${number(step.before ?? -1)} → ${number(step.after ?? -1)}`)));
  }
  return table;
}

function ending(row, place) {
  const { end } = row;
  const bad = end.status !== "completed";
  const said = [end.status, row.at && end.at ? `after ${lasted(Math.max(0, end.at - row.at))}` : "", end.input || end.output ? `${number(end.input ?? 0)} in, ${number(end.output ?? 0)} out` : ""];
  return [make("div", `numbers${bad ? " bad" : ""}`, make("span", "what", "answer "), make("span", bad ? "bad" : "dim", said.filter(Boolean).join(", ")), end.sensitivity ? label(end.sensitivity, "secret") : null),
    ...(end.answer ? long(place, `${place}/e`, end.answer, "answer", 500) : [])];
}
