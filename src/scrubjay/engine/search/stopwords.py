"""Words too common to search for, per language; they also tell which language a text is in."""

# ruff: noqa: RUF001 - letters of other scripts are meant.

from __future__ import annotations

import re

_LISTS = {
    "english": """
        a about above after again all also am an and any are as at be because been before being
        both but by can could did do does doing done down during each ever few for from further get
        got had has have having he her here hers herself him himself his how i if in into is it its
        itself just ll made make me might more most much must my myself no nor not now of off on
        once only or other our ours ourselves out over own really s same shall she should so some
        such than that the their theirs them themselves then there these they this those through to
        too under until up upon us very was we were what when where which while who whom whose why
        will with would you your yours yourself yourselves
        don didn doesn isn aren wasn weren won wouldn couldn shouldn hasn haven hadn ain
        please tell say says said mention mentioned""",
    "german": """
        aber alle allem allen aller alles als also am an ander andere anderen auch auf aus bei bin
        bis bist da damit dann das dass dein deine dem den denn der des dich die dies diese diesem
        diesen dieser dieses dir doch dort du durch ein eine einem einen einer eines er es etwas
        euch euer für gegen gewesen hab habe haben hat hatte hatten hier hin hinter ich ihm ihn
        heisst ihnen ihr ihre ihrem ihren ihrer im in indem ins ist jede jedem jeden jeder jedes
        jetzt kann kein keine können machen man manche mein meine meinem meinen meiner mich mir
        mit muss nach nicht nichts noch nun nur ob oder ohne sehr sein seine seinem seinen seiner
        selbst sich sie sind so solche soll sondern über um und uns unser unsere unter viel vom
        von vor wann war waren warum was weg weil welche welchem welchen welcher welches wenn wer
        wen wem werde werden wie wieder wieso will wir wird wo wohin woher wurde würde zu zum zur
        zwar zwischen""",
    "french": """
        ai aie alors après as au aucun aura aussi autre aux avait avant avec avez avoir avons ce
        cela ces cet cette ceux chaque chez comme comment dans de des donc dont du elle elles en
        encore entre es est et étaient étais était être eu fait faire fais il ils je jusque la le
        les leur leurs lui ma mais me même mes moi mon ne ni nos notre nous on ont ou où par parce
        pas peu peut plus pour pourquoi quand que quel quelle quelles quels qui quoi sa sans se sera
        ses si son sont sous suis sur ta te tes toi ton tous tout toute toutes très tu un une vos
        votre vous""",
    "spanish": """
        al algo algunas algunos ante antes aquí así aunque cada como cómo con contra cual cuál
        cuándo cuando de del desde donde dónde durante e el él ella ellas ellos en entre era eran es
        esa ese eso esta está estaba están estar este esto estos estoy fue ha había han has hasta
        hay he la las le les lo los más me mi mí mis mucho muy nada ni no nos nosotros o os otra
        otro para pero poco por porque pues que qué quien quién se sea ser si sí sido sin sobre son
        soy su sus también tan tanto te tengo tiene todo todos tu tú tus un una uno unos y ya yo""",
    "italian": """
        a ad agli ai al alla alle allo anche anni aveva avere c che chi ci ciò come con cosa così
        cui da dagli dai dal dalla dalle degli dei del della delle dello di dove due e è ed era
        erano essere fa fatto fra gli ha hai hanno ho i il in io l la le lei li lo loro lui ma me
        mi mia mie miei mio molto ne nei nel nella nelle no noi non nostro o ogni per perché più
        poi qual quale quando quanto quella quelle quelli quello questa queste questi questo se sei
        si sia sono sta su sua sue sui sul sulla suo suoi te ti tra tu tua tuo tutti tutto un una
        uno vi voi""",
    "portuguese": """
        a ao aos aquela aquele as até com como da das de dela dele deles depois do dos e é ela elas
        ele eles em entre era eram essa esse esta está estão estava este eu faz fez foi foram há
        isso isto já lhe mais mas me mesmo meu meus minha minhas muito na não nas nem no nos nós
        nossa nosso num numa o onde os ou para pela pelo por porque qual quais quando que quem são
        se sem ser será seu seus só sobre sua suas também te tem têm tenho ter teu tua tu tudo um
        uma umas uns você vocês vos""",
    "dutch": """
        aan al alles als altijd andere ben bij daar dan dat de der deze die dit doch doen door dus
        een eens en er ge geen geweest haar had heb hebben heeft hem het hier hij hoe hun iemand
        iets ik in is ja je jij jou jouw kan kon kunnen maar me meer men met mij mijn moet na naar
        niet niets nog nu of om omdat ons ook op over reeds te tegen toch toen tot u uit uw van veel
        voor waar waarom wanneer want waren was wat we wel werd wezen wie wij wil worden wordt zal
        ze zei zelf zich zij zijn zo zonder zou""",
    "swedish": """
        alla allt att av blev bli blir de dem den denna deras dess det detta dig din dina ditt du
        där då efter ej eller en er ett från för ha hade han hans har henne hennes hon honom hur här
        i inom inte jag ju kan kunde man med mellan men mig min mina mitt mot mycket ni nu när någon
        något några och om oss på samma sedan sig sin sina sitt skulle som så till under upp ut
        utan vad var vara varför varit vars vart vem vi vid vilka vilken vilket vår våra än är""",
    "russian": """
        а без более был была были было быть в вам вас во вот все всего всех вы где да даже для до
        его ее её если есть еще ещё ж же за здесь и из или им их к как какая какие каких какой какую
        когда кого кому кто куда ли либо между меня мне много может мой моя моё мои моих моей мы на
        над надо нас не него нее неё нет ни них но ну о об он она они оно от очень по под после
        потом почему при про с сам свой со так также такой там те тебя тем то тоже только том тот ту
        ты у уже хотя чего чей чем что чтобы чьё чья эта эти это этого этой этом этот я""",
}

STOP_WORDS: dict[str, frozenset[str]] = {
    language: frozenset(words.split()) for language, words in _LISTS.items()
}

ASKING: dict[str, re.Pattern[str]] = {
    "chinese": re.compile(
        "什么时候|为什么|怎么样|是不是|有没有|什么|时候|哪[里儿个些天年次位]?|谁|怎[么样]|多少|多久|如何"
        "|请问|告诉|几[个次岁天点号]?|[的了吗呢吧啊呀是我你您他她它们这那和与在着也都就很]"
    ),
    # A particle stands beside a word; the same letter between others of its kind is part of one.
    "japanese": re.compile(
        "いつ|どこ|だれ|誰|どの|どんな|どれ|どう|なぜ|何|いくつ|いくら|教えて"
        "|(?:ています|ている|ました|でした|ですか|ますか|です|ます|した|する|して)(?=か?$)"
        "|(?<![ぁ-ん])[はがをにへとものでやか]+|[はがをにへとものでやなか]+(?![ぁ-ん])"
    ),
    "korean": re.compile("언제|어디|누구|누가|무엇|뭐|어떤|어느|얼마나|몇|왜"),
}
"""What only makes a run of an unspaced script a question, or joins its words."""
