"""Folds many scopes into few: opens the costliest places first, and shows the layers of a list as one (`layers.*`)."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass

Path = tuple[str, ...]

#: A share of the whole below which a line hardly matters.
_LIGHT = 0.005


@dataclass(frozen=True, slots=True)
class Group:
    """Scopes shown as one line: what they are called together, the places that name stands for, and the scopes."""

    path: Path
    members: tuple[Path, ...]

    @property
    def name(self) -> str:
        return ".".join(self.path)

    @property
    def places(self) -> list[str]:
        return list(dict.fromkeys(".".join(member[: len(self.path)]) for member in self.members))

    def split(self, *, fold: bool) -> list[Group]:
        """One group for each next step of the path; with `fold`, all numbered steps are one step."""
        depth = len(self.path)
        parts: dict[Path, list[Path]] = {}
        for member in self.members:
            step = member[depth : depth + 1]
            if fold and step and step[0].isdecimal():
                step = ("*",)
            parts.setdefault((*self.path, *step), []).append(member)
        return [Group(path, tuple(members)) for path, members in parts.items()]


def folded(weights: Mapping[str, int], limit: int) -> list[Group]:
    """At most about `limit` groups of weight, and light ones, that cover every scope once, split where the weight is.
    The light ones are left to be summed up by whoever draws the lines: they take no room from the others."""
    paths = {tuple(scope.split(".")) if scope else (): weight for scope, weight in weights.items()}
    least = sum(paths.values()) * _LIGHT
    done: list[tuple[int, Group]] = []
    waiting: list[tuple[int, int, Group]] = []  # a heap: minus the weight, then as they came
    heavy = came = 0  # lines of weight, waiting or done

    def weighed(group: Group) -> int:
        return sum(paths[member] for member in group.members)

    def wait(weight: int, group: Group) -> None:
        nonlocal came
        came += 1
        heapq.heappush(waiting, (-weight, came, group))

    for group in Group((), tuple(paths)).split(fold=False):
        wait(weight := weighed(group), group)
        heavy += weight >= least
    while waiting:
        less, _, group = heapq.heappop(waiting)
        if all(len(member) == len(group.path) for member in group.members):
            done.append((-less, group))
            continue
        room = limit - heavy + (-less >= least)
        for fold in (False, True):
            parts = [(weighed(part), part) for part in group.split(fold=fold)]
            lines = sum(weight >= least for weight, _ in parts)
            if lines <= room:
                heavy += lines - (-less >= least)
                for weight, part in parts:
                    if part.path == group.path:  # a place's own work cannot be split again, or it would come for ever
                        done.append((weight, part))
                    else:
                        wait(weight, part)
                break
        else:
            done.append((-less, group))
    return [group for _, group in sorted(done, key=lambda item: -item[0])]
