// Charts by uPlot that can be read without seeing them: each has its newest values, or those at the cursor, as text, and
// all of them as a table. The arrow keys move the cursor; dragging zooms, a double click shows all.
"use strict";
const el = (kind, attributes = {}, ...children) => {
  const made = document.createElement(kind);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((one) => one !== null && one !== undefined));
  return made;
};
const table = (heads, rows, caption) => el("table", {}, caption ? el("caption", {}, caption) : null,
  el("thead", {}, el("tr", {}, ...heads.map((one) => el("th", { scope: "col" }, one)))),
  el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((cell) => el("td", {}, cell ?? "–"))))));
const time = (seconds) => new Date(seconds * 1000).toISOString().slice(11, 19);
const number = (value) => value === null || value === undefined ? "–"
  : value.toLocaleString("en", { maximumSignificantDigits: 4 });

const COLOURS = ["--one", "--two", "--three", "--four"];
const HEIGHT = 190, DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3]], ROWS = 60;
const WHOLE = [1, 2, 5, 10, 20, 50, 100]; // steps of an axis of counts
const CORE = 1000, GIB = 2 ** 30; // of millicores and bytes
const scaled = (resource) => resource === "cpu" ? [CORE, "cores"] : [GIB, "GiB"];
const of = (value, unit) => value === null || value === undefined ? null : value / unit;
const css = (name) => name.startsWith("--") ? getComputedStyle(document.documentElement).getPropertyValue(name) : name;
const drawn = new Set();
// The pixels of the widest text on an axis, in whatever font the browser has.
const widest = (plot, axis, texts) => {
  plot.ctx.font = plot.axes[axis].font[0];
  return Math.max(...(texts ?? []).map((one) => plot.ctx.measureText(one).width), 0) / devicePixelRatio;
};
const sizeOf = (plot, texts, axis) => Math.ceil(Math.max(50, widest(plot, axis, texts) + plot.axes[axis].ticks.size + plot.axes[axis].gap + 2));
// From 0 to the largest value in view. The values beside the view count, too: the lines lead there.
const fromZero = (plot, _, most) => {
  const [first, last] = plot.series[0].idxs;
  const beside = plot.data.slice(1).filter((_, at) => plot.series[at + 1].show && plot.series[at + 1].auto).flatMap((values) => [values[first - 1], values[last + 1]]);
  const top = Math.max(most ?? 0, ...beside.filter(Number.isFinite));
  return [0, top > 0 ? top * 1.08 : 1];
};
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawn.forEach((one) => one.redraw()));

// `lines`: {label, steps, points, colour, dash, width, filled, gaps, back}, one for each series; the axis does not depend on
// lines at the `back`, and lines without a label are in no legend or table. `x`: what the x axis is and how a value
// of it reads; `y`: changes of its scale and of its axis. `shade`: a range of x with a grey ground. `paint` draws on the
// finished plot. `describe`: texts for an index, below the plot, in place of values in the legend and of the table.
// `finished`: no values are added, so the table is spread over all of them.
class Chart {
  constructor(parent, { title, unit, lines, x = { label: "time (UTC)", text: time, tick: time, time: true }, y = {}, bands, height = HEIGHT,
    shade, paint, describe, finished }) {
    Object.assign(this, { lines, x, describe, finished, texts: [], ends: [] });
    this.colours = lines.map((line, at) => line.colour ?? COLOURS[at % 4]);
    this.dashes = lines.map((line, at) => line.dash ?? DASHES[at % 4]);
    this.plot = el("div", { tabindex: 0, role: "group", "aria-roledescription": "chart",
      "aria-label": `${title}, ${unit}. Arrow keys move through the values.`, onkeydown: (event) => this.key(event),
      onblur: () => this.spoken.removeAttribute("aria-live"), ondblclick: () => this.isZoomed = false });
    this.legend = el("ul", { class: "legend" });
    this.below = describe ? el("p", { class: "at-cursor" }) : null;
    this.spoken = this.below ?? this.legend;
    this.rows = el("div", { tabindex: 0, role: "region", "aria-label": `Values of ${title}` });
    this.details = describe ? null : el("details", { ontoggle: () => this.fillTable() }, el("summary", {}, "Values as a table"), this.rows);
    this.figure = el("figure", {}, el("figcaption", {}, `${title}, ${unit}`), this.legend, this.plot, this.below, this.details);
    parent.append(this.figure);
    const axis = { stroke: () => css("--soft"), grid: { stroke: () => css("--line"), width: 1 }, ticks: { stroke: () => css("--line") } };
    this.uplot = new uPlot({
      width: this.width, height, legend: { show: false }, bands,
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
      scales: { x: { time: Boolean(x.time), range: x.range }, y: { range: fromZero, ...y.scale } },
      axes: [{ ...axis, label: x.label, labelSize: 18, size: 36, space: x.space ?? ((plot) => widest(plot, 0, [x.tick(1)]) + 12), incrs: x.incrs,
        values: (_, all, axis, space, step) => all.map((one) => x.tick(one, step)) },
      { ...axis, size: sizeOf, values: (_, all) => all.map(number), ...y.axis }],
      cursor: { sync: x.time ? { key: x.sync ?? "time" } : undefined, y: false, drag: { x: !x.range } },
      hooks: { setCursor: [() => this.fillLegend()], setSelect: [({ select }) => this.isZoomed = select.width > 0],
        drawClear: shade ? [(plot) => this.shade(plot, shade)] : [],
        draw: [({ scales: { x } }) => this.figure.dataset.shown = `${x.min} ${x.max}`, (plot) => this.label(plot), ...(paint ? [paint] : [])] },
      series: [{}, ...lines.map((line, at) => ({
        label: line.label, auto: !line.back, stroke: () => css(this.colours[at]), dash: this.dashes[at], width: line.points ? 0 : line.width ?? 2, spanGaps: !line.gaps,
        points: line.points ? { show: true, size: line.points, width: 2.5, fill: () => css(line.filled ? this.colours[at] : "--card") } : { show: false },
        paths: line.steps ? uPlot.paths.stepped({ align: 1 }) : undefined,
      }))],
    }, [[], ...lines.map(() => [])], this.plot);
    this.observer = new ResizeObserver(() => this.uplot.setSize({ width: this.width, height }));
    this.observer.observe(this.plot);
    drawn.add(this);
  }
  get width() { return Math.max(260, this.plot.clientWidth); }
  redraw() { this.uplot.redraw(); this.fillLegend(); }
  destroy() {
    drawn.delete(this), this.observer.disconnect(), this.uplot.destroy(), this.figure.remove();
  }
  // `texts` stand in the legend in place of the newest values, `ends` at the right ends of lines, in order of importance.
  set(data, texts = [], ends = []) {
    Object.assign(this, { texts, ends });
    this.uplot.setData(data, !this.isZoomed); // a stretch that was dragged over stays in view
    if (this.isZoomed) this.uplot.redraw();
    this.figure.dataset.values = data[0].length;
    this.fillLegend();
    this.fillTable();
  }
  // Show only the lines that `isShown` returns true for.
  show(isShown) {
    this.uplot.batch(() => this.lines.forEach((line, at) => this.uplot.setSeries(at + 1, { show: isShown(line) })));
    this.fillLegend();
  }
  shade(plot, [from, to]) {
    const [left, right] = [from, to].map((value) => Math.min(Math.max(plot.valToPos(value, "x", true), plot.bbox.left), plot.bbox.left + plot.bbox.width));
    plot.ctx.fillStyle = css("--shade");
    plot.ctx.fillRect(left, plot.bbox.top, right - left, plot.bbox.height);
  }
  // Texts above or below the ends of lines, without those that would overlap another text or lie outside.
  label({ ctx, bbox, data, valToPos }) {
    const height = 13 * devicePixelRatio, taken = [];
    this.ends.forEach((text, index) => {
      const end = valToPos(data[index + 1].findLast((one) => one !== null), "y", true);
      const place = [end - height / 2, end + height / 2].find((one) => one - height / 2 >= bbox.top &&
        one + height / 2 <= bbox.top + bbox.height && taken.every((other) => Math.abs(one - other) >= height));
      if (place === undefined) return;
      taken.push(place);
      Object.assign(ctx, { fillStyle: css(this.colours[index]), textAlign: "right", textBaseline: "middle" });
      ctx.fillText(text, bbox.left + bbox.width - 2, place);
    });
  }
  get index() { return this.uplot.cursor.idx ?? this.uplot.data[0].length - 1; }
  // The values at the cursor, else the newest ones.
  fillLegend() {
    if (!this.uplot) return;
    const { data, series } = this.uplot, at = this.index, isAtCursor = this.uplot.cursor.idx !== null && this.uplot.cursor.idx !== undefined;
    const shown = [...this.lines.entries()].filter(([index, line]) => line.label && series[index + 1].show);
    const entries = shown.map(([index, line]) => {
      const values = data[index + 1];
      const value = values[at] ?? (isAtCursor ? null : values.findLast((one) => one !== null && one !== undefined));
      const swatch = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      for (const [name, text] of [["width", 26], ["height", 8], ["aria-hidden", true]]) swatch.setAttribute(name, text);
      const stroke = swatch.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "path"));
      for (const [name, text] of [["d", line.points ? "M20 4h.1" : "M0 4H26"], ["stroke", css(this.colours[index])],
        ["stroke-width", line.points ? 8 : 3], ["stroke-linecap", line.points ? "round" : "butt"],
        ["stroke-dasharray", line.points ? "" : this.dashes[index].join(" ")]]) stroke.setAttribute(name, text);
      return el("li", {}, swatch, `${line.label} ${isAtCursor && !this.describe ? number(value) : this.texts[index] ?? number(value)}`);
    });
    const place = isAtCursor && data[0].length ? `at ${this.x.text(data[0][at])}` : "";
    if (this.describe) this.below.textContent = place && [place, ...this.describe(at)].join("; ");
    else entries.push(el("li", {}, place));
    this.legend.replaceChildren(...entries);
  }
  fillTable() {
    if (!this.details?.open) return;
    const { data } = this.uplot, count = data[0].length, every = this.finished ? Math.ceil(count / ROWS) : 1;
    const places = Array.from({ length: Math.min(ROWS, Math.ceil(count / every)) }, (_, row) => this.finished ? row * every : count - 1 - row);
    const columns = [...this.lines.keys()].filter((index) => this.lines[index].label);
    const rows = places.map((at) => [this.x.text(data[0][at]), ...columns.map((index) => number(data[index + 1][at]))]);
    this.rows.replaceChildren(table([this.x.label, ...columns.map((index) => this.lines[index].label)], rows,
      this.finished ? `${rows.length} of ${count} values.` : count > ROWS ? `The newest ${ROWS} of ${count}, newest first.` : "Newest first."));
  }
  key(event) {
    const last = this.uplot.data[0].length - 1, moves = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };
    if (event.key === "Escape") this.uplot.setCursor({ left: -10, top: -10 });
    if (!(event.key in moves) || last < 0) return;
    event.preventDefault();
    this.spoken.setAttribute("aria-live", "polite");
    const at = Math.min(last, Math.max(0, this.index + moves[event.key]));
    this.uplot.setCursor({ left: this.uplot.valToPos(this.uplot.data[0][at], "x"), top: 10 });
  }
}

// A path (hvpa_lab/plot/path.py) as an area of replicas and sizes, with lines of equal totals, and the points of the Hvpa.
const pathChart = (path) => {
  const [unit, name] = scaled(path.resource), marks = ["usual", "now", "wanted"].filter((one) => path.marks[one]);
  const counts = [...new Set([...path.counts, ...marks.map((one) => path.marks[one].replicas)])].sort((a, b) => a - b);
  const at = (values) => counts.map((count) => of(values[path.counts.indexOf(count)], unit));
  const text = ({ replicas, size }) => `${replicas} × ${number(size / unit)}`;
  const colour = (mark) => COLOURS[["usual", "now", "wanted"].indexOf(mark)];
  const totals = path.totals.map((one) => ({ ...one, values: at(one.sizes), text: number(one.demand / unit) }));
  return {
    options: {
      title: `Path: ${path.container} ${path.resource} of each pod by replicas`, unit: name,
      x: { label: `replicas${path.goesOn ? " (the path goes on)" : ""}`, text: (count) => `${count} replicas`, tick: String, incrs: WHOLE },
      lines: [...totals.map((one) => ({ back: true, width: one.of ? 1 : .5, colour: one.of ? colour(one.of) : "--soft", dash: one.of ? [6, 4] : [] })),
        { label: "path, up to", colour: "--soft", dash: [] }, { label: "from", colour: "--soft", dash: [8, 4] },
        ...marks.map((label) => ({ label, points: { usual: 20, now: 14, wanted: 8 }[label], colour: colour(label) }))],
      bands: [{ series: [totals.length + 1, totals.length + 2], fill: () => css("--band") }],
    },
    data: [counts, ...totals.map((one) => one.values), at(path.largest), at(path.smallest),
      ...marks.map((one) => counts.map((count) => count === path.marks[one].replicas ? path.marks[one].size / unit : null))],
    texts: [...totals.map(() => ""), number(at(path.largest).findLast((one) => one !== null)), number(at(path.smallest)[0]), ...marks.map((one) => text(path.marks[one]))],
    ends: totals.map((one) => ({ usual: `usually ${one.text}`, wanted: `needs ${one.text}` })[one.of] ?? one.text),
  };
};
