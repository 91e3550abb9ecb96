"""Memory as files: CLAUDE.md, preferences.json and transcripts, in step with a scope."""
