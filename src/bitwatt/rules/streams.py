"""Streams and events that wait for each other."""

from bitwatt.rules._tables import idle

idle(
    "fork join record_event record_stream sync_dealloc synchronize_device synchronize_event synchronize_stream "
    "wait_event wait_stream",
    "streams wait for each other",
    space="streams",
)
