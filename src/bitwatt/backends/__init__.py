"""Watch one framework each. The only room that imports frameworks, and only ones the user has already imported."""
