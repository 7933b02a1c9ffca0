"""Folds many scopes into few: opens the costliest places first, and shows the layers of a list as one (`layers.*`)."""

from __future__ import annotations

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
    open_groups, done = Group((), tuple(paths)).split(fold=False), []

    def weight(group: Group) -> int:
        return sum(paths[member] for member in group.members)

    least = sum(paths.values()) * _LIGHT

    def lines(groups: list[Group]) -> int:
        return sum(weight(group) >= least for group in groups)

    while open_groups:
        group = max(open_groups, key=weight)
        open_groups.remove(group)
        if all(len(member) == len(group.path) for member in group.members):
            done.append(group)
            continue
        room = limit - lines(open_groups) - lines(done)
        for fold in (False, True):
            parts = group.split(fold=fold)
            if lines(parts) <= room:
                # a place's own work cannot be split again, or it would come back for ever
                done += [part for part in parts if part.path == group.path]
                open_groups += [part for part in parts if part.path != group.path]
                break
        else:
            done.append(group)
    return sorted(done, key=weight, reverse=True)
