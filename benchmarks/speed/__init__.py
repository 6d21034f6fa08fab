"""Our own speed against peers, side by side in one run: ``python -m benchmarks.speed [WHAT ...]``.

turns      contestants take turns, medians are compared, a page and a record are written
inputs     large inputs made out of small ones
corpus     wikitext, WordPiece, whole builds, memory of a worker
pretrain   one pretraining step, and processes against threads
finetune   an epoch and predictions, and jobs against threads
accuracy   a run of its own: is an epoch that is faster worse?

Absolute times belong to one machine, ratios carry over better. Another thing to measure is one entry in
``MEASURED`` (``__main__.py``).
"""
