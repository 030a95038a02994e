"""Lightning's Trainer: it finds out by itself who started it."""
import os

import lightning
import torch
from torch.utils.data import DataLoader, TensorDataset


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
        self.losses = []

    def training_step(self, batch):
        x, y = batch
        loss = torch.nn.functional.mse_loss(self.layer(x), y)
        self.losses.append(loss.item())
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


local_world = int(os.environ["LOCAL_WORLD_SIZE"])
trainer = lightning.Trainer(
    accelerator="cpu", devices=local_world, num_nodes=int(os.environ["WORLD_SIZE"]) // local_world,
    strategy="ddp", max_epochs=2, logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False)
x = torch.tensor([[1.0 + trainer.global_rank]]).repeat(4, 1)
model = Model()
trainer.fit(model, DataLoader(TensorDataset(x, 3 * x), batch_size=4 * trainer.world_size))

total = trainer.strategy.reduce(torch.tensor(float(trainer.global_rank)), reduce_op="sum")
print(f"rank {trainer.global_rank} of {trainer.world_size}, local rank {trainer.local_rank} of "
      f"{trainer.num_devices}: sum {total.item():.0f}, "
      f"losses {model.losses[0]:.4f} {model.losses[1]:.4f}, weight {model.layer.weight.item():.4f}")
torch.distributed.destroy_process_group()  # without it Gloo's threads end some processes by SIGABRT
