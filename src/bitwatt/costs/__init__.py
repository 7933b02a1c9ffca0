"""Cost models: what one unit of work is worth under a convention. Conventions live here and nowhere else."""
