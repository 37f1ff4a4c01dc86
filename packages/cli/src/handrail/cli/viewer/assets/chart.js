// Tokens over the run: a bar for each model call, or for a few that stand beside each other, in its agent's colour.

const BARS = 240;

function tokenChart() {
  const calls = [];
  data.rows.forEach((row, place) => {
    const { call } = row;
    if (call && ((call.input ?? 0) || (call.output ?? 0))) calls.push({ place, input: call.input ?? 0, output: call.output ?? 0, name: data.lanes[row.lane ?? 0]?.name });
  });
  if (!calls.length) return make("p", "dim", "No tokens were recorded call by call, so there is nothing to draw.");
  const width = Math.ceil(calls.length / BARS);
  const bars = [];
  for (let at = 0; at < calls.length; at += width) {
    const few = calls.slice(at, at + width);
    bars.push(few.reduce((most, each) => (each.input + each.output > most.input + most.output ? each : most)));
  }
  const most = Math.max(...bars.map((bar) => bar.input + bar.output));
  const figure = make("figure", "chart", svg(bars, most));
  figure.append(make("div", "axis", make("span", "", `${number(most)} tokens at most`), make("span", "", width > 1 ? `${counted(calls.length, "call")}, the largest of each ${width}` : counted(calls.length, "call"))));
  figure.append(make("figcaption", "dim", "Height: what went in, and above it, paler, what came out. Choose a bar to go there."));
  return figure;
}

function svg(bars, most) {
  const space = "http://www.w3.org/2000/svg";
  const picture = document.createElementNS(space, "svg");
  picture.setAttribute("viewBox", `0 0 ${bars.length} 100`);
  picture.setAttribute("preserveAspectRatio", "none");
  picture.setAttribute("role", "img");
  const largest = bars.findIndex((bar) => bar.input + bar.output === most);
  picture.setAttribute("aria-label", `Tokens of the model calls in order: from ${number(bars[0].input + bars[0].output)} in the first to ${number(bars.at(-1).input + bars.at(-1).output)} in the last; the largest is call ${largest + 1} with ${number(most)}`);
  const rect = (x, y, height, bar, name) => {
    const made = document.createElementNS(space, "rect");
    for (const [key, value] of Object.entries({ x: x + 0.08, y, width: 0.84, height, class: name })) made.setAttribute(key, value);
    colour(made, bar.name);
    picture.append(made);
  };
  bars.forEach((bar, x) => {
    const [input, output] = [(bar.input / most) * 100, (bar.output / most) * 100];
    rect(x, 100 - input, input, bar, "in");
    rect(x, 100 - input - output, output, bar, "out");
  });
  picture.addEventListener("click", (event) => {
    const box = picture.getBoundingClientRect();
    const bar = bars[Math.min(bars.length - 1, Math.floor(((event.clientX - box.left) / box.width) * bars.length))];
    goTo(bar.place);
  });
  return picture;
}
