"""`hvpa init`: from a workload's history to an Hvpa, and its simulated results.

- `command`: the flags, and the order of the work. `source/present` is today's configuration, from files or, by
  `source/live`, from a cluster. `hvpa_lab.simulate.history` reads the history, from a CSV file or from the response of
  `source/prometheus`.
- `draft`: the numbers of the Hvpa; `manifest` and `scenario` write the files, with the reason next to each number.
- `trial` simulates both; `verdict` compares them; `text` and `json` print.
"""
