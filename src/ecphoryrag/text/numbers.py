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


@cache
def _dates() -> re.Pattern[str]:
    day = r"\d{1,2}(?:st|nd|rd|th|er|\.)?"
    return re.compile(
        rf"(?<![\w.,/-])(?:"
        rf"{day}\s+(?:of\s+|de\s+)?(?:{_MONTHS})\b\.?(?:,?\s+(?:de\s+|of\s+)?\d{{3,4}})?"
        rf"|(?:{_MONTHS})\b\.?\s+(?:\d{{1,2}}(?:st|nd|rd|th)?(?:,?\s+\d{{4}})?|(?:de\s+)?\d{{4}})"
        rf"|\d{{4}}-\d{{2}}-\d{{2}}(?:T\d{{2}}:\d{{2}}(?::\d{{2}})?Z?)?"
        rf"|\d{{1,2}}[./]\d{{1,2}}[./]\d{{4}}"
        rf"|\d{{1,4}}\s?(?:BCE|BC|CE|AD|v\.\s?Chr\.|n\.\s?Chr\.)"
        rf"|{_YEAR}s|\d{{1,2}}(?:st|nd|rd|th)\s+century"
        rf"|{_YEAR}(?=[\s,;:)\].–—-]|$)(?![.,]\d)(?!\s?(?:{_UNITS})\b)"
        rf")(?![\w])|(?<!\d)\d{{2,4}}\s?[年년](?:\s?\d{{1,2}}\s?[月월](?:\s?\d{{1,2}}\s?[日일])?)?"
    )


@cache
def _amounts() -> re.Pattern[str]:
    number = r"\d+(?:[.,]\d+)*"
    return re.compile(
        rf"(?<![\w.,$€£¥])(?:[$€£¥₹]\s?{number}(?:\s?(?:{_SCALE}))?"
        rf"|{number}\s(?:{_SCALE})(?:\s(?:{_UNITS}))?|{number}[\s-]?(?:{_UNITS}))(?![\w])"
    )


def find_dates(text: str) -> list[Span]:
    """Dates, years, decades, centuries, in the commonest European and East Asian ways to write them."""
    if not any(map(str.isdigit, text)):
        return []
    return [Span(match.start(), match.end(), "date") for match in _dates().finditer(text)]


def find_amounts(text: str) -> list[Span]:
    """Numbers with a unit or currency, and round millions."""
    if not any(map(str.isdigit, text)):
        return []
    return [Span(match.start(), match.end(), "number") for match in _amounts().finditer(text)]
