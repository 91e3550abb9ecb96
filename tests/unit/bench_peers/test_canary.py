"""Whatever is left of a canary is counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.peers import canary


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be"])
def test_a_copy_is_found_in_every_encoding(tmp_path: Path, encoding: str) -> None:
    (bird,) = canary.hatch("one", 1)
    (tmp_path / "file").write_bytes(b"\x00before" + bird.text.encode(encoding) + b"after")

    assert canary.copies(tmp_path, [bird.text]) == 1


def test_every_copy_in_every_file_counts(tmp_path: Path) -> None:
    birds = canary.hatch("one", 2)
    words = [bird.text for bird in birds]
    (tmp_path / "below").mkdir()
    (tmp_path / "file").write_text(words[0] * 2)
    (tmp_path / "below" / ".hidden").write_text(words[1])

    assert canary.copies(tmp_path, words) == 3


def test_another_canary_does_not_count(tmp_path: Path) -> None:
    one, other = canary.hatch("one", 2)
    (tmp_path / "file").write_text(one.text)

    assert canary.copies(tmp_path, [other.text]) == 0
