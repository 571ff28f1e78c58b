// The float explorer: bits to click, a number to type, the same number in other formats.

const GROUPS = ["sign", "exponent", "fraction"];

function render(context) {
  const format = choice(context.model.get("shown").formats, (name) => ask("format", { name }));
  const number = textField(26, (text) => ask("number", { text }));
  const presets = context.model.get("shown").presets.map(([label, text]) =>
    make("button", { type: "button", "data-key": label, onclick: () => ask("number", { text }) }, label));
  const steps = [["◀ one down", -1], ["one up ▶", 1]].map(([label, by]) =>
    make("button", { type: "button", "data-key": label, onclick: () => ask("step", { by }) }, label));
  const bits = make("div", { className: "bits", role: "group", "aria-label": "bits, from the sign to the last of the fraction" });
  const meaning = make("div");
  const others = make("table");
  const parts = [
    make("div", { className: "row" }, labelled("format", "format", format), labelled("number", "number", number), steps),
    make("div", { className: "row" }, presets), bits, meaning, others,
  ];
  const ask = explorer(context, parts, draw);

  function draw(shown) {
    put(format, shown.format);
    put(number, shown.typed);
    fill(bits, shown.groups.flatMap((digits, group) => [
      ...[...digits].map((digit, place) => bit(shown, digit, group, place)),
      make("span", { className: "gap" }),
    ]));
    meaning.replaceChildren(
      make("p", { className: "mono" }, `${shown.formula}`),
      make("p", {}, `Code ${shown.hex}, ${shown.kind}. ${shown.spacing}`));
    others.replaceChildren(
      make("tr", {}, ["the number typed, as", "becomes", "and is off by"].map((text) => make("th", { scope: "col" }, text))),
      ...shown.others.map((row) => make("tr", {},
        make("th", { scope: "row" }, row.format), make("td", { className: "number" }, row.becomes), make("td", { className: "number" }, row.lost))));
  }

  function bit(shown, digit, group, place) {
    const index = shown.groups.slice(0, group).join("").length + place;
    return make("button", {
      type: "button", className: GROUPS[group], "data-key": `bit ${index}`, "aria-pressed": String(digit === "1"),
      "aria-label": `${GROUPS[group]} bit ${place + 1} of ${shown.groups[group].length}`,
      onclick: () => ask("flip", { bit: index }),
      onkeydown: (event) => {
        const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
        if (by) bits.querySelector(`[data-key="bit ${index + by}"]`)?.focus();
      },
    }, digit);
  }
}

export default { render };
