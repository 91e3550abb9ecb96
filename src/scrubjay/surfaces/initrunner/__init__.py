"""Agents on PydanticAI: long-term memory, sessions and role files, as InitRunner describes them."""
