// Search in everything that rows hold, folded or not, drawn or not.

const heaps = [];

// Each text of a row, the key of what is folded around it, and the key of its piece.
function texts(row, place) {
  const out = [];
  const add = (text, foldKey, sliceKey) => {
    if (text) out.push([text, foldKey, sliceKey]);
  };
  const part = (each, key) => {
    if (each.kind === "text") add(each.text, null, key);
    else if (each.kind === "reasoning") {
      add(each.text, key, key);
      add(each.data, key, `${key}d`);
    } else if (each.kind === "tool_call") {
      add(each.name, null, null);
      add(indented(each.arguments ?? ""), key, `${key}a`);
    } else if (each.kind === "opaque") add(indented(each.data), key, key);
    else add([each.text, each.media_type, each.name, each.url].filter(Boolean).join(" "), null, key);
  };
  if (row.kind === "message") {
    const { message } = row;
    add(message.agent, null, null);
    (message.content ?? []).forEach((each, at) => part(each, `${place}/${at}`));
    for (const [at, result] of Object.entries(row.results ?? {})) {
      (result.content ?? []).forEach((each, inner) => {
        const key = `${place}/${at}`;
        if (each.kind === "text") add(indented(each.text), key, `${key}.${inner}`);
        else part(each, `${place}/${key}.${inner}`);
      });
    }
    for (const [at, ran] of Object.entries(row.ran ?? {})) add(indented(ran), `${place}/${at}`, `${place}/${at}r`);
  } else if (row.kind === "note") {
    add(row.head, null, null);
    add(row.text, `${place}/n`, `${place}/t`);
    (row.messages ?? []).forEach((message, at) => {
      (message.content ?? []).forEach((each, inner) => {
        add(each.text ?? each.arguments ?? each.data, `${place}/n`, `${place}/n${at}.${inner}`);
      });
    });
  } else if (row.kind === "boundary") {
    add(`${row.source} ${row.target}`, null, null);
    (row.notes ?? []).forEach((note, at) => add(note.text, null, `${place}/w${at}`));
    (row.passed ?? []).forEach((each, at) => {
      (each.message?.content ?? []).forEach((inner, inner_at) => {
        add(inner.text ?? inner.arguments, `${place}/p${at}`, `${place}/p${at}.${inner_at}`);
      });
    });
    add((row.stayed ?? []).map((group) => group.why).join("\n"), null, null);
    add((row.steps ?? []).map((step) => step.text).join(" | "), `${place}/f`, null);
    add(row.descriptor, `${place}/f`, `${place}/d`);
    add(row.end?.answer, null, `${place}/e`);
  } else add(`${row.call.model ?? ""} ${row.call.error ?? ""}`, null, null);
  return out;
}

function hits(text, shown) {
  const pattern = new RegExp(escaped(text), "iu");
  const found = [];
  for (const place of shown) {
    heaps[place] ??= texts(data.rows[place], place).map((each) => each[0]).join("\n");
    if (pattern.test(heaps[place])) found.push(place);
  }
  return found;
}

// Opens what is folded around the matches of a row, and shows the piece of a long text that holds the first of them.
function uncover(place, text) {
  const pattern = new RegExp(escaped(text), "iu");
  for (const [each, foldKey, sliceKey] of texts(data.rows[place], place)) {
    const at = each.search(pattern);
    if (at < 0) continue;
    if (foldKey) opened.set(foldKey, true);
    const limit = cut(each, 500);
    if (sliceKey && at + text.length > limit) slices.set(sliceKey, [at < 4000 ? 0 : at - 600, at + 2400]);
  }
}
