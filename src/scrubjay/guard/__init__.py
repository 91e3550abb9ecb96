"""What may enter and leave: `secrets` (redaction), `admission`, `budget`."""

from typing import Final

PLACEHOLDER: Final = "[REDACTED]"
"""What stands for a secret that was taken out."""
