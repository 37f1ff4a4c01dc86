// The page of a session: its head, its side, and the keys.

const bar = document.getElementById("bar");
const field = document.getElementById("query");
const feed = makeFeed(document.getElementById("feed"));
const turn = theme();
const covered = () => bar.getBoundingClientRect().height;
let now = -1;
let found = [];
let chosen = -1;

function step(place, focus = true) {
  const old = feed.drawn.get(now);
  old?.classList.remove("now");
  now = place;
  const element = feed.goTo(place, covered());
  if (!element) return;
  element.classList.add("now");
  if (focus) element.focus({ preventScroll: true });
}

function move(by, fits) {
  const list = feed.shown;
  let from = list.indexOf(now);
  if (from < 0 || !feed.sees(now, covered())) {
    from = list.indexOf(feed.first(covered()));
    if (by > 0) from -= 1;
  }
  for (let at = from + by; at >= 0 && at < list.length; at += by) {
    if (fits(data.rows[list[at]])) {
      step(list[at]);
      return;
    }
  }
}

const isMessage = (row) => row.kind === "message" || row.kind === "boundary";
const isBoundary = (row) => row.kind === "boundary";
const isError = (row) =>
  Boolean(row.bad || row.problem || row.call?.error || row.message?.is_error || Object.values(row.results ?? {}).some((each) => each.is_error) || (row.end && row.end.status !== "completed"));

refresh = (place, key) => {
  const element = feed.redraw(place);
  if (key && element) element.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
};
goTo = (place) => {
  if (!feed.has(place)) choose(null);
  step(place);
};

function toggle(place) {
  const element = feed.drawn.get(place);
  const knobs = [...(element?.querySelectorAll("[data-key]") ?? [])].map((each) => each.dataset.key);
  const open = knobs.some((key) => !isOpen(key));
  for (const key of knobs) opened.set(key, open);
  refresh(place);
}

function toggleAll() {
  const place = feed.first(covered());
  all = !all;
  opened.clear();
  const knob = document.getElementById("fold");
  knob.textContent = all ? "Fold" : "Unfold";
  knob.setAttribute("aria-pressed", String(all));
  feed.redrawAll();
  if (scrollY > 200) feed.goTo(place, covered());
}

function search() {
  const text = field.value;
  mark(text);
  found = text ? hits(text, feed.shown) : [];
  chosen = -1;
  feed.redrawAll();
  tellFound(text);
}

function tellFound(text) {
  const told = chosen < 0 ? counted(found.length, "place") : `${number(chosen + 1)} of ${number(found.length)}`;
  document.getElementById("found").textContent = text ? (found.length ? told : "nothing found") : "";
}

function nextFound(by) {
  if (!found.length) return;
  const here = feed.first(covered());
  if (chosen < 0) chosen = by > 0 ? Math.max(0, found.findIndex((place) => place >= here)) : found.length - 1;
  else chosen = (chosen + by + found.length) % found.length;
  uncover(found[chosen], field.value);
  step(found[chosen], false);
  refresh(found[chosen]);
  const element = feed.goTo(found[chosen], covered());
  element?.querySelector("mark")?.scrollIntoView({ block: "center" });
  tellFound(field.value);
}

function choose(group) {
  const inner = group && new Set(group.lanes);
  feed.show((place) => !inner || inner.has(data.rows[place].lane ?? 0) || (data.rows[place].kind === "boundary" && inner.has(data.rows[place].to ?? 0)));
  for (const knob of document.querySelectorAll(".agent")) knob.setAttribute("aria-pressed", String(Boolean(group) && knob.dataset.group === group.name));
  document.getElementById("everyone").hidden = !group;
  if (field.value) search();
}

function followHash() {
  const [, kind, name] = /^#(m|l)-(.*)$/s.exec(location.hash) ?? [];
  if (!kind) return;
  let id = name;
  try {
    id = decodeURIComponent(name);
  } catch {
    // It is taken as it stands.
  }
  const place = kind === "m" ? places.get(id) : data.rows.findIndex((row) => row.line === Number(id));
  if (place !== undefined && place >= 0) goTo(place);
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.getElementById("help").open) return;
  if (event.target === field) {
    if (event.key === "Escape") {
      field.value = "";
      search();
      field.blur();
    }
    return;
  }
  const act = {
    j: () => move(1, isMessage),
    k: () => move(-1, isMessage),
    h: () => move(1, isBoundary),
    H: () => move(-1, isBoundary),
    e: () => move(1, isError),
    E: () => move(-1, isError),
    g: () => feed.shown.length && step(feed.shown[0]),
    G: () => feed.shown.length && step(feed.shown[feed.shown.length - 1]),
    o: () => toggle(now >= 0 && feed.sees(now, covered()) ? now : feed.first(covered())),
    O: toggleAll,
    n: () => nextFound(1),
    N: () => nextFound(-1),
    t: turn,
    "/": () => {
      field.focus();
      field.select();
    },
    "?": () => document.getElementById("help").showModal(),
  }[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}

let typing = 0;
field.addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(search, 120);
});
document.getElementById("find").addEventListener("submit", (event) => event.preventDefault());
field.addEventListener("keydown", (event) => {
  if (event.key !== "Enter") return;
  event.preventDefault();
  clearTimeout(typing);
  if (query !== field.value) search();
  nextFound(event.shiftKey ? -1 : 1);
});
document.getElementById("found-next").addEventListener("click", () => nextFound(1));
document.getElementById("found-back").addEventListener("click", () => nextFound(-1));
document.getElementById("fold").addEventListener("click", toggleAll);
document.getElementById("keys").addEventListener("click", () => document.getElementById("help").showModal());
document.addEventListener("keydown", onKey);
document.addEventListener("click", (event) => {
  const anchor = event.target instanceof Element ? event.target.closest("a[href^='#m-']") : null;
  if (anchor && anchor.hash === location.hash) followHash();
});
addEventListener("hashchange", followHash);

let paper = false;
function print(wanted) {
  if (paper === wanted) return;
  paper = wanted;
  feed.all(wanted);
}
addEventListener("beforeprint", () => print(true));
addEventListener("afterprint", () => print(false));
matchMedia("print").addEventListener("change", (event) => print(event.matches));

document.title = data.title;
document.documentElement.style.setProperty("--columns", Math.max(1, data.columns ?? 1));
drawHead(document.getElementById("head"));
drawSide(document.getElementById("side"));
feed.show(() => true);
if (!data.rows.length) document.getElementById("feed").append(make("p", "empty", "Nothing was said in this session."));
followHash();
