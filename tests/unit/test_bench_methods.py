"""The methods of this package under the port, and which code is theirs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ecphoryrag.errors import InputError, ModelNotAvailable, SettingsError
from ecphoryrag.evaluation.baselines.closed_book import SYSTEM
from ecphoryrag.evaluation.baselines.port import Kit, Method
from ecphoryrag.evaluation.baselines.registry import METHODS, index_parameters, make
from ecphoryrag.evaluation.bench.ask import for_reader
from ecphoryrag.evaluation.bench.code import Code, plain
from ecphoryrag.models.fakes import HashEncoder, ScriptedGenerator
from ecphoryrag.settings import Settings
from ecphoryrag.types import Document, JsonValue, Message
from tests.support.bench import CORPUS, reply

DOCUMENTS = [Document(name, text, title) for name, title, text in CORPUS]
QUESTION = "Who is the mother of the director of The Silent Vale?"


def kit(
    folder: Path, parameters: Mapping[str, JsonValue] | None = None, generator: ScriptedGenerator | None = None
) -> Kit:
    own = folder / "method"
    own.mkdir(exist_ok=True)
    return Kit(own, Settings(), HashEncoder(), generator, None, parameters or {})


def indexed(name: str, folder: Path, parameters: Mapping[str, JsonValue] | None = None) -> Method:
    method = make(name, kit(folder, parameters))
    method.index(DOCUMENTS)
    return method


@pytest.mark.parametrize("name", ["bm25", "dense", "hybrid", "paper", "ecphory"])
def test_a_method_ranks_documents_and_leaves_the_answer_to_the_reader(tmp_path: Path, name: str) -> None:
    method = indexed(name, tmp_path)
    found = method.retrieve(QUESTION, 3)
    assert method.name == name
    assert "vale" in found.documents[:2]
    assert len(found.documents) == len(set(found.documents)) == 3
    assert found.recall.method == name
    assert found.seconds > 0
    assert method.answer(QUESTION) is None
    method.close()
    method.close()
    with pytest.raises(InputError, match="index the documents first"):
        method.retrieve(QUESTION, 3)


def test_an_index_is_made_once_and_what_it_took_is_kept(tmp_path: Path) -> None:
    first = make("dense", kit(tmp_path))
    took = first.index(DOCUMENTS)
    first.close()
    assert took.usage.embedding_tokens > 0
    assert took.figures["chunks"] == 6
    again = make("ecphory", kit(tmp_path))  # asks the same store
    assert again.index(DOCUMENTS) == took
    again.close()
    assert len(list(tmp_path.rglob("store.ecphory"))) == 1
    other = make("dense", kit(tmp_path))
    assert other.index(DOCUMENTS[:3]).figures["chunks"] == 3
    other.close()


def test_an_index_left_half_way_is_made_anew(tmp_path: Path) -> None:
    method = make("dense", kit(tmp_path))
    took = method.index(DOCUMENTS)
    method.close()
    (whole,) = tmp_path.rglob("whole.json")
    whole.unlink()
    again = make("dense", kit(tmp_path))
    made = again.index(DOCUMENTS)
    again.close()
    assert (made.usage.embedding_tokens, made.figures) == (took.usage.embedding_tokens, took.figures)


def test_the_paper_pays_for_its_entities_and_bm25_for_nothing(tmp_path: Path) -> None:
    tokens = {}
    for name in ("bm25", "dense", "paper"):
        method = make(name, kit(tmp_path))
        tokens[name] = method.index(DOCUMENTS).usage.embedding_tokens
        assert method.retrieve(QUESTION, 3).usage.embedding_tokens == (0 if name == "bm25" else 11)
        method.close()
    assert tokens["bm25"] == 0 < tokens["dense"] < tokens["paper"]


def test_parameters_are_the_settings_of_the_method(tmp_path: Path) -> None:
    few = indexed("paper", tmp_path, {"k_final": 2})
    assert len(few.retrieve(QUESTION, 3).recall.entities) == 2
    few.close()
    indexed("ecphory", tmp_path, {"chain.weight": 0.0}).close()
    refused: list[tuple[str, dict[str, JsonValue]]] = [
        ("paper", {"k_last": 2}),
        ("paper", {"k_final": 0}),
        ("paper", {"context": "nothing"}),
        ("dense", {"context": "both"}),
        ("dense", {"extractor": "names"}),
        ("ecphory", {"chain.wait": 1}),
        ("ecphory", {"chains.weight": 1}),
        ("ecphory", {"extractor": "magic"}),
        ("ecphory", {"extractor": "llm/ollama/other"}),
        ("closed-book", {"k": 1}),
    ]
    for name, parameters in refused:
        with pytest.raises(SettingsError):
            make(name, kit(tmp_path, parameters))


def test_what_the_paper_shows_its_reader(tmp_path: Path) -> None:
    shown = {}
    for context in ("both", "chunks", "entities"):
        method = indexed("paper", tmp_path, {"context": context, "k_final": 3})
        found = method.retrieve(QUESTION, 4)
        shown[context] = for_reader(found.recall, 2).chunks
        assert len(found.documents) == 4  # the ranking is the same, whatever is shown
        method.close()
    kinds = {
        context: ["entity" if piece.chunk.document_id.startswith("entity:") else "chunk" for piece in pieces]
        for context, pieces in shown.items()
    }
    assert kinds["chunks"] == ["chunk"] * 2
    assert set(kinds["entities"]) == {"entity"}
    assert kinds["both"] == [*kinds["chunks"], *kinds["entities"]]
    assert [piece.number for piece in shown["both"]] == list(range(1, len(shown["both"]) + 1))
    assert all(piece.title and piece.chunk.text for piece in shown["entities"])


def test_a_language_model_that_extracts_is_the_runs_own(tmp_path: Path) -> None:
    def entities(messages: Sequence[Message]) -> str:
        found = [{"name": "Orla Menken", "type": "person", "description": "a director", "importance": 4}]
        return json.dumps({"entities": found if "Orla" in messages[-1].content else []})

    generator = ScriptedGenerator(entities)
    given = kit(tmp_path, {"extractor": "llm"}, generator)
    settings = Settings(generator="local")
    method = make("paper", replace(given, settings=settings))
    took = method.index(DOCUMENTS)
    method.close()
    assert took.usage.calls == len(generator.asked) >= 6
    assert took.usage.input_tokens > 100
    again = make("paper", replace(given, settings=settings))
    assert again.index(DOCUMENTS).usage == took.usage
    again.close()
    assert not list(tmp_path.rglob("*-ledger*")), "the run keeps the replies, not the store"


def test_closed_book_answers_without_evidence(tmp_path: Path) -> None:
    generator = ScriptedGenerator(reply)
    method = make("closed-book", kit(tmp_path, generator=generator))
    assert method.index(DOCUMENTS).usage.calls == 0
    assert method.retrieve(QUESTION, 5).documents == ()
    answer = method.answer(QUESTION)
    assert answer is not None
    assert (answer.text, answer.evidence, answer.usage.calls) == ("Brida Sollas", (), 1)
    (asked,) = generator.asked
    assert [message.content for message in asked] == [SYSTEM, f"Question: {QUESTION}"]
    with pytest.raises(ModelNotAvailable, match="set `generator`"):
        make("closed-book", kit(tmp_path))


def test_closed_book_says_why_there_is_no_answer(tmp_path: Path) -> None:
    generator = ScriptedGenerator(['{"reasoning": "x", "answer": ""}', "nonsense"])
    answer = make("closed-book", kit(tmp_path, generator=generator)).answer(QUESTION)
    assert answer is not None
    assert answer.text is None
    assert answer.reason is not None
    assert answer.usage.calls == 2, "what was refused is paid all the same"


def test_every_method_that_is_here_can_be_found() -> None:
    with pytest.raises(SettingsError, match="no method is called 'colbert'; the methods are closed-book, bm25"):
        make("colbert", Kit(Path(), Settings(), HashEncoder(), None, None))
    assert list(METHODS)[:6] == ["closed-book", "bm25", "dense", "hybrid", "paper", "ecphory"]


def test_parameters_that_leave_the_index_as_it_is() -> None:
    assert index_parameters("paper", {"k_final": 3, "extractor": "llm"}) == {"extractor": "llm"}
    assert index_parameters("hipporag2", {"damping": 0.5, "synonymy": 0.9}) == {"synonymy": 0.9}
    assert index_parameters("lightrag", {"mode": "mix", "gleanings": 0}) == {"gleanings": 0}


def test_comments_and_docstrings_are_no_code() -> None:
    one = '"""Doc."""\nX = 1\n"""What X is."""\n\ndef f(a):\n    """Doc."""\n    return a  # why\n'
    other = "X = 1\ndef f( a ):\n\n    return a\n"
    assert plain(one) == plain(other)
    assert plain(one) != plain(other.replace("return a", "return -a"))
    assert plain("def f():\n    '''Doc.'''\n") == plain("def f():\n    pass\n")


def test_which_files_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import ecphoryrag  # noqa: PLC0415 - its place is changed here

    package = Path(ecphoryrag.__file__).parent
    copy = tmp_path / "ecphoryrag"
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(ecphoryrag, "__file__", str(copy / "__init__.py"))

    def changed(path: str) -> dict[str, bool]:
        cells = {
            "dense": ("dense", "static", None),
            "minilm": ("dense", "minilm", None),
            "answers": ("dense", "static", "local/x"),
            "hipporag2": ("hipporag2", "static", None),
            "react": ("react", "static", None),
        }

        def now() -> dict[str, str]:
            code = Code()
            return {name: code.of(method, encoder, "names", llm) for name, (method, encoder, llm) in cells.items()}

        before = now()
        file = copy / path
        kept = file.read_text("utf-8")
        file.write_text(kept + "\nCHANGED = 1\n", encoding="utf-8")
        after = now()
        file.write_text(kept + "\n# a comment\n", encoding="utf-8")
        assert now() == before
        file.write_text(kept, encoding="utf-8")
        return {name: before[name] != after[name] for name in cells}

    def only(*names: str) -> dict[str, bool]:
        return {name: name in names for name in ("dense", "minilm", "answers", "hipporag2", "react")}

    everything = only("dense", "minilm", "answers", "hipporag2", "react")
    assert changed("recall/spread.py") == everything
    assert changed("evaluation/metrics.py") == everything
    assert changed("evaluation/baselines/port.py") == everything
    assert changed("answering/run.py") == only("answers")
    assert changed("models/local.py") == only("answers")
    assert changed("models/minilm.py") == only("minilm")
    assert changed("evaluation/baselines/memory.py") == only("dense", "minilm", "answers", "react")
    assert changed("evaluation/baselines/hipporag2_graph.py") == only("hipporag2")
    assert changed("evaluation/baselines/lightrag_search.py") == only()
    assert changed("cli/app.py") == only()
    assert changed("evaluation/bench/table.py") == only()


def test_descriptions_are_json(tmp_path: Path) -> None:
    method = indexed("dense", tmp_path)
    method.close()
    (whole,) = tmp_path.rglob("whole.json")
    assert set(json.loads(whole.read_text("utf-8"))) == {"usage", "seconds", "figures", "notes"}
