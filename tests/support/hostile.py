"""Seeded makers of what nobody should hand in: texts, bytes, JSON, filters, names and file trees made to do harm.

Every maker draws all it needs from the random numbers that it is given, so that a seed is a case that can be had again.
"""

from __future__ import annotations

import codecs
import io
import json
import math
import os
import random
import socket
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

CONTROLS = (
    "\0",
    "\x1b]0;owned\x07",
    "\x1b[2J\x1b[H",
    "\x9b31m",
    "\x07",
    "\x08" * 9,
    "\x7f",
    "\r",
    "\x0b",
    "\x0c",
    "\x85",
)
BIDI = ("\u202e", "\u202d", "\u2066", "\u2067", "\u2069", "\u200f", "\u061c", "\u2028", "\u2029", "\ufeff", "\u200b")
SURROGATES = ("\ud800", "\udfff", "\ud83d", "\udc80", "\ud800\ud800", "\udfff\ud800")
INJECTIONS = (
    *(
        "'; DROP TABLE documents; --",
        '" OR "1"="1',
        "x' UNION SELECT * FROM properties--",
        "1); DELETE FROM chunks; --",
    ),
    *(
        'NEAR("a" "b", 3)',
        "title:*",
        '"',
        "body : {a b} AND",
        "^a + b",
        "a* OR NOT",
        "{title body}: x",
        "-title:x",
        "%_%",
    ),
    *(
        "../../x",
        "..\\..\\x",
        "/etc/passwd",
        "file:///etc/passwd",
        "file:x?mode=rwc",
        ":memory:",
        "~root/x",
        "~",
        "-",
        "--",
    ),
    *(
        "CON",
        "NUL.txt",
        "COM1",
        "aux.md",
        "a:b",
        "x.",
        " x ",
        "C:\\Windows\\x",
        "\\\\host\\share",
        "a/" * 40,
        "x" * 300,
    ),
    *(
        "$(id)",
        "`id`",
        "${HOME}",
        "%(x)s %s %n",
        "{0.__class__}",
        "{{7*7}}",
        "[bold red]x[/]",
        "[link=file:///]x[/link]",
    ),
    *(
        '<!DOCTYPE a [<!ENTITY b "bbbb">]>',
        "<![CDATA[",
        "]]>",
        "&lt;&#0;",
        "\\u0000",
        "\\ud800",
        "@@@",
        "store",
        "search",
    ),
)
SCRIPTS = (
    *("שלום עולם", "مرحبا بالعالم", "नमस्ते दुनिया", "สวัสดีชาวโลก", "東京都庁", "İıẞßﬁ", "Z̸̡̢͎͇̤̲͖̲͌", "👩‍👩‍👧‍👦", "𝔄𝔩𝔦𝔠𝔢"),
    *("Ǆǅǆ", "ᾳ", "１２３", "Ⅻ", "½", "\U000e0041", "\U0010ffff", "\uffff", "\ufdd0", "\u0345", "\u1160\u11a8", "ﷺ"),
)
REPEATED = (
    *(
        "a",
        " ",
        "\n",
        ".",
        "A. ",
        "Dr. ",
        "(",
        ")",
        "[",
        "]",
        "{",
        '"',
        "'",
        "“",
        "-",
        "- ",
        "> ",
        "#",
        "# a\n",
        "`",
        "~~~\n",
    ),
    *(
        "1",
        "1,",
        "1.",
        "A",
        "A ",
        "Ab Cd ",
        "A-",
        "of ",
        "The ",
        "and ",
        "&",
        "/",
        "\\",
        "_",
        "*",
        "|",
        "=\n",
        "\t",
        "...",
        "?!",
    ),
    *(
        "A (B) ",
        "http://",
        "a@",
        "東",
        "का",
        "́",
        "👍",
        "İ",
        "'s ",
        "St. ",
        "U.S.",
        "---\n",
        "a: b\n",
        "[a]: b\n",
        "<",
        "&amp;",
    ),
)
PLAIN = (
    "Marie Curie was born in Warsaw in 1867. ",
    "Warsaw is the capital of Poland, on the Vistula. ",
    "The director of Jaws is Steven Spielberg. His mother is Leah Adler. ",
)
NUMBERS: tuple[Any, ...] = (
    *(0, -1, 1, 2**31, 2**63 - 1, 2**63, -(2**63), 2**64, 10**30, 10**400, 0.0, -0.0, 1e308, 5e-324, 0.1),
    *(math.nan, math.inf, -math.inf, True, False, None),
)
WINDOWS_NAMES = ("CON", "nul.txt", "aux.md", "com1.json", "lpt1.jsonl", "a:b.txt", "x. ", "x~1.txt", "q?.md", "p|q.txt")
SUFFIXES = (
    *(
        ".txt",
        ".md",
        ".json",
        ".jsonl",
        ".docx",
        ".html",
        ".xml",
        ".zip",
        ".pdf",
        "",
        ".ndjson",
        ".svg",
        ".csv",
        ".MD",
        ".ecphory",
    ),
    *(".JSON", ".toml", ".gz", ".xlsx", ".epub", ".markdown", ".py", ".rst", ".sqlite"),
)


def size(rng: random.Random) -> int:
    """Most are small, some of some pages, a few of a hundred thousand characters."""
    return int(10 ** rng.choices((rng.uniform(0, 2), rng.uniform(2, 4), rng.uniform(4, 5.3)), (85, 14.4, 0.6))[0])


def text(rng: random.Random, length: int | None = None) -> str:
    """A text of about so many characters."""
    length = size(rng) if length is None else length
    atoms: tuple[str, ...] = CONTROLS + BIDI + SURROGATES + INJECTIONS + SCRIPTS
    kind = rng.randrange(6)
    if kind == 0:
        atom = rng.choice(REPEATED + SCRIPTS)
        return (atom * (length // len(atom) + 1))[:length]
    if kind == 1:
        return "".join(
            chr(rng.choice((rng.randrange(0x110000), rng.randrange(0x300)))) for _ in range(min(length, 2000))
        )
    if kind == 2:  # soiled, but of characters that are taken
        clean = tuple(atom for atom in atoms if _is_taken(atom))
        return _joined(rng, PLAIN + PLAIN + clean, length)
    if kind == 3:
        return _joined(rng, REPEATED, length)
    return _joined(rng, PLAIN + atoms, length)


def _joined(rng: random.Random, atoms: tuple[str, ...], length: int) -> str:
    parts: list[str] = []
    held = 0
    while held < length:
        atom = rng.choice(atoms) * rng.choice((1, 1, 1, 2, 7))
        parts.append(atom)
        held += len(atom)
    return "".join(parts)


def _is_taken(atom: str) -> bool:
    return "\0" not in atom and not any("\ud800" <= sign <= "\udfff" for sign in atom)


def name(rng: random.Random) -> str:
    """An id, a key or the like: short, and hostile more often than not."""
    return rng.choice(
        (
            *INJECTIONS,
            *SURROGATES,
            *CONTROLS,
            *WINDOWS_NAMES,
            "",
            " ",
            "curie",
            "warsaw",
            "x" * 5000,
            text(rng, 30),
            text(rng, 5),
        )
    )


def value(rng: random.Random, depth: int = 0) -> Any:
    """A Python value as metadata may hold it, and some as they may not."""
    kind = rng.randrange(8)
    if kind < 3 or depth > 5:
        return rng.choice((*NUMBERS, text(rng, 20), name(rng)))
    if kind == 3:
        return [value(rng, depth + 1) for _ in range(rng.randrange(4))]
    if kind == 4:
        return {name(rng): value(rng, depth + 1) for _ in range(rng.randrange(4))}
    if kind == 5:
        deep: Any = "bottom"
        for _ in range(rng.choice((3, 63, 64, 65, 500, 5000))):
            deep = [deep] if rng.random() < 0.5 else {"a": deep}
        return deep
    if kind == 6:
        ring: list[Any] = []
        ring.append(ring)
        return rng.choice((ring, {1: 2}, {"a": b"b"}, {"s": {1}}, object(), b"\xff", ("a", 1), Path("/x"), int, 1j))
    return name(rng)


def record(rng: random.Random) -> dict[Any, Any]:
    """A record of a document, right in most of its fields."""
    made: dict[Any, Any] = {"text": rng.choice(PLAIN) + text(rng)}
    if rng.random() < 0.5:
        made["id"] = name(rng)
    if rng.random() < 0.4:
        made["title"] = name(rng)
    for _ in range(rng.randrange(4)):
        made[name(rng)] = value(rng)
    if rng.random() < 0.25:
        made[rng.choice(("id", "title", "text", "source", "metadata", "headings", 7))] = value(rng)
    return made


def where(rng: random.Random) -> Any:
    """A filter."""
    if rng.random() < 0.05:
        return rng.choice(("id=1", 7, [], [("a", 1)], {"": 1}, {1: 2}, {None: 1}))
    keys = ("lang", "year", "tags", "id", "title", "source", "a.b.c", ".", "..", "a.", "a" + ".a" * 2000)
    return {rng.choice((*keys, name(rng))): value(rng) for _ in range(rng.randrange(1, 4))}


def json_bytes(rng: random.Random) -> bytes:
    """JSON, or nearly."""
    deep = rng.choice((10, 70, 1000, 100_000))
    makers: tuple[Callable[[], str], ...] = (
        lambda: "[" * deep + "]" * deep,
        lambda: '{"a":' * deep + "1" + "}" * deep,
        lambda: '{"text": "Ada Lovelace.", "meta": ' + "[" * deep + "]" * deep + "}",
        lambda: (
            '{"text": "Ada", "n": '
            + rng.choice(("1e999", "-1e999", "NaN", "Infinity", "-Infinity", "1" * 5000, "1e-999"))
            + "}"
        ),
        lambda: '{"text": "a", "text": "b", "id": "x", "id": "y"}',
        lambda: '{"text": "a", "m": {"k": 1, "k": 2}}',
        lambda: '{"text": "half \\ud800 pair", "id": "\\udfff"}',
        lambda: '{"text": "nul \\u0000 here", "\\u0000": 1}',
        lambda: "[" + ",".join(rng.choice(("1", "null", "[]", "{}", '"x"')) for _ in range(200)) + "]",
        lambda: "[]" * rng.randrange(3),
        lambda: '{"text": ' + rng.choice(("null", "1", "[]", "{}", "true", '""', '" "')) + "}",
        lambda: json.dumps([loosely(record(rng)) for _ in range(rng.randrange(4))]),
        lambda: json.dumps(loosely(record(rng))) + rng.choice(("", "x", "}", "\n\n", "\0")),
        lambda: "\n".join(json.dumps(loosely(record(rng)), ensure_ascii=False) for _ in range(rng.randrange(5))),
        lambda: "x\n" * rng.choice((1, 50, 3000)),
        lambda: '{"text": "' + text(rng) + '"}',
        lambda: '{"ecphory_export": 1, "documents": 1}\n{}',
    )
    return soiled(rng, rng.choice(makers)().encode("utf-8", "surrogatepass"))


def loosely(given: Any, depth: int = 0) -> Any:
    """The value with what `json` cannot write at all made texts; NaN and lone surrogates stay."""
    if depth > 80:
        return "deep"
    if isinstance(given, dict):
        return {str(key): loosely(item, depth + 1) for key, item in given.items()}
    if isinstance(given, list | tuple):
        return [loosely(item, depth + 1) for item in given]
    if isinstance(given, int) and given.bit_length() > 8000:
        return given % 10**400
    return given if given is None or isinstance(given, str | int | float) else str(given)


def soiled(rng: random.Random, data: bytes) -> bytes:
    """The bytes as they are, or in another encoding, cut, or with some that make no character."""
    kind = rng.randrange(12)
    if kind == 0:
        return (
            rng.choice((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF32_BE, b"\xff\xfe\0\0", b"\xef\xbb")) + data
        )
    if kind == 1:
        encoding = rng.choice(("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig"))
        return data.decode("utf-8", "replace").encode(encoding, "surrogatepass")
    if kind == 2:
        return data[: rng.randrange(len(data) + 1)]
    if kind in {3, 4} and data:
        broken = bytearray(data)
        for _ in range(rng.choice((1, 1, 5, 100))):
            broken[rng.randrange(len(broken))] = rng.randrange(256)
        return bytes(broken)
    if kind == 5:
        return data.replace(b"\n", rng.choice((b"\r", b"\r\n", b"\n\r", b"\0", b"\x85")))
    return data


def markdown(rng: random.Random) -> str:
    """Markdown that is hard on parsers."""
    many = rng.choice((1, 10, 200, 3000))
    return rng.choice(
        (
            "---\n" + "a: [" * many + "\n---\nText of Ada.",
            "---\n" + "".join(f"k{at}: {text(rng, 10)}\n" for at in range(min(many, 200))) + "---\n# T\nText of Ada.",
            "---\ntitle: " + text(rng) + "\n---\nAda.",
            "> " * many + "Ada Lovelace",
            "- " * many + "Ada",
            "  " * many + "- Ada",
            "".join(" " * at + "- a\n" for at in range(min(many, 300))),
            "[" * many + "a" + "](b)" * many,
            "# " + text(rng) + "\n\n" + text(rng),
            "#" * many + " Ada\n" + "=" * many,
            "Ada\n" + "=" * many + "\n" + "-" * many,
            "`" * many + " Ada " + "`" * (many + 1),
            "<div>" * many + "Ada",
            "[a]: <" + "b" * many,
            "|a|" * many + "\n" + "|-|" * many,
            "1. " * many + "Ada",
            "***a" * many,
        )
    )


def bomb() -> bytes:
    """A ZIP archive that would grow a thousandfold."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", b"\0" * 2**20)
        archive.writestr("../../escaped.txt", b"x")
    return made.getvalue()


ZIP_BOMB = bomb()
XML_BOMB = (
    '<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a0 "ha">'
    + "".join(f'<!ENTITY a{at} "{f"&a{at - 1};" * 10}">' for at in range(1, 12))
    + '<!ENTITY x SYSTEM "file:///etc/passwd">]><l>&a11;&x;</l>'
).encode()


def content(rng: random.Random) -> bytes:
    """What a file holds."""
    kind = rng.randrange(8)
    if kind == 0:
        return rng.choice(
            (ZIP_BOMB, XML_BOMB, b"", b"\0" * 100, b"%PDF-1.7\n", b"\x1f\x8b\x08", b"\xff" * 50, b"SQLite format 3\0")
        )
    if kind == 1:
        return rng.randbytes(size(rng))
    if kind in {2, 3}:
        return json_bytes(rng)
    if kind == 4:
        return soiled(rng, markdown(rng).encode("utf-8", "surrogatepass"))
    return soiled(rng, text(rng).encode("utf-8", "surrogatepass"))


def file_name(rng: random.Random) -> bytes:
    """A name that the file system takes."""
    stem = rng.choice(
        (
            b"a",
            b"doc",
            b"\xff\xfe",
            b"\x1b[31mred",
            b"two\nlines",
            b"-rf",
            b"--json",
            b"*",
            b"[x]",
            b"'; --",
            b" ",
            b"~",
        )
    )
    if rng.random() < 0.3:
        stem = rng.choice((*WINDOWS_NAMES, *BIDI, *SCRIPTS)).encode("utf-8", "surrogatepass")
    return stem[:200] + rng.choice(SUFFIXES).encode()


GITIGNORES = (
    b"*a*a*a*a*a*a*a*a*a*a*b\n",
    b"**/a/**/a/**/a/**/a/**/a/**/b\n",
    b"[z-a]\n[\n\\\n!\n/\n**\n*\n",
    b"\xff\xfe\n\0\n",
    b"!*\n*\n!*\n" * 20,
    b"a" * 100_000,
    b"x\n" * 500,
    b"[[:alpha:]]\n[!a-\\]]*\n(?P<x>a)\n(a+)+$\n",
)


def tree(rng: random.Random, folder: Path) -> None:
    """Fill a folder: files, pipes, sockets, links in rings and to devices, and rules that take long."""
    folder.mkdir(parents=True)
    for _ in range(rng.randrange(1, 5)):
        below = folder / rng.choice(("", "", "sub", ".hidden", "deep/er/still"))
        below.mkdir(parents=True, exist_ok=True)
        path = os.fsencode(below) + b"/" + file_name(rng)
        if not os.path.lexists(path):
            Path(os.fsdecode(path)).write_bytes(content(rng))
    extras: tuple[tuple[str, Callable[[Path], object]], ...] = (
        ("pipe.txt", os.mkfifo),
        ("socket.txt", _socket),
        ("ring", lambda at: at.symlink_to("ring")),
        ("up", lambda at: at.symlink_to("..")),
        ("zero.txt", lambda at: at.symlink_to("/dev/zero")),
        ("passwd.txt", lambda at: at.symlink_to("/etc/passwd")),
        ("dangling.md", lambda at: at.symlink_to("nowhere")),
        (".gitignore", lambda at: at.write_bytes(rng.choice(GITIGNORES))),
        (".gitignore", lambda at: at.write_bytes(rng.choice(GITIGNORES))),
        (".gitignore", lambda at: at.symlink_to("/dev/zero")),
        (".gitignore", os.mkfifo),
        ("a" * 250, lambda at: at.write_text("Ada Lovelace.")),
        ("/".join(["aa"] * 60), lambda at: at.mkdir(parents=True)),
        (".git", lambda at: at.write_bytes(b"gitdir: /etc")),
        ("x.ecphory", lambda at: at.write_bytes(b"SQLite format 3\0")),
        ("big.txt", lambda at: at.write_bytes(b"Ada Lovelace. " * 30_000)),
    )
    for name, make in rng.sample(extras, rng.randrange(5)):
        if not os.path.lexists(folder / name):
            make(folder / name)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made, _within(path.parent):
        made.bind(path.name)


class _within:  # noqa: N801 - as contextlib.chdir
    """Another working folder for a moment: the path of a socket may have only about a hundred bytes."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._before = folder, Path.cwd()

    def __enter__(self) -> None:
        os.chdir(self._folder)

    def __exit__(self, *_: object) -> None:
        os.chdir(self._before)
