"""`python -m tests.model_provider script.json`: plays a script; its first line says where."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

from tests.model_provider.server import ModelProvider
from tests.model_provider.steps import step_from_json

script = [step_from_json(one) for one in json.loads(Path(sys.argv[1]).read_text())]
with ModelProvider(script, forever="--forever" in sys.argv) as provider:
    sys.stdout.write(f"{provider.url}\n")
    sys.stdout.flush()
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
