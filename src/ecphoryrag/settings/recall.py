"""Settings of recall, one group a method. The reason stands under each."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, NonNegativeInt

from ecphoryrag.settings.base import Count, Group, Share, Weight

MethodName = Literal["ecphory", "paper", "dense", "bm25", "hybrid"]


class DenseShares(Group):
    """Share of the vectors in the likeness of a chunk to the question, by encoder; the rest is BM25."""

    static: Share = 0.4
    """Token vectors know less than words do; flat from .2 to .4."""
    minilm: Share = 0.6
    """The best of the plain ranking `hybrid`."""
    other: Share = 0.5
    """Of an encoder that nothing was measured for."""

    def of(self, encoder: str) -> float:
        """The share for the encoder of this name."""
        return {"static": self.static, "minilm": self.minilm}.get(encoder, self.other)


class SeedShares(DenseShares):
    """The same for `ecphory`."""

    minilm: Share = 0.8
    """As seeds, meanings lead further than words, which the walk and the chains bring in again (.6 loses .003)."""


class AboutSettings(Group):
    """How many parts more an entity passes to a chunk that is about it than to one that mentions it (1 part)."""

    title: Weight = 16.0
    """The document bears the entity's name. Without it recall@5 falls by .04 to .07."""
    heading: Weight = 8.0
    """A heading above the chunk names the entity: less sure than a title."""
    subject: Weight = 16.0
    """The first sentence speaks of the entity: what is left to go by where there is no title."""
    short_form: Weight = 8.0
    """The name is a short form of one that the chunk is about (`Ada King` of `Ada King, Countess of Lovelace`).
    Without titles recall@5 gains .02; 16 does as well."""
    frequent: Weight = 4.0
    """The chunk names the entity most often: the weakest sign."""


class ChainSettings(Group):
    """What a first hop leaves unanswered of the question drives the next."""

    weight: Weight = 0.8
    """Of the chain score beside the activation; flat from .5 to 2."""
    first_hops: Count = 6
    """Chunks tried as the first hop of a chain."""
    sharpness: Weight = 8.0
    """How fast a less active first hop counts less."""
    full: Annotated[float, Field(gt=0)] = 0.6
    """A chunk fits the rest of the question wholly if it reaches this share of the most BM25 could give; measuring by
    the best chunk reached instead loses .02 on HotpotQA. Adding the likeness of vectors to the rest gains nothing."""


class EcphorySettings(Group):
    """The default method: cues, spreading, chains."""

    damping: Share = 0.8
    """Share of activation that walks on; the rest returns to the cues. At .5 recall@5 falls by .01 to .03."""
    steps: NonNegativeInt = 8
    """Steps of the walk, which is most of the time of a question. Twelve rank no better; six lose .007 of recall@10."""
    dense_share: SeedShares = SeedShares()
    """Of the likeness by which chunks are seeded and held to the question."""
    seeds: Count = 50
    """Chunks that are given activation at the start."""
    sharpness: Weight = 40.0
    """Of the softmax over the chunks' likeness to the question. Soft seeds (10) lose .02 to .05 of recall@5."""
    chunk_share: Share = 0.7
    """Share of the seeds on chunks; the rest sits on the entities the question names."""
    anchor: Share = 0.2
    """Share of the final score that is the likeness to the question itself. Without it HotpotQA loses .02."""
    floor: Annotated[float, Field(gt=0, lt=1)] = 1e-4
    """Activation, as a share of the highest, below which it counts as none. The score is its logarithm: linear
    activation ranks worse."""
    sibling_sharpness: Weight = 40.0
    """Chunks of one document that are about one entity share its activation by their likeness to the question, this
    sharply, so that a long document does not fill the ranking with its chunks."""
    sibling_discount: Weight = 0.1
    """Score that a chunk loses for each better one of its document: five chunks of one document are seldom what a
    question needs that joins several. Documents of one chunk do not feel it."""
    cue_common: Share = 0.004
    """A name of one word that more than this share of the documents mention is a cue only if it has a capital."""
    about: AboutSettings = AboutSettings()
    """How much more an entity passes to what is about it."""
    chain: ChainSettings = ChainSettings()
    """The next hops."""
    entities: Count = 10
    """Activated entities returned."""
    relations: Count = 10
    """Implicit relations returned, at most."""
    relation_chunks: Count = 10
    """Chunks, most active first, in which implicit relations are looked for."""


class PaperSettings(Group):
    """The published algorithm (Algorithm 1); the defaults are the publication's."""

    k_initial: Count = 20
    """Entities nearest the question at the start."""
    direct_chunks: NonNegativeInt = 10
    """Chunks nearest the question that join the source chunks of the initial entities."""
    retrieval_depth: NonNegativeInt = 2
    """Rounds of the associative search."""
    expansion: Count = 3
    """Each round takes this many times `k_initial` entities nearest the centroid."""
    k_final: Count = 20
    """Entities kept at the end: 20 for 2WikiMultihopQA, 40 to 80 for HotpotQA and MuSiQue."""
    context_chunks: Count = 5
    """Chunks kept at the end, where the caller does not say how many."""
    select_seeds: Literal["frontier", "all"] = "frontier"
    """Where a round takes its seeds: among the entities that the last round added, or among all. Read literally it
    is `all`, and then every round after the first finds nothing new."""
    chunk_order: Literal["entity", "similarity"] = "entity"
    """Order of the initial chunks: by the rank of the entity they come from, then the direct ones (what the public
    code does in effect), or by similarity to the question (the first chunks are then those of `dense`)."""


class FlatSettings(Group):
    """The methods `dense`, `bm25` and `hybrid`; `ecphory` takes its words and vectors from the same."""

    dense_share: DenseShares = DenseShares()
    """Of the method `hybrid`."""
    title_weight: Weight = 3.0
    """A word in the title counts as this many in the text (BM25F)."""
    k1: Weight = 1.2
    """How fast a repeated word stops to count (the field's usual value)."""
    b: Share = 0.75
    """How much a long chunk is discounted (the field's usual value)."""


class ModelCueSettings(Group):
    """What a language model may add at question time; one call each, and none unless it is switched on."""

    cues: bool = False
    """Ask which entities the question is about, beyond those matched by name."""
    cue_share: Share = 0.5
    """What a cue that the model names weighs, beside 1 for one that stands in the question."""
    relations: NonNegativeInt = 0
    """How many of the implicit relations are labelled, best first; 0: none, and no call."""


class RecallSettings(Group):
    """Which method recalls, and how much."""

    method: MethodName = "ecphory"
    """The measured best; the others are there to compare with."""
    k: Count = 5
    """Chunks returned. Enough for a chain of three documents with room for a wrong one."""
    ecphory: EcphorySettings = EcphorySettings()
    """Of the method `ecphory`."""
    paper: PaperSettings = PaperSettings()
    """Of the method `paper`."""
    llm: ModelCueSettings = ModelCueSettings()
    """What a language model adds."""
    flat: FlatSettings = FlatSettings()
    """Of the methods `dense`, `bm25` and `hybrid`."""
