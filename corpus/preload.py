"""What the process that workers are forked from loads: once, not in each worker of each step.

These are the modules of a build and those that are imported only where they are used, and the tables that
many steps use.
"""

import pyarrow.dataset
import rjieba

import corpus.assemble
import corpus.command
import corpus.engine
import corpus.steps.clean
import corpus.steps.keep
import corpus.steps.match
import corpus.steps.pack
import corpus.steps.read
import corpus.steps.recurring
import corpus.steps.sign
from corpus.duplicates.decontaminate import folded_values
from corpus.script import scripts_of

__all__ = ["corpus", "pyarrow", "rjieba"]

folded_values()  # and the tables it is made from
scripts_of(["一"])
