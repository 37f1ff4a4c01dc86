// Elements and text. Whatever a session holds reaches the page here, as text and as nothing else.

// Characters that move, hide or turn around what stands beside them; they are shown by name. What joins letters or
// pictures is left alone where the script before it has a use for it, and so is one choice of how a sign looks.
const JOINING = ["Arabic", "Bengali", "Devanagari", "Gujarati", "Kannada", "Khmer", "Malayalam", "Sinhala", "Syriac", "Tamil", "Telugu"];
const HIDDEN =
  "[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180e" +
  "\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u3164\\ufeff\\uffa0\\ufff9-\\ufffb\\ud800-\\udfff" +
  "\\u{e0000}-\\u{e0fff}]" +
  `|(?<![\\p{Extended_Pictographic}\\ufe0f\\u{1f3fb}-\\u{1f3ff}\\p{M}${JOINING.map((name) => `\\p{Script=${name}}`).join("")}])[\\u200c\\u200d]` +
  "|(?<=[\\ufe00-\\ufe0f\\sA-Za-z])[\\ufe00-\\ufe0f]";

let marking = new RegExp(`(?<sign>${HIDDEN})`, "gu");
let query = null;

// What is searched for is marked wherever it is written from now on; an empty text ends that.
function mark(text) {
  query = text || null;
  marking = new RegExp(text ? `${escaped(text)}|(?<sign>${HIDDEN})` : `(?<sign>${HIDDEN})`, text ? "giu" : "gu");
}

function escaped(text) {
  return text.replace(/[\\^$.*+?()[\]{}|\/-]/g, (sign) => (sign === "-" ? "\\x2d" : `\\${sign}`));
}

function make(tag, name, ...inner) {
  const made = document.createElement(tag);
  if (name) made.className = name;
  for (const each of inner) {
    if (each === null || each === undefined || each === "") continue;
    if (tag === "header" && made.hasChildNodes()) made.append(" "); // so that words copied or read aloud stand apart
    if (typeof each === "object") made.append(each);
    else write(made, String(each));
  }
  return made;
}

function write(into, text) {
  const said = text.includes("\r\n") ? text.replaceAll("\r\n", "\n") : text;
  let last = 0;
  for (const found of said.matchAll(marking)) {
    if (!found[0]) continue;
    if (found.index > last) into.append(said.slice(last, found.index));
    into.append(found.groups.sign ? named(found[0]) : marked(found[0]));
    last = found.index + found[0].length;
  }
  if (last < said.length) into.append(last ? said.slice(last) : said);
  return into;
}

function marked(text) {
  const made = document.createElement("mark");
  made.textContent = text;
  return made;
}

function named(sign) {
  const code = sign.codePointAt(0);
  const made = document.createElement("span");
  const name = `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
  made.className = "sign";
  made.title = `the character ${name}, which would not be seen`;
  made.textContent = code < 0x20 ? String.fromCodePoint(0x2400 + code) : code === 0x7f ? "\u2421" : name;
  return made;
}

function button(label, act, name) {
  const made = make("button", name, label);
  made.type = "button";
  made.addEventListener("click", act);
  return made;
}

function number(value) {
  return value.toLocaleString("en-US");
}

function counted(value, noun) {
  return `${number(value)} ${noun}${value === 1 ? "" : "s"}`;
}

function size(characters) {
  if (characters < 10000) return counted(characters, "character");
  return characters < 1e6 ? `${Math.round(characters / 1000)} thousand characters` : `${(characters / 1e6).toFixed(1)} million characters`;
}

function dollars(value) {
  return `$${value < 0.01 ? value.toPrecision(2) : value.toFixed(2)}`;
}

// A time as ISO 8601, UTC; empty for none, and for one that no calendar has.
function iso(at) {
  const time = new Date(at || NaN);
  return Number.isNaN(time.getTime()) ? "" : time.toISOString();
}

function day(at) {
  return iso(at).split("T")[0];
}

function clock(at) {
  return (iso(at).split("T")[1] ?? "").slice(0, 8);
}

function lasted(milliseconds) {
  if (milliseconds < 1000) return `${milliseconds} ms`;
  const seconds = Math.round(milliseconds / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.round(hours / 24)} days`;
}

// JSON on several lines, each token as it stands, so that no number is rounded; other text as it is, and what is very
// long or nested very deep.
function indented(text) {
  if (text.length > 200000 || !/^\s*[{[]/.test(text)) return text;
  try {
    JSON.parse(text);
  } catch {
    return text;
  }
  const out = [];
  let depth = 0;
  let last = "";
  for (const token of text.match(/"(?:[^"\\]|\\.)*"|[^\s{}[\],:"]+|[{}[\],:]/gs) ?? []) {
    const closes = token === "}" || token === "]";
    const opened = last === "{" || last === "[";
    if (closes) depth -= 1;
    if (opened !== closes || last === ",") out.push("\n", "  ".repeat(depth));
    out.push(token === ":" ? ": " : token);
    if (token === "{" || token === "[") depth += 1;
    if (depth > 40) return text;
    last = token;
  }
  return out.join("");
}

function theme() {
  const root = document.documentElement;
  const knob = document.getElementById("theme");
  const prefers = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : prefers.matches);
  const tell = () => {
    knob.textContent = isDark() ? "Light" : "Dark";
  };
  const turn = () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try {
      localStorage.setItem("handrail-theme", root.dataset.theme);
    } catch {
      // A page without storage forgets it.
    }
    tell();
  };
  try {
    const kept = localStorage.getItem("handrail-theme");
    if (kept === "dark" || kept === "light") root.dataset.theme = kept;
  } catch {
    // The same.
  }
  knob.addEventListener("click", turn);
  prefers.addEventListener("change", tell);
  tell();
  return turn;
}
