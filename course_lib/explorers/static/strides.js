// The stride explorer: a storage as a row of cells, a view of it as matrices, and a walk through both.

function render(context) {
  const typed = (name, label, size, action = name, argument = "text") =>
    labelled(label, name, textField(size, (text) => ask(action, { [argument]: text })));
  const shape = typed("shape", "shape", 9);
  const strides = typed("strides", "strides", 9);
  const offset = typed("offset", "offset", 4, "offset", "count");
  const size = typed("size", "stored numbers", 4, "size", "count");
  const viewAs = typed("view_as", "would .view(…) work?", 9);
  const second = choice(context.model.get("shown").seconds, (name) => ask("second", { name }));
  const button = (label, action, values = {}) =>
    make("button", { type: "button", "data-key": label, onclick: () => ask(action, values) }, label);
  const back = make("button", { type: "button", "data-key": "back", onclick: () => ask("walk", { to: now.step - 1 }) }, "◀ back");
  const on = make("button", { type: "button", "data-key": "on", onclick: () => ask("walk", { to: now.step + 1 }) }, "on ▶");
  const storage = make("div", { className: "cells", role: "img" });
  const view = make("div", { className: "matrices", role: "group", "aria-label": "the elements of x" });
  const words = ["where", "layout", "view", "sharing"].map((key) => [key, make("p")]);
  let now = context.model.get("shown");
  const parts = [
    make("div", { className: "row" }, shape, strides, offset, size, button("swap last two", "swap"), button("make contiguous", "straighten")),
    make("div", { className: "row" }, viewAs, labelled("beside it", "second", second), back, on),
    storage, view, ...words.map(([, line]) => line),
  ];
  const ask = explorer(context, parts, draw);

  function draw(shown) {
    now = shown;
    for (const [label, key] of [[shape, "shape"], [strides, "strides"], [offset, "offset"], [size, "size"], [viewAs, "view_as"]]) {
      put(label.querySelector("input"), shown[key]);
    }
    put(second, shown.second);
    storage.replaceChildren(...shown.cells.map((cell, place) => make("span", {
      className: ["cell", cell.x ? "mine" : "", cell.y ? "theirs" : "", place === shown.here ? "here" : ""].join(" "),
    }, String(place), make("small", {}, cell.x > 1 ? `${cell.x}×` : ""))));
    storage.setAttribute("aria-label", `the storage, ${shown.size} cells; ${shown.layout}`);
    let step = 0;
    fill(view, shown.matrices.map((matrix) => make("div", { className: "matrix" },
      matrix.map((row) => make("div", {}, row.map((place) => element(place, step++)))))));
    for (const [key, line] of words) line.textContent = shown[key];
  }

  function element(place, step) {
    return make("button", {
      type: "button", "data-key": `element ${step}`, "aria-pressed": String(step === now.step),
      "aria-label": `element ${step}, at ${place} of the storage`,
      onclick: () => ask("walk", { to: step }),
      onkeydown: (event) => {
        const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
        if (by) view.querySelector(`[data-key="element ${step + by}"]`)?.focus();
      },
    }, String(place));
  }
}

export default { render };
