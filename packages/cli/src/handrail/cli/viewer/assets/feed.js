// The feed: of any number of rows, those near the window are drawn. Heights are guessed until they are measured.

const BEYOND = 900;
const QUIET = 140;

function guess(row) {
  if (row.kind === "note" || row.kind === "call") return 34;
  if (row.kind === "boundary") return 210 + 24 * Math.min(6, Math.max(row.passed?.length ?? 0, row.stayed?.length ?? 0)) + (row.end ? 60 : 0);
  const width = Math.max(300, Math.min(760, innerWidth - 60)) / 7.2;
  let height = 44;
  for (const part of row.message.content ?? []) {
    if (part.kind === "text") height += 21 * Math.min(24, Math.ceil(Math.min(part.text.length, SHORT) / width));
    else height += part.kind === "tool_call" ? 58 : 32;
  }
  return height;
}

function makeFeed(host) {
  const { rows } = data;
  const heights = Float64Array.from(rows, guess);
  const drawn = new Map();
  const block = make("div", "block");
  host.append(block);
  let shown = Int32Array.from(rows, (_, place) => place);
  let order = Int32Array.from(shown);
  let tops = new Float64Array(1);
  let drift = 0; // how far what is drawn stands above its place while somebody scrolls
  let moving = 0;
  let whole = false;
  let due = 0;

  function stack() {
    tops = new Float64Array(shown.length + 1);
    for (let at = 0; at < shown.length; at += 1) tops[at + 1] = tops[at] + heights[shown[at]];
  }

  function at(y) {
    let [low, high] = [0, Math.max(0, shown.length - 1)];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (tops[middle] <= y) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  const start = () => host.getBoundingClientRect().top + scrollY;

  function paint() {
    due = 0;
    if (whole) return;
    const origin = start();
    for (let round = 0; round < 4; round += 1) {
      const top = scrollY - origin + drift;
      const anchor = at(Math.max(0, top));
      const before = tops[anchor];
      const first = at(top - BEYOND);
      const last = at(top + innerHeight + BEYOND);
      const changed = fill(first, last);
      block.style.transform = `translateY(${Math.round(tops[first] - drift)}px)`;
      if (!changed) break;
      stack();
      drift += tops[anchor] - before;
      if (drift && (first === 0 || performance.now() - moving > QUIET)) settle();
    }
    host.style.height = `${Math.ceil(tops[shown.length] - drift)}px`;
  }

  // Draws these rows and no others, and says whether one has another height than was thought.
  function fill(first, last) {
    const wanted = new Set(shown.slice(first, last + 1));
    for (const [place, element] of drawn) {
      if (!wanted.has(place)) {
        element.remove();
        drawn.delete(place);
      }
    }
    let next = block.firstChild;
    for (const place of wanted) {
      let element = drawn.get(place);
      if (!element) {
        element = draw(place);
        element.setAttribute("aria-setsize", shown.length);
        element.setAttribute("aria-posinset", order[place] + 1);
        drawn.set(place, element);
        block.insertBefore(element, next);
      } else next = element.nextSibling;
    }
    let changed = false;
    for (const [place, element] of drawn) {
      const height = element.getBoundingClientRect().height;
      if (Math.abs(height - heights[place]) > 0.5) {
        heights[place] = height;
        changed = true;
      }
    }
    return changed;
  }

  function settle() {
    if (!drift) return;
    const by = drift;
    drift = 0;
    host.style.height = `${Math.ceil(tops[shown.length])}px`;
    scrollTo(scrollX, scrollY + by);
  }

  function soon() {
    if (!due) due = requestAnimationFrame(paint);
  }

  let rest = 0;
  addEventListener("scroll", () => {
    moving = performance.now();
    soon();
    clearTimeout(rest);
    rest = setTimeout(() => {
      settle();
      soon();
    }, QUIET);
  }, { passive: true });
  addEventListener("resize", soon);

  return {
    get shown() {
      return shown;
    },
    get drawn() {
      return drawn;
    },
    paint,
    has: (place) => order[place] >= 0,
    // The row at the top of what can be seen, below the bar.
    first(bar) {
      return shown[at(scrollY - start() + drift + bar + 1)] ?? -1;
    },
    sees(place, bar) {
      const box = drawn.get(place)?.getBoundingClientRect();
      return box !== undefined && box.bottom > bar && box.top < innerHeight;
    },
    show(keep) {
      shown = Int32Array.from(rows.keys()).filter(keep);
      order = new Int32Array(rows.length).fill(-1);
      shown.forEach((place, index) => {
        order[place] = index;
      });
      for (const element of drawn.values()) element.remove();
      drawn.clear();
      drift = 0;
      stack();
      host.style.height = `${tops[shown.length]}px`;
      paint();
    },
    redraw(place) {
      const old = drawn.get(place);
      if (!old) return null;
      const element = draw(place);
      for (const name of ["aria-setsize", "aria-posinset"]) element.setAttribute(name, old.getAttribute(name));
      if (old.classList.contains("now")) element.classList.add("now");
      old.replaceWith(element);
      drawn.set(place, element);
      if (!whole) paint();
      return element;
    },
    redrawAll() {
      for (const place of [...drawn.keys()]) this.redraw(place);
    },
    goTo(place, bar) {
      if (!this.has(place)) return null;
      const origin = start();
      for (let round = 0; round < 6; round += 1) {
        drift = 0;
        const goal = Math.round(tops[order[place]] + origin - bar - 8);
        scrollTo(scrollX, Math.max(0, goal));
        paint();
        if (Math.abs(Math.round(tops[order[place]] + origin - bar - 8) - goal) < 2) break;
      }
      return drawn.get(place) ?? null;
    },
    // For paper: every row, one after the other.
    all(wanted) {
      whole = wanted;
      if (!wanted) {
        this.show((place) => order[place] >= 0);
        return;
      }
      host.style.height = "auto";
      block.style.transform = "none";
      drift = 0;
      block.replaceChildren();
      drawn.clear();
      for (const place of shown) {
        const element = draw(place);
        drawn.set(place, element);
        block.append(element);
      }
    },
  };
}
