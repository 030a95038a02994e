"""launchd starts and supervises the workers of a distributed training job, in place of torchrun.

It is a program; this package brings it along, and says where it is.
"""
import os
import sysconfig

__all__ = ["find_launchd"]


def find_launchd():
    """The path of the program that was installed with this package."""
    here = os.path.dirname(os.path.abspath(__file__))
    site = os.path.dirname(here)
    places = [
        os.path.join(site, "bin"),  # pip install --target
        os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(site))), "bin"),
        sysconfig.get_path("scripts"),
    ]
    for place in places:
        path = os.path.join(place, "launchd")
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    raise FileNotFoundError("launchd is not in " + ", ".join(places))
