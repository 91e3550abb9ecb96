"""Personal memory as a library: a person owns it.

from scrubjay.personal import PersonalMemory

with PersonalMemory("acme/alice") as me:
    me.store(category="preference", content_type="preference", content="Prefers green tea")
    me.retrieve(query="What does she drink?")
"""

from scrubjay.surfaces.personal.categories import Category, ContentType
from scrubjay.surfaces.personal.library import PersonalMemory
from scrubjay.surfaces.personal.records import ForgetTarget, TimeRange

__all__ = ["Category", "ContentType", "ForgetTarget", "PersonalMemory", "TimeRange"]
