#!/usr/bin/env python3
"""For --preempt-watch on Azure: waits until this VM is to be preempted, then prints the seconds left.

    launchd --preempt-watch ./scheduled_events.py --preempt-signal SIGUSR1 ... train.py

Spot VMs get the event Preempt, 30 s before at the least. With words behind it, other events count instead:
Preempt Terminate Redeploy Reboot Freeze. See https://learn.microsoft.com/azure/virtual-machines/linux/scheduled-events.
"""
import email.utils
import json
import os
import sys
import time
import urllib.request

ADDRESS = os.environ.get('SCHEDULED_EVENTS', 'http://169.254.169.254/metadata/scheduledevents?api-version=2020-07-01')
EVERY_S = 1      # the first answer of a VM may take two minutes, as Azure turns the service on by it
SPARE_S = 5      # of the time that is left: for the report, and the way to the other nodes
LEAST_S = 1
TIMEOUT_S = 130


def ask():
    request = urllib.request.Request(ADDRESS, headers={'Metadata': 'true'})
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(request, timeout=TIMEOUT_S) as answer:
        return json.load(answer)['Events']


def seconds_left(event):
    """NotBefore is empty once the event has begun."""
    if not event.get('NotBefore'):
        return LEAST_S
    left = email.utils.parsedate_to_datetime(event['NotBefore']).timestamp() - time.time()
    return max(LEAST_S, int(left) - SPARE_S)


def own_name():
    """As the events call this VM; an event without names, or without ours to compare, is taken for this VM's."""
    return os.environ.get('AZ_VM_NAME')


def concerns(event, kinds):
    resources, name = event.get('Resources', []), own_name()
    return event['EventType'] in kinds and (not name or not resources or name in resources)


def main():
    kinds = sys.argv[1:] or ['Preempt']
    while True:
        left = [seconds_left(event) for event in ask() if concerns(event, kinds)]
        if left:
            print(min(left))
            return
        time.sleep(EVERY_S)


if __name__ == '__main__':
    main()
