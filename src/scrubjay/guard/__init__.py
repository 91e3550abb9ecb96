"""What may enter and leave: `clean` (Unicode), `secrets` (redaction), `admission`, `budget`."""
