"""Nested (ragged) tensors of ATen: packing and unpacking; their arithmetic is in the rules of each family."""

from bitwatt.registry import free
from bitwatt.rules._products import named
from bitwatt.rules._tables import moved

free(
    *named("_nested_tensor_size _nested_tensor_strides _nested_tensor_storage_offsets _nested_get_values"),
    *named("_nested_get_offsets _nested_get_lengths _nested_get_ragged_idx _nested_get_min_seqlen"),
    *named("_nested_get_max_seqlen _nested_get_jagged_dummy _nested_view_from_buffer _nested_view_from_jagged"),
    *named("_nested_tensor_from_mask_left_aligned _nested_compute_contiguous_strides_offsets"),
    reason="sizes are read or a view is made, no element moves",
)
moved(
    "_nested_from_padded _nested_from_padded_and_nested_example _nested_from_padded_tensor _nested_tensor_from_mask "
    "_nested_tensor_from_tensor_list _nested_get_values_copy _nested_view_from_buffer_copy "
    "_nested_view_from_jagged_copy _nested_select_backward _nested_sum_backward to_padded_tensor "
    "_jagged_to_padded_dense_forward _padded_dense_to_jagged_forward _pack_padded_sequence "
    "_pack_padded_sequence_backward nested_to_padded_tensor",
    "elements moved between padded and packed layouts",
)
