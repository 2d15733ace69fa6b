"""Our models against the recorded answers of the real HPA controller and the real VPA recommender; that the record is
current is tested end to end (`tests/e2e/recommenders`)."""

from __future__ import annotations

import pytest

from tests.recorded import answers
from tests.recorded.hpa import model as hpa_model
from tests.recorded.hpa import scenarios as hpa
from tests.recorded.vpa import model as vpa_model
from tests.recorded.vpa import scenarios as vpa

HPA = answers.read("hpa")
VPA = answers.read("vpa")


@pytest.mark.parametrize("name", hpa.WRITTEN)
def test_our_hpa_does_what_the_real_one_did(name: str) -> None:
    difference = hpa_model.first_difference(hpa.WRITTEN[name], HPA[name])
    assert difference is None, difference


@pytest.mark.parametrize("name", vpa.WRITTEN)
def test_our_recommender_recommends_what_the_real_one_did(name: str) -> None:
    difference = vpa_model.first_difference(vpa.WRITTEN[name], VPA[name])
    assert difference is None, difference
