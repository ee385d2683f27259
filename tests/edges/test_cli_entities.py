"""`entities`, `merge`, `split`, `unmerge` and `eval-entities` at the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ecphoryrag.cli.codes import ExitCode
from tests.edges.test_cli import Ecphory, ecphory

__all__ = ["ecphory"]
TEXTS = (
    {"id": "sky", "title": "Mercury (planet)", "text": "Mercury is a planet near Giuseppe Colombo.", "topic": "stars"},
    {
        "id": "lab",
        "title": "Notes",
        "text": "In the laboratory Mercury was spilt by Giuseppe B. Colombo.",
        "topic": "work",
    },
    {"id": "tour", "title": "Tour", "text": "From Tromsø to Tromso it was Giuseppe Colombo who drove."},
)


@pytest.fixture
def store(ecphory: Ecphory) -> Ecphory:
    Path("texts.jsonl").write_text("".join(json.dumps(one) + "\n" for one in TEXTS), encoding="utf-8")
    assert ecphory("add", "texts.jsonl").code == ExitCode.OK
    return ecphory


def names(store: Ecphory) -> set[str]:
    return {one["name"] for one in store("entities", "--json").json["entities"]}


def test_duplicates_are_proposed_with_reasons(store: Ecphory) -> None:
    found = store("entities", "--duplicates", "--json").json["duplicates"]
    pairs = {frozenset((one["one"], one["other"])) for one in found}
    assert frozenset(("Giuseppe Colombo", "Giuseppe B. Colombo")) in pairs
    assert "a middle name more" in store("entities", "--duplicates").out
    assert store("entities", "--duplicates", "--least", "1", "--json").json["duplicates"] == []
    assert len(store("entities", "--limit", "1", "--json").json["entities"]) == 1


def test_merge_and_undo(store: Ecphory) -> None:
    before, export = names(store), store("export").out
    ran = store("merge", "Giuseppe Colombo", "Giuseppe B. Colombo", "--reason", "the same man", "--json")
    assert (ran.code, ran.json["mentions"]) == (ExitCode.OK, 1)
    assert "Giuseppe B. Colombo" not in names(store)
    assert store("entities", "--decisions").out.startswith("1 merge giuseppe b colombo = giuseppe colombo: 1 mentions")
    assert '"decision"' in store("export").out
    assert store("unmerge", "1").code == ExitCode.OK
    assert names(store) == before
    assert store("export").out.splitlines()[1:-1] == export.splitlines()[1:]
    assert store("unmerge", "1").code == ExitCode.ERROR
    assert store("merge", "Giuseppe Colombo", "Nobody").code == ExitCode.ERROR


@pytest.mark.parametrize(
    "selection", [("--document", "sky"), ("--where", "topic=stars"), ("--chunk", "sky:0"), ("--mention", "3")]
)
def test_split_by_each_selection(store: Ecphory, selection: tuple[str, str]) -> None:
    ran = store("split", "Mercury", "--as", "planet", *selection, "--json")
    assert (ran.code, ran.json["mentions"] > 0) == (ExitCode.OK, True)
    assert {"Mercury", "Mercury (planet)"} <= names(store)
    shown = store("entities", "--name", "Mercury (planet)", "--json").json["mentions"]
    assert {one["document_id"] for one in shown} == {"sky"}
    cues = store("recall", "Who saw Mercury (planet) there?", "--json").json["cues"]
    assert [one["entity_key"] for one in cues] == ["mercury (planet)"]


def test_a_wrong_command_line_is_told(store: Ecphory) -> None:
    assert store("split", "Mercury", "--as", "x", "--chunk", "sky").code == ExitCode.USAGE
    assert store("split", "Mercury", "--as", "x").code == ExitCode.ERROR
    assert store("entities", "--duplicates", "--decisions").code == ExitCode.USAGE
    assert store("entities", "--least", "0.5").code == ExitCode.USAGE


def test_eval_entities(store: Ecphory) -> None:
    def pair(one: tuple[str, str], other: tuple[str, str], same: bool) -> str:
        parts = {"one": {"document": one[0], "name": one[1]}, "other": {"document": other[0], "name": other[1]}}
        return json.dumps({**parts, "same": same, "kind": "x"}) + "\n"

    lines = [
        pair(("sky", "Mercury"), ("lab", "Mercury"), False),
        pair(("sky", "Giuseppe Colombo"), ("tour", "Giuseppe Colombo"), True),
        pair(("sky", "Giuseppe Colombo"), ("lab", "Giuseppe B. Colombo"), True),
        pair(("none", "Giuseppe Colombo"), ("lab", "Giuseppe B. Colombo"), True),
    ]
    Path("labels.jsonl").write_text("# how\n" + "".join(lines), encoding="utf-8")
    report = store("eval-entities", "--labels", "labels.jsonl", "--least", "0.65", "--json").json
    first = report["scores"][0]
    assert (report["pairs"], report["missing"]) == (3, ["none: Giuseppe Colombo"])
    assert (first["precision"], first["recall"]) == (0.5, 0.5)
    merged = next(one for one in report["scores"] if one["name"] == "with duplicates of 0.65 merged")
    assert merged["recall"] == 1.0
    assert store("split", "Mercury", "--as", "planet", "--document", "sky").code == ExitCode.OK
    assert store("eval-entities", "--labels", "labels.jsonl", "--json").json["scores"][0]["precision"] == 1.0
    assert "| the same entity | 1.000 | 0.500 |" in store("eval-entities", "--labels", "labels.jsonl").out
    Path("bad.jsonl").write_text("{}\n", encoding="utf-8")
    assert store("eval-entities", "--labels", "bad.jsonl").code == ExitCode.ERROR
