"""The constants of the joint decision (`blend: Trajectory`): what each means, where it is from, and what it is worth.

Figures are of `python -m benchmarks arena`, seed 1, 14 to 16 workloads whose HPA measures CPU or memory (2026-11-27),
as cost and unmet demand beside an HPA and a VPA, unless another source is named.
"""

from __future__ import annotations

import datetime as dt
from typing import Final

DEFAULT_WEIGHT_PERCENT: Final = 50
"""`vpaWeight` where no interval is given: in place 0.89 and 0.63 % unmet (0.69 %), where 80 had 0.90 and 0.78 %, and 0
about 1.05."""
LOWER_OVERLAPS: Final = 2
"""A size is raised where it is off by more than the overlap, and lowered where it is off by more than so many overlaps:
a raise is needed, a lowering saves. At constant load with 5 percent noise a workload had 1 resize in 12 hours, with 1.5
overlaps 15, and with 1 31. With 1, in place 0.99 of the cost (6 workloads of seed 2 that measure CPU), replaced 1.02
(10)."""
ROUNDED: Final = 1000
"""A size that differs by less than one part of so many is the same one: measurements are rounded by as much."""

# --- time ------------------------------------------------------------------------------------------------------------
STEADY: Final = dt.timedelta(minutes=5)
"""In place, the largest minute of so many counts for whatever shrinks, where `vpa.scaleDown.stabilizationDuration` is
not set."""
LONGEST_WINDOW: Final = dt.timedelta(hours=1)
"""No longer, whatever the duration: a user's duration must not fill the operator's memory."""
JUMP_PERCENT: Final = 120
"""One measurement that is so much above the largest minute counts by itself. Minutes in place of single measurements:
0.95 to 0.85 on a load with waves, 1.10 to 1.02 on a constant one."""
SHRINKS_AFTER: Final = dt.timedelta(hours=6)
"""For how long a lower request has to be wanted where pods are replaced or no metric measures the resource, and
`stabilizationDuration` is not set. Without it there were 545 restarts instead of 125 at the same cost (decision
0062)."""
FEW_NEW: Final = 10
"""One of so many pods may be new without its share in a mean over all being worth to wait for."""
RESIZES_AGAIN: Final = dt.timedelta(days=1)
"""How long `InPlaceOrRollout` replaces pods after they could not be resized (the most often that a kubelet that refuses
costs a rollout for nothing). With 4 hours 0.98 of the cost on 15 workloads of seed 2 that measure CPU, but the same on
26 of seed 112, which nobody had looked at, with 126 restarts in place of 105."""
NO_NODE_FOR: Final = dt.timedelta(minutes=5)
"""How long pods wait for a node before their size is taken back: an autoscaler of nodes has made one by then. Not
measured: the arena's nodes come after 2 minutes."""
ROOM_FOR: Final = dt.timedelta(minutes=1)
"""In place, for how long pods that serve leave CPU to new pods that find no node, once those are reported. If that was
no help, replicas that stay pending become size (DESIGN 5.4, sentence 13)."""
NOT_WORTH_REPLACING: Final = dt.timedelta(minutes=5)
"""A count that is held for no longer than this is waited for: to replace all pods takes as long."""
HALF_LIFE: Final = dt.timedelta(hours=24)
"""Of the usual demand, as of the recommender's histograms (`--cpu-histogram-decay-half-life`, and memory's). With six
hours there were 402 restarts instead of 125, with 72 hours 156 (decision 0062)."""
SAMPLE_EVERY: Final = dt.timedelta(minutes=5)
"""How long a measured demand stands for the present one in the usual demand, at least."""
MOVED_PERCENT: Final = 20
"""How far another demand must be from it to take its place: so nothing is written at rest."""
FIRST_WEIGHT: Final = 3600.0
"""What the first demand weighs, in seconds, where the VPA has no history of its own: an hour."""

# --- saturated pods --------------------------------------------------------------------------------------------------
SATURATED_PERCENT: Final = 115
"""From this usage of their CPU requests on, pods may want more than they get: what they use is no measure of demand."""
PINNED_PERCENT: Final = 98
"""From this usage of their CPU limits on as well. Without it, a container whose limit is its request and whose target
is above 90 percent of it is never seen to need more."""
BOOST_PERCENT: Final = 150
"""What saturated CPU counts for, of what it would call for at that usage. Without it 0.906 and 0.70 % unmet, with it
0.911 and 0.59 %. With 200 percent the 52 workloads of seeds 107 and 108 with steps or bursts that measure CPU cost 0.5
percent more and leave 4 percent less unmet, and jumps to 5 and 10 times the load are covered after 85 and 155 seconds
instead of 120 and 175; but pods that use twice their requests are not cut off, and had 10 replicas where 8 do."""
MOST_OF_SHARED: Final = 4
"""If a metric measures containers without a VPA target as well, a size is at most so many VPA targets. Of seed 107's 29
such workloads 0.820 with it, 0.823 without it or with 2; without it an app of 150m grew to 14.9 cores."""
VPA_PERCENT: Final = 115
"""What a VPA targets of what is used (`--recommendation-margin-fraction` of the recommender)."""
