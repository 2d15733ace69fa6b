"""Tests of HVPA."""
