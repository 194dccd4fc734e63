"""A program over HTTP of the standard library alone, so that it starts at once.

`python -IS program.py PORT [WORD ...]`: it answers every GET on `PORT` of the loopback address. A
word makes it misbehave: `exit=N` ends it with a status before it listens, `deaf` keeps it from
listening, `status=N` is what it answers, `child` starts a child that outlives it, `stubborn` has
both ignore SIGTERM, `leave` ends it when it is asked for `/leave`. It writes the process ids of
itself and its child, a line each, and `SAY` of its environment.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

port, *words = sys.argv[1:]
told = dict(word.partition("=")[::2] for word in words)


class Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/leave" and "leave" in told:
            os._exit(9)
        self.send_response(int(told.get("status", "200")))
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def idle() -> None:
    while True:
        time.sleep(60)


say(os.environ.get("SAY", "hello"))
if "stubborn" in told:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
say("pid", os.getpid())
if "child" in told:
    child = os.fork()
    if not child:
        idle()
    say("pid", child)
if "exit" in told:
    os.write(2, b"boom: no luck today\n")
    sys.exit(int(told["exit"]))
if "deaf" in told:
    idle()
ThreadingHTTPServer(("127.0.0.1", int(port)), Answers).serve_forever()
