"""Bytes of files as text. Special files are never opened, and nothing larger than the limit is read."""

from __future__ import annotations

import codecs
import os
import stat
from pathlib import Path, PurePath
from typing import BinaryIO

from ecphoryrag.errors import InputError, UnsupportedFormat

_BY_SUFFIX = {
    ".pdf": "PDF",
    **dict.fromkeys((".docx", ".doc", ".docm", ".odt", ".rtf", ".pages"), "word-processor document"),
    **dict.fromkeys((".html", ".htm", ".xhtml", ".mhtml"), "HTML"),
    **dict.fromkeys((".pptx", ".ppt", ".odp", ".key"), "presentation"),
    **dict.fromkeys((".xlsx", ".xls", ".ods", ".numbers", ".parquet", ".feather"), "table"),
    **dict.fromkeys((".epub", ".mobi", ".azw3", ".djvu", ".ps"), "e-book or print file"),
    **dict.fromkeys((".eml", ".msg", ".mbox"), "mail"),
    ".ipynb": "Jupyter notebook",
    **dict.fromkeys((".png", ".jpg", ".jpeg", ".gif", ".webp", ".tif", ".tiff", ".bmp", ".ico", ".svg"), "image"),
    **dict.fromkeys(
        (".mp3", ".wav", ".flac", ".ogg", ".m4a", ".mp4", ".mkv", ".mov", ".avi", ".webm"), "audio or video"
    ),
    **dict.fromkeys((".zip", ".gz", ".tgz", ".bz2", ".xz", ".zst", ".7z", ".tar", ".rar", ".jar", ".whl"), "archive"),
    **dict.fromkeys((".sqlite", ".sqlite3", ".db"), "database"),
    **dict.fromkeys((".exe", ".dll", ".so", ".dylib", ".o", ".a", ".class", ".pyc", ".wasm"), "program"),
    **dict.fromkeys((".npy", ".npz", ".pt", ".onnx", ".gguf", ".safetensors", ".pkl"), "arrays or model weights"),
    **dict.fromkeys((".ttf", ".otf", ".woff", ".woff2"), "font"),
}
_EXACT = {
    ".docx": "DOCX",
    ".doc": "DOC",
    ".odt": "ODT",
    ".rtf": "RTF",
    ".epub": "EPUB",
    ".pptx": "PPTX",
    ".xlsx": "XLSX",
}
_BY_MAGIC = (
    (b"%PDF-", "PDF"),
    (b"PK\x03\x04", "ZIP archive or office document"),
    (b"SQLite format 3\0", "SQLite database"),
    (b"\x1f\x8b", "gzip archive"),
    (b"\x89PNG\r\n", "PNG image"),
    (b"\xff\xd8\xff", "JPEG image"),
    (b"\x7fELF", "program"),
)
_BOMS = (
    # UTF-32 before UTF-16: the little-endian mark of the one begins with that of the other.
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def shown(path: str | PurePath) -> str:
    """The path for people and reports: posix separators, undecodable bytes written out."""
    return os.fsencode(PurePath(path).as_posix()).decode("utf-8", "backslashreplace")


def refuse_by_name(path: PurePath) -> None:
    """Raises UnsupportedFormat for the kinds that are known and not read yet."""
    suffix = path.suffix.lower()
    kind = _EXACT.get(suffix) or _BY_SUFFIX.get(suffix)
    if kind:
        raise unsupported(kind)


def refuse_by_magic(start: bytes) -> None:
    """Raises UnsupportedFormat for what the first bytes give away as a binary kind, whatever its name."""
    for magic, kind in _BY_MAGIC:
        if start.startswith(magic):
            raise unsupported(kind)


def unsupported(kind: str) -> UnsupportedFormat:
    """The error for a known format."""
    return UnsupportedFormat(f"{kind} is not yet supported; convert it to text, Markdown, JSON or JSONL first")


def open_regular(path: Path) -> BinaryIO:
    """The file, opened without following a link or waiting on a pipe. Raises InputError if it cannot be read."""
    # A pipe would block at opening; O_NONBLOCK makes that return, and the check after it refuses the pipe.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        raise cannot_read(error) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise InputError("not a regular file")
    return os.fdopen(descriptor, "rb")


def cannot_read(error: OSError) -> InputError:
    """The system's words for a failed reading, as an error of the input."""
    return InputError(f"cannot be read: {error.strerror or error}")


def read_bounded(file: BinaryIO, limit: int) -> bytes:
    """All of the file. Raises InputError if it holds more than ``limit`` bytes or cannot be read."""
    try:
        data = file.read(limit + 1)
    except OSError as error:
        raise cannot_read(error) from error
    if len(data) > limit:
        raise too_large(limit)
    return data


def too_large(limit: int) -> InputError:
    """The error for what is over the limit."""
    return InputError(
        f"too large: more than the {limit:,} bytes that the setting indexing.max_file_bytes allows; "
        "split it or raise the setting"
    )


def wide_encoding(start: bytes) -> str | None:
    """The encoding that a byte order mark other than UTF-8's announces."""
    return next((name for bom, name in _BOMS if start.startswith(bom) and name != "utf-8"), None)


def decode(data: bytes) -> str:
    """The text: UTF-8, or what a byte order mark announces; the mark removed, line ends as ``\\n``.

    Line ends are unified as Python's text mode does, so that offsets are those of ``path.read_text()`` and a checkout
    on another system is the same content. Raises InputError if it is not text.
    """
    refuse_by_magic(data)
    bom, encoding = next(((bom, name) for bom, name in _BOMS if data.startswith(bom)), (b"", "utf-8"))
    if encoding == "utf-8" and b"\0" in data:
        raise InputError("binary, or UTF-16 without a byte order mark: it holds NUL bytes; save it as UTF-8")
    try:
        text = data[len(bom) :].decode(encoding)
    except UnicodeDecodeError as error:
        name = encoding.upper().removesuffix("-LE").removesuffix("-BE")
        at = error.start + len(bom)
        raise InputError(f"not valid {name}: the bytes at offset {at} make no character; save it as UTF-8") from error
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
