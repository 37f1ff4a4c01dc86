// The page of a difference: the first session on the left, the second on the right, what is the same folded.

const data = JSON.parse(document.getElementById("data").textContent);
const NEAR = 2;
const LONG = 1500;
const WORDS = { changed: "changed", removed: "in the first alone", added: "in the second alone", same: "the same" };
const SIGNS = { changed: "~", removed: "−", added: "+", same: "" };

function words(text, name) {
  const made = make("div", "");
  const show = (end) => {
    made.replaceChildren(make("div", `text ${name}`, text.slice(0, end)));
    if (end < text.length) made.append(button(`${size(text.length - end)} more`, () => show(end + 40000), "more"));
  };
  show(text.length > LONG + 300 ? LONG : text.length);
  return made;
}

function cell(side, what, name) {
  const made = make("div", `cell ${name}`);
  if (!side) return made;
  const head = make("header", "", side.who ? make("span", "who", side.who) : null, side.line ? make("span", "dim", `line ${side.line}`) : null);
  made.append(head, words(side.text, side.who ? "" : "code"));
  return made;
}

function line(each) {
  const made = make("article", `pair ${each.what}`);
  made.tabIndex = -1;
  made.append(make("div", "mark", make("span", "", SIGNS[each.what])), cell(each.a, each.what, "left"), cell(each.b, each.what, "right"));
  made.setAttribute("aria-label", WORDS[each.what]);
  if (each.fields) {
    const table = make("table", "fields", make("caption", "what", each.fields.length === 1 ? "1 field differs" : `${number(each.fields.length)} fields differ`));
    for (const field of each.fields) {
      const value = (text, name) => make("td", name, text === undefined ? make("span", "dim", "not there") : words(text, "code"));
      table.append(make("tr", "", make("th", "code", field.name), value(field.a, "left"), value(field.b, "right")));
    }
    made.append(table);
  }
  return made;
}

function block(each) {
  const differing = each.lines.filter((one) => one.what !== "same").length;
  const made = make("section", "block", make("h2", "", each.title), make("span", "dim", ` ${differing ? `${number(differing)} of ${number(each.lines.length)} differ` : `${number(each.lines.length)}, all the same`}`));
  let at = 0;
  while (at < each.lines.length) {
    let end = at;
    while (end < each.lines.length && each.lines[end].what === "same") end += 1;
    const before = at === 0 ? 0 : NEAR;
    const after = end === each.lines.length ? 0 : NEAR;
    const [from, to] = differing ? [at + before, end - after] : [at, end];
    if (to - from > (differing ? 1 : 0)) {
      for (const one of each.lines.slice(at, from)) made.append(line(one));
      const hidden = each.lines.slice(from, to);
      const knob = button(`${number(hidden.length)} the same`, () => knob.replaceWith(...hidden.map(line)), "more same");
      made.append(knob);
      for (const one of each.lines.slice(to, end)) made.append(line(one));
    } else for (const one of each.lines.slice(at, end)) made.append(line(one));
    if (end < each.lines.length) made.append(line(each.lines[end]));
    at = end + 1;
  }
  return made;
}

let now = -1;
function move(by) {
  const rows = [...document.querySelectorAll(".pair:not(.same)")];
  if (!rows.length) return;
  rows[now]?.classList.remove("now");
  now = Math.max(0, Math.min(rows.length - 1, now + by));
  rows[now].classList.add("now");
  rows[now].focus({ preventScroll: true });
  rows[now].scrollIntoView({ block: "center" });
  document.getElementById("found").textContent = `${number(now + 1)} of ${number(rows.length)}`;
}

const turn = theme();
document.title = `${data.a} and ${data.b}`;
document.getElementById("head").append(
  make("h1", "", "Two sessions side by side"),
  make("p", `verdict ${data.same ? "good" : ""}`, make("b", "", data.same ? "✓ They mean the same." : "They differ.")),
  make("div", "names", make("span", "left", make("span", "dim", "first "), data.a), make("span", "right", make("span", "dim", "second "), data.b)),
);
document.getElementById("list").append(...(data.blocks ?? []).map(block));
document.getElementById("next").addEventListener("click", () => move(1));
document.getElementById("back").addEventListener("click", () => move(-1));
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  ({ j: () => move(1), k: () => move(-1), t: turn })[event.key]?.();
});
