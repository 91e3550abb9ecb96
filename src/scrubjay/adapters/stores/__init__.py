"""Stores: where sealed rows are kept."""
