"""The token estimate and the segmentation for the lexical index."""

from __future__ import annotations

from pathlib import Path

import pytest

from ecphoryrag.text.terms import segment
from ecphoryrag.text.tokens import count_tokens, fitting

TEXTS = {
    "English": "Bouin solution is a compound fixative used in histology. It is composed of picric acid.",
    "names": "Pedro Jacobo Contreras (born October 10, 1955) is a Mexican wrestler known as Cachorro Mendoza.",
    "German": "Die Bundesrepublik Deutschland ist ein föderal verfasster Staat, dessen Hauptstadt Berlin ist.",
    "Russian": "Москва является столицей России и крупнейшим по численности населения городом страны.",
    "Chinese": "北京大学是中国近代第一所国立综合性大学，创立于1898年，初名京师大学堂。",
    "Japanese": "東京は日本の首都であり、世界最大の都市の一つである。",
    "Korean": "서울은 대한민국의 수도이자 최대 도시이다. 한강을 끼고 있으며 많은 사람이 산다.",
    "Arabic": "القاهرة هي عاصمة جمهورية مصر العربية وأكبر مدنها من حيث عدد السكان والمساحة.",
    "Hindi": "दिल्ली भारत की राजधानी है और यहाँ बहुत सारे लोग रहते हैं।",
    "Thai": "กรุงเทพมหานครเป็นเมืองหลวงและนครที่มีประชากรมากที่สุดของประเทศไทย",
    "code": "def name_key(text: str) -> list[int]:\n    return [x for x in range(10) if x_y > 0x1F]",
}


@pytest.mark.parametrize("language", TEXTS)
def test_the_estimate_is_near_the_count_of_a_real_tokenizer(language: str) -> None:
    wordllama = pytest.importorskip("wordllama")
    tokenizers = pytest.importorskip("tokenizers")
    file = Path(wordllama.__file__).parent / "tokenizers" / "l2_supercat_tokenizer_config.json"
    tokenizer = tokenizers.Tokenizer.from_file(str(file))
    tokenizer.no_padding()
    real = len(tokenizer.encode(TEXTS[language], add_special_tokens=False).ids)
    assert 0.75 * real <= count_tokens(TEXTS[language]) <= 1.35 * real


def test_fitting_is_the_longest_beginning_within_the_budget() -> None:
    for text in TEXTS.values():
        for budget in (1, 3, 7, 1000):
            stop = fitting(text, 2, len(text), budget)
            assert count_tokens(text[2:stop]) <= budget
            assert stop == len(text) or count_tokens(text[2 : stop + 1]) > budget


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Arthur's Magazine", "Arthur Magazine"),
        ("He didn't, L’Oréal", "He didnt, L Oreal"),
        ("東京都", "東京 京都 東 京 都"),
        ("カタカナ", "カタ タカ カナ"),
        ("서울에서 산다", "서울 울에 에서 산다"),
        ("猫 x", "猫 x"),
        ("हिन्दी भाषा", "हिन्दी भाषा"),
        ("Ｆｕｌｌ Zürich", "Full Zurich"),
        ("ไทย", "ไท ทย"),
    ],
)
def test_segment(text: str, terms: str) -> None:
    assert segment(text).split() == terms.split()


def test_a_part_of_an_unspaced_word_shares_its_terms() -> None:
    assert set(segment("北京大学").split()) <= set(segment("他在北京大学读书。").split())
