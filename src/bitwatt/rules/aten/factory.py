"""New tensors: memory alone is free, filling it writes bytes."""

from bitwatt.rules._tables import each, idle, written

idle(
    "empty empty_like empty_strided empty_permuted new_empty new_empty_strided empty_quantized _empty_affine_quantized "
    "_empty_per_channel_affine_quantized resize resize_as sparse_resize sparse_resize_and_clear "
    "_resize_output set from_file _efficientzerotensor",
    "memory is set aside, nothing is computed or written",
)

idle(
    "sparse_coo_tensor sparse_csr_tensor sparse_csc_tensor sparse_bsr_tensor sparse_bsc_tensor "
    "sparse_compressed_tensor _sparse_coo_tensor_unsafe _sparse_csr_tensor_unsafe _sparse_csc_tensor_unsafe "
    "_sparse_bsr_tensor_unsafe _sparse_bsc_tensor_unsafe _sparse_compressed_tensor_unsafe "
    "_sparse_compressed_tensor_with_dims _sparse_coo_tensor_with_dims _sparse_coo_tensor_with_dims_and_tensors",
    "indices and values taken together: no data moves",
)

written("zeros ones full zeros_like ones_like full_like new_zeros new_ones new_full scalar_tensor", "Filled.")
written("fill zero eye _new_zeros_with_same_feature_meta", "Filled.")
written("tril_indices triu_indices _shape_as_tensor", "Written.")
written("arange range _dim_arange", "start + i·step, one step after the other", add=1)
written("linspace fft_fftfreq fft_rfftfreq", "start + i·step", mul=1, add=1)
written("logspace", "base^(start + i·step)", mul=1, add=1, pow=1)
written("hann_window hamming_window", "a - b·cos(2πi/n)", mul=2, add=1, sin=1)
written("bartlett_window", "1 - |2i/n - 1|", mul=1, add=2, logic=1)
written("blackman_window", "a - b·cos(2πi/n) + c·cos(4πi/n)", mul=4, add=2, sin=2)
each("kaiser_window", "I₀(β·√(1 - (2i/n - 1)²))/I₀(β)", mul=3, add=2, sqrt=1, special=1, div=1)
