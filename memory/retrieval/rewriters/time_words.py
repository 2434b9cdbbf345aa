"""Words that name times, in the languages that most questions are in, to tell whether words may name one at all.

Up to three letters they are whole words, longer ones the beginnings of words. To add a language, add its line.
"""

import re

LONGEST_WHOLE = 3
"""Letters."""

_ENGLISH = (
    "minute hour day days week month year decade centur morning afternoon evening night noon today tonight yesterday "
    "tomorrow now ago last past recent late earl next since until till before after during spring summer autumn fall "
    "winter season holiday christmas easter monday tuesday wednesday thursday friday saturday sunday january february "
    "march april may june july august september october november december jan feb mar apr jun jul aug sep sept oct nov "
    "dec"
)
_GERMAN = (
    "stunde tag tage woche monat jahr gestern vorgestern heute morgen abend nacht mittag letzt vorig vergangen nächst "
    "seit vor bis nach früh neulich kürzlich sommer herbst weihnacht ostern montag dienstag mittwoch donnerstag "
    "freitag samstag sonntag januar februar märz mai juni juli oktober dezember"
)
_FRENCH = (
    "jour semaine mois an ans année heure hier aujourd demain matin soir nuit dernier dernière passé prochain depuis "
    "avant après hiver printemps automne noël lundi mardi mercredi jeudi vendredi samedi dimanche janvier février mars "
    "avril juin juillet août octobre décembre"
)
_SPANISH = (
    "día días semana mes meses año años hora ayer anoche hoy mañana noche tarde pasad últim próxim desde antes después "
    "verano invierno primavera otoño navidad lunes martes miércoles jueves viernes sábado domingo enero febrero marzo "
    "abril mayo junio julio agosto septiembre octubre noviembre diciembre"
)
_PORTUGUESE = "dia dias mês ano anos ontem hoje amanhã noite passad depois verão inverno outono natal"
_ITALIAN = "giorn settimana mese mesi anno anni ieri oggi domani notte scors ultim prossim prima dopo estate autunno"
_DUTCH = "dag dagen maand jaar jaren uur gisteren vandaag vorige afgelopen volgende sinds zomer lente herfst"
_RUSSIAN = "день дня дней недел месяц год года году лет вчера сегодня завтра прошл зима зимо лето весн осен час часа"
_LINES = (_ENGLISH, _GERMAN, _FRENCH, _SPANISH, _PORTUGUESE, _ITALIAN, _DUTCH, _RUSSIAN)
_WORDS = sorted(" ".join(_LINES).split())
_WHOLE = "|".join(word for word in _WORDS if len(word) <= LONGEST_WHOLE)
_BEGINNINGS = "|".join(word for word in _WORDS if len(word) > LONGEST_WHOLE)
# scripts that have no spaces between words, or none before endings
_SIGNS = "[年月日週周天昨今明去春夏秋冬時时夜晚朝년월일주]|어제|오늘|내일|지난"
_TIME_WORD = re.compile(rf"[0-9]|{_SIGNS}|(?<!\w)(?:(?:{_WHOLE})(?!\w)|{_BEGINNINGS})", re.IGNORECASE)


def may_name_time(words: str) -> bool:
    """Whether a number or a word of time is among them. Of a language that is not here, only numbers count."""
    return _TIME_WORD.search(words) is not None
