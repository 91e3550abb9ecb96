"""The shelf: what was used last stays, and what is let go is handed back."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from scrubjay.engine.open_scopes import Shelf


@dataclass(eq=False)
class Thing:
    """Something of a size that may change."""

    size: int


def _filled(budget: int, sizes: Iterable[int]) -> Shelf[Thing]:
    shelf: Shelf[Thing] = Shelf(budget)
    for number, size in enumerate(sizes):
        shelf.take(str(number), lambda size=size: Thing(size))  # type: ignore[misc]
    return shelf


def _there(shelf: Shelf[Thing], *names: str) -> list[bool]:
    """Which of these are on the shelf; looking puts the others there."""
    made: set[str] = set()

    def make(name: str) -> Thing:
        made.add(name)
        return Thing(0)

    for name in names:
        shelf.take(name, lambda name=name: make(name))  # type: ignore[misc]
    return [name not in made for name in names]


def test_a_thing_is_made_once_and_found_again() -> None:
    shelf: Shelf[Thing] = Shelf(100)
    first = shelf.take("a", lambda: Thing(1))
    assert shelf.take("a", lambda: Thing(2)) is first
    assert len(shelf) == 1


def test_the_least_recently_used_goes_first() -> None:
    shelf = _filled(20, [10, 10, 10])
    oldest = shelf.take("0", lambda: Thing(0))
    gone = shelf.trim()
    assert [thing.size for thing in gone] == [10]
    assert oldest not in gone
    assert _there(shelf, "0", "2", "1") == [True, True, False]


def test_within_the_budget_nothing_goes() -> None:
    shelf = _filled(30, [10, 10, 10])
    assert shelf.trim() == []
    assert (len(shelf), shelf.size) == (3, 30)


def test_the_last_one_used_stays_however_large_it_is() -> None:
    shelf = _filled(5, [10, 1000])
    assert [thing.size for thing in shelf.trim()] == [10]
    assert (len(shelf), shelf.size) == (1, 1000)


def test_a_thing_that_grew_while_it_was_used_counts_as_it_is_now() -> None:
    shelf = _filled(30, [10, 10])
    shelf.trim()
    thing = shelf.take("0", lambda: Thing(0))
    thing.size = 25
    assert [gone.size for gone in shelf.trim()] == [10]
    assert shelf.size == 25


def test_what_was_dropped_takes_no_space() -> None:
    shelf = _filled(100, [10, 20])
    shelf.trim()
    shelf.drop("1")
    shelf.drop("never there")
    assert shelf.trim() == []
    assert (len(shelf), shelf.size) == (1, 10)


@given(steps=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 40), st.booleans()), max_size=60))
def test_whatever_is_taken_the_sizes_add_up_and_the_budget_holds(
    steps: list[tuple[int, int, bool]],
) -> None:
    shelf: Shelf[Thing] = Shelf(50)
    kept: dict[str, Thing] = {}
    for number, size, drop in steps:
        name = str(number)
        if drop:
            shelf.drop(name)
            kept.pop(name, None)
        else:
            thing = shelf.take(name, lambda size=size: Thing(size))  # type: ignore[misc]
            thing.size = size
            kept.pop(name, None)
            kept[name] = thing
        gone = shelf.trim()
        kept = {one: thing for one, thing in kept.items() if not any(thing is g for g in gone)}
        assert len(shelf) == len(kept)
        assert shelf.size == sum(thing.size for thing in kept.values())
        assert shelf.size <= 50 or len(kept) == 1


def test_threads_that_take_the_same_name_get_the_same_thing() -> None:
    shelf: Shelf[Thing] = Shelf(10)
    with ThreadPoolExecutor(4) as pool:
        things = list(pool.map(lambda _: shelf.take("a", lambda: Thing(1)), range(50)))
    assert all(thing is things[0] for thing in things)
