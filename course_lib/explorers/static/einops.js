// The einops explorer: a pattern whose axes have colours, the numbers before and after, an error at its character.

const AXES = ["blue", "vermilion", "green", "pink", "orange", "sky"];

function render(context) {
  const begin = context.model.get("shown");
  const operation = choice(begin.operations, (name) => ask("operation", { name }));
  const reduction = choice(begin.reductions, (name) => ask("reduction", { name }));
  const shape = textField(9, (text) => ask("shape", { text }));
  const pattern = textField(34, (text) => ask("pattern", { text }));
  const sizes = textField(11, (text) => ask("sizes", { text }));
  const presets = begin.presets.map((name) =>
    make("button", { type: "button", "data-key": name, onclick: () => ask("preset", { name }) }, name));
  const coloured = make("div", { className: "pattern mono", "aria-hidden": "true" });
  const error = make("p", { className: "einops-error" });
  const result = make("p");
  const numbers = make("div", { className: "row", role: "img" });
  const parts = [
    make("div", { className: "row" }, labelled("operation", "operation", operation), labelled("shape of x", "shape", shape),
      labelled("pattern", "pattern", pattern), labelled("sizes", "sizes", sizes), labelled("reduce by", "reduction", reduction)),
    make("div", { className: "row" }, presets),
    coloured, error, result, numbers,
  ];
  const ask = explorer(context, parts, draw);

  function draw(shown) {
    put(operation, shown.operation);
    put(reduction, shown.reduction);
    put(shape, shown.shape);
    put(pattern, shown.pattern);
    put(sizes, shown.sizes);
    reduction.disabled = shown.operation !== "reduce";
    pattern.setAttribute("aria-invalid", String(shown.error !== ""));
    const pieces = shown.tokens.map(([text, axis]) =>
      make("span", axis < 0 ? {} : { className: `axis ${AXES[axis % AXES.length]}` }, text));
    coloured.replaceChildren(...pieces);
    // The caret stands below the character: as wide a space as the text before it, which is set in the same letters.
    error.textContent = shown.error ? `${" ".repeat(shown.at)}▲ ${shown.error}` : "";
    result.textContent = shown.error ? "" : shown.result;
    numbers.setAttribute("aria-label", `x before; ${shown.result}`);
    numbers.replaceChildren(block("x", shown.sides[0], shown.input), make("span", { className: "arrow" }, "→"),
      shown.output ? block("result", shown.sides[1], shown.output) : make("span", {}, "nothing: einops refuses"));
  }

  /** Which way each axis runs, after its name: the last to the right, the one before it down, others from block to block. */
  function ways(groups) {
    return groups.map((group, place) => make("span", { className: "way" },
      group.map(([text, axis]) => make("span", axis < 0 ? {} : { className: `axis ${AXES[axis % AXES.length]}` }, text)),
      [" → ", " ↓ "][groups.length - 1 - place] ?? " ⇒ "));
  }

  function block(name, groups, matrices) {
    return make("figure", {}, make("figcaption", {}, `${name}:  `, ways(groups)), make("div", { className: "matrices" },
      matrices.map((matrix) => make("div", { className: "matrix" },
        matrix.map((row) => make("div", {}, row.map(([number, shade]) => cell(number, shade))))))));
  }

  function cell(number, shade) {
    const one = make("span", { className: "cell-number" }, number);
    if (shade >= 0) one.style.background = `color-mix(in srgb, var(--blue) ${10 + 45 * shade}%, var(--paper))`;
    return one;
  }
}

export default { render };
