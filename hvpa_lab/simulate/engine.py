"""Runs a policy of a scenario, step by step in virtual time."""

from __future__ import annotations

import logging
import math
from array import array
from collections.abc import Callable
from dataclasses import replace

import structlog

from hvpa.core.workload.pod_level import POD
from hvpa_lab.simulate.cluster.pods import SimWorkload
from hvpa_lab.simulate.load.backlog import Backlog
from hvpa_lab.simulate.measure import Recorder
from hvpa_lab.simulate.model import ContainerModel, Policy, PolicyResult, Scenario, WorkloadModel
from hvpa_lab.simulate.policy.autoscalers import ActingScaler
from hvpa_lab.simulate.policy.base import Context, Scaler
from hvpa_lab.simulate.policy.hvpa import HvpaScaler

PROGRESS_CALLS = 400
"""Approximate number of calls of `progress` in a run."""


def simulate(
    scenario: Scenario, policy: Policy, progress: Callable[[float], None] = lambda _: None
) -> PolicyResult:
    """Returns the result of the scenario's workload under this policy.

    `progress` is called periodically with the number of simulated seconds. Raises SimulationError, which names the
    policy, if the policy can't be run.
    """
    steps = math.ceil(scenario.duration / scenario.step)
    load = array("d", (scenario.load.at(index * scenario.step) for index in range(steps)))
    state = SimWorkload(_begun(scenario.workload, policy), scenario.nodes)
    recorder = Recorder(scenario, state, load)
    context = Context(scenario, state, recorder)
    policy_at_work = scaler(policy, context)
    backlog = Backlog(
        scenario.backlog, sum(container.cpu_per_unit for container in scenario.workload.containers)
    )
    metrics, step, every = context.metrics, scenario.step, max(1, steps // PROGRESS_CALLS)
    for index, value in enumerate(load):
        now = index * step
        recorder.now = now
        metrics.load, metrics.waiting = value, backlog.waiting
        metrics.advance(now)
        policy_at_work.step(now)
        length = min(step, scenario.duration - now)
        tick = backlog.step(state.advance(now, length, backlog.offer(value, length)), value, length)
        recorder.step(tick, length, policy_at_work.hpa)
        recorder.take(state.events)
        if index % every == 0:
            progress(now)
    progress(scenario.duration)
    return recorder.result(policy)


def scaler(policy: Policy, context: Context) -> Scaler:
    """Returns the running policy. Raises SimulationError if its Hvpa's spec is invalid."""
    return HvpaScaler(policy, context) if policy.hvpa is not None else ActingScaler(policy, context)


def quiet() -> None:
    """Silences the simulated operator's log. It affects all logs of the process, so the process must decide."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))


def _begun(workload: WorkloadModel, policy: Policy) -> WorkloadModel:
    """Returns the workload with this policy's initial values."""
    replicas = workload.replicas if policy.replicas is None else policy.replicas
    return replace(
        workload,
        replicas=replicas,
        containers=tuple(_container(container, policy) for container in workload.containers),
        resources=policy.resources.get(POD, workload.resources),
    )


def _container(container: ContainerModel, policy: Policy) -> ContainerModel:
    resources = policy.resources.get(container.name)
    return (
        container
        if resources is None
        else replace(container, requests=resources.requests, limits=resources.limits)
    )
