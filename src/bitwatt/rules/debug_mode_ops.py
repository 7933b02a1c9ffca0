"""Marks for debugging."""

from bitwatt.rules._tables import idle

idle("annotate", "a mark for the debugger", space="debug_mode_ops")
