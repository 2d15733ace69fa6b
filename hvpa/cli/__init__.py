"""The command line: argument parsing, settings and wiring. The only room that joins the parts."""
