"""Chapter 6: induction seen in trained models, and what cannot be seen in these."""

from __future__ import annotations

import random
from functools import lru_cache

import numpy as np

from otimes.numeric.circuits.behaviour import head_behaviour
from otimes.numeric.circuits.composition import composition_scores
from otimes.numeric.induction_by_hand import induction_by_hand
from otimes.numeric.metrics import (
    losses,
    mean_attention,
    prefix_matching_score,
    repeat_losses,
    repeated_prompts,
)
from otimes.numeric.model import Model
from otimes.numeric.tokenizer import load_tokenizer, sample_tokens
from otimes.proofs.catalogue.sources import FRAMEWORK, OLSSON, PRIMER
from otimes.proofs.claims import Load, Observation, Observed
from otimes.proofs.theorem import theorem


@theorem(
    title="Two layers learn induction, and one layer does not",
    chapter=6,
    source=f"{FRAMEWORK}, “Two-layer attention-only transformers”",
    covers=("S2-04",),
)
def two_layers_learn_induction() -> Observation:
    """Do trained models with two layers learn induction where models with one layer do not? In one
    layer a head chooses where to attend from the two tokens alone, so it cannot know which token
    stood before a key. With two layers the keys can carry this, and training should find it.

    The models were trained on the same kind of text; the one that learnt induction saw repeated
    random tokens first.
    """

    def observe(load: Load) -> Observed:
        prompts = repeated_prompts(1024)
        one = repeat_losses(load("one_layer"), prompts)
        two = repeat_losses(load("induction"), prompts)
        figure = (
            "loss on random tokens, first time and repeated: one layer "
            f"{one[0]:.2f} and {one[1]:.2f} nats, two layers {two[0]:.2f} and {two[1]:.2f}"
        )
        ratios = {"loss saved, two layers": 1 - two[1] / two[0], "loss kept, one": one[1] / one[0]}
        return Observed(figure, ratios)

    return Observation(
        "on random tokens repeated once, the loss of `induction` (two layers) is less than half "
        "the second time, that of `one_layer` more than nine tenths",
        observe,
        {"loss saved, two layers": 0.5, "loss kept, one": 0.9},
    )


@theorem(
    title="The trained induction heads read the previous-token head through their keys",
    chapter=6,
    source=f"{FRAMEWORK}, “How induction heads work”",
    covers=("B18", "S3-103"),
)
def trained_induction_is_k_composition() -> Observation:
    """Which kind of composition do the trained induction heads use? In the hand-written model it is
    K-composition by construction (`k_composition_term`). Here composition scores, which look at the
    weights only, are compared for the previous-token head and the heads with high prefix matching
    in the trained model.

    A high score is evidence about weights. It does not show that the path is used on text.
    """

    def observe(load: Load) -> Observed:
        model = load("induction")
        behaviour = head_behaviour(model).values
        previous = int(behaviour[0, 0].argmax())
        scores = composition_scores(model)
        matching = [head for head in range(model.n_heads) if behaviour[2, 1, head] > 0.5]
        if not matching:
            return Observed("no head has prefix matching above 0.5", {"K minus the others": -1.0})
        pairs = scores.values[:, previous, model.n_heads :][:, matching]
        means = pairs.mean(axis=1)
        figure = (
            f"head 0.{previous} (attention one back {behaviour[0, 0, previous]:.2f}) and "
            f"{len(matching)} heads with prefix matching above 0.5: mean Q {means[0]:.3f}, "
            f"K {means[1]:.3f}, V {means[2]:.3f}, by chance {scores.baseline:.3f}"
        )
        margin = float(means[1] - max(means[0], means[2], scores.baseline))
        return Observed(figure, {"K minus the others": margin})

    return Observation(
        "of the pairs (head with the highest previous-token score, heads with prefix matching "
        "above 0.5) the mean K-composition is larger than Q, than V, and than chance",
        observe,
        {"K minus the others": 0.0},
    )


def _right_twice(model: Model) -> float:
    """Return the share of best guesses that are right the second time, behind a first token."""
    prompts = repeated_prompts(model.d_vocab - 1, period=12, n_prompts=6) + 1
    half = prompts.shape[1] // 2
    logits = [model.forward([0, *prompt], ["logits"])["logits"] for prompt in prompts]
    guesses = np.array([each[half + 1 : -1].argmax(axis=1) for each in logits])
    return float((guesses == prompts[:, half + 1 :]).mean())


@lru_cache(maxsize=1)
def _by_hand(d_vocab: int) -> float:
    n_ctx = repeated_prompts(d_vocab - 1, period=12, n_prompts=6).shape[1] + 1
    return _right_twice(induction_by_hand(d_vocab, n_ctx, 30.0))


@theorem(
    title="The hand-written induction model compared with the trained one",
    chapter=6,
    source=f"{FRAMEWORK}, “How induction heads work”",
    covers=("B18", "S3-103"),
)
def hand_written_beside_trained() -> Observation:
    """The hand-written induction model and the trained one are compared on the same prompts: random
    tokens repeated once, after a beginning-of-text token. From the second token of the repetition
    on, only induction can give the right answer. The hand-written model has β = 30 and the
    vocabulary of the trained one.

    It shows how far training is from the exact algorithm.
    """

    def observe(load: Load) -> Observed:
        trained = load("induction")
        right = {"by hand": _by_hand(trained.d_vocab), "trained": _right_twice(trained)}
        figure = ", ".join(f"{name} {share:.0%} right" for name, share in right.items())
        return Observed(figure, right)

    return Observation(
        "on random tokens repeated once, the next token is the best guess of the model written by "
        "hand everywhere in the second half, and of `induction` in more than nine cases of ten",
        observe,
        {"by hand": 0.9999, "trained": 0.9},
    )


@theorem(
    title="Induction on a name of several tokens",
    chapter=6,
    source=f"{FRAMEWORK}, “Induction heads”; the examples with Dursley and Potters",
    covers=("S4-24",),
)
def induction_on_names() -> Observation:
    """Do the trained models complete a name of several tokens when it occurs again? The framework
    paper shows this on the first page of a novel. The bundled tokenizer was made for Python source
    and cuts names into pieces, as the example requires.

    A name that is completed after its first piece is induction at work in text, not on random
    tokens.
    """

    def observe(load: Load) -> Observed:
        tokenizer, model = load_tokenizer(), load("induction")
        tokens = tokenizer.encode("Mr and Mrs Dursley were proud. The Potters knew Mrs Dursley")
        pieces = tokenizer.encode(" Dursley")
        start = len(tokens) - len(pieces)
        places = model.forward(tokens, ["pattern.1", "logits"])
        matching = int(prefix_matching_score(model)[1].argmax())
        right, looks, before = 0, [], 0
        first = next(i for i in range(start) if tokens[i : i + len(pieces)] == pieces)
        for k in range(len(pieces) - 1):
            right += int(places["logits"][start + k].argmax() == pieces[k + 1])
            before += int(places["logits"][first + k].argmax() == pieces[k + 1])
            seen = [j for j in range(start) if tokens[j - 1] == pieces[k] and j]
            looks.append(places["pattern.1"][matching, start + k, seen].sum())
        figure = (
            f"of {len(pieces) - 1} pieces that follow, {before} are the best guess the first time, "
            f"{right} the second; head 1.{matching} attends {np.mean(looks):.2f} to what followed"
        )
        shares = {"more right the second time": right - before, "attention": float(np.mean(looks))}
        return Observed(figure, shares)

    return Observation(
        "in a sentence with Dursley twice, more of its pieces are the model's best guess the "
        "second time, and the best induction head attends more than half to what followed",
        observe,
        {"more right the second time": 0, "attention": 0.5},
    )


@theorem(
    title="Fuzzy induction: similar tokens match too",
    chapter=6,
    source=f"{OLSSON}; {PRIMER}, “Induction heads”",
    covers=("S3-106",),
)
def fuzzy_matching() -> Observation:
    """Do induction heads also match tokens that are only similar? In large models they do. The
    nearest thing in a vocabulary of Python source are words with and without a space before them:
    words are shown without the space, then with it, and the attention of the best induction head is
    compared with the same words in another order.
    """

    def observe(load: Load) -> Observed:
        model = load("induction")
        names = load_tokenizer().token_strings(range(model.d_vocab))
        at = {name: token for token, name in enumerate(names)}
        words = [w for w in names if w.isalpha() and len(w) > 1 and f" {w}" in at]
        draw = random.Random(0)
        first, again, shuffled = [], [], []
        for _ in range(16):
            chosen = draw.sample(words, 24)
            first.append([at[w] for w in chosen])
            again.append([at[f" {w}"] for w in chosen])
            shuffled.append(draw.sample(again[-1], 24))
        queries = np.arange(24, 48)
        related, control = (
            float(mean_attention(model, np.hstack([first, second]), queries, queries - 23)[1].max())
            for second in (again, shuffled)
        )
        figure = f"attention to what followed the word: {related:.3f}, shuffled {control:.3f}"
        return Observed(figure, {"attention over that on shuffled words": related / control})

    return Observation(
        "on words repeated with a space before them, the most attention of a head of `induction` "
        "to what followed the word is at least twice that on shuffled words",
        observe,
        {"attention over that on shuffled words": 2.0},
        outcome="not seen",
    )


@theorem(
    title="In-context learning: later tokens are predicted better",
    chapter=6,
    source=f"{OLSSON}, in-context learning score",
    covers=("S3-107",),
)
def in_context_learning() -> Observation:
    """Does a model predict later tokens of a text better than early ones? The in-context learning
    score is the loss late in the context minus the loss early, negative if the model uses what it
    has read. Contexts here are short: early and late are the first and the last 25 of 100 predicted
    tokens of the bundled sample.

    Induction heads are thought to be a main cause of it.
    """

    def observe(load: Load) -> Observed:
        tokens = sample_tokens(101)
        scores = {}
        for name in ("one_layer", "induction"):
            by_token = losses(load(name), tokens)
            scores[name] = float(by_token[-25:].mean() - by_token[:25].mean())
        figure = ", ".join(f"{name} {score:+.2f} nats" for name, score in scores.items())
        signs = {"early minus late, induction": -scores["induction"]}
        return Observed(figure, {**signs, "late minus early, one_layer": scores["one_layer"]})

    return Observation(
        "late minus early loss is negative for `induction` and not for `one_layer`",
        observe,
        {"early minus late, induction": 0.0, "late minus early, one_layer": 0.0},
        outcome="seen at random too",
    )


@theorem(
    title="When induction heads form during training",
    chapter=6,
    source=f"{OLSSON}, “Induction heads form in a phase change”",
    covers=("S3-107",),
)
def induction_heads_form() -> Observation:
    """When do induction heads form in training? Olsson et al. saw induction heads and in-context
    learning appear together, within a short stretch of training, and earlier or later with the
    diversity of the text. The bundled models are final ones, without checkpoints of their training,
    so it is not tried here.
    """
    return Observation(
        "in the checkpoints of one training run, the in-context learning score and the best prefix "
        "matching change fastest at the same step",
        cannot="it takes checkpoints of a training run, and the bundled models are final ones; "
        "training one again takes minutes, a GPU, and torch",
    )
