"""The road of a question: cues, activation, spreading, chains, ranking, grounding."""

from ecphoryrag.recall.prepared import PreparedCache, prepare
from ecphoryrag.recall.request import RecallRequest
from ecphoryrag.recall.road import recall

__all__ = ["PreparedCache", "RecallRequest", "prepare", "recall"]
