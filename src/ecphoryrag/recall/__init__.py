"""The road of a question: cues, activation, spreading, chains, ranking, grounding."""

from ecphoryrag.recall.duplicates import LIKELY, duplicates
from ecphoryrag.recall.prepared import PreparedCache, prepare
from ecphoryrag.recall.request import Helpers, RecallRequest
from ecphoryrag.recall.road import recall

__all__ = ["LIKELY", "Helpers", "PreparedCache", "RecallRequest", "duplicates", "prepare", "recall"]
