"""The path of an Hvpa: the data of its charts, and the page of `hvpa explain --plot`."""
