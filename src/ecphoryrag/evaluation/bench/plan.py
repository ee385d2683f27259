"""From a configuration to cells: every combination of data set, encoder, method, parameters, k and seed."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from ecphoryrag.errors import InputError
from ecphoryrag.evaluation.baselines.registry import index_parameters
from ecphoryrag.evaluation.bench.code import Code
from ecphoryrag.evaluation.bench.config import BenchConfig, DatasetConfig, MethodConfig
from ecphoryrag.evaluation.bench.rows import CellRow
from ecphoryrag.evaluation.dataset import Dataset
from ecphoryrag.evaluation.datasets import Selection, Source, read
from ecphoryrag.settings import Settings
from ecphoryrag.types import EncoderIdentity, JsonValue

FORMAT = "1"
"""Of the rows; changes whenever rows of the version before can no longer stand beside new ones."""
K = "k"
"""What the reader's number of pieces is called in a label."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A method with one combination of its parameters."""

    method: MethodConfig
    label: str
    parameters: Mapping[str, JsonValue]
    """As in the configuration: files by the path given there."""
    given: Mapping[str, JsonValue]
    """As the method is given them: files by their place."""
    files: Mapping[str, str]
    """SHA-256 of each file among them."""
    varied: Mapping[str, JsonValue]
    k: int


@dataclass(frozen=True, slots=True)
class Planned:
    """A cell before it is run."""

    row: CellRow
    variant: Variant
    dataset: Dataset
    settings: Settings
    index_key: str
    """Cells of one key share an index."""


@dataclass(frozen=True, slots=True)
class Identities:
    """What the models are, so that other models make other cells."""

    encoders: Mapping[str, EncoderIdentity]
    generator: str | None
    """Name and all that changes the replies; None if nothing is answered."""
    generator_name: str | None = None


@dataclass(slots=True)
class Data:
    """The data sets of a configuration, each sample read once."""

    config: BenchConfig
    folder: Path
    """Relative paths of data count from here."""
    limit: int | None = None
    _read: dict[tuple[str, int], Dataset] = field(default_factory=dict)

    def get(self, name: str, seed: int) -> Dataset:
        """The set of this name with the sample of this seed. Raises InputError."""
        if (name, seed) not in self._read:
            config = next(each for each in self.config.datasets if each.name == name)
            self._read[name, seed] = self._load(config, seed)
        return self._read[name, seed]

    def _load(self, config: DatasetConfig, seed: int) -> Dataset:
        source = Source(
            config.name,
            config.format,
            self.folder / config.questions,
            self.folder / config.corpus if config.corpus else None,
            self.folder / config.aliases if config.aliases else None,
            config.titles,
        )
        asked = self.config
        dataset = read(
            source, Selection(asked.split, config.development, asked.questions, seed, config.pool, config.passages)
        )
        if len(asked.seeds) > 1 and config.passages is None:
            whole = read(source, Selection(asked.split, config.development))
            if len(whole.questions) == asked.questions:
                raise InputError(
                    f"{config.name}: several seeds draw the same sample of all {asked.questions} questions"
                )
        return dataset


def variants(method: MethodConfig, ks: Sequence[int], folder: Path) -> Iterator[Variant]:
    """Every combination of the parameters that are lists, and of ``ks``. Raises InputError for a file not there."""
    names = list(method.parameters)
    values = [value if isinstance(value, list) else [value] for value in method.parameters.values()]
    several = [name for name, choices in zip(names, values, strict=True) if len(choices) > 1]
    for combination, k in itertools.product(itertools.product(*values), ks):
        parameters = dict(zip(names, combination, strict=True))
        given, files = _placed(parameters, folder)
        varied: dict[str, JsonValue] = {name: _plain(parameters[name]) for name in several}
        if len(ks) > 1:
            varied[K] = k
        said = ",".join(f"{name}={_said(value)}" for name, value in varied.items())
        label = f"{method.shown}[{said}]" if said else method.shown
        plain = {name: _plain(value) for name, value in parameters.items()}
        yield Variant(method, label, plain, given, files, varied, k)


def _placed(parameters: Mapping[str, JsonValue], folder: Path) -> tuple[dict[str, JsonValue], dict[str, str]]:
    given: dict[str, JsonValue] = {}
    files: dict[str, str] = {}
    for name, value in parameters.items():
        if not isinstance(value, dict):
            given[name] = value
            continue
        path = value.get("file")
        if len(value) != 1 or not isinstance(path, str):
            raise InputError(f'the parameter {name!r} is a table: only {{ file = "path" }} can be one')
        try:
            files[name] = hashlib.sha256((folder / path).read_bytes()).hexdigest()
        except OSError as error:
            raise InputError(f"cannot read {folder / path}, the parameter {name!r}: {error.strerror}") from error
        given[name] = str((folder / path).resolve())
    return given, files


def _plain(value: JsonValue) -> JsonValue:
    """A file by its name: where it lies is no property of the row."""
    return Path(str(value["file"])).name if isinstance(value, dict) else value


def _said(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def plan(config: BenchConfig, folder: Path, data: Data, models: Identities) -> list[Planned]:
    """All cells, in the order in which they run: a data set, then an encoder, then a method after the other.

    Raises InputError for data or files that cannot be used.
    """
    planned = []
    of_method = {method.shown: list(variants(method, method.ks(config.ks), folder)) for method in config.methods}
    planner = _Planner(config, models)
    for dataset, encoder, method in itertools.product(config.datasets, config.encoders, config.methods):
        if method.datasets and dataset.name not in method.datasets:
            continue
        if method.encoders and encoder not in method.encoders:
            continue
        for variant, seed in itertools.product(of_method[method.shown], config.seeds):
            planned.append(planner.cell(variant, dataset, data.get(dataset.name, seed), encoder, seed))
    return planned


@dataclass(frozen=True, slots=True)
class _Planner:
    config: BenchConfig
    models: Identities
    code: Code = field(default_factory=Code)

    def cell(self, variant: Variant, named: DatasetConfig, dataset: Dataset, encoder: str, seed: int) -> Planned:
        config, models, method = self.config, self.models, variant.method.name
        settings = self._settings(encoder, variant.k)
        extractor = str(variant.parameters.get("extractor", settings.extractor))
        identity = models.encoders[encoder]
        own: list[JsonValue] = [
            *(method, dict(variant.parameters), variant.k, config.normalisation, extractor),
            _that_matter(settings),
        ]
        parts = {
            "settings": short([*own, dict(variant.files)]),
            "encoder": f"{identity.name} {identity.version} {identity.fingerprint}",
            "generator": models.generator or "none",
            "data": short([dataset.digests["corpus"], dataset.digests["questions"]]),
            "split": f"{config.split} {named.development or 'all'}",
            "seed": str(seed) if config.questions is not None else "all",
            "code": self.code.of(method, encoder, extractor, config.generator),
            "format": FORMAT,
        }
        row = CellRow(
            key=short([named.name, variant.label, {**parts, "code": self._code(parts["code"])}]),
            method=method,
            label=variant.label,
            dataset=named.name,
            encoder=encoder,
            seed=seed,
            split=config.split,
            generator=models.generator_name,
            parameters=variant.parameters,
            varied=variant.varied,
            k=variant.k,
            normalisation=config.normalisation,
            parts=parts,
            chosen=short([*own, parts["encoder"], parts["generator"]]),
            passages=len(dataset.documents),
            notes=dataset.notes,
        )
        index: list[JsonValue] = [
            method,
            {key: variant.given[key] for key in index_parameters(method, variant.given)},
            settings.indexing.model_dump(mode="json"),
            *(extractor, parts["encoder"], models.generator, dataset.digests["corpus"], named.name),
            self.code.of(method, encoder, extractor, None),
        ]
        return Planned(row, variant, dataset, settings, short(index))

    def _settings(self, encoder: str, k: int) -> Settings:
        given = self.config.settings
        recall = given.recall.model_copy(update={"k": k})
        generator = self.config.generator or "none"
        return given.model_copy(update={"encoder": encoder, "generator": generator, "recall": recall})

    def _code(self, code: str) -> str:
        return code if self.config.code == "strict" else f"version {version('ecphoryrag')}"


def _that_matter(settings: Settings) -> JsonValue:
    """The settings that can change a row: not where a model lies, or how a server is reached."""
    tree: dict[str, JsonValue] = settings.model_dump(mode="json", include={"indexing", "recall", "answering"})
    tree["context"] = settings.models.local.context
    tree["prefixes"] = settings.models.prefixes.model_dump(mode="json")
    return tree


def short(content: Sequence[JsonValue] | Mapping[str, JsonValue]) -> str:
    """16 hexadecimal digits of a hash of the content."""
    text = json.dumps(content, ensure_ascii=True, sort_keys=True)
    return hashlib.blake2b(text.encode("ascii"), digest_size=8).hexdigest()
