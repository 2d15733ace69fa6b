// The page: follows one stream of server-sent events, of all Hvpas or of one, and shows what it says. Texts are set as
// text, never as markup. The charts are those of charts.js.

const $ = (id) => document.getElementById(id);
const MOST_SAMPLES = 1440, MOST_ROWS = 500;
const STATES = ["attention", "unknown", "starting", "paused", "ready"];
const say = (text) => { $("problem").hidden = !text; $("problem").textContent = text ?? ""; };
const utc = (text) => text ? text.replace("T", " ") : "–";

// A time as its distance from now, which is updated; the time itself shows where the mouse rests, and to screen readers.
const distance = (text) => {
  const seconds = (Date.now() - Date.parse(text)) / 1000, size = Math.abs(seconds);
  const [unit, name] = size < 90 ? [1, "s"] : size < 5400 ? [60, "min"] : size < 129600 ? [3600, "h"] : [86400, "d"];
  return seconds < 0 ? `in ${Math.round(size / unit)} ${name}` : `${Math.round(size / unit)} ${name} ago`;
};
const when = (text) => text ? el("time", { dateTime: text, title: utc(text) }, distance(text)) : "–";
setInterval(() => document.querySelectorAll("time").forEach((one) => { one.textContent = distance(one.dateTime); }), 10000);
let stop = new AbortController();

// --- the server ---------------------------------------------------------------------------------------------------
const given = new URLSearchParams(location.hash.slice(1)).get("token");
if (given) {
  sessionStorage.token = given;
  history.replaceState(null, "", `${location.pathname}#/`);
}
const headers = () => sessionStorage.token ? { Authorization: `Bearer ${sessionStorage.token}` } : {};
const signIn = (why) => {
  $("sign-in-why").textContent = why;
  if (!$("sign-in").open) $("sign-in").showModal();
};
$("sign-in").querySelector("form").addEventListener("submit", (event) => {
  event.preventDefault();
  for (const name of ["token", "namespace"]) sessionStorage[name] = event.target.elements[name].value.trim();
  event.target.elements.token.value = "";
  $("sign-in").close();
  route();
});

// Follow a stream until `signal`; a connection that breaks is made again.
async function follow(path, take, signal) {
  for (let wait = 500; !signal.aborted; wait = Math.min(wait * 2, 10000)) {
    try {
      const response = await fetch(path, { headers: headers(), signal });
      if (!response.ok) {
        const text = (await response.text()).trim();
        if (response.status < 500) {
          $("connection").textContent = "not connected";
          say(text);
          if (response.status === 401 || response.status === 403) signIn(text);
          return;
        }
        throw new Error(text);
      }
      say("");
      $("connection").textContent = "live";
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let rest = ""; ;) {
        const { value, done } = await reader.read();
        if (done) break;
        const events = (rest + value).split("\n\n");
        rest = events.pop();
        for (const one of events.filter((text) => text.startsWith("event: "))) {
          const [head, data] = one.split("\ndata: ");
          if (head === "event: ended") {
            $("connection").textContent = "not connected";
            say(JSON.parse(data).message);
            return;
          }
          take(head.slice(7), JSON.parse(data));
        }
        wait = 500;
      }
      throw new Error("the server has ended the connection");
    } catch (error) {
      if (signal.aborted) return;
      $("connection").textContent = "not connected";
      say(`No connection to the server of this page (is hvpa dashboard still running?); trying again. ${error.message}`);
    }
    await new Promise((done) => setTimeout(done, wait));
  }
}

// --- all Hvpas ----------------------------------------------------------------------------------------------------
const COLUMNS = [
  ["State", (one) => STATES.indexOf(one.state), (one) => el("span", { class: `state ${one.state}` }, one.state)],
  ["Namespace", (one) => one.namespace, (one) => one.namespace],
  ["Name", (one) => one.name, (one) => el("a", { href: `#/${one.namespace}/${one.name}` }, one.name)],
  ["Target", (one) => one.target ?? "", (one) => one.target],
  ["Blend", (one) => one.blend ?? "", (one) => one.blend && `${one.blend}, ${one.updateStrategy}${one.mode === "Apply" ? "" : `, ${one.mode}`}`],
  ["Replicas and size", (one) => one.replicas ?? -1, (one) => `${one.replicas ?? "–"}${one.desired !== null && one.desired !== one.replicas ? ` → ${one.desired}` : ""}${one.size ? ` × ${one.size}` : ""}`],
  ["Resized", (one) => one.resized ?? "", (one) => one.resized],
  ["Held back by", (one) => one.held.join(), (one) => one.held.join(", ")],
  ["Reason", (one) => one.reason, (one) => `${one.reason}: ${one.message}${one.remedy ? ` (${one.remedy}.)` : ""}`],
  ["Since", (one) => one.since ?? "", (one) => when(one.since)],
];
const hvpas = new Map();
const sorted = { column: 0, up: true };

$("table").tHead.append(el("tr", {}, ...COLUMNS.map(([name], at) => el("th", { scope: "col" }, el("button", { type: "button",
  onclick: () => { sorted.up = sorted.column !== at || !sorted.up, sorted.column = at, arrange(); } }, name)))));
const filters = $("all").querySelector("form");
filters.addEventListener("input", () => arrange());
filters.addEventListener("submit", (event) => event.preventDefault());

function takeAll(kind, content) {
  if (kind === "first") return hvpas.clear();
  for (const [name, one] of Object.entries(content)) {
    if (name === "") say(one);
    else if (one === null) hvpas.delete(name);
    else hvpas.set(name, { ...one, text: [name, one.target, one.blend, one.updateStrategy, one.mode, one.reason, one.message, ...one.held].join(" ").toLowerCase() });
  }
  arrange();
}

const rowOf = (one) => el("tr", { onclick: (event) => {
  if (event.target.tagName !== "A" && !getSelection().toString()) location.hash = `#/${one.namespace}/${one.name}`;
} }, ...COLUMNS.map(([, , cell], at) => el(at === 2 ? "th" : "td", at === 2 ? { scope: "row" } : {}, cell(one) ?? "–")));

// Put the rows that are shown into their order; those that stand where they should are left alone.
function arrange() {
  const text = filters.elements.text.value.toLowerCase(), state = filters.elements.state.value;
  const key = COLUMNS[sorted.column][1], names = new Intl.Collator("en", { numeric: true }).compare;
  const order = (a, b) => typeof a === "number" ? a - b : names(a, b);
  const fitting = [...hvpas.values()]
    .filter((one) => (!state || one.state === state) && one.text.includes(text))
    .sort((a, b) => (sorted.up ? 1 : -1) * order(key(a), key(b)) || names(`${a.namespace}/${a.name}`, `${b.namespace}/${b.name}`));
  const body = $("table").tBodies[0], focused = body.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  const shown = fitting.slice(0, MOST_ROWS);
  let next = body.firstChild;
  for (const one of shown) {
    const row = one.row ??= rowOf(one);
    if (row === next) next = next.nextSibling;
    else body.insertBefore(row, next);
  }
  while (next) {
    const after = next.nextSibling;
    next.remove();
    next = after;
  }
  if (focused && document.activeElement === document.body) body.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
  [...$("table").tHead.rows[0].cells].forEach((cell, at) => {
    if (at === sorted.column) cell.setAttribute("aria-sort", sorted.up ? "ascending" : "descending");
    else cell.removeAttribute("aria-sort");
  });
  const bad = [...hvpas.values()].filter((one) => one.state === "attention").length;
  showCauses();
  filters.elements.count.textContent = `${shown.length} of ${hvpas.size} shown${fitting.length > shown.length ? `, ${fitting.length} match the filter` : ""}; attention: ${bad}`;
}

// The causes of attention that several Hvpas share: a button for each, which filters by it.
function showCauses() {
  const causes = new Map();
  for (const one of hvpas.values()) if (one.state === "attention") causes.set(one.reason, [...causes.get(one.reason) ?? [], one]);
  const shared = [...causes].filter(([, ones]) => ones.length > 1).sort(([, a], [, b]) => b.length - a.length);
  const key = JSON.stringify(shared.map(([reason, ones]) => [reason, ones.length, ones[0].remedy]));
  if ($("causes").dataset.key === key) return;
  $("causes").dataset.key = key;
  $("causes").replaceChildren(...shared.map(([reason, ones]) => el("li", {},
    el("button", { type: "button", onclick: () => { filters.elements.text.value = reason, filters.elements.state.value = "attention", arrange(); } },
      `${ones.length} × ${reason}`), ones[0].remedy ? ` ${ones[0].remedy}.` : "")));
}

// --- one Hvpa -----------------------------------------------------------------------------------------------------
let samples = [], charts = new Map();

function takeOne(kind, content) {
  if (kind === "first") samples = content.samples;
  if (content.sample && samples.at(-1)?.time !== content.sample.time) samples.push(content.sample);
  samples.splice(0, samples.length - MOST_SAMPLES);
  if ("problem" in content) say(content.problem);
  if ("unmeasured" in content || kind === "first") $("unmeasured").textContent = content.unmeasured ?? "";
  if (content.status) showStatus(content.status);
  if (content.explain) showWhy(content.explain);
  if (content.history) showHistory(content.history);
  if (samples.length) showCharts();
  if (content.path) showPaths(content.path);
}

// The chart of this name; another one takes its place where it has other lines.
const chart = (name, options) => {
  const before = charts.get(name), labels = (lines) => lines.map((one) => one.label).join();
  if (before && labels(before.lines) === labels(options.lines)) return before;
  const made = new Chart($("charts"), options);
  before?.figure.replaceWith(made.figure);
  before?.destroy();
  charts.set(name, made);
  return made;
};

function showCharts() {
  const times = samples.map((one) => one.time);
  for (const resource of ["cpu", "memory"]) {
    const [unit, name] = scaled(resource), keys = ["demand", "capacity", "used"];
    chart(resource, { title: resource === "cpu" ? "CPU, all pods" : "Memory, all pods", unit: name,
      lines: keys.map((label) => ({ label: label === "capacity" ? "capacity (requested)" : label, steps: true })) })
      .set([times, ...keys.map((key) => samples.map((one) => of(one[resource][key], unit)))]);
  }
  const counts = ["current", "ready", "desired", "wanted"];
  chart("replicas", { title: "Replicas", unit: "pods", lines: counts.map((label) => ({ label, steps: true })) })
    .set([times, ...counts.map((key) => samples.map((one) => one.replicas[key]))]);
  const containers = [...new Set(samples.flatMap((one) => Object.keys(one.sizes)))];
  for (const resource of containers.length ? ["cpu", "memory"] : []) {
    const [unit, name] = scaled(resource);
    chart(`size ${resource}`, { title: `Size of each pod: ${resource === "cpu" ? "CPU" : "memory"}`, unit: name,
      lines: containers.map((label) => ({ label, steps: true })) })
      .set([times, ...containers.map((one) => samples.map((sample) => of(sample.sizes[one]?.[resource], unit)))]);
  }
}

function showPaths(paths) {
  const names = paths.map(showPath);
  for (const [name, one] of charts) {
    if (!name.startsWith("path ") || names.includes(name)) continue;
    one.destroy();
    charts.delete(name);
  }
}

function showPath(path) {
  const { options, data, texts, ends } = pathChart(path), key = `path ${path.container} ${path.resource}`;
  chart(key, options).set(data, texts, ends);
  return key;
}

const sizes = (containers) => Object.entries(containers).map(([name, one]) =>
  `${name}: ${Object.entries(one.requests).map(([what, amount]) => `${what} ${amount}`).join(", ") || "none"}`).join("; ");

function showStatus(status) {
  const ready = status.conditions.find((one) => one.type === "Ready"), replicas = status.replicas;
  const operator = status.operator ?? { state: "alive" }, since = operator.since ? ` since ${utc(operator.since)}` : "";
  const silence = { silent: `The operator is silent${since}: nothing is scaled until it is back.`,
    unknown: `Can't tell whether the operator is alive: ${operator.why}.` }[operator.state];
  $("state").className = `state ${silence || ready?.status !== "True" ? "attention" : status.mode === "Paused" ? "paused" : "ready"}`;
  $("state").textContent = [silence, ready && `Ready is ${ready.status} since ${utc(ready.lastTransitionTime)}. ${ready.reason}: ${ready.message}`, ...status.notes].filter(Boolean).join(" – ");
  const facts = { Target: status.target, Mode: status.mode, "Update strategy": status.updateStrategy,
    Replicas: `${replicas.current ?? "–"}, ${replicas.ready ?? "–"} ready, ${replicas.desired ?? "–"} desired`,
    "Desired size": sizes(status.desired.containers) || "the template's", Since: utc(status.desired.since),
    Resized: status.actuation && `${status.actuation.resized ?? "–"}${status.actuation.message ? `: ${status.actuation.message}` : ""}` };
  $("facts").replaceChildren(...Object.entries(facts).filter(([, value]) => value).map(([name, value]) =>
    el("div", {}, el("dt", {}, name), el("dd", {}, value))));
  $("held").replaceChildren(status.blocked.length ? table(["Change", "Now", "Wanted", "Held by", "Until"], status.blocked.map((one) =>
    [one.container ? `${one.container} ${one.resource}` : "replicas", one.current, one.wanted, one.reason, utc(one.until)]),
    "Changes that gates hold back.") : el("p", { class: "hint" }, "Nothing is held back."));
  $("pods").replaceChildren(table(["Pod", "Ready", "Restarts", "Present size", "Desired size", "State", "Since", "Why"], status.pods.map((one) =>
    [one.name, one.ready ? "yes" : "no", one.restarts, sizes(one.present), sizes(one.desired), one.state.replace("_", " "), utc(one.since), one.why || "–"])));
}

function showWhy(explain) {
  const because = explain.path ? [`Path: ${explain.path.because}`] : [];
  // Ready is at the top of the page. The others are usually False.
  const usual = (one) => one.type === "Ready" || one.status === "False" && ["Paused", "Contested", "ScalingBlocked"].includes(one.type);
  const conditions = explain.conditions.filter((one) => !usual(one)).map((one) => `${one.type} ${one.status}, ${one.reason}: ${one.message}`);
  $("why").replaceChildren(...[...because, ...explain.steps, ...conditions].map((text) => el("li", {}, text)));
}

function showHistory(history) {
  const rows = history.entries.toReversed().map((one) => [utc(one.time), one.type, one.reason,
    `${one.message}${one.first ? ` (${one.count} times since ${utc(one.first)})` : ""}`]);
  $("history").replaceChildren(table(["Time", "Type", "Reason", "Message"], rows, history.problem ?? "Newest first: Events, and the last changes in the status."));
}

// --- what if ------------------------------------------------------------------------------------------------------
let drawn = [];
$("what-if").addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = event.target.querySelector("button"), { signal } = stop;
  const query = new URLSearchParams([...new FormData(event.target)].filter(([, value]) => value));
  button.disabled = true;
  $("outcome").textContent = "Simulating …";
  try {
    const response = await fetch(`${address()}/what-if?${query}`, { method: "POST", headers: headers(), signal });
    if (response.ok) showOutcome(await response.json());
    else $("outcome").textContent = `Not simulated: ${(await response.text()).trim()}`;
  } catch (error) {
    if (!signal.aborted) $("outcome").textContent = `Not simulated: ${error.message}`;
  }
  button.disabled = false;
});

function showOutcome(report) {
  drawn.splice(0).forEach((one) => one.destroy());
  const percent = (share) => `${number(100 * share)} %`;
  const rows = report.policies.map(({ name, figures }) => [name, number(figures.cost), figures.costDifference === null ? "–" : percent(figures.costDifference),
    percent(figures.unmetDemandShare), figures.restarts, figures.ooms, figures.replicaChanges, figures.requestChanges]);
  const place = el("div", { id: "outcome-charts" });
  $("outcome").replaceChildren(el("ul", {}, ...[...report.conclusion, ...report.notes].map((text) => el("li", {}, text))),
    el("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Figures" }, table(["Policy", "Cost", "Difference", "Unmet demand",
      "Restarts", "OOMs", "Changes of replicas", "Changes of requests"], rows, report.description)), place);
  const start = Date.parse(report.start) / 1000;
  for (const [title, unit, keys] of [["Simulated: demand and capacity", "cores", ["demand", "capacity"]], ["Simulated: replicas", "pods", ["replicas"]]]) {
    const lines = keys.flatMap((key) => (key === "demand" ? report.policies.slice(0, 1) : report.policies).map((one) => [key === "demand" ? key : `${key}, ${one.name}`, one.series[key]]));
    const made = new Chart(place, { title, unit, lines: lines.map(([label]) => ({ label, steps: true })) });
    made.set(uPlot.join(lines.map(([, points]) => [points.seconds.map((one) => start + one), points.values])));
    drawn.push(made);
  }
}

// --- which page ---------------------------------------------------------------------------------------------------
const parts = () => location.hash.slice(1).split("/").map(decodeURIComponent);
function address() {
  const [, namespace, name] = parts();
  return `api/hvpas/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
}

function route() {
  stop.abort();
  stop = new AbortController();
  say("");
  const [, namespace, name] = parts();
  $("all").hidden = Boolean(name);
  $("one").hidden = !name;
  for (const one of [...charts.values(), ...drawn.splice(0)]) one.destroy();
  charts = new Map(), samples = [];
  for (const id of ["facts", "held", "why", "pods", "history", "outcome", "state", "unmeasured"]) $(id).replaceChildren();
  document.title = name ? `${namespace}/${name} – Hvpa` : "Hvpas";
  const section = name ? $("one") : $("all");
  if (name) section.querySelector("h1").textContent = `Hvpa ${namespace}/${name}`;
  section.querySelector("h1").focus();
  const path = name ? address()
    : `api/hvpas?${new URLSearchParams({ namespace: sessionStorage.namespace ?? "" })}`;
  follow(path, name ? takeOne : takeAll, stop.signal);
}
addEventListener("hashchange", route);
route();
