// Draws what several parties did to each other as a sequence diagram.
//
// A diagram is a list. Each event is a list item with a row and a drawing. The row reads as a
// sentence; it is a button if there is more to show, such as a record. The drawing is hidden from
// screen readers. Every text becomes a text node, never HTML.
const sequence = (() => {
  "use strict";

  // The order of the columns.
  const kinds = ["client", "process", "database", "service", "operator", "world"];

  // With more columns than these, processes share a column if one begins after the other's end.
  const roomy = 8;

  // A row that follows the one before by more than this, in nanoseconds, stands apart.
  const pause = 1e9;

  // How many rows have an id.
  let named = 0;

  // make returns a new element. Children are elements or texts; those that are false or
  // undefined are left out.
  function make(tag, className, ...children) {
    const element = document.createElement(tag);
    if (className) element.className = className;
    element.append(...children.filter((child) => child !== undefined && child !== false));
    return element;
  }

  // spoken returns text for screen readers alone.
  const spoken = (text) => make("span", "seq-spoken", text);

  // silent hides an element from screen readers.
  function silent(element) {
    element.setAttribute("aria-hidden", "true");
    return element;
  }

  // time returns a number of nanoseconds as people read it.
  function time(nanoseconds) {
    return nanoseconds < 1e9 ? `${(nanoseconds / 1e6).toFixed(1)} ms` : `${(nanoseconds / 1e9).toFixed(3)} s`;
  }

  // withoutStem returns a name without what comes before its number, if the other name has the same.
  function withoutStem(name, other) {
    const stem = name.replace(/\d+$/, "");
    return stem === other?.replace(/\d+$/, "") ? name.slice(stem.length) : name;
  }

  // hue returns the hue of a request by its number from 0. The golden ratio keeps the hues of requests
  // that follow one another apart. None is near the red of what is lost.
  const hue = (number) => Math.round(40 + (171 + number * 280 * 0.618) % 280);

  // drawn returns a part of a drawing, in the column with the given number.
  function drawn(className, column, ...children) {
    const part = make("i", className, ...children);
    part.style.setProperty("--column", column);
    return part;
  }

  // symbol returns the drawing of an event: a mark in the column of From, and an arrow to the
  // column of To, if there is one.
  function symbol(event, from, to) {
    const mark = drawn("seq-mark", from);
    if (to === undefined || to === from) return [mark];
    const line = drawn("seq-line", Math.min(from, to), make("i", event.lost ? "seq-cross" : "seq-tip"));
    line.style.setProperty("--span", Math.abs(to - from));
    line.classList.toggle("seq-leftward", to < from);
    return [line, mark];
  }

  // diagram makes an empty diagram in the element, and returns the functions that fill it.
  function diagram(root) {
    const heads = silent(make("div", "seq-heads"));
    const list = make("ol", "seq-rows");
    list.setAttribute("aria-label", "Events in the order of time; the arrow keys go from row to row");
    root.classList.add("seq");
    root.replaceChildren(heads, list);

    let parties = new Map(); // by ID
    let requests = new Map(); // by label: how many requests appeared before this one
    let rows = []; // in the order of time
    let columns = new Map(); // by the ID of the party: the number of its column, from the left
    let names = []; // of the columns, in full
    let undrawn = Infinity; // the index of the first row whose drawing is out of date

    function clear() {
      parties = new Map();
      requests = new Map();
      rows = [];
      list.replaceChildren();
      drawSoon(0);
    }

    function party(p) {
      parties.set(p.id, p);
      drawSoon(0);
    }

    // event adds an event, and returns its row.
    function event(e) {
      for (const id of [e.from, e.to]) {
        if (id && !parties.has(id)) throw new Error(`sequence: no party ${id}; call party before event`);
      }
      if (e.request && !requests.has(e.request)) requests.set(e.request, requests.size);
      let index = rows.length;
      while (index > 0 && rows[index - 1].event.at > e.at) index--;
      const row = newRow(e);
      list.insertBefore(row.item, rows[index]?.item ?? null);
      rows.splice(index, 0, row);
      row.line.tabIndex = rows.length === 1 ? 0 : -1;
      drawSoon(index);
      return row.item;
    }

    // newRow makes the list item of an event.
    function newRow(e) {
      const drawing = silent(make("div", "seq-drawing"));
      const opens = Boolean(e.detail || e.record);
      const line = make(opens ? "button" : "div", "seq-row",
        make("span", "seq-time", time(e.at), spoken(",")), " ",
        e.request && make("span", "seq-request", spoken("request "), e.request, spoken(",")), " ",
        sentence(e), " ",
        e.record && label(e.record));
      if (opens) {
        line.type = "button";
        line.setAttribute("aria-expanded", "false");
      } else { // the row's own text is its name, which screen readers read when it gets the focus
        line.id = `seq-row-${++named}`;
        line.setAttribute("role", "group");
        line.setAttribute("aria-labelledby", line.id);
      }
      const item = make("li", `seq-event seq-${e.kind}`, drawing, line);
      item.classList.toggle("seq-lost", Boolean(e.lost));
      item.classList.toggle("seq-wrong", Boolean(e.wrong));
      if (e.request) item.style.setProperty("--hue", hue(requests.get(e.request)));
      return {event: e, opens, item, line, drawing, detail: null, alive: new Set()};
    }

    // sentence says who did what: "process 1 to DynamoDB: PutItem".
    function sentence(e) {
      const name = (id) => make("span", "seq-party", parties.get(id).name);
      const target = e.to ? [silent(make("span", "seq-arrow", " → ")), spoken(e.kind === "reply" ? " replies to " : " to "), name(e.to)] : [];
      return make("span", "seq-text",
        name(e.from), ...target, ": ", e.text,
        ...(e.lost ? [spoken(","), " ", make("span", "seq-badge", "lost")] : []),
        ...(e.wrong ? [spoken(","), " ", make("span", "seq-badge", "wrong")] : []));
    }

    // label says which record an event changed, and to which state.
    function label(record) {
      const state = make("span", "seq-state", record.state);
      state.dataset.state = record.state;
      return make("span", "seq-record", spoken(", record "), record.title, spoken(" is"), " ", state);
    }

    // drawSoon has the rows from the index on drawn before the browser next shows the page.
    function drawSoon(index) {
      if (undrawn === Infinity) requestAnimationFrame(draw);
      undrawn = Math.min(undrawn, index);
    }

    function draw() {
      if (arrange()) undrawn = 0;
      for (let i = undrawn; i < rows.length; i++) drawRow(rows[i], rows[i - 1]);
      undrawn = Infinity;
    }

    // arrange gives each party a column, and reports whether any column changed.
    function arrange() {
      const sorted = [...parties.values()].sort((a, b) => kinds.indexOf(a.kind) - kinds.indexOf(b.kind));
      const owners = sorted.length > roomy ? shareColumns(sorted) : sorted.map((p) => [p]);
      const arranged = new Map(owners.flatMap((ps, i) => ps.map((p) => [p.id, i])));
      const same = arranged.size === columns.size && [...arranged].every(([id, i]) => columns.get(id) === i);
      if (same) return false;
      columns = arranged;
      root.style.setProperty("--columns", owners.length);
      names = owners.map((ps) => (ps.length === 1 ? ps[0].name : "processes"));
      heads.replaceChildren(...owners.map((ps, i) => {
        const head = make("div", "seq-head", make("span", `seq-symbol seq-${ps[0].kind}`), make("span", "seq-name"));
        head.style.setProperty("--column", i);
        return head;
      }));
      placeNames();
      return true;
    }

    // placeNames writes the names of the columns. If they don't fit on one line, a name leaves out
    // what it has in common with the name on its left ("process 1", "2"), and names that would
    // overlap are on different lines.
    function placeNames() {
      if (place(names) > 1) place(names.map((name, i) => withoutStem(name, names[i - 1])));
    }

    // place writes texts beside the symbols of the columns, and returns the number of lines.
    function place(texts) {
      const all = [...heads.children];
      all.forEach((head, i) => { head.lastChild.textContent = texts[i]; });
      const boxes = all.map((head) => ({left: head.offsetLeft, right: head.offsetLeft + head.offsetWidth}));
      const taken = []; // by line, from the lowest: where the last name put there begins
      for (let i = all.length - 1; i >= 0; i--) {
        let line = taken.findIndex((left) => boxes[i].right < left);
        if (line < 0) line = taken.length;
        taken[line] = boxes[i].left;
        all[i].style.setProperty("--line-number", line);
      }
      root.style.setProperty("--lines", taken.length);
      return taken.length;
    }

    // The width of the columns depends on the width of the page. The browser reports an error if
    // an observer changes the size of what it observes, so the names are placed in the next frame.
    new ResizeObserver(() => requestAnimationFrame(placeNames)).observe(heads);

    // shareColumns returns the parties of each column. A process takes a column over from one
    // that has ended and appears in no later event.
    function shareColumns(sorted) {
      const first = new Map();
      const last = new Map();
      rows.forEach(({event: e}, i) => {
        for (const id of [e.from, e.to]) {
          if (!first.has(id)) first.set(id, i);
          last.set(id, i);
        }
      });
      const ended = new Set(rows.filter(({event: e}) => e.kind === "end" || e.ends).map((row) => row.event.from));
      const start = (p) => first.get(p.id) ?? Infinity;
      const isProcess = (p) => p.kind === "process";
      const shared = [];
      for (const p of sorted.filter(isProcess).sort((a, b) => start(a) - start(b))) {
        const free = shared.find((ps) => ended.has(ps.at(-1).id) && last.get(ps.at(-1).id) < start(p));
        if (free) free.push(p);
        else shared.push([p]);
      }
      const alone = sorted.filter((p) => !isProcess(p)).map((p) => [p]);
      return [...alone, ...shared].sort((a, b) => kinds.indexOf(a[0].kind) - kinds.indexOf(b[0].kind));
    }

    // drawRow draws a row. The bars of the processes that have begun and not ended go on from
    // the previous row, if there is one.
    function drawRow(row, previous) {
      const e = row.event;
      const alive = previous?.alive ?? new Set();
      row.item.classList.toggle("seq-later", previous !== undefined && e.at - previous.event.at > pause);
      row.alive = new Set(alive);
      if (e.kind === "begin") row.alive.add(e.from);
      if (e.kind === "end" || e.ends) row.alive.delete(e.from);
      const bars = [...new Set([...alive, ...row.alive])].map((id) => {
        const bar = drawn("seq-bar", columns.get(id));
        bar.classList.toggle("seq-begins", !alive.has(id));
        bar.classList.toggle("seq-ends", !row.alive.has(id));
        return bar;
      });
      row.drawing.replaceChildren(...bars, ...symbol(e, columns.get(e.from), columns.get(e.to)));
    }

    function open(row) {
      const e = row.event;
      row.detail = make("div", "seq-detail", e.record && fields(row), e.detail && make("pre", "", e.detail));
      row.item.append(row.detail);
      row.line.setAttribute("aria-expanded", "true");
    }

    function close(row) {
      row.detail.remove();
      row.detail = null;
      row.line.setAttribute("aria-expanded", "false");
    }

    // fields returns a table of the record's fields, which says what the event changed.
    function fields(row) {
      const {record} = row.event;
      const previous = rows.slice(0, rows.indexOf(row)).findLast((r) => r.event.record?.id === record.id);
      const before = new Map(previous?.event.record.fields?.map((f) => [f.name, f.value]));
      const table = make("table", "", make("caption", "", `${record.title} after this event`));
      const add = (name, value, change) => {
        const head = make("th", "", name);
        head.scope = "row";
        table.append(make("tr", "", head, make("td", "", value, value && " ", change && make("span", "seq-change", change))));
      };
      for (const {name, value} of record.fields ?? []) {
        const old = before.get(name);
        add(name, value, old === value ? "" : old === undefined ? "new" : `was ${old}`);
        before.delete(name);
      }
      for (const [name, old] of before) add(name, "", `removed, was ${old}`);
      return table;
    }

    // rowOf returns the row that an event of the browser happened in.
    function rowOf(browserEvent) {
      const item = browserEvent.target.closest("li");
      return rows.find((row) => row.item === item);
    }

    list.addEventListener("click", (click) => {
      const row = rowOf(click);
      if (!row?.opens || !row.line.contains(click.target)) return;
      if (row.detail) close(row);
      else open(row);
    });

    list.addEventListener("keydown", (key) => {
      if (key.altKey || key.ctrlKey || key.metaKey) return;
      const row = rowOf(key);
      const index = rows.indexOf(row);
      const target = {ArrowDown: index + 1, ArrowUp: index - 1, Home: 0, End: rows.length - 1, Escape: index}[key.key];
      if (!rows[target]) return;
      if (key.key === "Escape" && row.detail) close(row);
      rows[target].line.focus();
      key.preventDefault();
    });

    // Tab reaches one row: the one that had the focus last. The rows of its request stand out.
    list.addEventListener("focusin", (focus) => {
      const current = rowOf(focus);
      for (const row of rows) {
        row.line.tabIndex = row === current ? 0 : -1;
        row.item.classList.toggle("seq-same", Boolean(current.event.request) && row.event.request === current.event.request);
      }
    });

    return {party, event, clear};
  }

  // legend explains in the element how to read the drawing and how to open rows. It leaves out kinds of
  // events that the diagram never has.
  function legend(root, without = []) {
    const entries = [
      ["a call", {kind: "call"}, 1],
      ["a reply", {kind: "reply"}, 1],
      ["lost on the way", {kind: "call", lost: true}, 1],
      ["does or notices something", {kind: "note"}],
      ["an effect that cannot be undone", {kind: "effect"}],
      ["a process starts", {kind: "begin"}],
      ["a process ends", {kind: "end"}],
    ].filter(([, e]) => !without.includes(e.kind));
    root.classList.add("seq-legend");
    const key = (text) => make("kbd", "", text);
    const list = make("ul", "", ...entries.map(([text, e, to]) => {
      const drawing = silent(make("span", "seq-drawing", ...symbol(e, 0, to)));
      if (e.kind === "begin") drawing.prepend(drawn("seq-bar seq-begins", 0));
      if (e.kind === "end") drawing.prepend(drawn("seq-bar seq-ends", 0));
      return make("li", `seq-event seq-${e.kind} ${e.lost ? "seq-lost" : ""}`, drawing, make("span", "", text));
    }));
    list.append(make("li", "", silent(make("i", "seq-chevron")), make("span", "", "a row that opens")));
    root.replaceChildren(list,
      make("p", "", "Click on a row that opens, or press ", key("Enter"), ", to see the record, what has changed in it, and the message. ",
        key("\u2191"), " and ", key("\u2193"), " go from row to row, ", key("Home"), " and ", key("End"), " to the first and the last. ",
        key("Esc"), " closes a row. The rows of the same request stand out."));
  }

  return {diagram, legend};
})();
