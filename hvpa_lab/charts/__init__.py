"""The charts of the dashboard and of the pages that commands write: uPlot, and text for whoever can't see a canvas."""
