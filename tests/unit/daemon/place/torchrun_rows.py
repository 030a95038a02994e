#!/usr/bin/env python3
"""Prints the rows of torchrun_rows.h: what torch's own --numa-binding does on the machines of models.h.

torchrun_rows.py BINDING    torch/numa/binding.py of torch 2.9 or later; torch itself isn't needed

The machine is faked where torch looks: files of /sys, this thread's mask, CUDA's devices.
"""
import builtins
import importlib.util
import io
import re
import sys
import types

# as in models.h: packages, NUMA nodes a package, L3 caches a node, cores a cache, threads a core,
# NUMA nodes of the GPUs, usable CPUs ("": all)
MODELS = {
    "MODEL_DGX": (2, 1, 1, 56, 2, [0, 0, 0, 0, 1, 1, 1, 1], ""),
    "MODEL_NPS4": (2, 4, 2, 8, 2, [3, 3, 1, 1, 7, 7, 5, 5], ""),
    "MODEL_GRACE": (2, 1, 1, 72, 1, [0, 1], ""),
    "MODEL_LAPTOP": (1, 1, 1, 6, 2, [0], ""),
    "MODEL_UNEVEN": (2, 1, 3, 5, 2, [0, 0, 0, 0, 1, 1, 1], ""),
    "MODEL_HOLES": (2, 1, 2, 4, 2, [0, 1, 1], "1-2,5-7,9,12-15,17,21,28-30"),
}
MODES = ["node", "socket", "exclusive", "core-complex"]


def ranges(text):
    return {n for part in text.split(",") if part
            for n in range(int(part.split("-")[0]), int(part.split("-")[-1]) + 1)}


class Machine:
    """Numbers its CPUs as Linux does: first threads of all cores first."""

    def __init__(self, packages, numas, l3s, cores, threads, gpus, usable):
        self.cores = packages * numas * l3s * cores
        self.per_l3, self.per_numa = cores, cores * l3s
        self.per_package, self.threads, self.gpus = cores * l3s * numas, threads, gpus
        self.numas = packages * numas
        self.usable = ranges(usable) or set(range(self.cores * threads))

    def siblings(self, first, count):
        cpus = {core + t * self.cores for core in range(first, first + count) for t in range(self.threads)}
        return ",".join(map(str, sorted(cpus)))

    def file(self, path):
        if path == "/sys/devices/system/node/possible":
            return f"0-{self.numas - 1}"
        if m := re.fullmatch(r"/sys/bus/pci/devices/0000:(..):00.0/numa_node", path):
            return str(self.gpus[int(m[1], 16)])
        if m := re.fullmatch(r"/sys/devices/system/node/node(\d+)/cpulist", path):
            return self.siblings(int(m[1]) * self.per_numa, self.per_numa)
        cpu, rest = re.fullmatch(r"/sys/devices/system/cpu/cpu(\d+)/(.*)", path).groups()
        core = int(cpu) % self.cores
        answers = {"topology/thread_siblings_list": self.siblings(core, 1),
                   "topology/physical_package_id": str(core // self.per_package),
                   "cache/index3/type": "Unified", "cache/index3/level": "3",
                   "cache/index3/shared_cpu_list":
                       self.siblings(core // self.per_l3 * self.per_l3, self.per_l3)}
        return answers[rest]


def load(path):
    torch = types.ModuleType("torch")
    torch.cuda = types.SimpleNamespace()
    utils = types.ModuleType("torch._utils_internal")
    utils.signpost_event = lambda *args, **kwargs: None
    sys.modules.update({"torch": torch, "torch._utils_internal": utils})
    spec = importlib.util.spec_from_file_location("binding", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["binding"] = module
    spec.loader.exec_module(module)
    return torch, module


def main():
    torch, binding = load(sys.argv[1])
    for name, model in MODELS.items():
        machine = Machine(*model)
        torch.cuda.device_count = lambda: len(machine.gpus)
        torch.cuda.get_device_properties = lambda i: types.SimpleNamespace(
            pci_domain_id=0, pci_bus_id=i, pci_device_id=0)
        binding.open = lambda path: io.StringIO(machine.file(path))
        binding.os = types.SimpleNamespace(
            sched_getaffinity=lambda pid: machine.usable, path=binding.os.path,
            listdir=lambda path: ["index3"])
        for mode in MODES:
            options = binding.NumaOptions(affinity_mode=binding.AffinityMode(mode))
            print(f'{{ "{mode} on {name}", {name}, "{mode}", {{')
            for gpu in range(len(machine.gpus)):
                try:
                    cpus = binding._get_ranges_str_from_ints(
                        binding._get_logical_cpus_to_bind_to(gpu_index=gpu, numa_options=options))
                except RuntimeError:
                    cpus = "refused"
                print(f'"{cpus}",')
            print("} },")


if __name__ == "__main__":
    assert builtins.open is open
    main()
