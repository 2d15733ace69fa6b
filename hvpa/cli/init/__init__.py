"""`hvpa init`: from a workload's history to an Hvpa, and what it would have done.

- `command`: the flags, and the order of the work. `source/present` is today's configuration, out of files or, by
  `source/live`, of a cluster; the history is read by `hvpa.simulate.history`, from a CSV file or from what
  `source/prometheus` was answered.
- `draft`: the numbers of the Hvpa; `manifest` and `scenario` write the files, with the reason beside each number.
- `trial` simulates both; `verdict` judges; `text` and `json` print.
"""
