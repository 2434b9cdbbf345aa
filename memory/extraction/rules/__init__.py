"""Knowledge extraction by rules, offline. It is meant to be precise, and finds only a part of what was said.

The rules read plain English statements that people make about themselves, about people whom they name, and about their
relatives ("my sister"), and turn them into claims in uniform words: "Ana lives in Porto", "The user's sister is Maria".
A clause that makes no such statement may be about work: a decision, a lasting wish, a setting, a schedule, an owner or
a contact (`work`). Claims about things keep the speaker's words: "The staging db runs on pg 15". "We" is the
user's team where it deploys, ships, uses and the like, otherwise the user: "The user's team uses pnpm, not npm".
Statements that the rules do not understand for sure are left out. So are sentences that give a password or the number
of a passport or of social security, or hold the number of a card, a key or a token, and texts of machines, quotations,
questions, suppositions, jokes and reports of what others said, since nobody states them.

What no rule reads is kept in the speaker's own words where that stands on its own (`open_claims`) and is worth it.

A turn passes through `passages` (which parts are stated), `subjects` and `people` (whom a clause is about), `verbs`
(the verb and its form), `personal`, `grammar`, `copulas`, `relations`, `quantities`, `patterns` and `asides` (the
claim), and `corrections` (the effect on earlier claims, which `attributes` compares). `names` finds who and what is
named. A claim about an event contains its date ("in May 2023") and is true from then on. A claim about a plan is true
until its date has passed. A claim about a state is true as long as its dates say.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from memory.extraction.grounding import word_stems
from memory.extraction.knowledge import (
    MAX_EXTRACTED_ITEMS,
    Chunk,
    ChunkTurn,
    ExtractedEntity,
    ExtractedFact,
    ExtractedPreference,
    ExtractedRelationship,
    Extraction,
    check_extraction,
    spoken_turns,
)
from memory.extraction.rules.asides import read_asides
from memory.extraction.rules.attributes import PERSONAL, differs
from memory.extraction.rules.beginnings import read_beginning, read_new_amount
from memory.extraction.rules.contacts import restate_change
from memory.extraction.rules.corrections import (
    ClaimEffects,
    Earlier,
    correct_said,
    effects_of_statement,
    home_after_move,
    read_again,
    read_known,
    read_statement,
    with_name_of_dead,
)
from memory.extraction.rules.doubts import orders_machine
from memory.extraction.rules.forgetting import read_forget_words
from memory.extraction.rules.hedges import with_hedge
from memory.extraction.rules.limits import loses_limit
from memory.extraction.rules.names import Names, collect_names, is_name
from memory.extraction.rules.nouns import gives_secret
from memory.extraction.rules.open_claims import NEARLY_ALL, OPEN, read_open_claims, repeats, telling_stems
from memory.extraction.rules.owners import owners_of
from memory.extraction.rules.passages import Clause, clauses_of, extract_prose, stated_sentences_of
from memory.extraction.rules.patterns import people_spoken_of, statements_of
from memory.extraction.rules.people import People
from memory.extraction.rules.preferences import preference_of
from memory.extraction.rules.quantities import read_changed_quantity
from memory.extraction.rules.readings import ClauseContext, with_days_of_state, with_grounded_date
from memory.extraction.rules.regions import set_regions_aside, with_regions
from memory.extraction.rules.relations import name_owner, read_introductions, type_of_relation
from memory.extraction.rules.specifics import capitalize_dates
from memory.extraction.rules.statements import Statement
from memory.extraction.rules.subjects import Speaker, speaker_of
from memory.extraction.rules.takebacks import take_back
from memory.extraction.rules.trivia import is_task, is_trivial
from memory.extraction.rules.verdicts import MAX_JUDGED, least_worth, may_be_momentary
from memory.extraction.rules.work import read_work
from memory.identity import normalize_name
from memory.models.facts import Certainty
from memory.providers.language_models import Meter
from memory.providers.sentences import is_question, split_sentences


class RuleExtractor:
    """Extracts knowledge by rules. The same chunk always gives the same result, in time proportional to its length.

    `worth_of` judges claims (`worth.worth_of`). Without it, all of the rules' claims are kept, and no others.
    """

    is_remote = False

    def __init__(self, worth_of: Callable[[Sequence[Statement]], NDArray[np.float64]] | None = None) -> None:
        self._worth_of = worth_of

    def extract(self, chunk: Chunk, *, meter: Meter, deadline_seconds: float) -> Extraction:
        """Extract what the new turns state. It calls no language model, so meter and deadline are not used."""
        reader = _Reader(chunk)
        reader.read()
        if self._worth_of:
            judged = reader.claims_to_judge()
            worth = self._worth_of(judged)
            for statement, value in zip(judged, worth, strict=True):
                reader.apply_verdict(statement, is_kept=value >= least_worth(statement, chunk))
        return check_extraction(reader.extraction(), chunk)


def read_claims_to_judge(chunk: Chunk) -> list[Statement]:
    """Return the claims of the new turns whose worth is to be judged: by rules, and in the speaker's own words."""
    reader = _Reader(chunk)
    reader.read()
    return reader.claims_to_judge()


@dataclass(slots=True)
class _Found:
    """A fact that was found, with all the turns that state it so far."""

    number: int
    statement: Statement
    effects: ClaimEffects
    turns: set[int]


@dataclass(slots=True)
class _Reader:
    chunk: Chunk
    found: dict[object, _Found] = field(default_factory=dict)
    last_number: int = 0
    earlier: list[Earlier] = field(default_factory=list)
    last_of: dict[str, Statement] = field(default_factory=dict)
    names: Names = field(default_factory=Names)
    people: People = field(default_factory=People)
    spoken: list[tuple[ChunkTurn, str]] = field(default_factory=list)
    last_said: dict[str, tuple[str, list[Statement]]] = field(default_factory=dict)  # last sentences, and their claims
    asked: set[str] = field(default_factory=set)  # speakers whom somebody else asked something since they spoke
    changed: set[int] = field(default_factory=set)  # numbers of facts that new ones correct or contradict
    own_words: list[Statement] = field(default_factory=list)
    unsaid: set[str] = field(default_factory=set)  # names that only earlier claims give: of the cat in "my cat died"
    to_assistant: set[int] = field(default_factory=set)  # turns of a user without a name, who speaks to an assistant

    def read(self) -> None:
        """Read the turns, so that `claims_to_judge` and `extraction` return what the new ones state."""
        self.earlier = read_known(self.chunk.known)
        self.last_number = max((fact.number for fact in self.chunk.known), default=0)
        # in a transcript of two people each line begins with the name of the one who says it
        turns = spoken_turns([*self.chunk.before, *self.chunk.turns])
        spoken = [(turn, extract_prose(turn.text.removeprefix(f"{turn.speaker}: "))) for turn in turns]
        heard = [(turn, text) for turn, text in spoken if text]
        spoken = [(turn, text) for turn, text in heard if speaker_of(turn)]
        self.names = collect_names(spoken)
        self.add_known_names()
        new = self.chunk.indexes
        for turn, text in heard:
            if "?" in text:
                self.asked |= self.last_said.keys() - {speaker.label for speaker in [speaker_of(turn)] if speaker}
            for statement in self.statements(turn, text):
                self.last_of[statement.subject] = statement
                if turn.index in new:
                    self.keep(statement)
        self.spoken = [(turn, text) for turn, text in spoken if turn.index in new]

    def claims_to_judge(self) -> list[Statement]:
        """Return the claims about work, events and the like that change no fact, and those in the speaker's words."""
        by_rule = [
            each.statement
            for each in self.found.values()
            if each.turns <= self.to_assistant and not each.effects.changed and each.number not in self.changed
        ]
        return [*filter(may_be_momentary, by_rule), *self.open_claims()][:MAX_JUDGED]

    def open_claims(self) -> Iterator[Statement]:
        """Yield what was said in the speaker's own words beside the facts of the turn."""
        known: dict[int, list[frozenset[str]]] = {}
        for found in self.found.values():
            for turn in found.turns:
                known.setdefault(turn, []).append(telling_stems(found.statement.claim))
        for claim in self.own_words:
            stems, others = telling_stems(claim.claim), known.setdefault(claim.turn, [])
            is_new = not repeats(claim.claim, others, share=NEARLY_ALL)
            if stems and is_new and claim.turn in self.chunk.indexes and not is_trivial(claim.claim):
                yield claim
                others.append(stems)

    def apply_verdict(self, statement: Statement, *, is_kept: bool) -> None:
        """Keep a claim in the speaker's own words that is worth it, and drop a rule's claim that is not."""
        if statement.attribute == OPEN:
            if is_kept:
                self.keep(statement)
        elif not is_kept:
            del self.found[statement.identity]

    def add_known_names(self) -> None:
        """Add the people and animals of known facts: "Ben has moved to Munich" does not say by itself who Ben is."""
        known = [each.reading.parts for each in self.earlier if each.reading.parts is not None]
        kin = [(parts.value, type_of_relation(parts.attribute)) for parts in known]
        for name, type_ in (*kin, *((parts.subject, "person") for parts in known if parts.attribute in PERSONAL)):
            if type_ and is_name(name) and "'s" not in name and not self.names.is_sure(name):
                self.names.add(name, type_)

    def statements(self, turn: ChunkTurn, text: str) -> Iterator[Statement]:
        speaker = speaker_of(turn)
        if speaker is None:
            self.people.hear(text)
            return
        if turn.role == "user" and not speaker.person:
            self.to_assistant.add(turn.index)
        text, corrected = self.retell(turn, speaker, text)
        stems = word_stems(f"{turn.speaker} {text}")
        before, stated = "", list[Statement]()
        self.people.begin_turn(speaker)
        for passage in stated_sentences_of(text):
            asked = read_forget_words(passage.text)
            sentence = passage.text if asked is None else asked.rest
            if not sentence or gives_secret(sentence):
                continue
            sentence, regions = set_regions_aside(sentence)
            clauses = clauses_of(capitalize_dates(restate_change(name_owner(sentence))))
            said = ClauseContext(
                clause=clauses[0],
                turn=turn,
                speaker=speaker,
                names=self.names,
                before=before,
                places=self.places(regions),
            )
            in_turn = partial(replace, sentence=passage.text)
            first, stated = len(self.own_words), []
            if passage.is_asserted:
                found = self.of_clauses(said, clauses, asks=passage.asks)
            else:
                for clause in clauses:
                    # a question may follow statements in its sentence
                    self.read_open(said, clause, asks=clause is clauses[-1] and is_question(sentence))
                found = iter(()) if passage.is_doubtful else self.of_sentence(said, is_asserted=False)
            for statement in found:
                claim = statement.claim
                if (passage.asks and is_task(claim)) or is_trivial(claim) or orders_machine(claim):
                    continue
                whole = with_grounded_date(in_turn(with_regions(statement, regions)), stems)
                whole = with_days_of_state(whole, at=turn.timestamp)
                if before or not any(each.claim == whole.claim for each in corrected):
                    yield whole if before else correct_said(whole, corrected)
                stated.append(whole)
            self.own_words[first:] = [in_turn(with_regions(each, regions)) for each in self.own_words[first:]]
            self.people.end_sentence(sentence)
            before = sentence
            self.last_said[speaker.label] = passage.text, stated

    def retell(self, turn: ChunkTurn, speaker: Speaker, text: str) -> tuple[str, Sequence[Statement]]:
        """Return a text that says the speaker's last sentence anew if it takes that back, and what that stated.

        Other texts stay as they are. "Wait, not nuts, I mean eggs." says "I'm allergic to eggs" after "… nuts".
        """
        sentence, stated = self.last_said.get(speaker.label, ("", ()))
        first, *others = split_sentences(text) or [""]
        is_answer = speaker.label in self.asked
        self.asked.discard(speaker.label)
        said = take_back(sentence, first, is_answer=is_answer) if sentence else None
        if said is None:
            return text, ()
        named = collect_names([(turn, said)])
        for key, type_ in named.types.items():
            self.names.add(named.forms[key], type_)
        return " ".join([f"{said}.", *others]), stated

    def of_clauses(self, said: ClauseContext, clauses: Sequence[Clause], *, asks: bool) -> Iterator[Statement]:
        """Yield the statements of the clauses of a sentence, and those of the whole sentence."""
        for clause in clauses:
            said = replace(said, clause=clause, spoken_of=self.people.only(clause))
            found = [each for each in self.of_clause(said, asks=asks) if not loses_limit(each.claim, clause.text)]
            statements = [*filter(None, map(with_hedge, found))] if clause.is_doubted else found
            yield from statements
            self.read_open(said, clause, known=[each.claim for each in statements])
        yield from self.of_sentence(said, is_asserted=True)

    def read_open(self, said: ClauseContext, clause: Clause, known: Sequence[str] = (), *, asks: bool = False) -> None:
        """Note what a clause says in the speaker's words, if it is an assistant that they speak to."""
        if said.turn.index in self.to_assistant:
            said = replace(said, clause=clause, spoken_of=self.people.only(clause))
            self.own_words += read_open_claims(said, known, asks=asks)

    def of_clause(self, said: ClauseContext, *, asks: bool) -> list[Statement]:
        text, name = with_name_of_dead(said.clause.text, self.earlier, speaker=said.speaker)
        self.unsaid.add(name)
        said = replace(said, clause=replace(said.clause, text=text))
        statements = list(read_new_amount(said)) or list(read_changed_quantity(said)) or list(statements_of(said))
        self.people.add(people_spoken_of(said, statements))
        last = self.last_of.get(said.speaker.label)
        statements = statements or [again for again in [read_again(said, last, self.earlier)] if again]
        # work for which somebody asks for help is a task at hand
        work = [] if statements or asks else list(read_work(said))
        self.people.add(owners_of(said, work))
        return [*statements, *work, *read_beginning(said)]

    def of_sentence(self, said: ClauseContext, *, is_asserted: bool) -> Iterator[Statement]:
        """Yield what a sentence says beside its clauses, or only whom a question or a report speaks of."""
        said = replace(said, clause=replace(said.clause, text=said.clause.sentence, lead=""))
        asides = (each for each in read_asides(said) if not self.is_greeting_of_known(each))
        statements = list(asides if is_asserted else read_introductions(said))
        self.people.add(people_spoken_of(said, statements) if not is_asserted else ())
        yield from statements

    def is_greeting_of_known(self, aside: Statement) -> bool:
        """Return True for "Hi, I'm Ana" from somebody with another name, which only "my name is" replaces."""
        known = (each.reading.parts for each in self.earlier if aside.attribute == "name")
        return any(parts is not None and parts.key == aside.key and differs(aside, parts) for parts in known)

    def places(self, regions: Mapping[str, str]) -> frozenset[str]:
        """Return the names that are places by earlier facts, or by the region that followed them, in lower case."""
        known = (each.reading.parts for each in self.earlier)
        homes = (parts.value for parts in known if parts and parts.attribute in ("residence", "birthplace"))
        return frozenset(name.casefold() for name in (*regions, *homes))

    def keep(self, statement: Statement) -> None:
        key = statement.identity
        if key in self.found:
            self.found[key].turns.add(statement.turn)
            return
        if len(self.found) == MAX_EXTRACTED_ITEMS:
            return
        self.last_number += 1
        effects = effects_of_statement(statement, self.earlier, over=self.changed)
        self.changed.update(effects.changed)
        self.found[key] = _Found(number=self.last_number, statement=statement, effects=effects, turns={statement.turn})
        read = read_statement(statement)
        self.earlier.append(Earlier(number=self.last_number, claim=statement.claim, reading=read, is_known=False))
        for named in statement.names:
            self.names.add(named.name, named.type)
        if effects.changed and (home := home_after_move(statement)):
            self.keep(home)

    def extraction(self) -> Extraction:
        facts = list(self.found.values())
        return Extraction(
            source="rules",
            entities=tuple(self.entities()),
            facts=tuple(map(self.fact, facts)),
            relationships=tuple(self.relationships(facts)),
            preferences=tuple(self.preferences(facts)),
        )

    def entities(self) -> Iterator[ExtractedEntity]:
        """Yield the names whose type is known, with the turns that contain them or make statements about them."""
        evidence: dict[str, set[int]] = {}
        for turn, text in self.spoken:
            for name in self.names.mentioned(text):
                evidence.setdefault(name, set()).add(turn.index)
        for each in self.found.values():
            for name in self.named(each.statement):
                evidence.setdefault(name, set()).update(each.turns)
        for name, turns in evidence.items():
            key = normalize_name(name)
            written = tuple(alias.title() for alias, full in self.names.aliases.items() if full == key)
            yield ExtractedEntity(name=name, type=self.names.types[key], aliases=written, evidence=tuple(sorted(turns)))

    def named(self, statement: Statement) -> tuple[str, ...]:
        """Return the names of a statement that have unambiguous types, and the known names in its claim."""
        sure = (named for named in statement.names if self.names.type_of(named.name) == named.type)
        names = (self.names.form_of(named.name) for named in sure)
        found = dict.fromkeys((*names, *self.names.mentioned(statement.claim)))
        return tuple(name for name in found if name not in self.unsaid)

    def fact(self, found: _Found) -> ExtractedFact:
        statement = found.statement
        return ExtractedFact(
            number=found.number,
            claim=statement.claim,
            certainty=statement.certainty,
            temporal=statement.temporal,
            entities=self.named(statement),
            valid_from=statement.valid_from,
            valid_to=statement.valid_to,
            contradicts=found.effects.contradicts,
            corrects=found.effects.corrects,
            evidence=tuple(sorted(found.turns)),
        )

    def preferences(self, facts: Sequence[_Found]) -> Iterator[ExtractedPreference]:
        users_turns = {turn.index for turn, _ in self.spoken if turn.role == "user"}
        for found in facts:
            if turns := tuple(sorted(found.turns & users_turns)):
                for topic, value in preference_of(found.statement).items():
                    yield ExtractedPreference(topic=topic, value=value, fact=found.number, evidence=turns)

    def relationships(self, facts: Sequence[_Found]) -> Iterator[ExtractedRelationship]:
        for found in facts:
            statement = found.statement
            if statement.relationship is None or statement.certainty == Certainty.UNCERTAIN:
                continue
            source, target, type_ = statement.relationship
            if {self.names.form_of(source), self.names.form_of(target)} <= set(self.named(statement)):
                yield ExtractedRelationship(
                    source=self.names.form_of(source),
                    target=self.names.form_of(target),
                    type=type_,
                    certainty=statement.certainty,
                    evidence=tuple(sorted(found.turns)),
                )
