"""What bitwatt raises: one base class, and a child for each thing a caller may want to catch."""


class BitwattError(Exception):
    """Anything bitwatt raises on purpose."""


class MissingRuleError(BitwattError):
    """Strict mode met an op that no rule covers."""


class UnknownNameError(BitwattError):
    """A cost model, rule, report format or run that does not exist was asked for by name."""


class RunFileError(BitwattError):
    """A run file is truncated, foreign, or of a version this bitwatt cannot read."""


class EstimateError(BitwattError):
    """A function could not be estimated without computing it."""


class SettingsError(BitwattError):
    """bitwatt.toml, [tool.bitwatt] or a flag holds a key or a value that bitwatt does not know."""
