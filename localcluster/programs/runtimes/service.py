"""What Python makes of its container's limits, as JSON by HTTP. Arguments: address and port."""

from __future__ import annotations

import json
import os
import resource
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer


class Handler(BaseHTTPRequestHandler):
    """Answers each request with the limits."""

    def do_GET(self) -> None:
        """Answer a request."""
        limits = {
            "cpus": len(os.sched_getaffinity(0)),
            "listed": os.cpu_count(),
            "memory": resource.getrlimit(resource.RLIMIT_AS)[0],
        }
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(limits).encode())


HTTPServer((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
