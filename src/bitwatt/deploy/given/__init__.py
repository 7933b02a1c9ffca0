"""What is to be deployed: models and rows, out of files or objects, if they are trusted and fit each other."""
