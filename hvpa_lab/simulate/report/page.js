// Draws the charts of the page's data, and filters its lists of events. Texts are set as text, never as markup.
"use strict";
const POINT = 7, STEP_OF_MINUTES = 60, PLACES = 600;
const STROKES = { solid: [], dash: [7, 4], dot: [2, 3], dashdot: [7, 3, 2, 3] };
const utc = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 19).replace("T", " ");
const named = (policy, index) => `${index + 1} ${policy.name}`;
// The date at midnight, else the time.
const clock = (seconds, step) => {
  const text = utc(seconds);
  return text.endsWith("00:00:00") ? text.slice(5, 10) : text.slice(11, step >= STEP_OF_MINUTES ? 16 : 19);
};

// --- cost against unmet demand: a point for each policy ---------------------------------------------------------
const drawCost = ({ policies }, parent) => {
  const order = [...policies.keys()].sort((a, b) => policies[a].cost - policies[b].cost);
  const result = ({ cost, unmet }) => `cost ${number(cost)}, ${number(unmet)} % of the demand unmet`;
  const dearest = policies[order.at(-1)].cost;
  const numbers = (plot) => policies.forEach(({ cost, unmet }, index) => {
    Object.assign(plot.ctx, { fillStyle: css("--ink"), textAlign: "left", textBaseline: "middle" });
    plot.ctx.fillText(index + 1, plot.valToPos(cost, "x", true) + 10 * devicePixelRatio, plot.valToPos(unmet, "y", true));
  });
  new Chart(parent, {
    title: "Unmet demand by cost", unit: "% (square root)", height: 280, paint: numbers,
    lines: policies.map((policy, index) => ({ label: named(policy, index), points: 2 * POINT, colour: policy.colour, filled: !policy.beaten })),
    x: { label: "cost", text: (cost) => `cost ${number(cost)}`, tick: number, space: 70, range: () => [0, dearest * 1.1 || 1] },
    y: { scale: { distr: 100, fwd: Math.sqrt, bwd: (root) => root * root }, // small values stay distinct
      axis: { splits: (_, axis, least, most) => [0, .06, .24, .53, .95].map((share) => Number((share * most).toPrecision(2))) } },
    describe: (at) => order.filter((index) => policies[index].cost === policies[order[at]].cost)
      .map((index) => `${named(policies[index], index)}: ${result(policies[index])}`),
  }).set([order.map((index) => policies[index].cost), ...policies.map((policy) =>
    order.map((index) => policies[index] === policy ? policy.unmet : null))], policies.map(result));
};

// --- lines and events over time ---------------------------------------------------------------------------------
// The values of all lines at the points of any line, and at PLACES for the cursor: steps hold their value, others run
// straight to the next.
const align = (lines, { start, duration, step }) => {
  const places = Array.from({ length: PLACES + 1 }, (_, place) => start + Math.round(place / PLACES * duration / step) * step);
  const xs = [...new Set([...places, ...lines.flatMap((line) => line.x)])].sort((a, b) => a - b);
  return [xs, ...lines.map(({ x, y, steps }) => {
    let at = 0;
    return xs.map((place) => {
      while (x[at + 1] <= place) at++;
      const value = y[at] ?? null, next = y[at + 1] ?? null;
      return steps || value === null || next === null ? value : value + (next - value) * (place - x[at]) / (x[at + 1] - x[at]);
    });
  })];
};

const drawTime = (scenario, parent, rows) => {
  const { start, duration, step, warmUp, policies, panels } = scenario;
  const x = { label: `time (UTC), from ${utc(start)}`, text: utc, tick: clock, time: true, sync: parent.id };
  const shade = warmUp ? [start, start + warmUp] : undefined, hidden = new Set();
  const buttons = policies.map((policy, index) => el("button", { type: "button", "aria-pressed": "true", onclick: ({ currentTarget }) => {
    hidden.delete(index) || hidden.add(index);
    currentTarget.setAttribute("aria-pressed", String(!hidden.has(index)));
    charts.forEach((one) => one.show((line) => !hidden.has(line.policy)));
  } }, named(policy, index)));
  parent.append(el("div", { class: "policies", role: "group", "aria-label": "policies to show" }, ...buttons));
  buttons.forEach((button, index) => button.style.borderColor = policies[index].colour);
  const charts = panels.map(({ title, unit, lines }) => {
    const made = new Chart(parent, { title, unit, x, shade, finished: true, lines: lines.map(({ policy, name, dash, steps }) => ({
      policy, steps, gaps: true, dash: STROKES[dash], width: dash === "dot" ? 1.1 : 1.6,
      label: policy === null ? name : `${policy + 1} ${name}`, colour: policy === null ? "--soft" : policies[policy].colour,
    })) });
    made.set(align(lines.map((line) => ({ ...line, x: line.x.map((index) => start + index * step) })), scenario), lines.map(() => ""));
    return made;
  });
  if (rows.length) charts.push(drawEvents(scenario, parent, rows, { x, shade, hidden }));
};

// A row for each kind of event, and in it a row for each policy.
const drawEvents = ({ start, duration, policies }, parent, rows, { x, shade, hidden }) => {
  const events = rows.map((row) => ({ policy: Number(row.dataset.policy), kind: row.dataset.kind, at: start + Number(row.dataset.at),
    text: [...row.cells].slice(1).map((cell) => cell.textContent).join(" ") }));
  const kinds = [...new Set(events.map((one) => one.kind))].sort();
  const lines = policies.flatMap(({ colour }, policy) => kinds.map((kind) => ({ policy, kind, colour, points: POINT, filled: true })))
    .filter((line) => events.some((one) => one.policy === line.policy && one.kind === line.kind));
  const times = [...new Set([start, start + duration, ...events.map((one) => one.at)])].sort((a, b) => a - b);
  const height = (policy) => (policy + .5) / policies.length * .8 - .4;
  const made = new Chart(parent, {
    title: "Events", unit: "by kind", x, shade, lines, height: 60 + kinds.length * Math.max(24, Math.min(80, 9 * policies.length)),
    y: { scale: { dir: -1, range: () => [-.5, kinds.length - .5] }, axis: { splits: () => [...kinds.keys()], values: () => kinds } },
    describe: (at) => events.filter((one) => one.at === times[at] && !hidden.has(one.policy)).map((one) => one.text),
  });
  made.set([times, ...lines.map((line) => {
    const own = new Set(events.filter((one) => one.policy === line.policy && one.kind === line.kind).map((one) => one.at));
    return times.map((one) => own.has(one) ? kinds.indexOf(line.kind) + height(line.policy) : null);
  })]);
  return made;
};

// --- lists of events ---------------------------------------------------------------------------------------------
const filter = (form) => {
  const rows = [...document.getElementById(form.dataset.of).tBodies[0].rows];
  const [policy, kind, text] = ["policy", "kind", "text"].map((name) => form.elements[name].value);
  for (const row of rows) {
    row.hidden = !((!policy || row.dataset.policy === policy) && (!kind || row.dataset.kind === kind) &&
      row.textContent.toLowerCase().includes(text.toLowerCase()));
  }
  form.querySelector("output").textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length}`;
};
for (const form of document.querySelectorAll(".filters")) {
  form.addEventListener("input", () => filter(form));
  form.addEventListener("submit", (event) => event.preventDefault());
  filter(form);
}

JSON.parse(document.getElementById("data").textContent).scenarios.forEach((scenario, index) => {
  if (!scenario.policies.length) return;
  drawCost(scenario, document.getElementById(`cost-${index}`));
  drawTime(scenario, document.getElementById(`time-${index}`), [...document.querySelectorAll(`#events-${index} tbody tr`)]);
});
document.documentElement.dataset.drawn = "true";
