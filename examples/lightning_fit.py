"""A fit of Lightning, measured by one line: `callbacks=[Bitwatt()]`.

    pip install lightning
    python examples/lightning_fit.py

An autoencoder squeezes 64 numbers into 4. The callback names phases, counts samples, and keeps what is logged.
"""

import logging

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import bitwatt
from bitwatt.callbacks.lightning import Bitwatt
from bitwatt.units import format_count


class Autoencoder(L.LightningModule):
    def __init__(self, width: int = 128) -> None:
        super().__init__()
        self.save_hyperparameters()  # kept with the run, to filter by
        self.encoder = nn.Sequential(nn.Linear(64, width), nn.GELU(), nn.Linear(width, 4))
        self.decoder = nn.Sequential(nn.Linear(4, width), nn.GELU(), nn.Linear(width, 64))

    def error(self, batch: list[torch.Tensor]) -> torch.Tensor:
        return nn.functional.mse_loss(self.decoder(self.encoder(batch[0])), batch[0])

    def training_step(self, batch: list[torch.Tensor], _: int) -> torch.Tensor:
        return self.error(batch)

    def validation_step(self, batch: list[torch.Tensor], _: int) -> None:
        self.log("val_loss", self.error(batch))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=3e-3)


def main() -> None:
    L.seed_everything(0, verbose=False)
    torch.set_num_threads(1)  # batches are small: threads would wait for each other
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    values = torch.randn(1_280, 4) @ torch.randn(4, 64)  # four numbers are enough to tell the 64
    training, unseen = (DataLoader(TensorDataset(part), batch_size=64) for part in values.split((1_024, 256)))
    measured = Bitwatt("autoencoder")  # the line
    L.Trainer(
        max_epochs=3, callbacks=[measured], accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False,
    ).fit(Autoencoder(), training, unseen)  # fmt: skip

    run = measured.run
    flops = bitwatt.totals(run)
    phases = flops.by("phase")
    print(f"{flops.coverage}; {run.observed.processed['train']['samples']:,} samples trained on")
    for phase in sorted(phases, key=phases.get, reverse=True)[:6]:
        print(f"  {phase:<24} {format_count(phases[phase], 'FLOP'):>12}  {phases[phase] / flops.total:6.1%}")
    print("val_loss by epoch:", ", ".join(f"{value:.3f}" for _, _, value in run.about.series["val_loss"]))


if __name__ == "__main__":
    main()
