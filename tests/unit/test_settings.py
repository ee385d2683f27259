"""Where settings come from, which source wins, and what is said of a wrong one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

from ecphoryrag.cli import options
from ecphoryrag.errors import SettingsError
from ecphoryrag.settings import Settings, explain_settings, load_settings
from ecphoryrag.settings.indexing import StdinFormat
from ecphoryrag.settings.recall import MethodName


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in list(os.environ):
        if variable.upper().startswith("ECPHORY_"):
            monkeypatch.delenv(variable)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def origins(**arguments: object) -> dict[str, tuple[object, str, str]]:
    return {item.name: (item.value, item.origin, item.detail) for item in explain_settings(arguments)}


def test_without_any_source_all_is_default() -> None:
    assert load_settings() == Settings()
    assert {origin for _, origin, _ in origins().values()} == {"default"}


def test_the_stronger_source_wins_setting_by_setting(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "ecphory.toml").write_text(
        "[recall]\nk = 2\nmethod = 'bm25'\n[recall.ecphory]\ndamping = 0.2\nanchor = 0.3\n", encoding="utf-8"
    )
    monkeypatch.setenv("ECPHORY_RECALL__K", "3")
    monkeypatch.setenv("ECPHORY_RECALL__ECPHORY__DAMPING", "0.4")
    arguments = {"recall": {"k": 4}}
    settings = load_settings(arguments)
    assert settings.recall.k == 4
    assert settings.recall.method == "bm25"
    assert (settings.recall.ecphory.damping, settings.recall.ecphory.anchor) == (0.4, 0.3)
    found = origins(**arguments)
    assert found["recall.k"] == (4, "argument", "")
    assert found["recall.method"] == ("bm25", "file", "ecphory.toml")
    assert found["recall.ecphory.damping"] == (0.4, "environment", "ECPHORY_RECALL__ECPHORY__DAMPING")
    assert found["recall.ecphory.anchor"] == (0.3, "file", "ecphory.toml")
    assert found["recall.ecphory.steps"][1] == "default"


def test_settings_are_read_when_asked_for_and_not_from_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ECPHORY_RECALL__K", "3")
    assert Settings().recall.k == 5
    assert load_settings().recall.k == 3


def test_the_file_may_be_named(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "ecphory.toml").write_text("[recall]\nk = 2\n", encoding="utf-8")
    (here / "other.toml").write_text("\ufeff[recall]\nk = 3\n", encoding="utf-8")
    (here / "third.toml").write_text("[recall]\nk = 4\n", encoding="utf-8")
    monkeypatch.setenv("ECPHORY_CONFIG", "other.toml")
    assert load_settings().recall.k == 3
    assert load_settings(config=Path("third.toml")).recall.k == 4
    monkeypatch.setenv("ECPHORY_CONFIG", "")
    assert load_settings().recall.k == 2


def test_a_named_file_that_is_not_there_is_an_error(monkeypatch: pytest.MonkeyPatch, here: Path) -> None:
    monkeypatch.setenv("ECPHORY_CONFIG", "none.toml")
    with pytest.raises(SettingsError, match=r"none\.toml: No such file"):
        load_settings()
    with pytest.raises(SettingsError, match="cannot read"):
        load_settings(config=here)


@pytest.mark.parametrize("content", [b"[recall\n", b"k = \xff\n", b"k = " + b"9" * 5000, b"k = " + b"[" * 5000])
def test_a_file_that_is_not_toml_is_an_error(here: Path, content: bytes) -> None:
    (here / "ecphory.toml").write_bytes(content)
    with pytest.raises(SettingsError, match=r"ecphory\.toml is not valid TOML"):
        load_settings()


def test_relative_paths_in_a_file_count_from_it(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "conf").mkdir()
    content = "store = 'a.ecphory'\n[models.local]\npath = '/models/m.gguf'\ncache = '~/models'\n"
    (here / "conf/x.toml").write_text(content, encoding="utf-8")
    settings = load_settings(config=here / "conf/x.toml")
    assert settings.store == here / "conf/a.ecphory"
    assert settings.models.local.path == Path("/models/m.gguf")
    assert settings.models.local.cache == Path("~/models")
    monkeypatch.setenv("ECPHORY_STORE", "b.ecphory")
    assert load_settings(config=here / "conf/x.toml").store == Path("b.ecphory")


def test_a_home_folder_in_the_stores_path_is_meant(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(here))
    monkeypatch.setenv("ECPHORY_STORE", "~/m.ecphory")
    assert load_settings().store == here / "m.ecphory"


def test_an_empty_variable_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ECPHORY_MODELS__LOCAL__PATH", "")
    monkeypatch.setenv("ECPHORY_RECALL__K", "")
    monkeypatch.setenv("ECPHORY_NO_SUCH", "")
    assert load_settings() == Settings()
    assert origins()["recall.k"][1] == "default"


def test_a_group_may_be_set_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ECPHORY_RECALL__ECPHORY", '{"damping": 0.1, "anchor": 0.1}')
    monkeypatch.setenv("ECPHORY_RECALL__ECPHORY__ANCHOR", "0.5")
    ecphory = load_settings().recall.ecphory
    assert (ecphory.damping, ecphory.anchor) == (0.1, 0.5)
    assert origins()["recall.ecphory.damping"][1:] == ("environment", "ECPHORY_RECALL__ECPHORY")
    monkeypatch.setenv("ECPHORY_RECALL__ECPHORY", "{broken")
    with pytest.raises(SettingsError, match="ECPHORY_RECALL__ECPHORY sets a whole group"):
        load_settings()


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("ECPHORY_RECALL__KK", "3", r"ECPHORY_RECALL__KK names no setting \(perhaps recall\.k is meant\)"),
        ("ECPHORY_STOER", "x", r"ECPHORY_STOER names no setting \(perhaps store is meant\)"),
        ("ECPHORY_STORE__X", "x", "ECPHORY_STORE__X names no setting"),
        ("ECPHORY_RECALL__K", "many", r"setting recall\.k: .*set by the environment variable ECPHORY_RECALL__K"),
        ("ECPHORY_RECALL__K", "0", r"setting recall\.k: .*greater than 0"),
        (
            "ECPHORY_ENCODER",
            "big",
            r"setting encoder: .*`static`, `minilm`, `none`, .*`ollama/MODEL`",
        ),
        ("ECPHORY_RECALL", "3", r"setting recall: .*ECPHORY_RECALL"),
    ],
)
def test_a_wrong_variable_is_named(monkeypatch: pytest.MonkeyPatch, variable: str, value: str, said: str) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(SettingsError, match=said):
        load_settings()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[recall]\nkk = 3\n", r"setting recall\.kk: no such setting \(perhaps recall\.k is meant\) \(set in ecphory"),
        ("[recall.ecphory]\ndamping = 2\n", r"setting recall\.ecphory\.damping: .*less than or equal to 1.*\(set in"),
        ("recall = 3\n", "setting recall: "),
        ("store = 3\n", r"setting store: .*path.*\(set in ecphory\.toml\)"),
        ("[recall]\nk = 0\n[indexing]\nbatch = 0\n", r"setting indexing\.batch: .*; setting recall\.k: "),
    ],
)
def test_a_wrong_setting_in_a_file_is_named(here: Path, content: str, said: str) -> None:
    (here / "ecphory.toml").write_text(content, encoding="utf-8")
    with pytest.raises(SettingsError, match=said):
        load_settings()


def test_a_wrong_argument_is_named() -> None:
    with pytest.raises(SettingsError, match=r"setting recall\.k: .*greater than 0\. See"):
        load_settings({"recall": {"k": 0}})


def groups(group: type[BaseModel]) -> list[type[BaseModel]]:
    below = [info.annotation for info in group.model_fields.values()]
    nested = [kind for kind in below if isinstance(kind, type) and issubclass(kind, BaseModel)]
    return [group, *(found for kind in nested for found in groups(kind))]


def test_every_setting_has_a_reason_and_every_group_refuses_unknown_names_and_changes() -> None:
    for group in groups(Settings):
        assert group.model_config["extra"] == "forbid", group
        assert group.model_config["frozen"], group
        for name, info in group.model_fields.items():
            assert info.description, f"{group.__name__}.{name}"
    assert len(groups(Settings)) >= 8


def test_the_command_line_names_the_same_choices() -> None:
    assert tuple(options.Method) == get_args(MethodName)
    assert tuple(options.InputFormat) == get_args(StdinFormat)


@pytest.mark.parametrize(
    "address",
    [
        "http://h/v1?key=hidden",
        "http://h/v1#hidden",
        "http://u:hidden@h/v1",
        "http://h:99999/v1",
        "http://h:hidden/v1",
        "http://h:0/v1",
        "http://h hidden/v1",
        "http://h\\hidden/v1",
        "http://[::1/v1",
        "ftp://h",
        "h:80",
        "http://",
    ],
)
def test_an_address_that_is_none_is_refused_and_not_shown(address: str) -> None:
    with pytest.raises(SettingsError, match="base_url") as raised:
        load_settings({"models": {"openai": {"base_url": address}}})
    assert "hidden" not in str(raised.value)


@pytest.mark.parametrize(
    ("address", "kept"),
    [
        ("HTTP://h/v1//", "HTTP://h/v1"),
        (" http://[::1]:8080/v1/\n", "http://[::1]:8080/v1"),
        ("https://h/a/b/v1", "https://h/a/b/v1"),
    ],
)
def test_an_address_is_kept_without_what_ends_it(address: str, kept: str) -> None:
    assert load_settings({"models": {"openai": {"base_url": address}}}).models.openai.base_url == kept


@pytest.mark.parametrize("number", ["inf", "-inf", "nan", "1e300"])
@pytest.mark.parametrize("name", ["TIMEOUT", "LONGEST_WAIT"])
def test_a_time_without_end_is_refused(name: str, number: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"ECPHORY_MODELS__OLLAMA__{name}", number)
    with pytest.raises(SettingsError, match=f"models.ollama.{name.lower()}"):
        load_settings()


@pytest.mark.parametrize("name", ["RECALL__ECPHORY__ANCHOR", "RECALL__ECPHORY__DAMPING"])
def test_no_setting_is_infinite(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"ECPHORY_{name}", "inf")
    with pytest.raises(SettingsError):
        load_settings()
