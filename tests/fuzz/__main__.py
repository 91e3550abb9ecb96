"""Coverage-guided fuzzing: `make fuzz TARGET=bundle SECONDS=600`, with atheris (libFuzzer)."""

from __future__ import annotations

import sys
from pathlib import Path

import atheris  # type: ignore[import-untyped, unused-ignore]

HERE = Path(__file__).parent
NAME, CORPUS = sys.argv[1], Path(sys.argv[2])

with atheris.instrument_imports(include=["scrubjay", "msgspec", "json"]):
    from tests.fuzz.targets import TARGETS, seeds

CORPUS.mkdir(parents=True, exist_ok=True)
for number, seed in enumerate(seeds(NAME)):
    (CORPUS / f"seed-{number}").write_bytes(seed)
options = ["-timeout=10", "-rss_limit_mb=2048", "-max_len=32768", *sys.argv[3:]]
atheris.Setup([sys.argv[0], str(CORPUS), *options], TARGETS[NAME])
atheris.Fuzz()
