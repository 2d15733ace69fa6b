// uPlot formats numbers by the browser's language. Chromium under the locale C reports one that Intl does not know.
try {
  new Intl.NumberFormat(navigator.language);
} catch {
  Object.defineProperty(navigator, "language", { get: () => "en" });
}
