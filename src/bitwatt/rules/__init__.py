"""Op -> Work, one file or folder per first word of the op's name. Pure functions; no framework is imported here."""
