"""Dates, and numbers that have a unit."""

from __future__ import annotations

import re
from functools import cache

from ecphoryrag.text.names import Span

_MONTHS = (
    "January|February|March|April|May|June|July|August|September|October|November|December"
    "|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec"
    "|Januar|Jänner|Februar|März|Mai|Juni|Juli|Oktober|Dezember"
    "|janvier|février|mars|avril|mai|juin|juillet|août|septembre|octobre|novembre|décembre"
    "|enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre"
    "|gennaio|febbraio|aprile|maggio|giugno|luglio|settembre|ottobre|dicembre"
    "|janeiro|fevereiro|março|maio|junho|julho|setembro|outubro|novembro|dezembro"
    "|января|февраля|марта|апреля|мая|июня|июля|августа|сентября|октября|ноября|декабря"
)
_YEAR = r"(?:1[0-9]{3}|20[0-9]{2})"
_UNITS = (
    "%|‰|percent|per cent|km²|km2|km/h|km|cm|mm|nm|µm|m²|m|mi|miles?|feet|foot|ft|inch(?:es)?|yards?"
    "|acres?|hectares?|ha|kg|mg|µg|g|tonnes?|tons?|pounds?|lbs?|oz|ounces?|litres?|liters?|ml|L|gallons?"
    "|barrels?|°C|°F|degrees?|K|Hz|kHz|MHz|GHz|kWh|kW|MW|GW|W|volts?|V|mA|bits?|bytes?|KB|kB|MB|GB|TB|KiB"
    "|MiB|GiB|ms|seconds?|minutes?|hours?|days?|weeks?|months?|years?|km/s|m/s|mph|knots?|rpm|dB|pH|mol"
    "|mmol|Pa|kPa|bar|ppm|dollars?|euros?|USD|EUR|GBP|people|inhabitants|residents|seats|episodes|tokens"
    "|Kilometer|Meter|Einwohner|Prozent"
)
_SCALE = "thousand|million|billion|trillion|Millionen|Milliarden|millions|milliards|millones|bn|万|億|亿"


_DIGITS = re.compile("[0-9]+")
_MONTH_FIRST = re.compile(r"[JFMASONDÄÉ][a-zäéûôç]{2,9}\.?\s+(?:de\s+)?(?=[0-9])")
_CURRENCIES = "$€£¥₹"
_GLUED = re.compile(r"[\w.,/-]")
"""Before a number: it is the tail of something longer."""


@cache
def _date() -> re.Pattern[str]:
    """A date that begins with its digits."""
    day = r"[0-9]{1,2}(?:st|nd|rd|th|er|\.)?"
    return re.compile(
        rf"(?:{day}\s+(?:of\s+|de\s+)?(?:{_MONTHS})\b\.?(?:,?\s+(?:de\s+|of\s+)?[0-9]{{3,4}})?"
        r"|[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9]{2}:[0-9]{2}(?::[0-9]{2})?Z?)?|[0-9]{1,2}[./][0-9]{1,2}[./][0-9]{4}"
        rf"|[0-9]{{1,4}}\s?(?:BCE|BC|CE|AD|v\.\s?Chr\.|n\.\s?Chr\.)|{_YEAR}s|[0-9]{{1,2}}(?:st|nd|rd|th)\s+century"
        rf"|{_YEAR}(?![.,][0-9])(?![-\s]?(?:{_UNITS})\b)(?=[\s,;:)\].–—?!\"'”’-]|$)"
        r")(?!\w)|[0-9]{2,4}\s?[年년](?:\s?[0-9]{1,2}\s?[月월](?:\s?[0-9]{1,2}\s?[日일])?)?"
    )


@cache
def _month_date() -> re.Pattern[str]:
    return re.compile(
        rf"(?:{_MONTHS})\b\.?\s+(?:[0-9]{{1,2}}(?:st|nd|rd|th)?(?:,?\s+[0-9]{{4}})?|(?:de\s+)?[0-9]{{4}})(?!\w)"
    )


@cache
def _amount() -> re.Pattern[str]:
    """A number with a unit, from its digits on."""
    number = r"[0-9]+(?:[.,][0-9]+)*"
    return re.compile(rf"{number}(?:\s?(?:{_SCALE})(?:\s(?:{_UNITS}))?|[\s-]?(?:{_UNITS}))(?!\w)")


_MONEY = re.compile(rf"[0-9]+(?:[.,][0-9]+)*(?:\s?(?:{_SCALE})\b)?")


def find_numbers(text: str) -> list[Span]:
    """Dates (days, months with a day or year, years, decades, centuries) and numbers with a unit or a currency.

    The commonest European and East Asian ways of writing them.
    """
    found: list[Span] = []
    taken = 0
    starts = [(match.start(), False) for match in _DIGITS.finditer(text)]
    if not starts:
        return found
    starts += [(match.start(), True) for match in _MONTH_FIRST.finditer(text)]
    for start, month in sorted(starts):
        span = None if start < taken else _number(text, start, month)
        if span is not None:
            found.append(span)
            taken = span.end
    return found


def _number(text: str, start: int, month: bool) -> Span | None:  # noqa: FBT001 (a private step of the loop above)
    before = text[start - 1 : start]
    if month:
        match = None if before.isalnum() else _month_date().match(text, start)
        return Span(start, match.end(), "date") if match else None
    if before and before in _CURRENCIES:
        match = _MONEY.match(text, start)
        return Span(start - 1, match.end(), "number") if match else None
    if before and before.isascii() and _GLUED.match(before):
        return None
    match = _date().match(text, start)
    if match:
        return Span(start, match.end(), "date")
    match = _amount().match(text, start)
    return Span(start, match.end(), "number") if match else None
