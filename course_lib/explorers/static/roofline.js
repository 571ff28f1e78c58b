// The roofline explorer: a roof on logarithmic axes, the point of one piece of work, and what was measured here.

const WIDTH = 900, HEIGHT = 300, LEFT = 70, BOTTOM = 44, TOP = 14;

function render(context) {
  const device = choice(context.model.get("shown").devices, (name) => ask("device", { name }));
  const dtype = make("select", { onchange: () => ask("dtype", { name: dtype.value }) });
  const work = choice(context.model.get("shown").works, (name) => ask("work", { name }));
  const measure = make("button", { type: "button", "data-key": "measure", onclick: () => {
    measure.disabled = true;
    measure.textContent = "measuring …";
    ask("measure");
  } });
  measure.dataset.field = "measure";
  const sizes = make("div", { className: "row" });
  const chart = make("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", width: "100%" });
  const lines = make("div");
  let sliders = [];
  const parts = [
    make("div", { className: "row" }, labelled("device", "device", device), labelled("dtype", "dtype", dtype),
      labelled("work", "work", work), measure),
    sizes, chart, lines,
  ];
  const ask = explorer(context, parts, draw);

  function options(list, names) {
    if ([...list.options].map((one) => one.value).join() !== names.join()) {
      list.replaceChildren(...names.map((name) => make("option", { value: name }, name)));
    }
  }

  function draw(shown) {
    options(device, shown.devices);
    options(dtype, shown.dtypes);
    put(device, shown.device);
    put(dtype, shown.dtype);
    put(work, shown.work);
    measure.disabled = false;
    measure.textContent = "measure it here";
    if (sliders.map((one) => one.name).join() !== shown.sizes.map(([name]) => name).join()) {
      sliders = shown.sizes.map(([name, , highest]) =>
        ({ name, ...slider(`size ${name}, powers of two`, `size ${name}`, 0, highest, (exponent) => ask("size", { name, exponent })) }));
      sizes.replaceChildren(...sliders.map((one) => one.label));
    }
    shown.sizes.forEach(([, exponent, , said], i) => sliders[i].set(exponent, said));
    lines.replaceChildren(...shown.lines.map((line) => make("p", {}, line)));
    chart.setAttribute("aria-label", shown.says);
    chart.replaceChildren(...picture(shown));
  }
}

function picture(shown) {
  const points = [[shown.work, shown.intensity, shown.reached], ...shown.measured];
  const xs = [...points.map(([, x]) => x), shown.balance], ys = [...points.map(([, , y]) => y), shown.peak];
  const x0 = Math.floor(Math.log10(Math.min(...xs)) - 0.5), x1 = Math.ceil(Math.log10(Math.max(...xs)) + 0.7);
  const y0 = Math.floor(Math.log10(Math.min(...ys)) - 0.3), y1 = Math.ceil(Math.log10(Math.max(...ys)) + 0.3);
  const x = (value) => LEFT + ((Math.log10(value) - x0) / (x1 - x0)) * (WIDTH - LEFT - 20);
  const y = (value) => HEIGHT - BOTTOM - ((Math.log10(value) - y0) / (y1 - y0)) * (HEIGHT - BOTTOM - TOP);
  const roof = (value) => Math.min(shown.peak, value * shown.bandwidth);
  const start = Math.max(10 ** x0, 10 ** y0 / shown.bandwidth);
  const drawn = [];
  for (let power = x0; power <= x1; power++) {
    drawn.push(make("text", { x: x(10 ** power), y: HEIGHT - BOTTOM + 18, "text-anchor": "middle" }, String(10 ** power)));
  }
  for (let power = y0; power <= y1; power++) {
    drawn.push(make("line", { x1: LEFT, x2: WIDTH - 20, y1: y(10 ** power), y2: y(10 ** power), class: "grid" }),
      make("text", { x: LEFT - 8, y: y(10 ** power) + 5, "text-anchor": "end" }, `1e${power}`));
  }
  drawn.push(
    make("rect", { x: LEFT, y: TOP, width: Math.max(x(shown.balance) - LEFT, 0), height: HEIGHT - BOTTOM - TOP, class: "memory-side" }),
    make("text", { x: LEFT + 8, y: TOP + 16 }, "memory-bound"),
    make("text", { x: WIDTH - 28, y: TOP + 16, "text-anchor": "end" }, "compute-bound"),
    make("polyline", { class: "roof", points: [start, shown.balance, 10 ** x1].map((at) => `${x(at)},${y(roof(at))}`).join(" ") }),
    make("text", { x: (LEFT + WIDTH) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, "FLOPs per byte moved; upwards: FLOP/s"));
  points.forEach(([name, px, py], i) => drawn.push(
    make("circle", { cx: x(px), cy: y(py), r: i ? 6 : 9, class: i ? "timed" : "point" }, make("title", {}, i ? `measured: ${name}` : name)),
    make("text", { x: x(px) + 12, y: y(py) + 20 }, i ? "measured" : name)));
  return drawn;
}

export default { render };
