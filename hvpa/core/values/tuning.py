"""The constants of the decision: meaning, source, and measured effect.

Unless another source is named, figures are from `python -m benchmarks arena`, seed 1, 14 to 16 workloads whose HPA
measures CPU or memory (2026-11-27): cost and unmet demand relative to an HPA and a VPA.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from hvpa.api.values.quantity import Resource

DEFAULT_WEIGHT_PERCENT: Final = 50
"""`vpaWeight` if no interval is given. In place: cost 0.89 with 0.63 % unmet (HPA and VPA: 0.69 %). Weight 80: 0.90
with 0.78 %. Weight 0: about 1.05."""
LOWER_OVERLAPS: Final = 2
"""A size is raised if it is off by more than the overlap, and lowered if it is off by more than this many overlaps: a
raise is necessary, a lowering only saves. At constant load with 5 percent noise, a workload had 1 resize in 12 hours
with 2 overlaps, 15 with 1.5, and 31 with 1. With 1, cost is 0.99 in place (6 workloads of seed 2 that measure CPU) and
1.02 replaced (10)."""
ROUNDED: Final = 1000
"""A size that differs by less than 1 / this counts as the same size: measurements are rounded that much."""
LEAST_SIZE: Final[Mapping[Resource, int]] = {"cpu": 25, "memory": 1}
"""Smallest size of a measured resource without `minAllowed`, in millicores and bytes, but at most the first request.
The recommender's `--pod-min-cpu-millicores`. A request of 0 has no utilization, so the HPA had no metrics, and an idle
workload in place went from 0 to the VPA's 25m and back every 6 minutes. Used for 5 minutes an hour, 47 percent of its
demand was unmet (with 25m: 17 percent; an HPA and a VPA: 28). No difference in 34 workloads of the arena's seeds 100 to
106 with first CPU requests of at most 90m: it draws none that is idle."""
JOINT_MIN_CHANGE_PERCENT: Final = 20
"""If pods are replaced and the spec sets no `minChange`, the smallest change is at most this percentage of the request,
so that small pods change too. Without it (200m and 200M alone): 17 of 137 workloads of seeds 2 and 3 are worse than an
HPA and a VPA instead of 11, at 1.02 of the cost (decision 0071)."""

# --- time ------------------------------------------------------------------------------------------------------------
STEADY: Final = dt.timedelta(minutes=5)
"""In place, HVPA scales down to the largest minute within this time, unless `vpa.scaleDown.stabilizationDuration` is
set."""
LONGEST_WINDOW: Final = dt.timedelta(hours=1)
"""Maximum of that time, so a long duration does not fill the operator's memory."""
JUMP_PERCENT: Final = 120
"""A measurement above this percentage of the largest minute counts by itself. Minutes instead of single measurements:
cost 0.85 instead of 0.95 on a load with waves, 1.02 instead of 1.10 on a constant load."""
SHRINKS_AFTER: Final = dt.timedelta(hours=6)
"""How long a lower request must be wanted if pods are replaced or no metric measures the resource, and
`stabilizationDuration` is not set. Without it: 545 restarts instead of 125 at the same cost (decision 0062)."""
FEW_NEW: Final = 10
"""One of this many pods may be new; waiting for its share in a mean over all pods is not worthwhile."""
RESIZES_AGAIN: Final = dt.timedelta(days=1)
"""How long `InPlaceOrRollout` replaces pods after they could not be resized: a kubelet that refuses costs at most one
useless rollout in this time. With 4 hours: 0.98 of the cost on 15 workloads of seed 2 that measure CPU. On 26 workloads
of seed 112, never looked at before: the same cost, 126 restarts instead of 105."""
NO_NODE_FOR: Final = dt.timedelta(minutes=5)
"""How long pods wait for a node before HVPA rolls their size back: a node autoscaler has added a node by then. Not
measured: the arena's nodes arrive after 2 minutes."""
ROOM_FOR: Final = dt.timedelta(minutes=1)
"""In place, how long serving pods leave CPU to new pods that find no node, once those are reported. After that,
replicas that are still pending become size (DESIGN 5.4, sentence 13)."""
NOT_WORTH_REPLACING: Final = dt.timedelta(minutes=5)
"""HVPA waits for a count that is held no longer than this: replacing all pods takes as long."""
HALF_LIFE: Final = dt.timedelta(hours=24)
"""Half-life of the usual demand, as in the recommender's histograms (`--cpu-histogram-decay-half-life`, and memory's).
Restarts: 125 with 24 hours, 402 with 6, 156 with 72 (decision 0062)."""
SAMPLE_EVERY: Final = dt.timedelta(minutes=5)
"""Minimum time that a measured demand counts as the current demand in the usual demand."""
MOVED_PERCENT: Final = 20
"""Minimum difference, in percent, before another demand replaces it. So nothing is written at constant load."""
FIRST_WEIGHT: Final = 3600.0
"""Weight of the first demand in seconds (an hour), if the VPA has no history of its own."""

# --- saturated pods --------------------------------------------------------------------------------------------------
SATURATED_PERCENT: Final = 115
"""From this percentage of their CPU requests on, pods may be throttled: usage understates demand."""
PINNED_PERCENT: Final = 98
"""The same from this percentage of their CPU limits on. Without it, a container whose limit equals its request and
whose target is above 90 percent never shows that it needs more."""
BOOST_PERCENT: Final = 150
"""Saturated CPU counts as this percentage of the demand at the saturation threshold. Cost and unmet demand: 0.911 and
0.59 % with it, 0.906 and 0.70 % without. With 200 percent, the 52 workloads of seeds 107 and 108 with steps or bursts
that measure CPU cost 0.5 percent more and leave 4 percent less unmet. Jumps to 5 and 10 times the load are covered
after 85 and 155 seconds instead of 120 and 175. But pods that use twice their requests are not throttled, and had 10
replicas where 8 are enough."""
MOST_OF_SHARED: Final = 4
"""If a metric also measures containers without a VPA target, a size is at most this many VPA targets. The 29 such
workloads of seed 107 cost 0.820 with 4, 0.823 with 2 or without a maximum. Without it an app of 150m grew to 14.9
cores."""
NEEDED_UP_TO_PERCENT: Final = 80
"""If the app requests at most this percentage of what containers without a VPA target request, their requests count in
the pods that the metric needs. Of 400 random closed loops, replicas alternate in 48 with this and the next value, and
in 92 if the requests always count in the present pods (decision 0097)."""
PRESENT_FROM_PERCENT: Final = 280
"""From this percentage on, they count in the present pods."""
VPA_PERCENT: Final = 115
"""VPA target in percent of the usage (`--recommendation-margin-fraction` of the recommender)."""

# --- replicas, with both blends --------------------------------------------------------------------------------------
SETTLING = dt.timedelta(seconds=60)
"""How long after a completed rollout the HPA has measured the new pods: a metric window (30 s), a scrape and an HPA
period (15 s). Without it there were 230 restarts instead of 125 (decision 0062)."""
STEP_PERIOD = dt.timedelta(seconds=15)
"""Time between two steps that `maxStep` limits: the sync period of the HPA and of Postmates' controller. Without it,
steps would follow as fast as HVPA can write."""
OOMS_PERCENT: Final = 50
"""HVPA adds replicas if more pods than this percentage failed and a container ran out of memory (decision 0101). With a
third of the pods (and a factor of 2): 709 OOMs instead of 715, but 1.03 times the cost (14 workloads of seeds 2, 3,
8 and 9)."""
OOMS_FACTOR: Final = 3
"""The count is multiplied by this each time. With 2: 715 OOMs instead of 637 and 4.3 percent unmet instead of 3.9, at
0.99 times the cost; with 4: 659 and 3.8, 1.01 times the cost. Pods that start together share the load."""
FAILED_FOR = dt.timedelta(minutes=10)
"""How long a container's failure counts: twice the kubelet's longest back-off (`MaxContainerBackOff` in
pkg/kubelet/kubelet.go)."""
HPA_SILENT = dt.timedelta(minutes=5)
"""How long HVPA waits for an HPA without metrics: the HPA counts new pods after five minutes at the latest
(`--horizontal-pod-autoscaler-cpu-initialization-period`)."""
METRICS_AWAITED = dt.timedelta(minutes=1)
"""How long HVPA waits for an HPA's metrics before it reports a problem. New pods have no metrics until they are
scraped, so most creations and rollouts leave the HPA without metrics for 4 to 15 seconds."""
MAX_CORRECTIONS = 2
"""Maximum number of corrections of `spec.replicas` in a row for the same HPA status (DESIGN 4)."""

# --- requests, with both blends --------------------------------------------------------------------------------------
DEFAULT_MIN_CHANGE: Final[Mapping[Resource, int]] = {"cpu": 200, "memory": 200_000_000}
"""200m and 200M, gardener's defaults, if neither value nor percentage is set (DESIGN 6.3)."""
LONGEST_TIMEOUT: Final = dt.timedelta(days=1)
"""`minChangeTimeout` doubles with each consecutive step smaller than `minChange`, up to this time (DESIGN 6.4)."""

# --- containers that ran out of memory -------------------------------------------------------------------------------
STARVES_FOR: Final = dt.timedelta(days=1)
"""How long an OOM or an eviction counts (DESIGN 6.4): a container that has run longer since then has enough memory."""
RAISED_WITHIN: Final = dt.timedelta(seconds=30)
"""Time after a raise in place in which all pods get it. The kubelet does not report when, so an earlier OOM counts as
an OOM with the old memory. A container for which the raise is too small runs out again."""
OVERRIDE_EVERY: Final = dt.timedelta(minutes=10)
"""Minimum time between two raises of a container's memory after an OOM (DESIGN 6.4)."""
OOM_PERCENT: Final = 120
"""After an OOM, memory is raised to this percentage of the request unless the VPA already recommends more (as VPA's OOM
bump-up does; in place, measured memory then counts for as much more, decision 0098), ..."""
OOM_LEAST: Final = 100 * 1024 * 1024
"""... at least by 100Mi, and without maxAllowed ..."""
OOM_CAP: Final = 4
"""... up to this multiple of the VPA's target (DESIGN 6.4)."""
OOM_FOLLOWED: Final = 2
"""Until the next such raise, memory follows the VPA's target up to this multiple of the last raise. The recommender
counts each OOM of a crash loop, 30 per minute without a kubelet back-off (issue 36: bounded steps)."""

# --- the fast signal -------------------------------------------------------------------------------------------------
FAST_COUNTS: Final = dt.timedelta(seconds=30)
"""How long a kubelet's newest sample counts: the next one follows after 10 to 20 s by default."""
FAST_SILENT: Final = dt.timedelta(seconds=60)
"""If no sample has arrived for so long, the condition FastSignal says so."""
FAST_SHOWN: Final = dt.timedelta(minutes=5)
"""How often the status gets the time of the newest sample: with 10,000 Hvpas, 33 writes per second."""
FAST_AGAIN: Final = dt.timedelta(minutes=10)
"""How long after a raise by the fast signal a usage that its size serves leads to no other. Without this, constant
usage that is above `above` and fits the VPA's target was raised and lowered every minute."""
FAST_KNOWN: Final = dt.timedelta(minutes=5)
"""How long the usage of a container says that a raise by the fast signal is still needed, if no newer is known."""
FAST_UNDONE: Final = dt.timedelta(days=1)
"""How long a raise by the fast signal is recorded, in case the change after it is rolled back."""
FAST_LASTS: Final = dt.timedelta(minutes=2)
"""How long after a raise by the fast signal the usage of a minute may begin before it
(docs/decisions/0076-fast-signal.md has what this and the next are worth)."""
FAST_LEAST: Final = 80
"""A raise by the fast signal that pods need only in part is lowered if that leaves at most this percentage: smaller
steps would follow every movement of the usage."""
FAST_PERCENT: Final = 70
"""Percentage of the CPU request that pods use after a raise by the fast signal, if that is at most twofold."""
FAST_FACTOR: Final = 2
"""A raise by the fast signal is at most to this multiple of the present amount, for each measurement."""

# --- resizes of running pods -----------------------------------------------------------------------------------------
LIMIT_STEP_PERCENT: Final = 80
"""A single resize lowers a memory limit at most to this percentage of its value. The kubelet refuses a limit below the
usage, but if usage grows between its check and the write, the container is killed (kubernetes#135670)."""
USE_PERCENT: Final = 115
"""A memory limit stays at or above this percentage of the usage: the VPA recommender's margin
(`--recommendation-margin-fraction` 0.15). Usage is the larger of the metrics API's figure (hardly any page cache) and
the figure with which the kubelet refused a limit (all page cache)."""
USE_COUNTS: Final = dt.timedelta(minutes=1)
"""How long a measured usage counts: metrics-server measures every 15 seconds, and usage can grow."""
HEAP_OVERHEAD_PERCENT: Final = 25
HEAP_OVERHEAD_LEAST: Final = 64 * 1024 * 1024
"""Memory of a runtime beside a heap of fixed size, as a percentage of the heap and in bytes; the larger counts. On the
real node, the smallest HTTP server on OpenJDK 17 takes 43 to 51 MiB beside heaps of 64 to 512 MiB, and 63 MiB with G1.
Large programs have more classes, code and threads: a quarter is what `-XX:MaxRAMPercentage=80` leaves them."""
REVERTED_FOR: Final = dt.timedelta(hours=6)
"""How long HVPA leaves a pod template alone that another client has set back, if it only needs the template for new
pods' memory. Each write replaces all pods, and so does each undoing."""
STARTED_WITHIN: Final = dt.timedelta(seconds=10)
"""A kubelet reports that a new pod is not ready within this time after it has accepted the pod. A pod that became
unready later has been ready before."""
CREATED_WITHIN: Final = dt.timedelta(seconds=30)
"""Controllers create pods within seconds. If pods are still missing this long after the decision, a quota or LimitRange
may refuse the decided size."""

# --- retries ---------------------------------------------------------------------------------------------------------
CONTESTED_WITHIN: Final = dt.timedelta(hours=1)
"""A change that another client undoes again within this time is contested (DESIGN 8). Also the longest wait for that
client, and after a refusal."""
RAISED_AGAIN_AFTER: Final = dt.timedelta(minutes=1)
"""The first wait of a contested raise; each further wait is twice as long. Raises serve existing demand, and two
deploys within an hour that reset them are no rival controller (docs/decisions/0024)."""
LOWERED_AGAIN_AFTER: Final = dt.timedelta(minutes=5)
"""The first wait of a contested change in the other direction."""
REFUSAL_WAIT: Final = dt.timedelta(minutes=1)
"""The first wait after a refusal: the VPA recommender's interval."""
ROLLBACK_WAIT: Final = dt.timedelta(days=1)
"""The first wait of a size that failed; doubled with each further failure, ..."""
LONGEST_ROLLBACK_WAIT: Final = dt.timedelta(days=16)
"""... up to this time."""
ALIKE: Final = Fraction(9, 10)
"""A change that covers this share of a failed change counts as the same change, because recommendations always move a
little."""
