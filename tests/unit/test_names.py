"""The extractor ``names`` on examples of every class, script and way to say what a text is about."""

from __future__ import annotations

import time

import pytest

from ecphoryrag.models.names import NamesExtractor
from ecphoryrag.settings import ChunkSettings
from ecphoryrag.text.chunking import chunk_document
from ecphoryrag.types import Chunk, Document, Extraction, Heading, Mention


def extract(text: str, title: str = "") -> Extraction:
    document = Document("d", text, title)
    return NamesExtractor().extract(document, [Chunk("d", 0, text, 0, len(text))])[0]


def found(text: str, title: str = "") -> dict[str, Mention]:
    return {mention.name: mention for mention in reversed(extract(text, title).mentions)}


def subjects(text: str) -> list[str]:
    return [mention.key for mention in extract(text).mentions if mention.about == "subject"]


def aliases(text: str, title: str = "") -> set[frozenset[str]]:
    return {frozenset(pair) for pair in extract(text, title).aliases}


@pytest.mark.parametrize(
    ("text", "name", "kind"),
    [
        ("He met Ada Lovelace in London.", "Ada Lovelace", "name"),
        ("It lies in the Democratic Republic of the Congo.", "Democratic Republic of the Congo", "name"),
        ("It lies in the Democratic Republic of the Congo.", "Congo", "name"),
        ('He made the film" Count to Ten" in Rome.', "Count to Ten", "quoted"),
        ("Sung as ``Never Say Never ''by him.", "Never Say Never", "quoted"),
        ("他写了《红楼梦》。", "红楼梦", "title"),
        ("She worked for NASA then.", "NASA", "acronym"),
        ("He was born on 28 June 1899.", "28 June 1899", "date"),
        ("It opened on May 5, 2001.", "May 5, 2001", "date"),
        ("Er starb am 3. Oktober 1990.", "3. Oktober 1990", "date"),
        ("成立于1898年5月4日。", "1898年5月4日", "date"),
        ("It weighs 12.5 kg in all.", "12.5 kg", "number"),
        ("It cost $5.5 million then.", "$5.5 million", "number"),
        ("call max_tokens first", "max_tokens", "identifier"),
        ("see os.path.join for it", "os.path.join", "identifier"),
        ("set the camelCase name", "camelCase", "identifier"),
        ("as ISO 8601 says", "ISO 8601", "identifier"),
        ("it is C6H12O6 then", "C6H12O6", "identifier"),
        ("write to a.b@example.org now", "a.b@example.org", "identifier"),
        ("go to https://example.org/a?b=1.", "https://example.org/a?b=1", "identifier"),
        ("in /usr/local/bin there", "/usr/local/bin", "identifier"),
        ("since v2.3.1 only", "v2.3.1", "identifier"),
        ("アレクサンダー大王はマケドニアの王であった。", "マケドニア", "name"),
        ("夏目漱石は小説を書いた。", "夏目漱石", "term"),
        ("蔡元培是北京大学的校长。", "北京大学", "term"),
        ("蔡元培担任北京大学校长职务。北京大学图书馆开放时间。", "北京大学", "term"),
        ("세종대왕은 한글을 창제하였다.", "세종대왕", "term"),
        ("กรุงเทพมหานครเป็นเมืองหลวงของประเทศไทย", "กรุงเทพมหานคร", "term"),
        ("القاهرة هي عاصمة مصر. تقع القاهرة على نهر النيل.", "القاهرة", "term"),
        ("महात्मा गांधी का जन्म पोरबंदर में हुआ था।", "महात्मा गांधी", "term"),
        ("it has a garbage collector. they stop the garbage collector.", "garbage collector", "term"),
    ],
)
def test_classes_and_scripts(text: str, name: str, kind: str) -> None:
    assert found(text)[name].type == kind


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("However the dog barked. Dogs bark. The bark was loud and dogs ran.", "Dogs"),
        ("During the war he left.", "During"),
        ("He left in the U.S. Army then.", "He"),
        ('"Yes," he said.', "Yes,"),
        ("It opened on May 5, 2001.", "May"),
        ("It opened on May 5, 2001.", "May 5"),
    ],
)
def test_a_capital_alone_makes_no_name(text: str, name: str) -> None:
    assert name not in found(text) or found(text)[name].type == "term"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("Oscar Barney Finn( born 28 October 1938) is an Argentine director.", "oscar barney finn"),
        ("The Foo Bar is a pub.", "foo bar"),
        ('"Never Say Never" is a song.', "never say never"),
        ("Born in Paris, France, Jean Dupont was a painter.", "jean dupont"),
        ("In 1990, the Foo Corporation was founded.", "foo corporation"),
        ("Bouin solution is a fixative.", "bouin solution"),
        ("Photosynthesis is a process.", "photosynthesis"),
        ("His Last Haul is a 1928 film.", "his last haul"),
        ("Springfield, Illinois is a city.", "springfield illinois"),
        ("James Knott, 1st Baronet (1855 – 1934) was a magnate.", "james knott 1st baronet"),
        ("James Knott, 1st Baronet (1855 – 1934) was a magnate.", "james knott"),
        ("The annual Foo Bar Tournament, also known as Qualifying School, was held.", "foo bar tournament"),
        ("Dai Jitao or Tai Chi-t'ao (1891 – 1949) was a journalist.", "tai chi t ao"),
        ("James Miller (1915 – 1989), better known by his stage name Ewan MacColl, was a singer.", "ewan maccoll"),
    ],
)
def test_the_subject_of_the_first_sentence_is_what_the_text_is_about(text: str, key: str) -> None:
    assert key in subjects(text)


@pytest.mark.parametrize("text", ["It is so.", "He was a painter.", "The film was long.", "There are two."])
def test_a_pronoun_or_one_common_noun_is_no_subject(text: str) -> None:
    assert subjects(text) == []


def test_where_the_subject_is_no_name_the_first_name_of_the_sentence_stands_for_it() -> None:
    assert subjects("In 1983, the name changed from Stewart Coffee to Best Coffee.") == ["stewart coffee"]
    assert [m.key for m in extract("It lies in Cumbria.", title="Lake District").mentions if m.about] == [
        "lake district"
    ]


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ('Henry Seymour" Atty" Persse( 1869 – 1960) was a trainer.', {"henry seymour atty persse", "atty persse"}),
        ("John Albert Smith (born 1950) is a poet.", {"john albert smith", "john smith"}),
        ("Charles W. Cullen is a nurse.", {"charles w cullen", "charles cullen"}),
        ("Jan van der Berg Smith (1900 – 1980) was born.", {"jan van der berg smith", "jan smith"}),
        (
            "Jerome Bailey York (born 1938), commonly known as Jerry York, was a chairman.",
            {"jerome bailey york", "jerry york"},
        ),
        ("They use magnetic resonance imaging (MRI) daily.", {"magnetic resonance imaging", "mri"}),
        ("Rochester is a city in Cedar County, Iowa.", {"rochester", "rochester iowa"}),
        ("Albert (1338 – 1412) was King of Sweden.", {"albert", "albert king of sweden"}),
    ],
)
def test_aliases_that_the_text_gives(text: str, pair: set[str]) -> None:
    assert frozenset(pair) in aliases(text)


def test_a_title_and_a_subject_of_the_same_family_are_aliases() -> None:
    assert frozenset({"atty persse", "henry persse"}) in aliases("Henry Persse was a trainer.", title="Atty Persse")
    assert aliases("Jane Doe was a trainer.", title="Atty Persse") == set()


def test_every_chunk_of_a_document_mentions_its_title_in_the_title() -> None:
    document = Document("d", "One thing is said here. " * 40, title=" Monster Truck (band) ")
    chunks = chunk_document(document, ChunkSettings(budget=40, overlap=0))
    extractions = NamesExtractor().extract(document, chunks)
    assert len(extractions) == len(chunks) > 2
    for extraction in extractions:
        (mention,) = [one for one in extraction.mentions if one.field == "title"]
        assert (mention.name, mention.key) == ("Monster Truck (band)", "monster truck")
        assert (mention.about, mention.importance) == ("title", 5)
        assert document.title[mention.start : mention.end] == mention.name


def test_a_heading_over_the_chunk_is_what_it_is_about_wherever_it_stands() -> None:
    text = "## 2.1 Blue Whale\n\n" + "He said a thing of some length here. " * 12
    heading = Heading(2, "2.1 Blue Whale", 3, 17)
    document = Document("d", text, headings=(heading,))
    chunks = chunk_document(document, ChunkSettings(budget=40, overlap=0))
    assert len(chunks) > 1
    for extraction in NamesExtractor().extract(document, chunks):
        (mention,) = [one for one in extraction.mentions if one.about == "heading"]
        assert (mention.key, text[mention.start : mention.end]) == ("blue whale", "Blue Whale")


def test_a_heading_that_names_a_kind_of_section_is_no_entity() -> None:
    document = Document("d", "# References\n\nhe said so.", headings=(Heading(1, "References", 2, 12),))
    chunks = chunk_document(document, ChunkSettings())
    assert not [one for one in NamesExtractor().extract(document, chunks)[0].mentions if one.about]


def test_the_most_repeated_name_is_what_a_text_without_subject_is_about() -> None:
    mentions = extract("He came. She left with Ulta and Foo. They like Ulta.").mentions
    assert {mention.key for mention in mentions if mention.about == "frequent"} == {"ulta"}


def test_the_first_mention_alone_is_described_by_the_sentence_that_defines() -> None:
    text = "He met Ada Lovelace. Ada Lovelace was a mathematician. Ada Lovelace died."
    descriptions = [mention.description for mention in extract(text).mentions if mention.key == "ada lovelace"]
    assert descriptions == ["Ada Lovelace was a mathematician.", "", ""]


def test_in_german_a_noun_after_its_article_weighs_less_than_a_name() -> None:
    text = (
        "Der Bau der Brücke begann im Frühjahr unter der Leitung von Theodor Fischer. Die Kosten für das Werk trug die"
        " Stadt, und der Rat der Gemeinde gab das Geld. Fischer sah die Brücke nie. Das Ufer bei Kelheim ist steil."
    )
    names = found(text)
    assert names["Theodor Fischer"].importance > names["Brücke"].importance
    assert names["Brücke"].type == "term"
    assert names["Kelheim"].type == "name"


def test_a_chunk_without_names_yields_nothing() -> None:
    assert extract("it is so.").mentions == ()
    assert extract("... --- ...") == Extraction()


def test_mentions_stand_in_order_and_each_place_once() -> None:
    mentions = extract("The University of Chicago is in Chicago. It is the University of Chicago.", title="X").mentions
    places = [(one.field != "title", one.start, one.end) for one in mentions]
    assert places == sorted(set(places))


@pytest.mark.parametrize(
    "piece",
    [
        *("A ", '"', "' ", "known as ", "Foo (", "a.b", "_", "((", "1 ", "May 1 ", "北京", "กข", "(AB) ", "`", "/a"),
        *("Foo is ", "x" * 50, "\u0301", "Der Bau ", "«", "born Foo ", "a1", "서울은 "),
    ],
)
def test_time_grows_in_proportion_to_the_length_of_a_chunk(piece: str) -> None:
    def seconds(count: int) -> float:
        text = "Foo " + piece * count + "   " * count + "was here."
        started = time.process_time()
        extract(text)
        return time.process_time() - started

    count = 6_000 // len(piece)
    seconds(count)
    # Quadratic work would take 16 times as long for 4 times the text; the best of two keeps noise out.
    assert min(seconds(4 * count) for _ in range(2)) < 9 * min(seconds(count) for _ in range(2)) + 0.02
