"""ask_nvml.py FILE [CHECK_NODE_JSON]: what NVML's functions return for GPU 0, without launchd.

FILE gets the raw answers: of each function its return code, the bytes that it wrote, in hex, and the time that it took.
They are what fakes are to answer. With what `launchd --check-node=json` has found the answers are held against that:
a line PASS or FAIL for each.
"""
import ctypes
import json
import struct
import sys
import time

nvml = ctypes.CDLL('libnvidia-ml.so.1')
raw = {}


def ask(name, *args, room=0, filled=b'', outs=0):
    """Calls a function with these arguments, then `outs` unsigned numbers or a buffer of `room` bytes that begins with
    `filled`; its bytes, or None."""
    try:
        function = getattr(nvml, name)
    except AttributeError:
        raw[name] = {'rc': 'missing'}
        return None
    buffers = [ctypes.create_string_buffer(filled.ljust(room, b'\0'), room)] if room else \
        [ctypes.create_string_buffer(8) for _ in range(outs)]
    began = time.monotonic()
    rc = function(*args, *buffers)
    told = b''.join(buffer.raw for buffer in buffers)
    key = name if name not in raw else f'{name}({",".join(str(a) for a in args if isinstance(a, int))})'
    raw[key] = {'rc': rc, 'hex': told.rstrip(b'\0').hex(), 'ms': round(1000 * (time.monotonic() - began), 1)}
    return told if rc == 0 else None


def text(told):
    return told.split(b'\0')[0].decode() if told else None


def unsigned(told, at=0):
    return struct.unpack_from('I', told, at)[0] if told else None


def version(size, number):
    return struct.pack('I', size | number << 24)


def begin():
    ask('nvmlInit_v2')
    if raw['nvmlInit_v2']['rc'] != 0:
        return None
    device = ctypes.c_void_p()
    raw['nvmlDeviceGetHandleByIndex_v2'] = {'rc': nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device))}
    return device if raw['nvmlDeviceGetHandleByIndex_v2']['rc'] == 0 else None


def ask_all(gpu):
    """What launchd asks, and a few more."""
    told = {
        'count': unsigned(ask('nvmlDeviceGetCount_v2', outs=1)),
        'driver': text(ask_sized('nvmlSystemGetDriverVersion', 80)),
        'name': text(ask_sized('nvmlDeviceGetName', 96, gpu)),
        'uuid': text(ask_sized('nvmlDeviceGetUUID', 96, gpu)),
        'width': unsigned(ask('nvmlDeviceGetCurrPcieLinkWidth', gpu, outs=1)),
        'width_max': unsigned(ask('nvmlDeviceGetMaxPcieLinkWidth', gpu, outs=1)),
    }
    ask('nvmlDeviceGetPciInfo_v3', gpu, room=128)
    ask('nvmlDeviceGetTotalEccErrors', gpu, 1, 0, outs=1)
    ask('nvmlDeviceGetRemappedRows', gpu, outs=4)
    ask('nvmlDeviceGetRetiredPagesPendingStatus', gpu, outs=1)
    ask('nvmlDeviceGetPersistenceMode', gpu, outs=1)
    ask('nvmlDeviceGetMemoryInfo', gpu, room=24)
    ask('nvmlDeviceGetMemoryInfo_v2', gpu, room=40, filled=version(40, 2))
    ask('nvmlDeviceGetNumaNodeId', gpu, outs=1)
    ask('nvmlDeviceGetMigMode', gpu, outs=2)
    ask('nvmlDeviceGetPowerUsage', gpu, outs=1)
    ask('nvmlDeviceGetUtilizationRates', gpu, room=8)
    ask('nvmlDeviceGetTemperatureV', gpu, room=12, filled=version(12, 1))
    ask('nvmlDeviceGetTemperature', gpu, 0, outs=1)
    ask('nvmlDeviceGetClockInfo', gpu, 1, outs=1)
    ask('nvmlDeviceGetCurrentClocksEventReasons', gpu, outs=1)
    ask('nvmlDeviceGetCurrentClocksThrottleReasons', gpu, outs=1)
    ask('nvmlDeviceGetGpuFabricInfoV', gpu, room=36, filled=version(36, 2))
    ask('nvmlGpmQueryDeviceSupport', gpu, room=8, filled=struct.pack('I', 1))
    recovery = ask('nvmlDeviceGetFieldValues', gpu, 1, room=40, filled=struct.pack('I', 230))
    told['recovery'] = unsigned(recovery, 32) if recovery and unsigned(recovery, 28) == 0 else None
    told['links'] = [unsigned(ask('nvmlDeviceGetNvLinkState', gpu, link, outs=1)) for link in range(36)]
    return told


def ask_sized(name, size, *args):
    """A text, whose room is the last argument."""
    room = ctypes.create_string_buffer(size)
    rc = getattr(nvml, name)(*args, room, size)
    raw[name] = {'rc': rc, 'hex': room.raw.rstrip(b'\0').hex()}
    return room.raw if rc == 0 else None


def check(what, good):
    print('PASS' if good else 'FAIL', f'nvml: {what}')


def compare(told, findings):
    found = {(one['check'], one['subject']): one for one in findings['findings']}

    def of(name, subject='GPU 0'):
        return found.get((name, subject), {}).get('text', '(none)')

    up = sum(link == 1 for link in told['links'])
    check(f'driver_version {of("driver_version", "")} is {told["driver"]}', of('driver_version', '') == told['driver'])
    check(f'gpu_model {of("gpu_model", "")} has {told["name"]}', told['name'] in of('gpu_model', ''))
    check(f'gpu_count {of("gpu_count", "")} is {told["count"]}', of('gpu_count', '').startswith(f'{told["count"]} GPU'))
    check(f'gpu_pcie {of("gpu_pcie")} has x{told["width"]}', not told['width'] or f'x{told["width"]}' in of('gpu_pcie'))
    check(f'nvlink {of("nvlink")} has {up} links up', f'{up} ' in of('nvlink') or up == 0)
    if told['recovery'] is not None:
        health = found.get(('gpu_recovery', 'GPU 0'), {}).get('health')
        check(f'gpu_recovery is {health} at action {told["recovery"]}', (told['recovery'] == 0) == (health == 'good'))
    check('this machine is not bad', findings['health'] != 'bad')


def main(argv):
    gpu = begin()
    told = ask_all(gpu) if gpu else None
    with open(argv[1], 'w') as file:
        json.dump(raw, file, indent=1)
    if not told:
        print('FAIL nvml: it can\'t be asked:', {name: one['rc'] for name, one in raw.items()})
    elif len(argv) > 2:
        with open(argv[2]) as file:
            compare(told, json.load(file))
    if gpu:
        slow = max(raw, key=lambda name: raw[name].get('ms', 0))
        print(f'INFO nvml: {told["name"]}, driver {told["driver"]}; {slow} took {raw[slow].get("ms", 0)} ms')


if __name__ == '__main__':
    main(sys.argv)
