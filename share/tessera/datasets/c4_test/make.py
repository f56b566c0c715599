#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes data.jsonl: short texts from a grammar and a fixed seed, the same bytes on every machine.

    make.py > data.jsonl
    tessera tokenizer train --vocab-size 2048 -o . data.jsonl
"""
import json

DOCUMENTS = 520


class Draws:
    """A linear congruential generator (Knuth's MMIX), so that no version of Python changes the text."""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % n

    def one(self, words):
        return words[self.below(len(words))]


NAMES = """Ada Anton Berta Carla Cyril Dora Edgar Elena Emil Esther Felix Flora Georg Greta Hanna Henrik Ida Ilse Ivan Jakob
Johanna Judith Karl Klara Konrad Lena Leo Lucia Magda Marek Maria Martin Mina Nadia Nils Nora Olga Oskar Otto Paula Pavel
Petra Quentin Rita Robert Rosa Samuel Selma Simon Sofia Stefan Tamara Thea Tobias Ursula Viktor Vera Wanda Willem Yara
Zora""".split()
PLACES = ["the harbour", "the mill", "the market square", "the old bridge", "the railway station", "the lighthouse",
          "the orchard", "the town hall", "the northern gate", "the printing shop", "the quarry", "the river bank",
          "the school", "the ferry landing", "the observatory", "the botanical garden", "the boatyard", "the bakery",
          "the watchtower", "the village well", "the glass factory", "the library", "the winter camp", "the salt works"]
JOBS = """baker carpenter clockmaker cook doctor engineer farmer ferryman gardener geologist glassblower judge librarian
machinist mason merchant miller miner musician nurse painter pilot potter printer sailor shepherd smith surveyor tailor
teacher weaver""".split()
THINGS = """anchor apron balance barrel basket bell bench blanket boat bottle bowl box bracelet brush bucket candle canvas
chain chair chisel clock coat compass copper cord counter crate cup curtain desk door drawer drum engine envelope feather
fence filter flag flute furnace gear glove hammer handle hinge hook jar jug kettle key kite ladder lamp lantern lens letter
lever lock loom magnet map mast mirror model motor needle net notebook oar oven paddle pan parcel pencil pendulum pipe plank
plate plough pulley pump ribbon rope ruler sack saddle sail saw scale scarf screw shelf shovel sieve spoon spring stamp stove
string table telescope thread ticket tile tool torch towel tray trunk valve vase violin wagon wheel whistle window
wire""".split()
GOODS = """apples barley beans bread butter carrots cheese cherries chestnuts cloth coal coffee corn eggs fish flour garlic
ginger grapes herbs honey lemons lentils linen mushrooms mustard nuts oats oil olives onions oranges pears pepper plums
potatoes pumpkins rice salt silk spices sugar tea timber turnips walnuts wheat wine wool""".split()
QUALITIES = """ancient battered blue broad broken bright brittle brown careful cheap clean clear cold common copper crooked dark
delicate dry dusty empty even faded fine flat fragile fresh gentle green grey heavy hollow honest iron large light little
long loose narrow new old ordinary painted pale patient plain polished precious quiet rare red rough round rusty sharp shiny
short simple slow small smooth soft solid square steady stiff strong tall thick thin tiny warm wet white wide wooden worn
yellow""".split()
PAST = """admired arranged borrowed bought brought built carried changed checked chose cleaned closed collected copied counted
covered described drew dropped emptied examined filled finished fixed found gathered guarded held hid inspected kept lent
lifted lost measured mended moved noticed opened ordered packed painted polished prepared pulled pushed raised recorded
remembered removed repaired replaced sold sorted studied tested tied tried turned washed weighed wrapped""".split()
WEATHER = ["It had rained since the morning.", "The wind came from the east.", "Snow covered the roofs.", "The fog was slow to lift.",
           "It was the hottest week of the summer.", "The first frost had come early.", "A thunderstorm stood over the hills.",
           "The sky was clear and the air was still.", "Clouds moved in from the sea.", "The thaw had begun.",
           "It was a mild evening in autumn.", "The river was higher than usual."]
TIMES = ["In the morning", "At noon", "In the evening", "After the storm", "On the first day of the market", "Before sunrise",
         "In the second week of May", "A year later", "On a Sunday", "When the ferry was late", "During the harvest",
         "In the winter of that year", "Shortly after midnight", "At the end of the month", "While the others slept",
         "As soon as the ice had melted"]
REASONS = ["because nobody else had the time", "although the price had risen again", "so that the work could begin at once",
           "since the road was closed", "before anyone asked for it", "as the contract required", "although it was far too late",
           "because the instructions were clear", "without saying a word", "and nobody was surprised", "and wrote it down",
           "as people there have always done", "in spite of the noise", "for the third time that week"]
FEELINGS = ["was pleased", "was not convinced", "laughed", "said nothing for a while", "asked for a second opinion", "shook hands",
            "was tired but content", "wanted to know more", "promised to come back", "thought of the journey ahead",
            "had expected less", "agreed at last"]
QUESTIONS = ["How much does it weigh?", "Who will pay for it?", "Is there another way?", "When does the next boat leave?",
             "Have you seen this before?", "What did the others say?", "Can it be repaired?", "Where did you find it?",
             "How long will it take?", "Why was it never finished?"]
ANSWERS = ["More than you think.", "Nobody knows.", "Ask me again tomorrow.", "Not before Friday.", "Only if the weather holds.",
           "Yes, but not with these tools.", "That depends on the price.", "It is in the second drawer.", "As long as it needs.",
           "The same as last year.", "I would rather not say.", "Look at the map."]
FACTS = ["A litre of water weighs about one kilogram.", "Sound travels faster in water than in air.", "Iron expands when it is heated.",
         "A day has one thousand four hundred and forty minutes.", "The shortest path between two points is a straight line.",
         "Salt lowers the temperature at which water freezes.", "Light from the sun needs about eight minutes to reach us.",
         "Copper is a good conductor of heat.", "A triangle has three sides and its angles add up to one hundred and eighty degrees.",
         "Warm air rises and cold air sinks.", "A lever makes it easier to lift a load.", "Bread rises because yeast makes gas.",
         "Glass is made of sand, soda and lime.", "The tide follows the moon.", "Wood floats because it is lighter than water.",
         "Every even number can be divided by two."]
NUMBERS = "two three four five six seven eight nine ten eleven twelve fifteen twenty thirty forty sixty ninety".split()
UNITS = ["metres", "kilograms", "litres", "hours", "days", "steps", "coins", "boxes"]


def article(word):
    return ("an " if word[0] in "aeiou" else "a ") + word


def object_of(d):
    return article(f"{d.one(QUALITIES)} {d.one(THINGS)}")


def action(d, who):
    within = who.replace("The ", "the ")  # not at the start of a sentence
    kind = d.below(6)
    if kind == 0:
        return f"{who} {d.one(PAST)} {object_of(d)} near {d.one(PLACES)}."
    if kind == 1:
        return f"{d.one(TIMES)}, {within} {d.one(PAST)} the {d.one(THINGS)} and the {d.one(THINGS)} {d.one(REASONS)}."
    if kind == 2:
        return f"{who} went to {d.one(PLACES)} and {d.one(PAST)} {d.one(NUMBERS)} crates of {d.one(GOODS)}."
    if kind == 3:
        return f"The {d.one(JOBS)} {d.one(PAST)} {object_of(d)}, and {within} {d.one(FEELINGS)}."
    if kind == 4:
        return f"There was {object_of(d)} at {d.one(PLACES)}; {within} {d.one(PAST)} it {d.one(REASONS)}."
    return f"{who} {d.one(FEELINGS)} and {d.one(PAST)} the {d.one(QUALITIES)} {d.one(THINGS)} once more."


def story(d):
    who, other, job = d.one(NAMES), d.one(NAMES), d.one(JOBS)
    parts = [f"{who} was {article(job)} at {d.one(PLACES)}. {d.one(WEATHER)}"]
    for _ in range(2 + d.below(3)):
        pronoun = [who, "The " + job, other, who]
        parts.append(" ".join(action(d, d.one(pronoun)) for _ in range(2 + d.below(3))))
        if d.below(2):
            parts.append(f'"{d.one(QUESTIONS)}" asked {other}. "{d.one(ANSWERS)}" said {who}.')
    parts.append(f"In the end {who} {d.one(FEELINGS)}, and {other} {d.one(FEELINGS)}.")
    return "\n".join(parts)


def notice(d):
    goods = [d.one(GOODS) for _ in range(4)]
    first = f"Prices at {d.one(PLACES)}, as written down by {d.one(NAMES)} the {d.one(JOBS)}:"
    rows = [f"- {g}: {2 + d.below(98)} coins for {d.one(NUMBERS)} {d.one(UNITS)}" for g in goods]
    last = f"{d.one(TIMES)} the market closes early. {d.one(FACTS)}"
    return "\n".join([first, *rows, last])


def lesson(d):
    thing, quality = d.one(THINGS), d.one(QUALITIES)
    a, b = 2 + d.below(40), 2 + d.below(40)
    lines = [f"How to make {article(quality)} {thing}", f"{d.one(FACTS)} {d.one(FACTS)}",
             f"First, take {d.one(NUMBERS)} {d.one(UNITS)} of {d.one(GOODS)} and {object_of(d)}.",
             f"Second, measure twice: {a} and {b} make {a + b}, and {a} times {b} is {a * b}.",
             f"Third, put the {thing} on {object_of(d)} and wait for {d.one(NUMBERS)} hours.",
             f"If the {thing} is not {d.one(QUALITIES)} by then, ask the {d.one(JOBS)}. {d.one(WEATHER)}"]
    return "\n".join(lines)


def letter(d):
    who, other = d.one(NAMES), d.one(NAMES)
    body = " ".join(action(d, d.one([other, d.one(NAMES), "The " + d.one(JOBS)])) for _ in range(3 + d.below(3)))
    return (f"Dear {other},\nthank you for the {d.one(THINGS)}. {d.one(WEATHER)} {body}\n"
            f"{d.one(QUESTIONS)} {d.one(FACTS)}\nYours,\n{who}")


def main():
    d = Draws(20260101)
    for number in range(DOCUMENTS):
        text = d.one([story, story, lesson, notice, letter])(d)
        print(json.dumps({"id": number, "text": text}))


if __name__ == "__main__":
    main()
