"""Agreement in words, its sums, its defaults, and the key that asks for it."""

import numpy as np
import pytest

from harness.core.agreement.agree_key import agree_problems, is_function
from harness.core.agreement.agreement import (
    Agreement,
    agreement_words,
    agreements_words,
    answers_ratio,
    changed_agreement,
    least_share,
    summed,
    task_name,
)
from harness.core.agreement.agreement_default import default_boxes, default_tasks
from harness.core.files.structure import FilePlace
from harness.core.values.value import Array, tensor


def of(same: float, count: int, tied: int = 0, kind: str = "top1", failed: str = "") -> Agreement:
    return Agreement(output="scores", kind=kind, same=same, of=count, tied=tied, failed=failed)


def test_words() -> None:
    assert agreement_words(of(39, 40)) == "top-1 the same in 39 of 40"
    assert agreement_words(of(39, 40, 1)) == "top-1 the same in 39 of 40, 1 tied"
    assert agreement_words(of(0.93, 1, kind="task:f")) == "task:f agrees to 93%"
    assert agreement_words(of(0, 0, kind="task:f", failed="ValueError: x")) == "task:f unknown: ValueError: x"
    assert agreements_words([of(39, 40), of(40, 40, kind="top5")]) == (
        "scores: top-1 the same in 39 of 40, top-5 the same in 40 of 40"
    )
    assert [task_name(kind) for kind in ("argmax:1", "boxes:0.75", "m:f")] == [
        "argmax along axis 1",
        "boxes by IoU 0.75",
        "m:f",
    ]
    assert (answers_ratio([of(39, 40)]), answers_ratio([]), answers_ratio([of(0, 0)])) == ("39/40", "", "?")


def test_data_sets_are_added_up() -> None:
    found = summed([of(19, 20), of(20, 20, kind="top5"), of(18, 20, 1), of(0, 0, kind="top5", failed="why")])
    assert found == (of(37, 40, 1), of(20, 20, kind="top5", failed="why"))


def test_ties_do_not_disagree() -> None:
    assert of(39, 40, 1).share == 1.0
    assert least_share([of(39, 40, 1), of(38, 40)]) == 0.95
    assert least_share([of(0, 0)]) is None


def test_only_another_count_of_other_answers_is_a_change() -> None:
    assert changed_agreement([of(40, 40)], [of(38, 40)]) == ("scores: top-1 the same in 40 of 40 -> 38 of 40")
    assert changed_agreement([of(39, 40, 1)], [of(40, 40)]) == ""
    assert changed_agreement([], [of(38, 40)]) == ""
    assert "unknown" in changed_agreement([of(40, 40)], [of(0, 0, failed="it hung")])


def default(name: str, head: str, array: Array) -> tuple[str, ...]:
    return default_tasks(name, head, tensor(array.astype(np.float32)))


NUMBERS = np.random.default_rng(0).normal(size=(3, 7)) * 3
SOFT = np.exp(NUMBERS) / np.exp(NUMBERS).sum(-1, keepdims=True)


@pytest.mark.parametrize(
    ("name", "head", "array", "tasks"),
    [
        ("y", "linear", NUMBERS, ("top1", "top5")),
        ("y", "softmax", SOFT, ("top1", "top5")),
        ("y", "log_softmax", np.log(SOFT), ("top1", "top5")),
        ("y", "linear", NUMBERS[:, :3], ("top1",)),
        ("y", "sigmoid", SOFT, ("threshold",)),
        ("y", "sigmoid", SOFT[:, :1], ("threshold",)),
        ("logits", "linear", np.stack([NUMBERS, NUMBERS]), ("argmax",)),
        ("y", "softmax", np.stack([SOFT, SOFT]), ("argmax",)),
        ("mask_logits", "image", np.ones((1, 2, 4, 4)), ("argmax:1",)),
        ("mask", "sigmoid", np.ones((1, 1, 4, 4)), ("threshold",)),
        ("pooled_logits", "linear", NUMBERS, ("top1", "top5")),
        # What may be anything has none.
        ("y", "", NUMBERS, ()),
        ("y", "softmax", NUMBERS, ()),
        ("y", "linear", np.stack([NUMBERS, NUMBERS]), ()),
        ("embedding", "linear", NUMBERS, ()),
        ("y", "linear", NUMBERS / np.linalg.norm(NUMBERS, axis=-1, keepdims=True), ()),
        ("y", "image", np.ones((1, 3, 4, 4)), ()),
        ("y", "sigmoid", np.ones((1, 3, 4, 4)), ()),
        ("y", "linear", NUMBERS[:, :1], ()),
        ("y", "linear", NUMBERS[0], ()),
        ("y", "linear", NUMBERS[:0], ()),
        ("y", "linear", np.full((3, 7), np.nan), ("top1", "top5")),
    ],
)
def test_default_tasks(name: str, head: str, array: Array, tasks: tuple[str, ...]) -> None:
    assert default(name, head, array) == tasks


def test_integers_have_no_task_by_default() -> None:
    assert default_tasks("logits", "linear", tensor(np.zeros((3, 7), np.int32))) == ()


def test_boxes_by_default_need_scores() -> None:
    boxes, scores = tensor(np.ones((5, 4), np.float32)), tensor(np.full(5, 0.5, np.float32))
    assert default_boxes({"boxes": boxes, "scores": scores}) == "boxes"
    assert default_boxes({"boxes": boxes}) == ""
    assert default_boxes({"detections": tensor(np.ones((5, 7), np.float32))}) == "detections"
    assert default_boxes({"y": boxes, "scores": scores}) == ""


def problems(agree: object, *, modules: tuple[str, ...] | None = ("task",)) -> list[str]:
    finds = None if modules is None else modules.__contains__
    return [str(one) for one in agree_problems(agree, FilePlace("m.toml", "agree"), finds)]


@pytest.mark.parametrize(
    "agree",
    [
        *(
            "top1",
            "top5",
            "argmax",
            "argmax:1",
            "argmax:-2",
            "threshold:0.3",
            "boxes:0.75",
            "ctc:28",
            "ids",
            "none",
        ),
        *("task:f", "task.inner:f", {"logits": "top1", "boxes": "none"}),
    ],
)
def test_good_values(agree: object) -> None:
    assert problems(agree) == []


@pytest.mark.parametrize(
    ("agree", "words"),
    [
        ("topp1", "did you mean 'top1'"),
        ("argmx:1", "did you mean 'argmax'"),
        ("argmax:x", "argmax:AXIS"),
        ("top1:3", "without a number"),
        ("boxes:1.5", "above 0, up to 1"),
        ("threshold:nan", "threshold:LIMIT"),
        ("ctc:-1", "index of the blank"),
        ("tsk:f", "no module 'tsk'"),
        ("task:f()", "module:function"),
        ({}, "the table is empty"),
        ({"logits": "top"}, "agree.logits"),
    ],
)
def test_bad_values_say_what_is_valid(agree: object, words: str) -> None:
    (problem,) = problems(agree)
    assert words in problem


def test_a_file_that_travels_with_a_model_names_no_code() -> None:
    (problem,) = problems("os:remove", modules=None)
    assert "must not name" in problem
    assert problems({"y": "top1"}, modules=None) == []


def test_functions_are_told_from_tasks() -> None:
    assert is_function("m:f")
    assert not is_function("argmax:1")
    assert not is_function("top1")
