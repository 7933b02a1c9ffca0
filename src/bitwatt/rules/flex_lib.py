"""What attention of the user's own needs beside its kernels."""

from bitwatt.rules._tables import each

each("zeros_and_scatter", "values added into zeros at indices", family="index", space="flex_lib", add=1, index=1)
