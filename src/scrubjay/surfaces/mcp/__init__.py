"""MCP server: the verbs as tools, resources and prompts of the Model Context Protocol."""
