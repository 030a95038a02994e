"""python -m: the program, in place of this process."""
import os
import sys

from . import find_launchd

program = find_launchd()
if sys.executable:  # workers run by this Python, which has what they import, not by the one on PATH
    os.environ.setdefault("PYTHON_EXEC", sys.executable)
os.execv(program, [program, *sys.argv[1:]])
