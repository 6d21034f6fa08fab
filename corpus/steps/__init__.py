"""The steps of a corpus build, as datatrove runs them: functions of (data, rank, world size, job).

read       one rank an input part        raw/<part>/<block>.parquet
clean      one rank a block              clean/<rank>.parquet, lines/<rank>.npy, rejected/<rank>.parquet
recurring  one rank a slice of hashes    recurring/<rank>.npy: lines that recur across documents
sign       one rank a block              signed/<rank>.parquet: without those lines and benchmark text;
                                         fingerprints/, signatures/, found/, left/<rank>.npy
match      one rank a band               pairs/<rank>.npy: documents that are alike
keep       one rank                      keep/<rank>.parquet, clusters.parquet
pack       one rank a block              documents/<rank>.parquet, rows-<length>/<split>/<rank>.arrow

How many ranks a step has depends on the input alone. Each rank writes its files atomically, then its
counts: ``counts/<step>-<rank>.json`` is there when the rank is done.
"""
