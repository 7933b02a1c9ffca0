"""Activations sent to the host and back."""

from bitwatt.rules._tables import idle, moved

moved("offload reload", "Every element read and written.", space="ao")
idle("wait_tensor", "waiting for a copy", space="ao")
