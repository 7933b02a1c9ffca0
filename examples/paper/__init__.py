"""The evaluation of "Precision-Aware Workload Analytics for AI Systems", run again with bitwatt.

python -m examples.paper            measures everything and writes docs/paper.md
"""
