"""Small closed lists of words."""

from __future__ import annotations

import re


def word_set(words: str) -> frozenset[str]:
    """The words between spaces."""
    return frozenset(words.split())


LINK_WORDS = "of|the|de|la|von|van|da|del|di|and|for|in|on|al|el|le|du|des|y|e|zu|und|der|den|dos|das|bin|ibn|ben|&"
"""Small words inside names, as alternatives of a pattern."""

VERBS = word_set(
    "is was are were has had have refers refer referred means may can could will would became become becomes"
    " describes consists comprises contains includes included occurs occurred takes took began begins made makes"
    " served serves won plays played appears appeared stars starred features featured tells covers covered stands"
    " stood lies flows runs ran operates operated provides provided offers represents represented deals follows"
    " followed received remains remained does did do lived died gives gave held holds came comes went belongs"
    " belong forms formed rises started seems grew moved used wrote worked joined studied attended led owned"
    " founded ist war sind waren wurde wurden bezeichnet est était sont fut es era fue son fueron è sono sono foi"
    " são é"
)
"""Finite verbs that commonly follow the subject of a first sentence."""

NEVER_SUBJECT = word_set(
    "he she it they we you i this that these those there who which what his her its their one two some many most all"
    " both each several here if when while although though because as and but or so however also not no then thus my"
    " our your where how why another other such"
)

SUBJECT_STOPS = re.compile(
    r"\s+(?:along|together|who|which|that|where|also|presented|operating|operated|located|situated|known|called|named"
    r"|based|founded|formed|born|from|at|between|as|by|to|with|in|on|for)\s+(?=[a-z\"])(?!(?:the|a|an)\s+[^\Wa-z])"
)
"""Where a phrase that only qualifies the subject begins."""

HONORIFICS = word_set(
    "mr mrs ms miss dr prof professor sir dame lord lady prince princess king queen emperor empress count"
    " countess duke duchess baron baroness saint st pope rev reverend captain capt general gen colonel col major"
    " admiral president lieutenant lt sergeant sgt corporal brigadier commander commodore judge justice senator"
    " governor second first major-general lieutenant-colonel lieutenant-general brigadier-general sheikh sultan"
    " chief father sister brother grand archduke archduchess infante infanta don dona rabbi imam"
)
"""Titles before a person's name."""

PARTICLES = word_set(
    "de la le von van der den ter ten del della di da dos das du al el bin ibn ben st y e zu af av san"
)
"""Small words that belong to a family name."""

SMALL_WORDS = word_set("of the a an and in on at for to with by or from as is")
"""Words that stay small in a title."""

_ENGLISH = (
    "a about above after again against all along also although am among an and another any are around as at back"
    " be because become becomes been before being below between both but by can cannot could did do does doing"
    " done down due during each either else etc ever every few find first for from further get gets give given go"
    " goes had has have having he hence her here hers him himself his how however if in instead into is it its"
    " itself just keep last later less let like made make makes making many may me might more most much must my"
    " need needs neither never new next no nor not now of off often on once one only onto or other others our out"
    " over own per quite rather same see seen several shall she should since so some still such take taken than"
    " that the their them then there therefore these they this those though three through thus to together too two"
    " under until up upon us use used uses using usually very via was way we well were what when where whether"
    " which while who whom whose why will with within without would yet you your was's isn't don't doesn't called"
    " known well-known example including"
)
_ARABIC = (
    "في من على إلى الى عن مع هذا هذه ذلك تلك التي الذي الذين هو هي هم كان كانت يكون تكون قد لقد كما أن ان إن أو"
    " او ثم حيث بعد قبل بين كل بعض غير عند حتى لا لم لن ما إلا أي منذ خلال ضمن حول دون فقط أيضا ايضا وهو وهي وكان"
    " وكانت ومن وفي وعلى وقد ولم ولا"
)
_HINDI = (
    "का की के को में से ने पर और है हैं था थी थे एक यह वह ये वे इस उस इन उन जो कि तक लिए लिये द्वारा भी ही तो हो"
    " कर करने करता करते करती गया गयी गई गए किया किये की जाता जाती जाते होता होती होते हुआ हुई हुए रहा रही रहे था"
    " या एवं तथा साथ बाद पहले अपने अपनी अपना कुछ कई सभी बहुत नहीं जब तब यदि अगर क्योंकि लेकिन परन्तु किन्तु वाला"
    " वाले वाली जिस जिसे जिसमें इसके उसके इसकी उनके ।"
)
_OTHERS = (
    "der die das und ist ein eine einer eines dem den des im in zu zur zum mit von auf für als auch sich nicht"
    " wird werden wurde bei aus nach an er sie es le la les et un une des du de en que qui dans est pour par sur"
    " avec au aux ce cette el los las y una del al con por para se es su como más o il lo gli che di da nel della"
    " non e i um uma os as dos das é em no na и в на не что с по как это он она они его её их из за от до для к у"
    " о же бы был была было были или но של את על הוא היא עם זה לא כי גם או אל כל और از به با در که را این آن است"
    " برای و یا"
)
STOP_WORDS = word_set(f"{_ENGLISH} {_ARABIC} {_HINDI} {_OTHERS}")
"""Words that part phrases: grammar, not content; of several languages, since a text does not say which it is in."""

EDGE_WORDS = word_set(
    "the a an he she it they in on at his her its their this that these those and but as for from with by after"
    " before during when while since who which what where how is was are were there also one two other some most"
    " many both however although due i we you if or not no to of my your our all each every any several various"
    " such another later then thus here today according following despite because though until between among under"
    " over into through within without upon like unlike either neither numerous currently formerly originally"
    " recently eventually finally subsequently additionally furthermore moreover therefore meanwhile similarly"
    " together three four five six once so yet let see note dr mr mrs ms so's do does did why can may der die das"
    " ein eine im am und er sie es in auf mit von für aus bei nach le la les el los las il lo un une una"
)
"""Words that are not part of a name when a sentence begins with them, nor at the end of one."""

DETERMINERS = word_set(
    "der die das den dem des ein eine einen einem einer eines im am vom zum zur beim ins ans seine seiner seinem seinen"
    " ihre ihrer ihrem ihren keine kein diese dieser dieses diesem diesen jede jeder jedes alle mit und von für durch"
)
"""German words that stand before common nouns (and, fewer, before names)."""

GENERIC_HEADINGS = word_set(
    "introduction overview summary abstract contents background conclusion conclusions references notes history usage"
    " installation examples example appendix discussion results methods method preface index sources links bibliography"
    " license licence contributing changelog description features requirements configuration faq about general details"
    " biography life career plot cast reception legacy geography demographics economy einleitung inhalt quellen"
    " literatur weblinks einzelnachweise geschichte zusammenfassung"
)
"""Headings that name a kind of section and nothing in the world."""
