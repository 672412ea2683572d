// The page: sends what the controls ask for, and draws what the server says has happened.
(() => {
  "use strict";

  const find = (selector) => document.querySelector(selector);
  const all = (selector) => [...document.querySelectorAll(selector)];

  const diagram = sequence.diagram(find("#diagram"));
  sequence.legend(find("#legend"), find("#sample") ? [] : ["effect"]); // other functions' effects are not known

  // post sends a command to the server, and shows why the server refuses it, if it does.
  async function post(path, body) {
    refuse("");
    try {
      const response = await fetch(path, {method: "POST", body: body && JSON.stringify(body)});
      if (response.status !== 204) refuse(await response.text());
    } catch {
      refuse("The server does not answer: is up still running?");
    }
  }

  // refuse shows why a command was not carried out, until the next command.
  function refuse(text) {
    find("#refusal").textContent = text && text[0].toUpperCase() + text.slice(1) + (/[.?!]$/.test(text) ? "" : ".");
    find("#refusal").hidden = !text;
  }

  // say shows a sentence above the diagram.
  function say(text, title = "") {
    const parts = [];
    if (title) parts.push(Object.assign(document.createElement("strong"), {textContent: title}), " ");
    if (find("#status").textContent !== `${title}${title && " "}${text}`) find("#status").replaceChildren(...parts, text);
  }

  // write shows a text in an element, or hides the element if there is none.
  function write(selector, text) {
    const element = find(selector);
    element.hidden = !text;
    if (element.textContent !== (text || "")) element.textContent = text || "";
  }

  // form returns the request that the form describes.
  function form() {
    const fields = Object.fromEntries(new FormData(find("#form")));
    if ("route" in fields) fields.route = Number(fields.route);
    return fields;
  }

  // The highest number of a request in the diagram so far.
  let latest = 0;

  // The value of latest when the command was sent whose first row is awaited; -1 if none is.
  let awaited = -1;

  // watch runs a command, and brings its first row into sight, or why it was refused: on a small
  // screen, the diagram is far from the controls, and a long one has its new rows at the end.
  async function watch(command) {
    awaited = latest;
    await command();
    if (find("#refusal").hidden) return;
    awaited = -1;
    bring(find("#refusal"));
  }

  // The element to bring into sight, until it is in the upper half of the window; null if there is
  // none. The end of a long diagram gets there only when more rows follow.
  let first = null;

  // reveal brings the first row of the latest command into sight, or all of a new diagram. That row
  // belongs to a request with a higher number than those before: rows of earlier requests may still
  // arrive. reveal is called for each event and its row.
  function reveal(event, row) {
    const request = Number(event.request || 0);
    latest = Math.max(latest, request);
    if (awaited >= 0 && request > awaited) {
      awaited = -1;
      first = row.previousElementSibling ? row : find(".view");
    }
    if (first) requestAnimationFrame(follow); // when the diagram has drawn the row
  }

  function follow() {
    if (!first) return;
    // The names of the parties stay in sight above a row.
    if (first.matches("li")) first.style.scrollMarginTop = `${find("#diagram .seq-heads").offsetHeight + 8}px`;
    bring(first);
    if (first.getBoundingClientRect().top <= innerHeight / 2) first = null;
  }

  // bring scrolls to an element, unless it is in the upper half of what is in sight.
  function bring(element) {
    const {top} = element.getBoundingClientRect();
    if (top < 0 || top > innerHeight / 2) element.scrollIntoView();
  }

  const actions = {
    send: () => post("/send", form()),
    repeat: () => post("/repeat"),
    fifty: () => post("/repeat?times=50"),
    other: () => post("/repeat?body=other"),
  };
  for (const button of all("[data-action]")) button.addEventListener("click", () => watch(actions[button.dataset.action]));
  for (const button of all("[data-story]")) button.addEventListener("click", () => watch(() => post(`/story/${button.dataset.story}`, form())));
  for (const button of all("[data-fault]")) button.addEventListener("click", () => post(`/fault/${button.dataset.fault}`));
  find("#clear").addEventListener("click", () => post("/clear"));
  find("#form").addEventListener("submit", (submit) => {
    submit.preventDefault();
    watch(actions.send);
  });
  for (const button of all("[data-copy]")) {
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(find(`#${button.dataset.copy}`).textContent);
      button.textContent = "Copied";
    });
  }
  // Of many rows, one runs the handler.
  find("#find").addEventListener("click", () => {
    const row = all("#diagram .seq-row").find((each) => /: runs the handler/.test(each.textContent));
    row?.scrollIntoView({block: "center"});
    row?.focus({preventScroll: true});
  });
  let newKey = find("#key").defaultValue; // the server says when it has been used
  find("#new-key").addEventListener("click", () => { find("#key").value = newKey; });
  find("#sample")?.addEventListener("change", (change) => {
    find("#policy-field").hidden = change.target.value !== "transfer";
  });
  const choosePath = () => {
    find("#path").value = find("#route").selectedOptions[0]?.dataset.path ?? "/";
  };
  find("#route")?.addEventListener("change", choosePath);
  if (find("#route")) choosePath();

  // show shows the state of the controls.
  let until = 0;
  function show(state) {
    for (const button of all("[data-fault]")) {
      button.setAttribute("aria-pressed", String(state.armed.includes(button.dataset.fault)));
      button.setAttribute("aria-disabled", String(state.story !== ""));
    }
    for (const button of all("[data-story]")) {
      button.setAttribute("aria-disabled", String(state.story !== ""));
      button.classList.toggle("playing", state.story === button.dataset.story);
    }
    for (const button of all("[data-action]")) {
      button.setAttribute("aria-disabled", String(state.story !== "" || (button.dataset.action !== "send" && !state.repeat)));
    }
    find("#clear").setAttribute("aria-disabled", String(state.story !== ""));
    const names = state.armed.map((name) => find(`[data-fault="${name}"]`)?.textContent).filter(Boolean);
    write("#armed", names.length && `On for the next chance: ${names.join(", ")}.`);
    write("#sum", state.sum);
    find("#find").hidden = !/runs the handler"/.test(state.look);
    newKey = state.key;
    document.body.dataset.busy = String(state.busy);
    until = state.until;
    find("#countdown").dataset.text = state.waiting;
    count();
    if (state.look) say(state.look, "Look:");
    else if (state.story) say(find(`#story-${state.story}`).textContent, "Playing:");
    else say("");
  }

  // count shows how much longer the server waits. The time left is no live region: it would
  // interrupt a screen reader each second.
  function count() {
    const countdown = find("#countdown");
    countdown.hidden = !countdown.dataset.text;
    const left = Math.max(0, Math.ceil((until - Date.now()) / 1000));
    countdown.textContent = `${countdown.dataset.text}: ${left} s`;
  }
  setInterval(count, 250);

  const source = new EventSource("/events");
  const draw = (kind) => (message) => {
    const data = JSON.parse(message.data);
    const row = diagram[kind](data);
    if (kind !== "event") return;
    find("#empty").hidden = true;
    reveal(data, row);
  };
  source.addEventListener("party", draw("party"));
  source.addEventListener("event", draw("event"));
  source.addEventListener("clear", () => {
    diagram.clear();
    first = null;
    find("#empty").hidden = false;
  });
  source.addEventListener("state", (message) => show(JSON.parse(message.data)));
  const connection = find("#connection");
  source.addEventListener("open", () => { connection.hidden = true; });
  source.addEventListener("error", () => {
    connection.hidden = false;
    connection.textContent = "The connection to up is lost. The page shows what happens again as soon as up runs.";
  });
})();
