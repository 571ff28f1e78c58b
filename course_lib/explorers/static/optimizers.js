// The optimizer explorer: a surface seen from above, the path of an optimizer down it, and its loss.

const WIDE = 560, HIGH = 300;

function render(context) {
  const begin = context.model.get("shown");
  const surface = choice(begin.surfaces, (name) => ask("surface", { name }));
  const optimizer = choice(begin.optimizers, (name) => ask("optimizer", { name }));
  const start = textField(10, (text) => ask("start", { text }));
  const lr = slider("learning rate", "lr", begin.ends[0], begin.ends[1], (tenths) => ask("lr", { tenths }));
  const momentum = slider("momentum or β₁", "momentum", 0, 99, (hundredths) => ask("momentum", { hundredths }));
  const steps = slider("steps", "steps", 1, 200, (count) => ask("steps", { count }));
  const ground = make("canvas", { width: begin.rows[0].length, height: begin.rows.length });
  const path = make("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", width: WIDE, height: HIGH });
  path.addEventListener("click", (event) => {
    const at = path.getBoundingClientRect(), { x, y } = context.model.get("shown");
    const px = x[0] + ((event.clientX - at.left) / at.width) * (x[1] - x[0]);
    const py = y[1] - ((event.clientY - at.top) / at.height) * (y[1] - y[0]);
    ask("start", { text: `${px.toFixed(2)}, ${py.toFixed(2)}` });
  });
  const curve = make("svg", { viewBox: "0 0 330 300", role: "img", width: 330, height: HIGH });
  const formula = make("p", { className: "mono" });
  const lines = make("div");
  const parts = [
    make("div", { className: "row" }, labelled("surface", "surface", surface), labelled("optimizer", "optimizer", optimizer),
      labelled("start (or click)", "start", start)),
    make("div", { className: "row" }, lr.label, momentum.label, steps.label),
    formula, make("div", { className: "row" }, make("div", { className: "map" }, ground, path), curve), lines,
  ];
  const ask = explorer(context, parts, draw);
  let painted = "";

  function draw(shown) {
    put(surface, shown.surface);
    put(optimizer, shown.optimizer);
    put(start, shown.start);
    lr.set(shown.tenths, shown.lr);
    momentum.set(shown.hundredths, shown.momentum);
    momentum.label.querySelector("input").disabled = shown.momentum === "no momentum";
    steps.set(shown.steps, `${shown.steps} steps`);
    formula.textContent = `loss = ${shown.formula}`;
    if (painted !== shown.surface) paint(ground, shown.rows);
    painted = shown.surface;
    path.setAttribute("aria-label", shown.says);
    path.replaceChildren(...walked(shown));
    curve.setAttribute("aria-label", `the loss at each of ${shown.losses.length} points`);
    curve.replaceChildren(...lossCurve(shown.losses, shown.low));
    lines.replaceChildren(...shown.lines.map((line) => make("p", {}, line)));
  }
}

/** The higher, the deeper the blue, over whatever background the theme has. */
function paint(canvas, rows) {
  const context = canvas.getContext("2d");
  context.clearRect(0, 0, canvas.width, canvas.height);
  rows.forEach((row, y) => [...row].forEach((letter, x) => {
    context.fillStyle = `rgba(0, 114, 178, ${(letter.charCodeAt(0) - 97) / 18})`;
    context.fillRect(x, y, 1, 1);
  }));
}

function walked(shown) {
  const x = (value) => ((value - shown.x[0]) / (shown.x[1] - shown.x[0])) * WIDE;
  const y = (value) => ((shown.y[1] - value) / (shown.y[1] - shown.y[0])) * HIGH;
  const points = shown.path.map(([px, py]) => [x(px), y(py)]);
  return [
    ...shown.lowest.map(([px, py]) => make("text", { x: x(px), y: y(py) + 8, "text-anchor": "middle", class: "lowest" }, "★")),
    make("polyline", { points: points.map((point) => point.join()).join(" "), class: "path" }),
    ...points.map(([px, py]) => make("circle", { cx: px, cy: py, r: 3.5, class: "step" })),
    make("circle", { cx: points[0][0], cy: points[0][1], r: 9, class: "begin" }),
  ];
}

/** On a logarithmic axis; where the lowest loss is not 0, the height above it. */
function lossCurve(losses, lowest) {
  const logs = losses.map((loss) => Math.log10(Math.max(loss - lowest, 1e-12)));
  const low = Math.floor(Math.min(...logs)), high = Math.max(Math.ceil(Math.max(...logs)), low + 1);
  const x = (step) => 50 + (step / Math.max(losses.length - 1, 1)) * 270;
  const y = (log) => 262 - ((log - low) / (high - low)) * 240;
  return [
    make("line", { x1: 50, x2: 320, y1: 262, y2: 262, class: "grid" }), make("line", { x1: 50, x2: 50, y1: 22, y2: 262, class: "grid" }),
    make("text", { x: 44, y: 28, "text-anchor": "end" }, `1e${high}`), make("text", { x: 44, y: 266, "text-anchor": "end" }, `1e${low}`),
    make("text", { x: 185, y: 288, "text-anchor": "middle" }, `${lowest < 0 ? `loss above ${lowest}` : "loss"}, over ${losses.length - 1} steps`),
    make("polyline", { points: logs.map((log, step) => `${x(step)},${y(log)}`).join(" "), class: "path" }),
  ];
}

export default { render };
