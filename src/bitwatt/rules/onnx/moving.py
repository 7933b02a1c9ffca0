"""Data moved without arithmetic, made from nothing, or not moved at all."""

from functools import partial

from bitwatt.rules import _tables
from bitwatt.rules._onnx import SPACE

idle = partial(_tables.idle, space=SPACE)
moved = partial(_tables.moved, space=SPACE)
written = partial(_tables.written, space=SPACE)

idle("Identity Reshape Flatten Squeeze Unsqueeze BitCast", "the same data under another shape: nothing moves")
idle("Shape Size SequenceLength OptionalHasElement", "a question about a tensor, answered without reading it")
idle("Constant", "it is there when the model is loaded")
idle("If Loop Scan SequenceMap", "what runs inside is counted node by node")
idle(
    "SequenceConstruct SequenceEmpty SequenceAt SequenceInsert SequenceErase Optional OptionalGetElement",
    "references are passed on, no data moves",
)

moved("Transpose DepthToSpace SpaceToDepth", "Every element moved.")
moved("Concat ConcatFromSequence", "Joined.")
moved("Split SplitToSequence", "Every element copied into a part.")
moved("Pad CenterCropPad", "Every element copied into a filled border.")
moved("Trilu", "Every element copied, or zeroed beyond the diagonal.")
_tables.written("Expand Tile", "Every element of the result written.", space=SPACE)
_tables.written("Slice Crop", "Only the part that is taken is read and written.", space=SPACE)

written("ConstantOfShape EyeLike", "Filled.")
written("Range", "start + i·step, one step after the other", add=1)
written("HannWindow HammingWindow", "a - b·cos(2πi/n)", mul=2, add=1, sin=1)
written("BlackmanWindow", "a - b·cos(2πi/n) + c·cos(4πi/n)", mul=4, add=2, sin=2)
written("RandomNormal RandomUniform RandomNormalLike RandomUniformLike", "A number drawn", family="random", random=1)
_tables.each("Bernoulli", "a number drawn and compared", space=SPACE, family="random", random=1, compare=1)
