"use strict";
// Draws the plots of the page's data as SVG, and filters its lists of events. Text is inserted as text, never as markup.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const RIGHT = 14, ROW = 130, GAP = 44, BOTTOM = 40, STRIP = 22, LINE = 15;
  const DASHES = { solid: "", dash: "7 4", dot: "2 3", dashdot: "7 3 2 3" };
  const MARKS = {
    OOM: "M-4-4L4 4M4-4L-4 4", Evicted: "M0-5L5 0L0 5L-5 0Z", Unschedulable: "M-4-4H4L-4 4H4Z",
    Replicas: "M0-5L5 4H-5Z", Requests: "M-4-4H4V4H-4Z",
  };
  const DOT = "M-3 0A3 3 0 1 0 3 0A3 3 0 1 0-3 0";
  const clamp = (value, least, most) => Math.min(Math.max(value, least), most);
  const widthOf = (plot) => Math.max(320, plot.clientWidth);
  const number = (value) => value.toLocaleString("en", { maximumSignificantDigits: 4 });

  const make = (kind, attributes, parent, text) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", kind);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text !== undefined) made.textContent = text;
    return parent ? parent.appendChild(made) : made;
  };
  const canvas = (plot, width, height) =>
    make("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img" }, plot);
  const grid = (svg, x1, y1, x2, y2) => make("line", { class: "grid", x1, y1, x2, y2 }, svg);

  // Measures text in the browser's fonts: the layout does not depend on a certain font.
  const measure = (svg, texts, attributes = {}) => {
    const made = texts.map((text) => make("text", attributes, svg, text));
    const boxes = made.map((one) => one.getBBox());
    for (const one of made) one.remove();
    return { width: Math.max(0, ...boxes.map((box) => box.width)), height: Math.max(0, ...boxes.map((box) => box.height)) };
  };
  // Shortens a text until it fits into `room`.
  const fit = (element, room) => {
    const text = element.textContent;
    for (let length = text.length - 1; length > 0 && element.getComputedTextLength() > room; length--) {
      element.textContent = `${text.slice(0, length).trimEnd()}…`;
    }
    return element;
  };
  // The lines of a head, each with as many words as fit; the last line ends with the unit as a word.
  const wrap = (svg, title, unit, room) => {
    const lines = [""];
    for (const word of [...title.split(" "), `  ${unit}`]) {
      const longer = `${lines.at(-1)} ${word}`;
      if (!lines.at(-1) || measure(svg, [longer], { class: "head" }).width <= room) lines[lines.length - 1] = longer.trim();
      else lines.push(word.trim());
    }
    return lines;
  };

  // A few round numbers from 0 to at least `most`.
  const ticks = (most, count) => {
    if (!(most > 0)) return [0, 1];
    const raw = most / count, power = 10 ** Math.floor(Math.log10(raw));
    const step = power * [1, 2, 2.5, 5, 10].find((one) => one * power >= raw * .999);
    return Array.from({ length: Math.ceil(most / step - 1e-9) + 1 }, (_, index) => index * step);
  };

  // --- cost against unmet demand: a point per policy, with a column of names next to the plot, each on its own line
  const drawCost = (scenario, plot) => {
    const width = widthOf(plot), height = Math.max(280, scenario.policies.length * 20 + 90);
    const gutter = Math.min(300, width * .4), right = width - gutter, low = height - 46, top = 14;
    const svg = canvas(plot, width, height), sizeOf = (values) => measure(svg, values.map(number));
    const unmet = ticks(Math.max(...scenario.policies.map((one) => one.unmet)), 4);
    const { width: widest, height: line } = sizeOf(unmet), left = line + 4 + widest + 7;
    const dearest = Math.max(...scenario.policies.map((one) => one.cost));
    const room = (values) => right - left - sizeOf(values).width / 2 - 12;
    const apart = (values) => room(values) / (values.length - 1) >= sizeOf(values).width + 8;
    const costs = [5, 4, 3, 2].map((count) => ticks(dearest, count)).find(apart) ?? ticks(dearest, 1);
    const across = room(costs), x = (value) => left + across * value / costs.at(-1);
    const y = (value) => low - (low - top) * Math.sqrt(value / unmet.at(-1)); // small values stay distinct
    for (const value of costs) {
      grid(svg, x(value), top, x(value), low);
      make("text", { x: x(value), y: low + 17, "text-anchor": "middle" }, svg, number(value));
    }
    let above = Infinity;
    for (const value of unmet) {
      if (above - y(value) < line) continue;
      above = y(value);
      grid(svg, left, y(value), right, y(value));
      make("text", { x: left - 7, y: y(value) + 4, "text-anchor": "end" }, svg, number(value));
    }
    make("text", { x: (left + right) / 2, y: height - 8, "text-anchor": "middle" }, svg, "cost");
    const middle = (low + top) / 2, baseline = line * .8;
    fit(make("text", { x: baseline, y: middle, "text-anchor": "middle", transform: `rotate(-90 ${baseline} ${middle})` },
      svg, "unmet demand, % (square root)"), low);
    const points = scenario.policies.map((policy, index) => ({ policy, index, x: x(policy.cost), y: y(policy.unmet) }));
    points.sort((a, b) => a.y - b.y || a.x - b.x);
    const between = 20;
    let last = -Infinity;
    points.forEach((point, place) => {
      const rest = (points.length - place - 1) * between;
      last = clamp(Math.max(point.y, last + between), 12, height - 10 - rest);
      const group = make("g", { class: "policy" }, svg);
      make("path", { class: "leader", d: `M${point.x} ${point.y}L${right} ${last}H${right + 6}` }, group);
      make("circle", { cx: point.x, cy: point.y, r: 6.5, stroke: point.policy.colour, "stroke-width": 2.5,
        class: point.policy.beaten ? "beaten" : "", fill: point.policy.colour }, group);
      const name = `${point.index + 1} ${point.policy.name}`;
      const label = fit(make("text", { class: "label", x: right + 10, y: last + 4 }, group, name), gutter - 14);
      make("title", {}, group,
        `${name}: cost ${number(point.policy.cost)}, ${number(point.policy.unmet)} % of the demand unmet`);
      label.dataset.policy = point.index;
    });
  };

  // --- panels over a common time axis, and a strip of events below them
  const STEPS = [1, 5, 15, 30, 60, 300, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 2419200];
  const timeLabel = (milliseconds, step) => {
    const text = new Date(milliseconds).toISOString();
    return step >= 86400 ? text.slice(5, 10) : text.slice(11, step < 60 ? 19 : 16);
  };
  const timeTicks = (svg, scenario, from, to, room) => {
    const needed = (step) => measure(svg, [timeLabel(scenario.start, step)]).width * 1.3 + 30;
    const step = STEPS.find((one) => (to - from) / one <= room / needed(one)) ?? STEPS.at(-1);
    const offset = scenario.start / 1000 % Math.min(step, 86400), first = Math.ceil((from + offset) / step) * step - offset;
    const found = [];
    for (let at = first; at <= to; at += step) found.push([at, timeLabel(scenario.start + at * 1000, step)]);
    return found;
  };
  // The position of the value that holds at an index: the last position whose x is not beyond the index.
  const place = (xs, index) => {
    let low = 0, high = xs.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (xs[middle] <= index) low = middle; else high = middle - 1;
    }
    return low;
  };
  const pathOf = (line, step, x, y, from, to) => {
    const begin = Math.max(0, place(line.x, from / step) - 1), parts = [];
    let pen = "M";
    for (let at = begin; at < line.x.length; at++) {
      const value = line.y[at];
      if (value === null) { pen = "M"; continue; }
      const px = x(line.x[at] * step).toFixed(1), py = y(value).toFixed(1);
      parts.push(pen === "L" && line.steps ? `H${px}V${py}` : `${pen}${px} ${py}`);
      pen = "L";
      if (line.x[at] * step > to) break;
    }
    return parts.join("");
  };

  const views = new Map();
  const drawTime = (scenario, plot, rows) => {
    const view = views.get(plot) ?? { from: 0, to: scenario.duration, hidden: new Set() };
    views.set(plot, view);
    const again = () => { plot.replaceChildren(); drawTime(scenario, plot, rows); };
    const legend = document.createElement("div");
    legend.className = "legend";
    scenario.policies.forEach((policy, index) => {
      const button = document.createElement("button");
      button.type = "button";
      button.setAttribute("aria-pressed", String(!view.hidden.has(index)));
      const swatch = button.appendChild(document.createElement("span"));
      swatch.className = "swatch";
      swatch.style.background = policy.colour;
      button.append(`${index + 1} ${policy.name}`);
      button.addEventListener("click", () => {
        view.hidden.delete(index) || view.hidden.add(index);
        again();
      });
      legend.append(button);
    });
    plot.append(legend);

    const inView = (line) => {
      const begin = place(line.x, view.from / scenario.step), end = place(line.x, view.to / scenario.step);
      return Math.max(0, ...line.y.slice(begin, end + 1));
    };
    const panels = scenario.panels.map((panel) => {
      const shown = panel.lines.filter((line) => line.policy === null || !view.hidden.has(line.policy));
      return { panel, shown, levels: ticks(Math.max(0, ...shown.map(inView)), 4) };
    });

    const width = widthOf(plot), count = panels.length, strip = STRIP * scenario.policies.length + 12;
    const svg = canvas(plot, width, 0), clip = `clip-${plot.id}`;
    const labels = [...panels.flatMap((one) => one.levels.map(number)), String(scenario.policies.length)];
    const left = Math.ceil(measure(svg, labels).width) + 12, across = width - left - RIGHT;
    const heads = [...scenario.panels.map((panel) => [panel.title, panel.unit]), ["Events", "by kind, a row per policy"]]
      .map(([title, unit]) => ({ unit, lines: wrap(svg, title, unit, across) }));
    const more = LINE * (Math.max(...heads.map((head) => head.lines.length)) - 1), first = 26 + more;
    const stripTop = first + count * (ROW + GAP + more), height = stripTop + strip + BOTTOM;
    svg.setAttribute("height", height);
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const x = (seconds) => left + across * (seconds - view.from) / (view.to - view.from);
    make("rect", { x: left, y: 0, width: across, height }, make("clipPath", { id: clip }, svg));
    const times = timeTicks(svg, scenario, view.from, view.to, across);
    const frame = (top, size, { unit, lines }) => {
      const warm = Math.min(x(scenario.warmUp), width - RIGHT) - left;
      if (warm > 0) make("rect", { class: "shade", x: left, y: top, width: warm, height: size }, svg);
      for (const [at] of times) grid(svg, x(at), top, x(at), top + size);
      lines.forEach((line, index) => {
        const ends = index === lines.length - 1, own = ends ? line.slice(0, line.length - unit.length).trim() : line;
        const head = make("text", { class: "head", x: left, y: top - 8 - LINE * (lines.length - 1 - index) }, svg, own);
        if (ends) make("tspan", { class: "unit", dx: own ? 8 : 0 }, head, unit);
      });
    };
    const drawn = [];
    panels.forEach(({ panel, shown, levels }, row) => {
      const top = first + row * (ROW + GAP + more);
      const y = (value) => top + ROW - ROW * value / levels.at(-1);
      frame(top, ROW, heads[row]);
      for (const value of levels) {
        grid(svg, left, y(value), width - RIGHT, y(value));
        make("text", { x: left - 7, y: y(value) + 4, "text-anchor": "end" }, svg, number(value));
      }
      for (const line of [...shown].reverse()) { // the first policy on top
        const policy = line.policy === null ? null : scenario.policies[line.policy];
        make("path", {
          class: "line", d: pathOf(line, scenario.step, x, y, view.from, view.to), "clip-path": `url(#${clip})`,
          stroke: policy ? policy.colour : "var(--neutral)", "stroke-dasharray": DASHES[line.dash],
          "stroke-width": line.dash === "dot" ? 1.1 : 1.6,
        }, svg);
      }
      drawn.push({ panel, shown, top });
    });

    frame(stripTop, strip, heads.at(-1));
    scenario.policies.forEach((policy, index) => {
      make("text", { x: left - 7, y: stripTop + 10 + STRIP * (index + .5), "text-anchor": "end" }, svg, index + 1);
    });
    for (const row of rows) {
      const index = Number(row.dataset.policy), at = Number(row.dataset.at);
      if (view.hidden.has(index) || at < view.from || at > view.to) continue;
      const mark = make("path", {
        class: "mark", d: MARKS[row.dataset.kind] ?? DOT, stroke: scenario.policies[index].colour,
        fill: scenario.policies[index].colour, transform: `translate(${x(at)} ${stripTop + 6 + STRIP * (index + .5)})`,
      }, svg);
      make("title", {}, mark, [0, 2, 3, 4].map((cell) => row.cells[cell].textContent).join(" "));
    }
    let end = -Infinity;
    for (const [at, text] of times) {
      const half = measure(svg, [text]).width / 2, centre = clamp(x(at), left + half, width - 2 - half);
      if (centre - half < end + 6) continue;
      end = centre + half;
      make("text", { x: centre, y: height - 20, "text-anchor": "middle" }, svg, text);
    }
    make("text", { x: left, y: height - 4 }, svg,
      `UTC, from ${new Date(scenario.start + view.from * 1000).toISOString().slice(0, 16).replace("T", " ")}`);
    follow(scenario, plot, svg, { view, drawn, again, left, right: width - RIGHT, bottom: stripTop + strip });
  };

  // The mouse: a line with the values at its position, and a range to zoom into.
  const follow = (scenario, plot, svg, { view, drawn, again, left, right, bottom }) => {
    const cursor = make("line", { class: "cursor", y1: 0, y2: bottom, visibility: "hidden" }, svg);
    const stretch = make("rect", { class: "stretch", y: 0, height: bottom, visibility: "hidden" }, svg);
    const box = document.createElement("div");
    box.className = "values";
    box.hidden = true;
    plot.append(box);
    let from = null;
    const at = (event) => clamp(event.clientX - svg.getBoundingClientRect().left, left, right);
    const seconds = (px) => view.from + (view.to - view.from) * (px - left) / (right - left);
    const show = (px, py) => {
      const index = seconds(px) / scenario.step;
      const near = drawn.findLast((one) => py >= one.top - 18) ?? drawn[0];
      box.replaceChildren();
      const line = (text) => box.appendChild(document.createElement("div")).textContent = text;
      line(new Date(scenario.start + seconds(px) * 1000).toISOString().slice(0, 19).replace("T", " "));
      for (const one of near ? near.shown : []) {
        const value = one.y[place(one.x, index)];
        if (one.dash !== "dot" && value !== undefined) {
          const name = one.policy === null ? "all" : `${one.policy + 1} ${scenario.policies[one.policy].name}`;
          line(`${name}: ${value === null ? "–" : number(value)} ${near.panel.unit}`);
        }
      }
      box.style.top = `${svg.offsetTop + (near ? near.top : 0)}px`;
      box.style[px > (left + right) / 2 ? "left" : "right"] = "70px";
      box.style[px > (left + right) / 2 ? "right" : "left"] = "auto";
      box.hidden = false;
    };
    svg.addEventListener("pointermove", (event) => {
      const px = at(event);
      for (const end of ["x1", "x2"]) cursor.setAttribute(end, px);
      cursor.setAttribute("visibility", "visible");
      show(px, event.clientY - svg.getBoundingClientRect().top);
      if (from === null) return;
      stretch.setAttribute("x", Math.min(from, px));
      stretch.setAttribute("width", Math.abs(px - from));
      stretch.setAttribute("visibility", "visible");
    });
    svg.addEventListener("pointerleave", () => {
      cursor.setAttribute("visibility", "hidden");
      box.hidden = true;
    });
    svg.addEventListener("pointerdown", (event) => { from = at(event); event.preventDefault(); });
    svg.addEventListener("pointerup", (event) => {
      const ends = [from ?? at(event), at(event)].sort((a, b) => a - b);
      from = null;
      if (ends[1] - ends[0] < 5) return;
      [view.from, view.to] = ends.map(seconds);
      again();
    });
    svg.addEventListener("dblclick", () => { view.from = 0; view.to = scenario.duration; again(); });
  };

  // --- lists of events
  const filter = (form) => {
    const rows = [...document.getElementById(form.dataset.of).tBodies[0].rows];
    const [policy, kind, text] = ["policy", "kind", "text"].map((name) => form.elements[name].value);
    let shown = 0;
    for (const row of rows) {
      const fits = (!policy || row.dataset.policy === policy) && (!kind || row.dataset.kind === kind) &&
        row.textContent.toLowerCase().includes(text.toLowerCase());
      row.hidden = !fits;
      shown += fits;
    }
    form.querySelector("output").textContent = `${shown} of ${rows.length}`;
  };
  for (const form of document.querySelectorAll(".filters")) {
    form.addEventListener("input", () => filter(form));
    form.addEventListener("submit", (event) => event.preventDefault());
    filter(form);
  }

  const draw = () => data.scenarios.forEach((scenario, index) => {
    const [cost, time] = ["cost", "time"].map((name) => document.getElementById(`${name}-${index}`));
    for (const plot of [cost, time]) plot.replaceChildren();
    if (!scenario.policies.length) return;
    drawCost(scenario, cost);
    drawTime(scenario, time, document.querySelectorAll(`#events-${index} tbody tr`));
  });
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    draw();
  });
  draw();
  document.documentElement.dataset.drawn = "true";
})();
