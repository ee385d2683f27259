from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from ecphoryrag import errors
from ecphoryrag.errors import EcphoryError
from ecphoryrag.store.faults import FAULTS, translating

EXPECTED: dict[str, type[EcphoryError]] = {
    "BusyError": errors.StoreBusy,
    "LockedError": errors.StoreBusy,
    "FullError": errors.StoreError,
    "IOError": errors.StoreError,
    "CorruptError": errors.StoreDamaged,
    "NotADBError": errors.NotAStore,
    "ReadOnlyError": errors.StoreReadOnly,
    "PermissionsError": errors.StoreError,
    "CantOpenError": errors.StoreError,
    "TooBigError": errors.InputError,
}


@pytest.mark.parametrize("name", EXPECTED)
def test_each_fault_becomes_an_error_that_names_the_store_and_says_what_to_do(name: str) -> None:
    fault: type[apsw.Error] = getattr(apsw, name)
    with pytest.raises(EcphoryError) as caught, translating(Path("my.ecphory")):
        raise fault("in SQLite's words")
    assert type(caught.value) is EXPECTED[name]
    assert "my.ecphory" in str(caught.value)
    assert "in SQLite's words" in str(caught.value)
    assert isinstance(caught.value.__cause__, fault)


def test_every_fault_of_the_table_is_tested() -> None:
    assert {kind.__name__ for kind in FAULTS} == set(EXPECTED)


@pytest.mark.parametrize(
    "mistake", [apsw.SQLError, apsw.ConstraintError, apsw.MisuseError, apsw.ThreadingViolationError]
)
def test_our_own_mistakes_pass_unchanged(mistake: type[apsw.Error]) -> None:
    with pytest.raises(mistake), translating(Path("my.ecphory")):
        raise mistake("wrong query")
