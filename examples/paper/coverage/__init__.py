"""Table 1 and Figure 3: what eight profilers see of six facets, by really running each on probes with known answers.

One file for each profiler: how it is called, and nothing else. probes.py has the programs and their true values,
scoring.py the score, which is the same for all.
"""
