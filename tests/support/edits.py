"""Documents made of blocks, and random changes of them: what an update of a document is tried on."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import strategies as st

from ecphoryrag.types import Document, Heading, JsonValue

NAMES = (
    "Ada Lovelace",
    "Corrabel",
    "the Grey Pellin",
    "Ilka Varnholt",
    "NASA",
    "National Air Lift",
    "Apple",
    "Dunlisk",
)
SENTENCES = (
    "{0} was built by {1} in 18{2}.",
    "Apple pie of {1} is older than {0}.",
    "In {2} years an apple and {0} went to {1}.",
    "He met {0} there, and the {1} (NAL) paid {2} marks.",
    "{0} is a harbour town",
    "Notably {1} has {2} notes on “Count to Ten”.",
    "notably, so {0} was said to be {1}.",
    "Nothing notable.",
)
TITLES = ("", "Corrabel", "Log of {2}")
HEADS = ("Corrabel", "History", "1. The {0}", "Notes")


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph of sentences, or with a level a heading."""

    parts: tuple[str, ...]
    level: int = 0


@dataclass(frozen=True, slots=True)
class Draft:
    """A document before it is written out."""

    blocks: tuple[Block, ...]
    title: str = ""
    metadata: tuple[tuple[str, JsonValue], ...] = ()
    source: str | None = None

    def document(self, id: str) -> Document:
        """The document, its headings where they stand."""
        text, headings = "", []
        for block in self.blocks:
            if block.level:
                text += "#" * block.level + " "
                headings.append(Heading(block.level, block.parts[0], len(text), len(text) + len(block.parts[0])))
            text += " ".join(block.parts) + "\n\n"
        return Document(id, text or "Nothing.", self.title, dict(self.metadata), tuple(headings), self.source)


def _filled(pattern: str) -> st.SearchStrategy[str]:
    return st.builds(pattern.format, st.sampled_from(NAMES), st.sampled_from(NAMES), st.integers(10, 99))


sentences = st.sampled_from(SENTENCES).flatmap(_filled)
blocks = st.one_of(
    st.builds(Block, st.lists(sentences, min_size=1, max_size=5).map(tuple)),
    st.builds(lambda head, level: Block((head,), level), st.sampled_from(HEADS).flatmap(_filled), st.integers(1, 3)),
)
drafts = st.builds(
    Draft,
    st.lists(blocks, min_size=1, max_size=9).map(tuple),
    st.sampled_from(TITLES).flatmap(_filled),
    st.just(()),
    st.sampled_from([None, "a.md"]),
)


CHANGES = ("sentence", "sentence", "sentence", "insert", "delete", "swap", "repeat", "title", "metadata", "source")


@st.composite
def edited(draw: st.DrawFn, draft: Draft) -> Draft:
    """The draft after one change: of a sentence, a block, the order of blocks, the title, metadata or the source."""
    kind = draw(st.sampled_from(CHANGES))
    if kind == "title":
        return replace(draft, title=draw(st.sampled_from(TITLES).flatmap(_filled)))
    if kind == "metadata":
        return replace(draft, metadata=(("year", draw(st.integers(1, 3))),))
    if kind == "source":
        return replace(draft, source=draw(st.sampled_from([None, "a.md", "b.md"])))
    at = draw(st.integers(0, len(draft.blocks) - 1))
    before, block, after = draft.blocks[:at], draft.blocks[at], draft.blocks[at + 1 :]
    changed: tuple[Block, ...]
    if kind == "sentence":
        changed = (*before, *draw(_reworded(block)), *after)
    elif kind == "insert":
        changed = (*before, draw(blocks), block, *after)
    elif kind == "delete":
        changed = (*before, *after)
    elif kind == "swap":
        changed = (*after, block, *before)
    else:
        changed = (*before, block, block, *after)
    return replace(draft, blocks=changed or draft.blocks)


@st.composite
def _reworded(draw: st.DrawFn, block: Block) -> tuple[Block, ...]:
    """The block with one sentence gone, another, or two in its place; a heading with another in its place."""
    place = draw(st.integers(0, len(block.parts) - 1))
    least, most = (1, 1) if block.level else (0, 2)
    new = draw(st.lists(sentences, min_size=least, max_size=most))
    parts = (*block.parts[:place], *new, *block.parts[place + 1 :])
    return (Block(parts, block.level),) if parts else ()
