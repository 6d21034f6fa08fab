"""The steps of a corpus build, as datatrove runs them: functions of (data, rank, world size, job).

read        one rank an input file    raw/<file>/<block>.parquet
clean       one rank a block          clean/<rank>.parquet, rejected/<rank>.parquet
duplicates  one rank                  keep/<rank>.parquet
pack        one rank a block          documents/<rank>.parquet, rows-<length>/<split>/<rank>.arrow

How many ranks a step has depends on the input alone. Each rank writes its files atomically, then its
counts: ``counts/<step>-<rank>.json`` is there when the rank is done.
"""
