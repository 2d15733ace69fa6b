"""The table of reasons: each reason of a condition, from its true cause to what is reported, and back to healthy
(docs/decisions/0024). Rows may be added to the modules of this package; `test_conditions.py` walks them."""
