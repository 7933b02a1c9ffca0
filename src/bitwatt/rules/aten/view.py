"""What does no work: views, questions about a tensor, and bookkeeping."""

from bitwatt.rules._tables import idle

idle(
    "view view_as _unsafe_view t transpose permute expand expand_as slice select narrow detach alias unsqueeze squeeze "
    "as_strided split split_with_sizes unsafe_split unsafe_split_with_sizes chunk unsafe_chunk unbind unfold diagonal "
    "linalg_diagonal movedim moveaxis swapaxes swapdims adjoint mT mH matrix_H numpy_T view_as_real view_as_complex "
    "_conj conj _neg_view _reshape_alias broadcast_to broadcast_tensors tensor_split hsplit vsplit dsplit unflatten "
    "atleast_1d atleast_2d atleast_3d data lift lift_fresh meshgrid _sparse_broadcast_to "
    "values indices _values _indices crow_indices col_indices ccol_indices row_indices unflatten_dense_tensors "
    "_fw_primal _make_dual _unpack_dual _test_autograd_multiple_dispatch_view _add_batch_dim _remove_batch_dim",
    "a view: no data moves",
)
idle("reshape reshape_as flatten ravel _reshape_from_tensor", "a view; where data must move, the copy shows as clone")
idle(
    "size stride numel dim sym_size sym_stride sym_numel sym_storage_offset sym_is_contiguous storage_offset "
    "is_contiguous is_complex is_conj is_neg is_floating_point is_signed is_inference is_leaf is_same_size is_set_to "
    "is_pinned is_distributed is_coalesced is_nonzero is_vulkan_available _is_zerotensor get_device output_nr "
    "result_type can_cast promote_types dense_dim sparse_dim _dimI _dimV _nnz _version retains_grad qscheme q_scale "
    "q_zero_point q_per_channel_axis q_per_channel_scales q_per_channel_zero_points _debug_has_internal_overlap "
    "_has_compatible_shallow_copy_type _has_same_storage_numel cudnn_is_acceptable _nnpack_available "
    "_cufft_get_plan_cache_max_size "
    "_cufft_get_plan_cache_size",
    "a question about a tensor, answered without reading it",
)
idle("item _local_scalar_dense", "one number handed to Python")
idle(
    "_assert_async _assert_scalar _assert_tensor_metadata _functional_assert_async _functional_assert_scalar "
    "_functional_sym_constrain_range _functional_sym_constrain_range_for_size sym_constrain_range "
    "sym_constrain_range_for_size _linalg_check_errors _make_dep_token _validate_compressed_sparse_indices "
    "_validate_sparse_bsc_tensor_args _validate_sparse_bsr_tensor_args _validate_sparse_compressed_tensor_args "
    "_validate_sparse_coo_tensor_args _validate_sparse_csc_tensor_args _validate_sparse_csr_tensor_args",
    "a check, no part of the result",
)
idle(
    "requires_grad_ retain_grad set_data record_stream _coalesced _backward get_gradients _print _propagate_xla_data "
    "_cufft_clear_plan_cache _cufft_set_plan_cache_max_size",
    "bookkeeping",
)
