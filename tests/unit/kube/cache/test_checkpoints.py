"""Checkpoints of VPAs, as the local copy holds them."""

from __future__ import annotations

import datetime as dt
import json

from hvpa.api.objects.checkpoints import VpaCheckpoint
from hvpa.kube.cache.checkpoints import Checkpoints
from hvpa.kube.cache.cluster_cache import LocalCluster
from hvpa.kube.cache.store import ALL_NAMESPACES
from hvpa.kube.objects.resources import CHECKPOINTS, HVPAS, VPAS
from hvpa.reconcile.ports import Key

SAVED = dt.datetime(2026, 11, 27, 10, tzinfo=dt.UTC)


def checkpoint(vpa: str, container: str, version: str = "1", name: str = "") -> VpaCheckpoint:
    """As the recommender writes it."""
    manifest = {
        "metadata": {
            "name": name or f"{vpa}-{container}",
            "namespace": "shop",
            "resourceVersion": version,
            "labels": {"a": "b"},
        },
        "spec": {"vpaObjectName": vpa, "containerName": container},
        "status": {
            "lastUpdateTime": "2026-11-27T10:00:00Z",
            "version": "v3",
            "cpuHistogram": {"weights": {"0": 10000}, "totalWeight": 12.5},
            "firstSampleStart": "2026-11-26T10:00:00Z",
            "lastSampleStart": "2026-11-27T09:59:00Z",
            "totalSamplesCount": 1439,
        },
    }
    return CHECKPOINTS.decode(json.dumps(manifest).encode())


def test_what_the_recommender_saved_is_read_and_its_histograms_are_not() -> None:
    vpa_checkpoint = checkpoint("web", "app")
    assert (vpa_checkpoint.spec.vpa_object_name, vpa_checkpoint.spec.container_name) == ("web", "app")
    assert vpa_checkpoint.status.last_update_time == SAVED
    assert vpa_checkpoint.status.first_sample_start == SAVED - dt.timedelta(days=1)
    assert vpa_checkpoint.status.total_samples_count == 1439
    assert not vpa_checkpoint.metadata.labels


def test_checkpoints_are_found_by_their_vpa() -> None:
    checkpoints = Checkpoints((ALL_NAMESPACES,))
    for vpa_checkpoint in (checkpoint("web", "app"), checkpoint("web", "proxy"), checkpoint("api", "app")):
        checkpoints.store.put(vpa_checkpoint)
    web, api = Key("shop", "web"), Key("shop", "api")
    assert {vpa_checkpoint.spec.container_name for vpa_checkpoint in checkpoints.of(web)} == {"app", "proxy"}
    assert len(list(checkpoints)) == 3
    checkpoints.store.put(checkpoint("web", "app", "2"))
    checkpoints.store.put(checkpoint("api", "proxy", "3", name="web-proxy"))
    checkpoints.store.delete(Key("shop", "api-app"))
    assert [vpa_checkpoint.spec.container_name for vpa_checkpoint in checkpoints.of(web)] == ["app"]
    assert [vpa_checkpoint.spec.container_name for vpa_checkpoint in checkpoints.of(api)] == ["proxy"]
    assert checkpoints.of(Key("other", "web")) == ()


def test_a_recommender_that_falls_silent_or_comes_back_concerns_every_hvpa() -> None:
    woken: list[Key] = []
    local = LocalCluster((ALL_NAMESPACES,), woken.append)
    hvpa = {"metadata": {"name": "web", "namespace": "shop", "resourceVersion": "1"}, "spec": {}}
    local.hvpas.put(HVPAS.decode(json.dumps(hvpa).encode()))
    local.vpas.put(VPAS.decode(b'{"metadata": {"name": "web", "namespace": "shop"}}'))
    local.store(CHECKPOINTS).put(checkpoint("web", "app"))
    woken.clear()
    local.note_silences(SAVED + dt.timedelta(minutes=2))
    local.store(CHECKPOINTS).put(checkpoint("web", "app", "2"))
    assert woken == []
    for minutes, silent in ((4, {"": SAVED}), (1, {})):
        local.note_silences(SAVED + dt.timedelta(minutes=minutes))
        objects = local.objects(Key("shop", "web"))
        assert objects is not None
        assert objects.silent_recommenders == silent
        assert woken == [Key("shop", "web")]
        woken.clear()
