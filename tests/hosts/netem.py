"""netem.py - the network of simulated hosts, as netem.c makes it: what packets meet on their way."""


class NetemError(Exception):
    """It has not understood, or it is gone."""


class Netem:
    """One network; all settings are of a host and a direction: "out" is what it sends, "in" what it
    receives, "both". host None: all hosts."""

    def __init__(self, process, line):
        self._process, self._line = process, line
        if line(process) != "ready":
            raise NetemError("netem is not ready")

    def _say(self, words):
        self._process.stdin.write(words + "\n")
        self._process.stdin.flush()
        return self._line(self._process)

    def _do(self, words):
        if self._say(words) != "ok":
            raise NetemError(f"netem does not know: {words}")

    def set(self, host=None, direction="both", **what):
        """loss (0 to 1), delay and jitter (ms), rate (Mbit/s), reorder and cut (0 or 1), and
        what firewalls do: no_udp, no_tcp, reset (0 or 1), max_size (bytes), forget (ms)"""
        self._do(" ".join(["host", "all" if host is None else str(host), direction,
                           *(f"{name} {value}" for name, value in what.items())]))

    def cut_pair(self, sender, receiver, cut=1):
        """One host no longer hears one other."""
        self._do(f"pair {sender} {receiver} cut {cut}")

    def heal(self):
        self._do("heal")

    def stats(self):
        """For each host {"out": (passed, lost, cut), "in": ...}, in packets."""
        words = self._say("stats").split()
        numbers = iter(words)
        found = []
        for _ in numbers:
            one = {}
            for _ in range(2):
                name = next(numbers)
                one[name] = tuple(int(next(numbers)) for _ in range(3))
            found.append(one)
        return found
