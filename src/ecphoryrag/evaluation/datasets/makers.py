"""Where the makers of each set publish it, and under which licence: said when a file is missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ecphoryrag.errors import InputError


@dataclass(frozen=True, slots=True)
class Maker:
    """A published set."""

    title: str
    address: str
    licence: str
    files: str
    """What to download."""


MAKERS: Mapping[str, Maker] = {
    "hotpotqa": Maker(
        "HotpotQA",
        "https://hotpotqa.github.io/",
        "CC BY-SA 4.0",
        "hotpot_dev_distractor_v1.json or hotpot_dev_fullwiki_v1.json",
    ),
    "2wikimultihopqa": Maker(
        "2WikiMultihopQA",
        "https://github.com/Alab-NII/2wikimultihop",
        "Apache-2.0",
        "dev.json, and id_aliases.json for the aliases of the answers",
    ),
    "musique": Maker(
        "MuSiQue-Ans", "https://github.com/StonyBrookNLP/musique", "CC BY 4.0", "musique_ans_v1.0_dev.jsonl"
    ),
    "hipporag": Maker(
        "the corpora and questions of HippoRAG",
        "https://github.com/OSU-NLP-Group/HippoRAG",
        "MIT for what its authors made; the passages and questions keep the licences of HotpotQA (CC BY-SA 4.0), "
        "2WikiMultihopQA (Apache-2.0) and MuSiQue (CC BY 4.0)",
        "SET_corpus.json and SET.json",
    ),
}


def require(path: Path, kind: str) -> None:
    """Raises InputError if the file is not there, saying where the makers of its format publish it."""
    if path.is_file():
        return
    what = "is a folder" if path.is_dir() else "is not there"
    maker = MAKERS.get(kind)
    if maker is None:
        raise InputError(f"{path} {what}: give the path of a JSON Lines file, as docs/evaluation.md describes it")
    raise InputError(
        f"{path} {what}. {maker.title} is published at {maker.address} (licence: {maker.licence}); download "
        f"{maker.files} from there and name it here. Nothing is downloaded for you."
    )
