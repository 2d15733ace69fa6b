"use strict";
// Draws the plots of the page's data with plotly, and filters its lists of events. Texts in the data are escaped.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  // These buttons and no other: plotly has one that sends the data away.
  const config = {
    displaylogo: false, responsive: true, showSendToCloud: false, plotlyServerURL: "",
    modeBarButtons: [["toImage"], ["zoom2d", "pan2d"], ["zoomIn2d", "zoomOut2d", "resetScale2d"]],
  };
  const symbols = {
    OOM: "x", Evicted: "diamond", Unschedulable: "hourglass", Replicas: "triangle-up", Requests: "square",
    Condition: "circle-open", Blocked: "line-ns-open", Event: "circle",
  };
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const theme = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const ROW = 150, STRIP = 24, GAP = 46, TOP = 56, BOTTOM = 44, LEGEND = 20;

  const axis = () => ({
    gridcolor: theme("grid"), zerolinecolor: theme("line"), linecolor: theme("line"), tickcolor: theme("line"),
    automargin: true, ticks: "outside", ticklen: 4,
  });
  const hover = () => ({ bgcolor: theme("card"), bordercolor: theme("line"), font: { color: theme("ink") } });
  const base = () => ({
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", hoverlabel: hover(), showlegend: false,
    modebar: { bgcolor: "rgba(0,0,0,0)", color: theme("soft"), activecolor: theme("ink") },
    font: { family: "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif", size: 12, color: theme("soft") },
  });

  // --- requested core-hours against unmet demand: a point per policy
  // Each name stands on a side of its point where no name of a near point stands.
  const sides = (policies) => {
    const [x, y] = [0, 1].map((part) => Math.max(1e-9, ...policies.map((policy) => policy.cost[part])));
    const near = (a, b) => Math.abs(a.cost[0] - b.cost[0]) < .15 * x && Math.abs(a.cost[1] - b.cost[1]) < .12 * y;
    const order = ["top center", "bottom center", "middle right", "middle left"];
    return policies.reduce((taken, policy) => {
      const others = taken.filter((_, index) => near(policies[index], policy));
      return [...taken, order.find((side) => !others.includes(side)) ?? order[0]];
    }, []);
  };
  const costTraces = (scenario) => scenario.policies.map((policy, index) => ({
    type: "scatter", mode: "markers+text", x: [policy.cost[0]], y: [policy.cost[1]], name: policy.name,
    text: [policy.tick], textposition: sides(scenario.policies)[index], cliponaxis: false, textfont: { color: theme("ink"), size: 12.5 },
    marker: { color: policy.colour, size: 14, line: { color: theme("card"), width: 1.5 } },
    hovertext: `<b>${policy.name}</b><br>${number(policy.cost[0])} core-hours requested<br>` +
      `${number(policy.cost[2])} GiB-hours requested<br>${number(policy.cost[1])} core-seconds unmet`,
    hoverinfo: "text",
  }));
  const number = (value) => value.toLocaleString("en", { maximumSignificantDigits: 5 });
  const costLayout = () => ({
    ...base(), height: 340, margin: { l: 60, r: 30, t: 24, b: 52 }, hovermode: "closest",
    xaxis: { ...axis(), title: { text: "requested core-hours" }, rangemode: "tozero" },
    yaxis: { ...axis(), title: { text: "unmet core-seconds" }, rangemode: "tozero" },
  });

  // --- panels over one axis of time, and a strip of events below them
  const heightOf = (scenario, top) => scenario.panels.length * (ROW + GAP) + strip(scenario) + top + BOTTOM;
  // Room for the legend, whose entries are as wide as the longest: TOP is enough for two rows of them.
  const topOf = (scenario, width) => {
    const longest = Math.max(1, ...scenario.policies.map((policy) => policy.name.length));
    const columns = Math.max(1, Math.floor((width - 80) / (50 + 7.5 * longest)));
    return TOP + LEGEND * Math.max(0, Math.ceil(scenario.policies.length / columns) - 2);
  };
  const strip = (scenario) => Math.max(60, STRIP * scenario.policies.length + 20);
  const yOf = (row) => (row ? `y${row + 1}` : "y");
  const timeTraces = (scenario) => {
    const at = (seconds) => scenario.start + seconds * 1000;
    const named = new Set();
    const lines = scenario.panels.flatMap((panel, row) => panel.lines.map((line) => {
      const policy = line.policy === null ? null : scenario.policies[line.policy];
      const legend = policy && line.name === policy.name && !named.has(line.policy);
      if (legend) named.add(line.policy);
      return {
        type: "scatter", mode: "lines", yaxis: yOf(row), name: line.name, legendrank: 1000 + (line.policy ?? 0),
        x: line.x.map((index) => at(index * scenario.step)), y: line.y, showlegend: Boolean(legend),
        legendgroup: policy ? `policy-${line.policy}` : "common", zorder: -(line.policy ?? 1000), // the first on top
        line: {
          color: policy ? policy.colour : theme("neutral"), width: line.dash === "dot" ? 1.2 : 1.7,
          dash: line.dash, shape: line.steps ? "hv" : "linear",
        },
        ...(line.dash === "dot" && scenario.policies.length > 3 ? { hoverinfo: "skip" } : { hovertemplate: "%{y:,.5~r}" }),
      };
    }));
    const strip = yOf(scenario.panels.length);
    const marks = scenario.policies.map((policy, index) => ({
      type: "scatter", mode: "markers", yaxis: strip, name: policy.name, legendgroup: `policy-${index}`,
      // A mark that is not seen where there are no events: plotly leaves axes without points out.
      showlegend: false, x: policy.events.x.length ? policy.events.x.map(at) : [at(0)],
      y: policy.events.x.length ? policy.events.x.map(() => index) : [null], text: policy.events.text,
      marker: {
        symbol: policy.events.kind.map((kind) => symbols[kind] ?? "circle"), size: 8, color: policy.colour,
        opacity: .65, line: { color: policy.colour, width: 1.2 },
      },
      hovertemplate: "%{text}",
    }));
    return [...lines, ...marks];
  };
  const timeLayout = (scenario, width) => {
    const head = topOf(scenario, width), height = heightOf(scenario, head), inner = height - head - BOTTOM;
    const last = scenario.panels.length;
    const layout = {
      ...base(), height, margin: { l: 64, r: 16, t: head, b: BOTTOM }, hovermode: "x unified", showlegend: true,
      hoverdistance: 12, annotations: [], shapes: [],
      legend: { orientation: "h", x: 0, y: 1 + (head - 8) / inner, yanchor: "top", font: { color: theme("ink"), size: 13 } },
      xaxis: {
        ...axis(), type: "date", anchor: yOf(last), range: [scenario.start, scenario.start + scenario.duration * 1000],
        showspikes: true, spikemode: "across", spikesnap: "cursor", spikethickness: 1, spikedash: "dot",
        spikecolor: theme("soft"), title: { text: "UTC" }, hoverformat: "%a %d %b %H:%M:%S",
      },
    };
    let top = 0;
    const place = (row, size, options, title) => {
      const domain = [Math.max(0, 1 - (top + size) / inner), 1 - top / inner];
      layout[row ? `yaxis${row + 1}` : "yaxis"] = { ...axis(), domain, ...options };
      layout.annotations.push({
        text: title, xref: "paper", yref: "paper", x: 0, y: domain[1], xanchor: "left", yanchor: "bottom",
        showarrow: false, font: { color: theme("ink"), size: 12.5 }, yshift: 3,
      });
      if (scenario.warmUp) {
        layout.shapes.push({
          type: "rect", xref: "x", yref: "paper", x0: scenario.start, x1: scenario.start + scenario.warmUp * 1000,
          y0: domain[0], y1: domain[1], fillcolor: theme("shade"), line: { width: 0 }, layer: "below",
        });
      }
      top += size + GAP;
    };
    top += 24;
    const size = (inner - 24 - strip(scenario)) / Math.max(1, last) - GAP;
    scenario.panels.forEach((panel, row) => place(row, size, {
      rangemode: "tozero", nticks: 5,
    }, `<b>${panel.title}</b>  ${panel.unit}`));
    const count = scenario.policies.length;
    place(last, strip(scenario), {
      range: [count - .5, -.5], tickvals: scenario.policies.map((_, index) => index), zeroline: false,
      ticktext: scenario.policies.map((policy) => policy.tick), fixedrange: true,
    }, "<b>Events</b>  by kind; where there are too many, some of them");
    return layout;
  };

  const draw = () => data.scenarios.forEach((scenario, number) => {
    Plotly.react(`cost-${number}`, costTraces(scenario), costLayout(), config);
    const width = document.getElementById(`time-${number}`).clientWidth;
    Plotly.react(`time-${number}`, timeTraces(scenario), timeLayout(scenario, width), config);
  });

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

  draw();
  dark.addEventListener("change", draw);
  document.documentElement.dataset.drawn = "true";
})();
