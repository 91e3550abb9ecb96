"""Conversations: messages and streams of model APIs, capture, injection, replay."""
