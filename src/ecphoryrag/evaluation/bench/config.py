"""The configuration of a comparison: a TOML file.

```toml
split = "development"            # what the questions are for: "development" or "test"
encoders = ["static", "minilm"]  # each method with each of them
generator = "local"              # of the answers; left out: nothing is answered, retrieval alone is measured
k = 5                            # pieces of evidence that the reader is given; a list: one after the other
seeds = [0]                      # each draws a sample of questions; several need `questions`
questions = 25                   # a set; left out: all; 0: nothing is asked, and what indexing takes is measured alone
normalisation = "squad"          # or "loose", as the publication's code has it
code = "strict"                  # or "version": see below
frozen = "frozen.json"           # for split = "test" alone: the settings chosen on development questions

[settings]                       # as in ecphory.toml; that file and the environment are not read
answering.evidence_tokens = 1500

[[datasets]]
name = "musique"
format = "musique"               # ecphory, hotpotqa, 2wikimultihopqa, musique, hipporag
questions = "musique_ans_v1.0_dev.jsonl"
# corpus, for the formats ecphory and hipporag; aliases, for 2wikimultihopqa; titles = false
# development = 300              # the file holds both splits: so many questions, drawn from their ids, are development
# pool = "sample"                # the corpus holds the passages of the sample alone, which is easier
# passages = 30                  # so many of its passages: gold of questions drawn by the seed, as many others, no more

[[methods]]
name = "paper"
# label = "paper"                # in the tables; two entries of one method need two labels
# datasets, encoders             # names of those it is to run on; left out: all
# k                              # instead of the k above, for this method alone
[methods.parameters]
k_final = [20, 40]               # a list: one after the other, every combination of several lists
openie = { file = "openie.jsonl" }  # a file: counted from here, and its content is part of what makes a row
```

Paths count from the file's own folder. ``code = "version"`` lets rows of several states of the source stand in one run
as long as the package's version is the same, for a run of many days: whoever says so answers for it that what changed
does not matter. The rows say which code made them, and the table shows it.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    NonNegativeInt,
    PositiveInt,
    ValidationError,
    field_validator,
)

from ecphoryrag.errors import EcphoryError, SettingsError
from ecphoryrag.evaluation.answers import Normalisation
from ecphoryrag.evaluation.bench.rows import Split
from ecphoryrag.evaluation.datasets import Format
from ecphoryrag.settings import Settings
from ecphoryrag.settings.models import encoder_name, generator_name

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$")]

Ks = PositiveInt | Annotated[tuple[PositiveInt, ...], Field(min_length=1)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class DatasetConfig(_Part):
    """A data set."""

    name: Name
    format: Format
    questions: Path
    corpus: Path | None = None
    aliases: Path | None = None
    titles: bool = True
    development: PositiveInt | None = None
    pool: Literal["all", "sample"] = "all"
    passages: Annotated[int, Field(ge=2)] | None = None


class MethodConfig(_Part):
    """A method with its parameters; a parameter that is a list is varied."""

    name: Name
    label: Name | None = None
    datasets: tuple[str, ...] = ()
    encoders: tuple[str, ...] = ()
    k: Ks | None = None
    parameters: dict[str, JsonValue] = Field(default_factory=dict)

    def ks(self, common: tuple[int, ...]) -> tuple[int, ...]:
        """Its own values of ``k``, or the common ones."""
        return common if self.k is None else _several(self.k)

    @property
    def shown(self) -> str:
        """The label, or the name."""
        return self.label or self.name


class BenchConfig(_Part):
    """All of it; the module's docstring says what each setting means."""

    split: Split
    datasets: Annotated[tuple[DatasetConfig, ...], Field(min_length=1)]
    methods: Annotated[tuple[MethodConfig, ...], Field(min_length=1)]
    encoders: Annotated[tuple[str, ...], Field(min_length=1)] = ("static",)
    generator: str | None = None
    k: Ks = 5
    seeds: Annotated[tuple[int, ...], Field(min_length=1)] = (0,)
    questions: NonNegativeInt | None = None
    normalisation: Normalisation = "squad"
    code: Literal["strict", "version"] = "strict"
    frozen: Path | None = None
    settings: Settings = Settings()

    @field_validator("encoders")
    @classmethod
    def _encoders(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(encoder_name(name) for name in names)

    @field_validator("generator")
    @classmethod
    def _generator(cls, name: str | None) -> str | None:
        return None if name in (None, "none") else generator_name(name or "")

    @property
    def ks(self) -> tuple[int, ...]:
        """The values of ``k``."""
        return _several(self.k)


def _several(k: int | tuple[int, ...]) -> tuple[int, ...]:
    return k if isinstance(k, tuple) else (k,)


def load_config(path: Path) -> tuple[BenchConfig, str]:
    """The configuration, and the file's text for the manifest.

    Raises SettingsError, naming the file and the setting, for what is malformed or contradicts itself.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        tree = tomllib.loads(text)
    except OSError as error:
        raise SettingsError(f"cannot read the configuration {path}: {error.strerror}; correct the path") from error
    except ValueError as error:
        raise SettingsError(f"the configuration {path} is not valid TOML: {error}; correct it") from error
    try:
        config = BenchConfig.model_validate(tree)
        _check(config)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise SettingsError(f"the configuration {path}: {where}: {first['msg']}; correct it") from error
    except EcphoryError as error:
        raise SettingsError(f"the configuration {path}: {error}") from error
    return config, text


def _check(config: BenchConfig) -> None:
    _once([dataset.name for dataset in config.datasets], "data set")
    _once([method.shown for method in config.methods], "label of a method")
    _once(config.encoders, "encoder")
    _once([str(seed) for seed in config.seeds], "seed")
    _once([str(k) for k in config.ks], "k")
    for method in config.methods:
        _once([str(k) for k in method.ks(())], f"k of the method {method.shown}")
        _known(method.datasets, [dataset.name for dataset in config.datasets], f"the method {method.shown}: data set")
        _known(method.encoders, config.encoders, f"the method {method.shown}: encoder")
    if len(config.seeds) > 1 and config.questions is None:
        raise SettingsError(
            "several seeds need `questions`: a seed draws the sample, and there is one sample of all questions"
        )
    if (config.split == "test") != (config.frozen is not None):
        raise SettingsError(
            "test questions need `frozen`, the file of the settings that were chosen on development questions"
            if config.split == "test"
            else "`frozen` is for test questions; leave it out for development"
        )


def _once(names: tuple[str, ...] | list[str], what: str) -> None:
    twice = next((name for name in names if list(names).count(name) > 1), None)
    if twice is not None:
        raise SettingsError(f"the {what} {twice!r} is there twice; name each once")


def _known(names: tuple[str, ...], known: list[str] | tuple[str, ...], what: str) -> None:
    unknown = next((name for name in names if name not in known), None)
    if unknown is not None:
        raise SettingsError(f"{what} {unknown!r} is none of this configuration; it has {', '.join(known)}")
