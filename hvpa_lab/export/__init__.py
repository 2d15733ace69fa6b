"""`hvpa export` and `hvpa diff`: the sizes that HVPA would set, as files for a Git repository and as a difference."""
