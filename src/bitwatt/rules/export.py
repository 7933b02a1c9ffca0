"""Marks in exported programs."""

from bitwatt.rules._tables import idle

idle("access_subclass_inner_tensor", "a view: no data moves", space="export")
