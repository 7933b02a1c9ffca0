"""Fine-tuning with Hugging Face's Trainer, measured by one line: `callbacks=[BitwattCallback()]`.

    pip install transformers accelerate
    python examples/trainer.py

A DistilBERT with random weights learns which of two words is in a sentence. Nothing is downloaded.
"""

import tempfile

import torch
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments

import bitwatt
from bitwatt.callbacks.transformers import BitwattCallback
from bitwatt.units import format_count

WORDS, LENGTH, WIDTH, LAYERS, BATCH = 1_000, 32, 64, 2, 16


def sentences(count: int, seed: int) -> list[dict[str, torch.Tensor]]:
    chance = torch.Generator().manual_seed(seed)
    ids = torch.randint(2, WORDS, (count, LENGTH), generator=chance)
    labels = torch.randint(0, 2, (count,), generator=chance)
    ids[:, ::4] = labels[:, None]  # every fourth word is the one that matters: 0 or 1
    return [{"input_ids": row, "labels": label} for row, label in zip(ids, labels, strict=True)]


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)  # batches are small: threads would wait for each other
    config = DistilBertConfig(vocab_size=WORDS, dim=WIDTH, hidden_dim=4 * WIDTH, n_layers=LAYERS, n_heads=4)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder, num_train_epochs=2, per_device_train_batch_size=BATCH, per_device_eval_batch_size=BATCH,
            learning_rate=1e-3, eval_strategy="epoch", save_strategy="no", logging_strategy="epoch",
            report_to="none", disable_tqdm=True, use_cpu=True,
        )  # fmt: skip
        measured = BitwattCallback("distilbert")  # the line
        trainer = Trainer(
            DistilBertForSequenceClassification(config),
            arguments,
            train_dataset=sentences(256, seed=1),
            eval_dataset=sentences(64, seed=2),
            callbacks=[measured],
        )
        trainer.train()

    run = measured.run
    flops = bitwatt.totals(run)
    phases = flops.by("phase")
    print(f"{flops.coverage}; {run.observed.processed['train']['samples']:,} sentences trained on")
    for phase in sorted(phases, key=phases.get, reverse=True)[:4]:
        print(f"  {phase:<20} {format_count(phases[phase], 'FLOP'):>12}  {phases[phase] / flops.total:6.1%}")
    print(f"the Trainer's own guess (total_flos): {format_count(trainer.state.total_flos, 'FLOP')}")
    print("eval_loss by epoch:", ", ".join(f"{value:.3f}" for _, _, value in run.about.series["eval_loss"]))


if __name__ == "__main__":
    main()
