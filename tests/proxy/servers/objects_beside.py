"""Server objects as an eval config finds them: in a module beside it."""

from __future__ import annotations

import json

from tests.proxy.servers.objects import make_low_level, make_server

server, _ = make_server()
low_level = make_low_level()
not_a_server = json
