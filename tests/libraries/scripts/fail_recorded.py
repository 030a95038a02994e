"""Fails with an exception that PyTorch's @record writes to $TORCHELASTIC_ERROR_FILE."""
from torch.distributed.elastic.multiprocessing.errors import record


@record
def main():
    raise ValueError("the teapot is empty")


main()
