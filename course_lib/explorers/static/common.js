// What all explorers share: they hold no state, they send actions to Python and draw its answers.

/** An element: make("button", {title: "…", onclick: f}, "text", child). Keys with a dash or aria become attributes. */
function make(tag, properties = {}, ...children) {
  const svg = ["svg", "g", "rect", "line", "path", "circle", "text", "title", "polyline"].includes(tag);
  const element = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (svg || key.includes("-") || key === "role" || key === "for") element.setAttribute(key, value);
    else element[key] = value;
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** Put new children into `place`; whoever has the focus keeps it, found again by its data-key. */
function fill(place, ...children) {
  const key = place.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  place.replaceChildren(...children.flat());
  if (key !== undefined) place.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus();
}

/** A control with its label above it. `name` is the field that Python's sentences are about. */
function labelled(text, name, control) {
  control.dataset.field = name;
  control.dataset.key ??= name;
  return make("label", {}, text, control);
}

/** A list to choose from. */
function choice(options, send) {
  const onchange = (event) => send(event.target.value);
  return make("select", { onchange }, options.map((one) => make("option", { value: one }, one)));
}

/** A text field. A browser reports a change on Enter, and when the field is left. */
function textField(size, send) {
  const onchange = (event) => send(event.target.value);
  return make("input", { type: "text", size, spellcheck: false, autocomplete: "off", onchange });
}

/** A slider over whole numbers that sends while it moves; its label also says the value in words. */
function slider(text, name, low, high, send) {
  const bar = make("input", { type: "range", min: low, max: high, step: 1, oninput: () => send(Number(bar.value)) });
  const label = labelled(text, name, bar);
  label.prepend(make("span", { className: "said" }));
  return { label, set(value, said) { put(bar, value); bar.setAttribute("aria-valuetext", said); label.firstChild.textContent = said; } };
}

/** Write into a control what Python says it holds, unless somebody is typing there, or has typed what was refused. */
function put(control, value) {
  if (control.getAttribute("aria-invalid") === "true") return;
  if (control !== document.activeElement || control.tagName === "SELECT") control.value = value;
}

/**
 * The frame of an explorer: a heading, the place for `parts`, a sentence for problems and one for screen readers.
 * `draw(shown)` is called with each answer; returns `ask(action, arguments)`.
 */
function explorer({ model, el }, parts, draw) {
  const heading = make("h4");
  const problem = make("p", { className: "problem", role: "alert" });
  const says = make("p", { className: "unseen", role: "status" });
  const box = make("section", { className: "explorer" }, heading, ...parts, problem, says);
  // Arrow keys and letters belong to the explorer while it has the focus, not to JupyterLab or the slide show.
  box.addEventListener("keydown", (event) => { if (event.key !== "Escape" && event.key !== "Tab") event.stopPropagation(); });
  const answer = () => {
    const shown = model.get("shown");
    heading.textContent = shown.title;
    box.setAttribute("aria-label", shown.title);
    problem.textContent = shown.problem.says ?? "";
    for (const control of box.querySelectorAll("[data-field]")) {
      control.setAttribute("aria-invalid", String(control.dataset.field === shown.problem.field));
    }
    const wrong = box.querySelector(`[data-field="${CSS.escape(shown.problem.field || "-")}"]`);
    (wrong ? wrong.closest(".row") ?? wrong : says).after(problem); // beside the field that it is about
    draw(shown);
    says.textContent = shown.problem.says ? "" : shown.says;
    box.dataset.turn = shown.turn;
  };
  el.append(box);
  model.on("change:shown", answer);
  queueMicrotask(answer); // `draw` may use what the caller sets up after this call
  return (action, values = {}) => {
    const turn = (model.get("asked").turn ?? 0) + 1; // the model's: it may have other views, and outlives a reload
    model.set("asked", { action, turn, ...values });
    model.save_changes();
  };
}
