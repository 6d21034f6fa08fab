"""ELECTRA pretraining: generator, discriminator, objectives, one training loop, export."""

import os

from provenance import quiet_interrupt

quiet_interrupt()  # before the seconds that torch takes to load

# Read when torch loads its OpenMP. By default threads that wait for work spin: on a machine that does other
# work too they keep the cores from the thread they wait for, and a step takes ten times the processor time.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
