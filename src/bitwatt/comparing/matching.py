"""Which layer of one run is which of another: the same name, else the same shape in the same order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping

from bitwatt.records import Layer

#: Items left out on both sides, up to which a longest common subsequence is looked for.
_EDITS = 1000


def matched(
    before: Iterable[str],
    after: Iterable[str],
    layers_before: Mapping[str, Layer],
    layers_after: Mapping[str, Layer],
) -> dict[str, str]:
    """Scope -> scope, for those that have a counterpart. Those with weights are told by their class and shapes, then by
    their shapes alone (a class may be renamed too), always in the order they came; the others follow the place they
    stand in."""
    left, right = dict.fromkeys(before), dict.fromkeys(after)
    found = {scope: scope for scope in left if scope in right}
    for key in (_by_class, _by_shape):
        taken = set(found.values())
        found |= _in_order(
            [scope for scope in left if scope not in found],
            [scope for scope in right if scope not in taken],
            lambda scope, key=key: key(layers_before.get(scope)),  # type: ignore[misc]
            lambda scope, key=key: key(layers_after.get(scope)),  # type: ignore[misc]
        )
    return found | _following(left, right, found)


def _by_class(layer: Layer | None) -> Hashable:
    return (layer.kind, layer.shapes) if layer is not None and layer.shapes else None


def _by_shape(layer: Layer | None) -> Hashable:
    return layer.shapes if layer is not None and layer.shapes else None


def _in_order(
    left: list[str],
    right: list[str],
    of_left: Callable[[str], Hashable],
    of_right: Callable[[str], Hashable],
) -> dict[str, str]:
    """The longest sequence of equal keys that both have. Where that takes too long (very many layers, and hardly any
    alike), the first of a key goes with the first of it, the second with the second, and so on."""
    left = [scope for scope in left if of_left(scope) is not None]
    right = [scope for scope in right if of_right(scope) is not None]
    here, there = list(map(of_left, left)), list(map(of_right, right))
    pairs = _aligned(here, there)
    return {left[i]: right[j] for i, j in (_by_turn(here, there) if pairs is None else pairs)}


def _aligned(here: list[Hashable], there: list[Hashable]) -> list[tuple[int, int]] | None:
    """Which items make up a longest common subsequence: Myers, "An O(ND) difference algorithm" (1986). `reach[k]` is
    how far one comes on diagonal k with so many items left out; None where more than _EDITS are."""
    reach, trail = {1: 0}, list[dict[int, int]]()
    for edits in range(min(len(here) + len(there), _EDITS) + 1):
        trail.append(dict(reach))
        for k in range(-edits, edits + 1, 2):
            came = _came(reach, k, edits)
            x = reach[came] + (came < k)
            while x < len(here) and x - k < len(there) and here[x] == there[x - k]:
                x += 1
            reach[k] = x
            if x >= len(here) and x - k >= len(there):
                return _walked(trail, len(here), len(there))
    return None


def _came(reach: Mapping[int, int], k: int, edits: int) -> int:
    """The diagonal from which one comes to k."""
    return k + 1 if k == -edits or (k != edits and reach[k - 1] < reach[k + 1]) else k - 1


def _walked(trail: list[dict[int, int]], x: int, y: int) -> list[tuple[int, int]]:
    pairs = []
    for edits in range(len(trail) - 1, -1, -1):
        came = _came(trail[edits], x - y, edits)
        before = trail[edits][came]
        while x > before and y > before - came:
            x, y = x - 1, y - 1
            pairs.append((x, y))
        x, y = before, before - came
    return pairs


def _by_turn(here: list[Hashable], there: list[Hashable]) -> list[tuple[int, int]]:
    places: dict[Hashable, deque[int]] = {}
    for j, key in enumerate(there):
        places.setdefault(key, deque()).append(j)
    return [(i, places[key].popleft()) for i, key in enumerate(here) if places.get(key)]


def _following(left: Mapping[str, None], right: Mapping[str, None], found: Mapping[str, str]) -> dict[str, str]:
    """What is left, without weights or resized, by how the places around it were renamed: encoder.0.fc -> model.0.fc
    says that encoder.0 is model.0."""
    renamed: dict[str, str] = {}
    for old, new in found.items():
        while old != new:
            renamed.setdefault(old, new)
            old, new = _parent(old), _parent(new)
    taken = set(found.values())
    more: dict[str, str] = {}
    for scope in left:
        if scope not in found and scope:
            target = _moved(scope, renamed)
            if target in right and target not in taken:
                more[scope] = target
                taken.add(target)
    return more


def _moved(scope: str, renamed: Mapping[str, str]) -> str:
    """A scope's name where the nearest place around it that was renamed is now."""
    place = scope
    while place and place not in renamed:
        place = _parent(place)
    return f"{renamed.get(place, place)}{'.' if not place else ''}{scope[len(place) :]}".strip(".")


def _parent(scope: str) -> str:
    return scope.rpartition(".")[0]
