"""Transfer of whole scopes: export, backup, verify, audit."""
