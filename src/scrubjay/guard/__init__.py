"""Input checks: `secrets` (redaction) and `admission`."""

from typing import Final

PLACEHOLDER: Final = "[REDACTED]"
"""Placeholder of a redacted secret."""
