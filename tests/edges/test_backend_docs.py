"""The pages on backends: every settings block is one that the program takes, and every page is named."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from ecphoryrag.models.registry import make_extractor, make_generator
from ecphoryrag.settings import Settings

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "backends"
PAGES = sorted(FOLDER.glob("*.md"))
BLOCKS = [
    pytest.param(block, id=f"{page.stem}-{number}")
    for page in [*PAGES, ROOT / "README.md"]
    for number, block in enumerate(re.findall(r"^```toml\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S), 1)
]


@pytest.mark.parametrize("block", BLOCKS)
def test_a_settings_block_is_taken_and_its_parts_can_be_made(block: str) -> None:
    settings = Settings.model_validate(tomllib.loads(block))
    generator = make_generator(settings)
    assert generator is not None
    try:
        make_extractor(settings, generator)
    finally:
        generator.close()


def test_every_backend_has_a_page_with_settings() -> None:
    assert len(PAGES) == 7
    for page in PAGES:
        assert "```toml" in page.read_text(encoding="utf-8"), page.name
    index = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert {page.name for page in PAGES} - {"README.md"} == set(re.findall(r"\(([a-z-]+\.md)\)", index))


def test_the_configuration_of_the_publication_is_complete() -> None:
    blocks = re.findall(r"^```toml\n(.*?)^```$", (FOLDER / "ollama.md").read_text("utf-8"), re.M | re.S)
    settings = Settings.model_validate(tomllib.loads(blocks[-1]))
    assert (settings.generator, settings.encoder, settings.extractor) == ("ollama/phi4", "ollama/bge-m3", "llm")
    assert settings.recall.method == "paper"
    paper = settings.recall.paper
    assert (paper.k_initial, paper.retrieval_depth, paper.k_final, paper.context_chunks) == (20, 2, 20, 5)
