"""People who sign in elsewhere: the token of an issuer becomes a holder like that of a key."""
