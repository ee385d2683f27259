"""The method `ecphory`: cues, spreading, chains."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ecphoryrag.recall.activate import chunk_seeds, cue_weights, join_seeds
from ecphoryrag.recall.chains import Chains, Walkable, chains
from ecphoryrag.recall.cues import CueRule, FoundCue, ToldNames, add_named, find_cues, namesakes
from ecphoryrag.recall.flat import Scores
from ecphoryrag.recall.graph import Graph, graph, to_chunk
from ecphoryrag.recall.question import Asked, Likeness
from ecphoryrag.recall.rank import anchored, apart, log_activation
from ecphoryrag.recall.spread import Activation, spread
from ecphoryrag.settings.recall import EcphorySettings
from ecphoryrag.snapshot import Snapshot

CUE_COMMON_LEAST = 3
"""Documents; in a small store no name that fewer mention is common."""


@dataclass(frozen=True, slots=True)
class Trace:
    """How the activation came about: what the paths are read from. n chunks, m entities."""

    cues: tuple[FoundCue, ...]
    cue_weights: tuple[float, ...]
    damping: float
    seeds: Activation
    activation: Activation
    to_chunk: sp.csr_array
    """(m, n) rows that sum to 1: what each entity passes on."""
    chains: Chains
    spread: Scores
    """(n,) score before chains."""
    scores: Scores
    """(n,) final."""


NONE_TOLD = ToldNames()


def ecphory(
    asked: Asked,
    like: Likeness,
    snapshot: Snapshot,
    known: Graph,
    settings: EcphorySettings,
    told: ToldNames = NONE_TOLD,
) -> Trace:
    """Activate, spread and chain over the chunks of ``asked``; ``known`` is the graph over exactly these."""
    rule = CueRule(
        positions=snapshot.entity_positions,
        frequency=known.facts.frequency,
        held_by=asked.held_by,
        mentioned=known.mentioned,
        common=max(CUE_COMMON_LEAST, settings.cue_common * len(snapshot.document_ids)),
        namesakes=namesakes(snapshot),
    )
    cues = find_cues(asked.text, rule, snapshot.aliases)
    if told.names and told.share > 0:
        cues = add_named(asked.text, cues, told, rule, snapshot.aliases)
    named = [cue.entities for cue in cues]
    weights = cue_weights([cue.frequency for cue in cues], len(snapshot.document_ids), [cue.share for cue in cues])
    on_chunks = chunk_seeds(like.hybrid, settings.seeds, settings.sharpness)
    seeds = join_seeds(on_chunks, named, weights, len(known.facts.rarity), settings.chunk_share)
    passed = to_chunk(known, like.hybrid, settings.sibling_sharpness)
    active = spread(seeds, known.to_entity, passed, damping=settings.damping, steps=settings.steps)
    score = anchored(log_activation(active.chunks, settings.floor), like.hybrid, settings.anchor)
    walkable = Walkable(known.to_entity, passed, known.facts.rarity)
    # What only the model named may be the bridge that the question asks for.
    cued = np.array(sorted({entity for cue in cues if cue.start is not None for entity in cue.entities}), np.int64)
    hops = chains(score, cued, asked, walkable, settings.chain)
    return Trace(
        cues=tuple(cues),
        cue_weights=tuple(weights),
        damping=settings.damping,
        seeds=seeds,
        activation=active,
        to_chunk=passed,
        chains=hops,
        spread=score,
        scores=apart(score + settings.chain.weight * hops.scores, known.facts.documents, settings.sibling_discount),
    )


def restricted(known: Graph, positions: NDArray[np.int64]) -> Graph:
    """The graph as if only these chunks existed, corpus statistics aside."""
    return graph(known.facts.rows(positions))
