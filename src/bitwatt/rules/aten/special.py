"""Special functions: each is one operation, since none has a cost of its own that all libraries share."""

from bitwatt.rules._tables import each

for _names in (
    "digamma lgamma polygamma erfinv i0 igamma igammac mvlgamma special_airy_ai special_bessel_j0 special_bessel_j1",
    "special_bessel_y0 special_bessel_y1 special_digamma special_erfcx special_erfinv special_gammainc",
    "special_gammaincc special_gammaln special_i0 special_i0e special_i1 special_i1e special_log_ndtr",
    "special_modified_bessel_i0 special_modified_bessel_i1 special_modified_bessel_k0 special_modified_bessel_k1",
    "special_multigammaln special_ndtr special_ndtri special_polygamma special_psi",
    "special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1 special_spherical_bessel_j0 special_zeta",
    "special_hermite_polynomial_h special_hermite_polynomial_he special_laguerre_polynomial_l",
    "special_legendre_polynomial_p",
    " ".join(f"special_{shifted}chebyshev_polynomial_{kind}" for shifted in ("", "shifted_") for kind in "tuvw"),
):
    each(_names, "a special function", special=1)
