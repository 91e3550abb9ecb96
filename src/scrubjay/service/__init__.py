"""The HTTP service: authenticate, rate limit, body, span, bridge, error; REST and its OpenAPI."""
