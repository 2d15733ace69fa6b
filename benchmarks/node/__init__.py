"""A real node, measured: how soon a resize is there, how soon a container that ran out of memory has more, how old the
signals are, and how soon a load that jumps is served."""
