"""Transformers' Trainer; its arguments come from the command line, --local_rank among them where
the launcher is asked for it."""
import os

import torch
import torch.distributed as dist
from transformers import HfArgumentParser, Trainer, TrainingArguments


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def forward(self, x, labels):
        predicted = self.layer(x)
        return {"loss": torch.nn.functional.mse_loss(predicted, labels), "logits": predicted}


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, i):
        x = torch.tensor([1.0 + i / 8])
        return {"x": x, "labels": 3 * x}


arguments, = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
torch.manual_seed(0)
trainer = Trainer(model=Model(), args=arguments, train_dataset=Numbers())
trainer.train()

losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
ranks = torch.tensor([arguments.process_index])
dist.all_reduce(ranks)
print(f"rank {arguments.process_index} of {arguments.world_size}, "
      f"local rank {arguments.local_process_index} of {os.environ['LOCAL_WORLD_SIZE']}: "
      f"sum {ranks.item()}, losses {float(losses[0]):.4f} {float(losses[1]):.4f}, "
      f"weight {trainer.accelerator.unwrap_model(trainer.model).layer.weight.item():.4f}")
dist.destroy_process_group()
