"""python -m: the program, in place of this process."""
import os
import sys

from . import find_launchd

program = find_launchd()
os.execv(program, [program, *sys.argv[1:]])
