"""How people say what is worth remembering, language by language.

A statement holds beyond the moment: a wish for every answer, not for this one. So an instruction
needs a word that makes it last (always, from now on, whenever), or a form that does, such as how
to be called. What only points at something ("my code is below", "I like the second one") or asks
for something now ("I'd like a list") tells nothing to whoever reads it next year.

Patterns match a whole sentence, in any case of letters. The group `slot` names what a statement is
about, `value` what it says of that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

Told = tuple[str, str | None]
"""A pattern, and what it is about where it has no group for that."""
_CALLED: Final = "how to call the user"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tongue:
    """The ways of one language to say something worth keeping."""

    facts: tuple[Told, ...]
    preferences: tuple[Told, ...]
    instructions: tuple[Told, ...]
    corrections: tuple[str, ...]
    """How a correction begins; what it corrects to is the group `rest`."""
    tells: str
    """How a sentence begins that tells something rather than asks for it."""
    things: str
    """What people have only for as long as they talk about it: a slot that is nothing but this."""
    points: str
    """How a value begins that only points at something else."""
    passes: str
    """What says within a value that it will not last."""


_WORD: Final = r"[\w'-]+"
_THING: Final = (
    rf"{_WORD}(?: {_WORD}){{0,3}}?"
    rf"(?: (?:of|for|at|in|on|with|from) (?:the |my |our |a )?{_WORD}(?: {_WORD})??)??"
)
"""One to four words, as few as will do, and perhaps what it belongs to."""
_FEW: Final = rf"{_WORD}(?: {_WORD}){{0,3}}?"

# -- English ----------------------------------------------------------------------------------

_DO: Final = (
    r"(?:please )?(?:use|answer|reply|respond|write|speak|talk|give|send|keep|make|include|add|put"
    r"|call|ask|tell|show|format|sign|start|end|begin|check|avoid|be|remind|wait|address|treat|let"
    r"|confirm|translate|explain|summari[sz]e|cite|round|leave|refer|read|spell|book|order|list)\b"
)
_LASTING: Final = r"(?:always|never|from now on|going forward|in future|every time|each time)"
_MANNERS: Final = (
    r"(?:us(?:e|ing)|writ(?:e|ing)|say(?:ing)?|add(?:ing)?|includ(?:e|ing)|send(?:ing)?"
    r"|ask(?:ing)?|explain(?:ing)?|apologi[sz](?:e|ing)|repeat(?:ing)?|address(?:ing)?"
    r"|greet(?:ing)?|mention(?:ing)?|talk(?:ing)?|speak(?:ing)?|sign(?:ing)?|shar(?:e|ing)"
    r"|prais(?:e|ing)|flatter(?:ing)?|lectur(?:e|ing)|translat(?:e|ing))"
)
_NOT_NOW: Final = (
    r"(?! (?:the|this|that|these|those|it|them|him|her)\b)"
    r"(?!.*\b(?:now|yet|today|here|there|again|anything|this|these|those)\b)"
)
_ENGLISH: Final = Tongue(
    facts=(
        (
            rf"my (?P<slot>{_THING})(?:'s)? (?:is|are|was born|will be) "
            r"(?P<value>(?!not\b|the one\b).+)",
            None,
        ),
        (r"my name(?:'s| is) .+", "name"),
        (rf"our (?P<slot>{_THING}) (?:is|are) (?P<value>(?!not\b).+)", None),
        (r"(?:i|we) live (?:in|near|on|at|with) .+", "home"),
        (r"i (?:(?:just )?moved|am moving|'m moving|relocated) (?:in|to|near) (?!the\b).+", "home"),
        (r"i work (?:at|for|as|in|with) .+", "work"),
        (r"i worked (?:at|for|as) .+", "work"),
        (
            r"i(?:'m| am) (?:an? (?!bit|little|lot|few|tad|couple|minute|hour)"
            r"|allergic|from|married|vegan|vegetarian|diabetic).*",
            None,
        ),
        (r"i(?:'m| am) \d{1,3}(?: years? old)?", "age"),
        (rf"my {_FEW} (?:works|lives|studies) (?:at|in|for|as|near|with|on) .+", None),
        (r"i was born .+", "birth"),
        (
            r"i have (?:an?|two|three|four|no) (?!(?:[\w-]+ ){0,2}(?:questions?|problems?|issues?"
            r"|ideas?|doubts?|feeling|look|bugs?|errors?|files?|lists?|tables?|functions?|class"
            r"|scripts?|strings?|texts?|documents?|columns?|requests?|tasks?|few|couple|lot|bit"
            r"|time|clue|favou?r|suggestions?|choice|access|output|logs?)\b)\w+.*",
            None,
        ),
        (r"(?:please )?(?:remember|keep in mind|don't forget)(?: that|:) .+", None),
        (r"(?:please )?note(?: that|:) (?:i|my|we|our)\b.+", None),
    ),
    preferences=(
        (rf"my favou?rite (?P<slot>{_FEW}) (?:is|are) (?P<value>.+)", None),
        (
            r"i (?:really |much |generally |usually |always |still |also |strongly )?"
            r"(?:prefer|love|adore|enjoy|hate|dislike|loathe|like) "
            r"(?P<value>(?!to (?:ask|know|see|have you)\b).+)",
            None,
        ),
        (r"i(?:'d| would) (?:much |really )?(?:prefer|rather) (?P<value>(?!an? |you\b).+)", None),
        (r"i (?:don't|do not) (?:really )?(?:like|enjoy) (?P<value>.+)", None),
        (r"i (?:don't|do not|never|can't|cannot) (?:eat|drink|stand) (?P<value>.+)", None),
        (r"i (?:don't|do not|never) use (?P<value>(?!the\b).+)", None),
        (r"i(?:'m| am) (?:not )?(?:a big fan of|fond of|into) (?P<value>.+)", None),
    ),
    instructions=(
        (
            r"(?:please )?(?:from now on|going forward|in (?:the )?future)\b,? "
            r"(?!.*\b(?:will|would|could|might)\b).+",
            None,
        ),
        (
            r"(?:please )?(?:don't |do not |never )?call me "
            r"(?!when|back|at\b|if\b|on\b|after|later|tomorrow|today|once|as\b|an? |the |before"
            r"|in\b|maybe|by\b|again|now)[^,]{1,40}",
            _CALLED,
        ),
        (
            r"(?:please )?(?:always|never|don't ever|do not ever) (?!mind\b|heard|been\b|seen\b"
            r"|had\b|again|an?\b|the\b|good|nice|fun\b|thought|knew|tried|happened|worked)\w+ .+",
            None,
        ),
        (rf"(?:please )?(?:don't|do not|stop) {_MANNERS}\b{_NOT_NOW}.*", None),
        (rf"{_DO}.*\b{_LASTING}\b.*", None),
        (rf"(?:whenever|every time|each time|any time) .+, (?:always |never |don't )?{_DO}.*",
         None),
        (rf"(?:please )?make sure (?:to|that|you) .*\b{_LASTING}\b.*", None),
        (r"you (?:should|must|have to|are to|may) (?:always|never) .+", None),
    ),
    corrections=(
        r"(?:no,? )?actually,? (?P<rest>.+)",
        r"(?:(?:no|nope|sorry|wait)[,:] ){1,3}(?:actually,? )?(?:i meant,? )?(?P<rest>.+)",
        r"(?:correction|to correct myself)[:,] ?(?P<rest>.+)",
        r"i meant (?:to say )?(?P<rest>.+)",
        r"(?:that's|that is|it's|you're) (?:wrong|not (?:right|correct|true))"
        r"[,:;]? ?(?P<rest>.*)",
    ),
    tells=r"(?:the|my|our|his|her|their|its|it|it's|he|she|they|there) (?:\S+ ){2,}\S+",
    things=(
        r"(?:\w+ )??(?:questions?|problems?|issues?|points?|guess|ideas?|code|scripts?|functions?"
        r"|programs?|errors?|quer(?:y|ies)|inputs?|outputs?|data|text|messages?|requests?|tasks?"
        r"|builds?|tests?|attempts?|answers?|concerns?|understanding|thought|turn|bad|prompt"
        r"|example|mistake)"
    ),
    points=(
        r"(?:here|there|below|above|attached|this|these|those|it|them|your|how you|what you"
        r"|(?:that|all)(?: one| idea| way| too| better| much)*$|as follows|(?:the )?following\b"
        r"|the (?:one|first|second|third|last|next|new|old|other|latest|current|former|latter|idea"
        r"|way|look|sound)\b)(?:\b|$)"
    ),
    passes=r"\b(?:today|tonight|right now|for now|at the moment|again|any ideas?)\b",
)  # fmt: skip

# -- German -----------------------------------------------------------------------------------

_TU: Final = (
    r"(?:bitte )?(?:antworte|schreibe?|verwende|benutze?|nutze|sprich|rede|gib|mache?|sage?|nenne?"
    r"|schicke?|sende|frage?|zeige?|erkläre?|formatiere?|beginne?|bleibe?|füge|setze?|runde"
    r"|übersetze?|prüfe?|fasse?|halte?|erinnere?|vermeide|duze?|sieze?|lies|buche?|bestelle?)\b"
)
_AUF_DAUER: Final = (
    r"(?:immer(?! noch| wieder)|nie(?:mals)?|nie mehr|stets|grundsätzlich|jedes mal|ab jetzt"
    r"|ab sofort|künftig|in zukunft|von nun an)"
)
_GERMAN: Final = Tongue(
    facts=(
        (
            rf"meine?[mnrs]? (?P<slot>{_FEW}) (?:ist|sind|heißt|heissen|heißen|war) "
            r"(?P<value>(?!nicht\b).+)",
            None,
        ),
        (r"ich hei(?:ß|ss)e .+", "name"),
        (r"(?:ich|wir) (?:wohnen?|leben?) (?:in|bei|auf) .+", "home"),
        (r"ich arbeite (?:bei|als|in|für) .+", "work"),
        (
            r"ich bin (?:eine? (?!bisschen|wenig|paar)|allergisch|aus|verheiratet|vegan"
            r"|vegetarier(?:in)?)\b.*",
            None,
        ),
        (r"ich bin \d{1,3}(?: jahre(?: alt)?)?", "age"),
        (r"(?:bitte )?merk dir[,:]? .+", None),
        (r"(?:bitte )?(?:denk daran|vergiss nicht),? dass .+", None),
    ),
    preferences=(
        (r"(?:mein lieblings|meine lieblings)(?P<slot>\w+) (?:ist|sind) (?P<value>.+)", None),
        (
            r"ich (?:bevorzuge|mag|liebe|hasse|trinke lieber|esse lieber|will lieber"
            r"|hätte lieber) (?P<value>.+)",
            None,
        ),
        (r"ich (?:esse|trinke|benutze|verwende) (?:kein|nie)\w* (?P<value>.+)", None),
        (r"mir (?:ist|wäre|sind) (?P<value>.+ lieber\b.*)", None),
    ),
    instructions=(
        (r"(?:bitte )?(?:ab jetzt|ab sofort|von nun an|in zukunft|künftig),? "
         r"(?!.*\b(?:wird|werden|würde)\b).+", None),
        (r"(?:bitte )?nenne?(?:n sie)? mich (?:bitte )?[^,]{1,40}", _CALLED),
        (rf"{_TU}.*\b{_AUF_DAUER}\b.*", None),
        (rf"(?:bitte )?(?:immer|jedes mal),? wenn .+, {_TU}.*", None),
        (r"(?:bitte )?(?:immer|nie(?:mals)?) (?!wieder|noch|mit|mehr\b|d(?:as|er|ie|en)|gehört"
         r"|gesehen|zuvor|davon|im\b)\S+ .+", None),
        (r"bitte keine? \w+(?: (?:mehr|in|bei|an) ?.*)?", None),
        (r"keine? \w+ (?:mehr )?(?:in|bei|an) (?:deinen|den|meinen|antworten|mails) ?.*", None),
        (rf"{_TU}(?: mir)? keine? \w+(?: mehr| mit| in| ohne|$).*", None),
        (r"(?:bitte )?hör(?:e|en sie)? auf,? (?!.*\b(?:das|den|die|hier|jetzt)\b)(?:.+ )?zu \w+.*",
         None),
        (r"(?:du sollst|du darfst|sie sollen) (?:immer|nie(?:mals)?) .+", None),
    ),
    corrections=(
        r"(?:eigentlich|korrektur:|ich meinte|nein,|das stimmt nicht,?)[ ,](?P<rest>.*)",
    ),
    tells=r",? ?(?:der|die|das|es|er|sie|mein\w*|unser\w*|sein\w*|ihr\w*) (?:\S+ ){2,}\S+",
    things=(
        r"(?:\w+ )??(?:fragen?|problem|code|skript|programm|fehler|ideen?|texte?|anfrage|daten"
        r"|eingabe|ausgabe|aufgabe|frage|gedanke|funktion|vermutung|tests?|antwort)"
    ),
    points=(
        r"(?:hier|dort|unten|oben|folgend\w*|angehängt|im anhang|dies\w*|es(?! nicht,? wenn)"
        r"|das(?: hier| so| nicht| sehr| auch)*$|(?:der|die|das|den|dem) (?:erste|zweite|dritte"
        r"|letzte|neue|alte|andere|folgende)\w*|so$|deine?\w*)(?:\b|$)"
    ),
    passes=r"\b(?:heute|gerade|im moment|vorerst|jetzt|abgestürzt|kaputt)\b",
)  # fmt: skip

# -- French -----------------------------------------------------------------------------------

_FAIS: Final = (
    r"(?:s'il (?:te|vous) plaît,? )?(?:répond(?:s|ez)|écri(?:s|vez)|utilise[sz]?|parle[sz]?"
    r"|donne[sz]?|mets|mettez|fais|faites|envoie[sz]?|garde[sz]?|ajoute[sz]?|commence[sz]?"
    r"|termine[sz]?|explique[sz]?|évite[sz]?|sois|soyez|signe[sz]?|cite[sz]?|demande[sz]?"
    r"|appelle[sz]?|tutoie|vouvoie|tradui(?:s|sez))\b"
)
_TOUJOURS: Final = (
    r"(?:toujours|jamais|dorénavant|désormais|à l'avenir|à chaque fois|systématiquement"
    r"|à partir de maintenant)"
)
_PAS_CECI: Final = r"(?! ?(?:ce|cet|cette|ces|ça|cela|le|la|les|l'|encore|maintenant)(?:\b|(?<=')))"
_FRENCH: Final = Tongue(
    facts=(
        (rf"(?:mon|ma|mes) (?P<slot>{_FEW}) (?:est|sont|s'appelle(?:nt)?) (?P<value>(?!pas\b).+)",
         None),
        (r"je m'appelle .+", "name"),
        (r"(?:j'habite|nous habitons|je vis) .+", "home"),
        (r"je travaille (?:chez|comme|dans|à|pour|en) .+", "work"),
        (r"je suis (?:une? (?!peu)|allergique|mariée?|végétarien(?:ne)?|végane?|née?)\b.*", None),
        (r"j'ai \d{1,3} ans", "age"),
        (r"(?:souviens-toi|rappelle-toi|n'oublie pas|retiens),? qu(?:e |').+", None),
    ),
    preferences=(
        (r"je (?:préfère|déteste|adore|n'aime pas|préférerais) (?P<value>.+)", None),
        (r"j'(?:aime|adore)(?: bien| beaucoup)? (?P<value>.+)", None),
        (r"je ne (?:mange|bois|supporte) (?:pas|jamais|plus) (?P<value>.+)", None),
        (r"je n'utilise (?:pas|jamais|plus) (?P<value>.+)", None),
        (rf"(?:mon|ma) (?P<slot>{_FEW}) préférée? est (?P<value>.+)", None),
    ),
    instructions=(
        (r"(?:s'il te plaît,? )?(?:à partir de maintenant|dorénavant|désormais|à l'avenir),? .+",
         None),
        (
            r"(?:appelle|appelez)-moi (?!quand|demain|ce\b|plus tard|à\b|dès|si\b|vers|une? "
            r"|lorsque|après|avant|maintenant)[^,]{1,40}",
            _CALLED,
        ),
        (r"ne m'appelle[sz]? (?:pas|plus|jamais) (?!quand|demain|maintenant|à\b|ce\b)[^,]{1,40}",
         _CALLED),
        (rf"{_FAIS}.*\b{_TOUJOURS}\b.*", None),
        (r"n(?:e |')(?:me |m'|te |t')?\w+ (?:plus )?jamais\b.*", None),
        (r"n(?:e |')(?:me |m')?(?:utilise|parle|écri[sv]|di[st]|ajoute|mets|emploie|envoie|répète"
         rf"|tutoie|vouvoie|signe|explique|commence)(?:z|ez)? (?:pas|plus)\b{_PAS_CECI}.*", None),
        (r"(?:arrête|cesse)[sz]? d(?:e |')(?!.*\b(?:le|la|les|ce|cette|maintenant)\b).+", None),
        (rf"(?:quand|chaque fois que) .+, {_FAIS}.*\b{_TOUJOURS}\b.*", None),
    ),
    corrections=(
        r"(?:en fait|correction ?:|je voulais dire|non,|c'est faux,?)[ ,](?P<rest>.*)",
    ),
    tells=r"(?:le |la |les |l'|mon |ma |mes |il |elle |ils |elles |c'est |notre )(?:\S+ ){2,}\S+",
    things=(
        r"(?:\w+ )??(?:questions?|problème|code|script|erreur|idée|avis|programme|fonction|requête"
        r"|texte|données|tâche|demande|tests?|réponse|message|exemple)"
    ),
    points=(
        r"(?:ici|là|ci-dessous|ci-dessus|en pièce jointe|celui-ci|celle-ci|ça|cela|ceci|cet?\b"
        r"|cette|ces\b|l'idée|l[ae]s? (?:premi|deuxi|second|troisi|derni|suivant|nouve|autre)\w*"
        r"|l'autre|tes|ton|ta)(?:\b|$)"
    ),
    passes=r"\b(?:aujourd'hui|maintenant|en ce moment|pour l'instant|ce soir)\b",
)  # fmt: skip

# -- Spanish ----------------------------------------------------------------------------------

_HAZ: Final = (
    r"(?:por favor,? )?(?:responde|contesta|escribe|usa|utiliza|habla|da|dame|manda|envía|envíame"
    r"|mándame|haz|pon|añade|incluye|empieza|termina|explica|evita|sé|firma|cita|pregunta|avísame"
    r"|traduce|resume|llámame|trátame)\b"
)
_SIEMPRE: Final = (
    r"(?:siempre|nunca|jamás|a partir de ahora|de ahora en adelante|en el futuro|en adelante"
    r"|cada vez)"
)
_HAGAS: Final = (
    r"(?:uses|utilices|escribas|pongas|envíes|mandes|digas|respondas|contestes|repitas|hables"
    r"|añadas|incluyas|firmes|expliques|empieces|tutees|trates)"
)
_NO_ESTO: Final = (
    r"(?! (?:el|la|los|las|es[aeo]s?|est[aeo]s?|nada|todavía|ahora|aún)\b)"
    r"(?!.*\b(?:todavía|ahora|aún|hoy|aquí|ahí)\b)"
)
_SPANISH: Final = Tongue(
    facts=(
        (rf"mis? (?P<slot>{_FEW}) (?:es|son|se llaman?|está en) (?P<value>(?!no\b).+)", None),
        (r"me llamo .+", "name"),
        (r"(?:yo |nosotros )?viv(?:o|imos) (?:en|cerca) .+", "home"),
        (r"(?:yo )?trabajo (?:en|como|para|de) .+", "work"),
        (r"(?:yo )?soy (?:una? (?!poco)|alérgic[oa]|de|veg(?:ano|ana|etarian[oa]))\b.*", None),
        (r"tengo \d{1,3} años", "age"),
        (r"(?:recuerda|no olvides) que .+", None),
    ),
    preferences=(
        (r"(?:yo )?(?:prefiero|odio|detesto|(?:no )?me gustan?|me encantan?) (?P<value>.+)", None),
        (r"(?:yo )?(?:no|nunca) (?:como|bebo|tomo|uso|soporto) (?P<value>.+)", None),
        (r"mi (?P<slot>\w+) (?:favorit[oa]|preferid[oa]) (?:es|son) (?P<value>.+)", None),
    ),
    instructions=(
        (r"(?:por favor,? )?(?:a partir de ahora|de ahora en adelante|desde ahora|en adelante"
         r"|en el futuro),? (?!.*\b\w+(?:rá|rán|ría)\b).+", None),
        (
            r"(?:por favor,? )?(?:llámame|llámeme|no me llames) (?!cuando|mañana|luego|a\b|al\b"
            r"|si\b|hoy|más tarde|en\b|por\b|una? |después|ahora|esta)[^,]{1,40}",
            _CALLED,
        ),
        (rf"{_HAZ}.*\b{_SIEMPRE}\b.*", None),
        (r"(?:por favor,? )?(?:nunca|jamás) (?:me |lo |la )?(?!tienes|puedes|sabes|eres|vas|has\b"
         r"|das|haces|quieres|dices|antes|más)\w{2,}[ae]s\b.*", None),
        (rf"(?:por favor,? )?siempre {_HAZ}.*", None),
        (rf"(?:por favor,? )?no (?:me )?{_HAGAS}\b{_NO_ESTO}.*", None),
        (rf"(?:por favor,? )?deja de \w+(?:r|rme|rte|rse)\b{_NO_ESTO}.*", None),
        (rf"(?:cada vez que|siempre que) .+, {_HAZ}.*", None),
    ),
    corrections=(
        r"(?:en realidad|corrección:|quise decir|no, |eso no es correcto,?)[ ,]?(?P<rest>.+)",
    ),
    tells=r"(?:el|la|los|las|mi|mis|nuestr\w+|su|él|ella|es|son) (?:\S+ ){2,}\S+",
    things=(
        r"(?:\w+ )??(?:preguntas?|problemas?|código|error(?:es)?|idea|duda|programa|función|texto"
        r"|consulta|datos|tarea|petición|pruebas?|respuesta|mensaje|ejemplo)"
    ),
    points=(
        r"(?:aquí|ahí|abajo|arriba|adjunt[oa]|est[aeo]s?|es[aeo]s?|aquello|tu|tus|la idea"
        r"|(?:el|la|los|las) (?:primer|segund|tercer|últim|siguiente|nuev|otr)\w*|lo siguiente"
        r"|el (?:archivo|mensaje) adjunto)(?:\b|$)"
    ),
    passes=r"\b(?:hoy|ahora|de momento|por ahora|esta noche)\b",
)  # fmt: skip

# -- Chinese ----------------------------------------------------------------------------------

_SKIP: Final = "[\uff0c,\uff1a: ]?"
_CHINESE: Final = Tongue(
    facts=(
        (r"我的(?P<slot>[^是叫在\uff0c,\s]{1,12})(?:是|叫|在)(?P<value>.+)", None),
        (r"我(?:叫(?!了|他|她|你|它|的)|的名字是).+", "name"),
        (r"我们?(?:现在)?(?:住在|搬到).+", "home"),
        (r"我在(?!想|看|等|用|做|找|写|学|试|问).+(?:工作|上班)", "work"),
        (r"我对.+过敏", None),
        (r"我今年?\d{1,3}岁", "age"),
        (r"我是(?!说|想|不|在|要|指|问|用|这|那|怕|来|第|按|为|昨|今|刚|从|认真|真).+", None),
        (r"请?记住.+", None),
    ),
    preferences=(
        (r"我最喜欢的(?P<slot>[^是\uff0c,\s]{1,12})是(?P<value>.+)", None),
        (r"我(?:更|比较|最|很|特别)?(?:喜欢|偏好|偏爱|讨厌|不喜欢)(?P<value>.+)", None),
        (r"我(?:从)?不(?:吃|喝|用)(?P<value>.+(?<!了))", None),
    ),
    instructions=(
        (rf"请?(?:从现在(?:开始|起)|今后|以后(?!再[说看谈聊]|吧|会|的)){_SKIP}.+", None),
        (r"请?(?:以后)?(?:不要|别)?(?:叫我|称呼我)(?:为)?(?!一声|起床|过去|吃饭|回|去|来|的|时)"
         r"[^\uff0c,]{1,20}", _CALLED),
        (r"请?(?:总是|永远|始终|一律|每次都?|每当).+", None),
        (r"请?(?:永远|再也|以后)不要.+", None),
        (r"请?(?:不要|别)再(?!.*[这那]).+", None),
        (r"请?(?:不要|别)(?:使用|用|说|写|发|加|称呼)(?!.*(?:[这那它该]|现在|了)).+", None),
    ),
    corrections=(
        r"(?:其实|不对[\uff0c,]?|更正[\uff1a:]?|我是说|应该是)(?P<rest>.+)",
    ),
    tells=r"(?!试|换|再|用|看|请|你|我要|我想|不要|别|另|先).{5,}",
    things=r"(?:问题|代码|意思|想法|看法|错误|程序|脚本|函数|建议|疑问|数据|文本|任务|输入|输出)",
    points=r"(?:这|那|下面|如下|以下|上面|附件|第[一二三四五\d]|前者|后者|另一|你的|你这)",
    passes=r"今天|现在|目前|暂时|刚才",
)  # fmt: skip

TONGUES: Final = (_ENGLISH, _GERMAN, _FRENCH, _SPANISH, _CHINESE)
