"""Search: the index of a scope, ranking, recall and brief; numpy is used only here."""
