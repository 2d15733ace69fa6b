// Draws the path of each container resource.
"use strict";
for (const one of JSON.parse(document.getElementById("data").textContent)) {
  const { options, data, texts, ends } = pathChart(one);
  new Chart(document.getElementById("paths"), { ...options, height: 320, finished: true }).set(data, texts, ends);
}
document.documentElement.dataset.drawn = "true";
