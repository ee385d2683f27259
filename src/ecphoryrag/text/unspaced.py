"""Salient terms of scripts without capitals and without spaces between words: Chinese, Japanese, Thai and kin; Korean.

No dictionary: signs that only do grammar part the text, and what lies between, or is repeated, is taken for a term.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

from ecphoryrag.text.names import Span
from ecphoryrag.text.scripts import HAN, HANGUL, HIRAGANA, KATAKANA, SOUTHEAST_ASIAN, marks
from ecphoryrag.text.wordlists import word_set

_HAN_STOPS = (
    "的了在是和与與及或被把对對从從到于於由这這那其有为為也就都而等之以並并但且如所则則很更最又再将將向让"
    "讓给給他她它们們我你您该該此每各某吗嗎呢吧啊着過过来來去不沒没還还個个位名次種种"
)
_HAN_LONGEST = 6
"""A stretch of Han characters up to this long is one term; longer ones are known only by what they repeat."""
_KATAKANA = re.compile(f"[{KATAKANA}]{{2,}}(?:[・＝][{KATAKANA}]+)*")
_JAPANESE = re.compile(f"[{HIRAGANA}]")
_REPEATED_LONGEST = 10
_HANGUL_WORD = re.compile(f"[{HANGUL}]{{2,}}")
_KOREAN_PARTICLES = tuple(
    sorted(
        word_set(
            "으로부터 에서부터 이라고 이라는 에서는 에서도 에게서 으로써 으로서 이었다 입니다 이라 라고 라는 에서 에게"
            " 한테 께서 부터 까지 처럼 보다 으로 이며 이고 이다"
            " 로서 로써 에는 에도 와의 과의 의 은 는 이 가 을 를 에 로"
            " 와 과 도 만 나 야"
        ),
        key=lambda particle: (-len(particle), particle),
    )
)
"""The longest first: a short one may be the end of a longer one."""
_KOREAN_VERBAL = re.compile(
    "(?:하였|했|되었|됐|있|없|하는|되는|하고|하며|하여|되어|했다|한다|된다|이다|였다|다|며|고|게|지|던|는데|어서|아서)$"
)
_KOREAN_STOPS = word_set(
    "그리고 그러나 하지만 또한 그는 그의 그녀 이것 저것 그것 우리"
    " 여기 모든 많은 다른 같은 가장 매우 대한 위한 통해 위해 때문"
    " 당시 이후 이전 현재 경우 정도"
)
_SHORT_STEM = 2
_SEA_STOPS = re.compile(
    "ที่สุด|ที่|และ|ของ|เป็น|ได้|ซึ่ง|หรือ|โดย|จาก|กับ|แห่ง|ใน|ว่า|คือ|เมื่อ|ระหว่าง|สำหรับ|เพราะ|แต่|ไม่|มี|นี้|นั้น"
    "|ແລະ|ຂອງ|ເປັນ|ໃນ|និង|នៃ|ជា|នៅ|ដែល"
)
_SEA_SHORTEST, _SEA_LONGEST = 3, 24


def find_unspaced(text: str) -> list[Span]:
    """Candidate terms of the whole text, overlapping ones included."""
    found = [Span(match.start(), match.end(), "name") for match in _KATAKANA.finditer(text)]
    found += _han(text)
    found += _korean(text)
    found += _southeast_asian(text)
    return found


@cache
def _han_piece(stops: str) -> re.Pattern[str]:
    return re.compile(f"(?:(?![{stops}])[{HAN}])+" if stops else f"[{HAN}]+")


def _han(text: str) -> list[Span]:
    pieces = [
        match.span()
        for match in _han_piece("" if _JAPANESE.search(text) else _HAN_STOPS).finditer(text)
        if match.end() - match.start() > 1
    ]
    found = [Span(start, end, "term") for start, end in pieces if end - start <= _HAN_LONGEST]
    return found + _repeated(text, pieces, "term")


def _repeated(text: str, pieces: list[tuple[int, int]], kind: str, shortest: int = 2) -> list[Span]:
    """Stretches inside the pieces that occur more than once, if no longer stretch around them does as often."""
    counts: Counter[str] = Counter()
    for start, end in pieces:
        for first in range(start, end):
            counts.update(text[first:last] for last in range(first + shortest, min(end, first + _REPEATED_LONGEST) + 1))
    often = {stretch for stretch, count in counts.items() if count > 1}
    inner = {part for stretch in often for part in (stretch[:-1], stretch[1:]) if counts[part] == counts[stretch]}
    kept = often - inner
    found = []
    for start, end in pieces:
        for first in range(start, end):
            for last in range(first + shortest, min(end, first + _REPEATED_LONGEST) + 1):
                if text[first:last] in kept and (first, last) != (start, end):
                    found.append(Span(first, last, kind))
    return found


def _korean(text: str) -> list[Span]:
    found = []
    for match in _HANGUL_WORD.finditer(text):
        word = match[0]
        stem = _stem(word)
        if len(stem) >= _SHORT_STEM and stem not in _KOREAN_STOPS and not _KOREAN_VERBAL.search(stem):
            found.append(Span(match.start(), match.start() + len(stem), "term"))
    return found


def _stem(word: str) -> str:
    """The word less its particle; a verb, known by its ending, gives the empty stem."""
    for particle in _KOREAN_PARTICLES:
        if word.endswith(particle) and len(word) - len(particle) >= _SHORT_STEM:
            return word[: -len(particle)]
    return "" if _KOREAN_VERBAL.search(word) else word


@cache
def _sea_run() -> re.Pattern[str]:
    return re.compile(f"[{SOUTHEAST_ASIAN}][{SOUTHEAST_ASIAN}{marks()}]*")


def _southeast_asian(text: str) -> list[Span]:
    pieces = []
    for run in _sea_run().finditer(text):
        start = run.start()
        for stop in _SEA_STOPS.finditer(text, run.start(), run.end()):
            pieces.append((start, stop.start()))
            start = stop.end()
        pieces.append((start, run.end()))
    return [Span(start, end, "term") for start, end in pieces if _SEA_SHORTEST <= end - start <= _SEA_LONGEST]
