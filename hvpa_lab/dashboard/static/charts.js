// Charts by uPlot that can be read without seeing them: each has its newest values, or those at the cursor, as text, and
// all of them as a table. The arrow keys move the cursor; dragging zooms, a double click shows all.
export const el = (kind, attributes = {}, ...children) => {
  const made = document.createElement(kind);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((one) => one !== null && one !== undefined));
  return made;
};
export const table = (heads, rows, caption) => el("table", {}, caption ? el("caption", {}, caption) : null,
  el("thead", {}, el("tr", {}, ...heads.map((one) => el("th", { scope: "col" }, one)))),
  el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((cell) => el("td", {}, cell ?? "–"))))));
export const time = (seconds) => new Date(seconds * 1000).toISOString().slice(11, 19);
export const number = (value) => value === null || value === undefined ? "–"
  : value.toLocaleString("en", { maximumSignificantDigits: 4 });

export const COLOURS = ["--one", "--two", "--three", "--four"];
const HEIGHT = 190, DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3]], ROWS = 60, WHOLE = [1, 2, 5, 10, 20, 50, 100];
export const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);
const charts = new Set();
// The pixels of the widest text on an axis, in whatever font the browser has.
const widest = (plot, axis, texts) => {
  plot.ctx.font = plot.axes[axis].font[0];
  return Math.max(...(texts ?? []).map((one) => plot.ctx.measureText(one).width), 0) / devicePixelRatio;
};
const sizeOf = (plot, texts, axis) => Math.ceil(Math.max(50, widest(plot, axis, texts) + plot.axes[axis].ticks.size + plot.axes[axis].gap + 2));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => charts.forEach((one) => one.redraw()));

// `lines`: {label, steps, points, colour}, one for each series; `x` names what the x axis is and how a value of it reads.
export class Chart {
  constructor(parent, { title, unit, lines, x = { label: "time (UTC)", text: time, tick: time, time: true }, bands }) {
    this.lines = lines, this.x = x, this.texts = [];
    this.colours = lines.map((line, at) => line.colour ?? COLOURS[at % 4]);
    this.plot = el("div", { tabindex: 0, role: "group", "aria-roledescription": "chart",
      "aria-label": `${title}, ${unit}. Arrow keys move through the values.`, onkeydown: (event) => this.key(event),
      onblur: () => this.legend.removeAttribute("aria-live"), ondblclick: () => this.isZoomed = false });
    this.legend = el("ul", { class: "legend" });
    this.rows = el("div", { tabindex: 0, role: "region", "aria-label": `Values of ${title}` });
    this.details = el("details", { ontoggle: () => this.fillTable() }, el("summary", {}, "Values as a table"), this.rows);
    this.figure = el("figure", {}, el("figcaption", {}, `${title}, ${unit}`), this.legend, this.plot, this.details);
    parent.append(this.figure);
    const axis = { stroke: () => css("--soft"), grid: { stroke: () => css("--line"), width: 1 }, ticks: { stroke: () => css("--line") } };
    this.uplot = new uPlot({
      width: Math.max(260, this.plot.clientWidth), height: HEIGHT, legend: { show: false }, bands,
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
      scales: { x: { time: Boolean(x.time) }, y: { range: (_, least, most) => [0, most > 0 ? most * 1.08 : 1] } },
      axes: [{ ...axis, label: x.label, labelSize: 18, size: 36, space: (plot) => widest(plot, 0, [x.tick(0)]) + 12, incrs: x.time ? undefined : WHOLE, values: (_, all) => all.map(x.tick) }, { ...axis, size: sizeOf, values: (_, all) => all.map(number) }],
      cursor: { sync: x.time ? { key: "time" } : undefined, y: false },
      hooks: { setCursor: [() => this.fillLegend()], setSelect: [({ select }) => this.isZoomed = select.width > 0],
        draw: [({ scales: { x } }) => this.figure.dataset.shown = `${x.min} ${x.max}`] },
      series: [{}, ...lines.map((line, at) => ({
        label: line.label, stroke: () => css(this.colours[at]), dash: DASHES[at % 4], width: line.points ? 0 : 2, spanGaps: true,
        points: line.points ? { show: true, size: line.points, width: 2.5, fill: () => css("--card") } : { show: false },
        paths: line.steps ? uPlot.paths.stepped({ align: 1 }) : undefined,
      }))],
    }, [[], ...lines.map(() => [])], this.plot);
    this.observer = new ResizeObserver(() => this.uplot.setSize({ width: Math.max(260, this.plot.clientWidth), height: HEIGHT }));
    this.observer.observe(this.plot);
    charts.add(this);
  }
  redraw() { this.uplot.redraw(); this.fillLegend(); }
  destroy() {
    charts.delete(this), this.observer.disconnect(), this.uplot.destroy(), this.figure.remove();
  }
  // `texts` stand in the legend in place of the newest values.
  set(data, texts = []) {
    this.texts = texts;
    this.uplot.setData(data, !this.isZoomed); // a stretch that was dragged over stays in view
    if (this.isZoomed) this.uplot.redraw();
    this.figure.dataset.values = data[0].length;
    this.fillLegend();
    if (this.details.open) this.fillTable();
  }
  get index() { return this.uplot.cursor.idx ?? this.uplot.data[0].length - 1; }
  // The values at the cursor, else the newest ones.
  fillLegend() {
    if (!this.uplot) return;
    const { data } = this.uplot, at = this.index, isAtCursor = this.uplot.cursor.idx !== null && this.uplot.cursor.idx !== undefined;
    this.legend.replaceChildren(...this.lines.map((line, index) => {
      const values = data[index + 1];
      const value = values[at] ?? (isAtCursor ? null : values.findLast((one) => one !== null && one !== undefined));
      const swatch = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      for (const [name, text] of [["width", 26], ["height", 8], ["aria-hidden", true]]) swatch.setAttribute(name, text);
      const stroke = swatch.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "path"));
      for (const [name, text] of [["d", line.points ? "M20 4h.1" : "M0 4H26"], ["stroke", css(this.colours[index])],
        ["stroke-width", line.points ? 8 : 3], ["stroke-linecap", line.points ? "round" : "butt"],
        ["stroke-dasharray", line.points ? "" : DASHES[index % 4].join(" ")]]) stroke.setAttribute(name, text);
      return el("li", {}, swatch, `${line.label} ${isAtCursor ? number(value) : this.texts[index] ?? number(value)}`);
    }), el("li", {}, isAtCursor && data[0].length ? `at ${this.x.text(data[0][at])}` : ""));
  }
  fillTable() {
    if (!this.details.open) return;
    const { data } = this.uplot, last = data[0].length, from = Math.max(0, last - ROWS);
    const rows = Array.from({ length: last - from }, (_, row) => last - 1 - row)
      .map((at) => [this.x.text(data[0][at]), ...data.slice(1).map((values) => number(values[at]))]);
    this.rows.replaceChildren(table([this.x.label, ...this.lines.map((one) => one.label)], rows,
      last > ROWS ? `The newest ${ROWS} of ${last}, newest first.` : "Newest first."));
  }
  key(event) {
    const last = this.uplot.data[0].length - 1, moves = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };
    if (event.key === "Escape") this.uplot.setCursor({ left: -10, top: -10 });
    if (!(event.key in moves) || last < 0) return;
    event.preventDefault();
    this.legend.setAttribute("aria-live", "polite");
    const at = Math.min(last, Math.max(0, this.index + moves[event.key]));
    this.uplot.setCursor({ left: this.uplot.valToPos(this.uplot.data[0][at], "x"), top: 10 });
  }
}
