"""Everything that follows from a study and its raw times: tables, choices, checklist, pages. Pure functions."""
