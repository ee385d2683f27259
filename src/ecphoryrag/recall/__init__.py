"""The road of a question: cues, activation, spreading, chains, ranking, grounding."""
