"""Hugging Face Trainer: `Trainer(..., callbacks=[BitwattCallback()])`.

Around each `train()`: phases `train` and `validation`, epochs, the samples that its loaders handed out, and what the
Trainer logs. It says nothing where training ends by an exception: the run is then closed with the next one, or when the
process ends.
"""

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback

from bitwatt.callbacks.around import Around

#: Logged beside the metrics: times that a run has better, and the Trainer's own guess of its FLOPs.
_NOT_METRICS = ("_runtime", "_per_second", "total_flos", "epoch", "num_input_tokens_seen", "learning_rate", "grad_norm")
_PARAMETERS = ("learning_rate", "num_train_epochs", "max_steps", "weight_decay", "warmup_steps", "lr_scheduler_type",
               "optim", "gradient_accumulation_steps", "bf16", "fp16", "gradient_checkpointing", "seed")  # fmt: skip


class BitwattCallback(Around, TrainerCallback):  # type: ignore[misc]
    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **kwargs: Any) -> None:
        known = {name: getattr(args, name) for name in _PARAMETERS if hasattr(args, name)}
        parameters = {name: value for name, value in known.items() if isinstance(value, str | int | float | bool)}
        self.begin(type(model).__name__, parameters=parameters, batch_size=args.per_device_train_batch_size)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.end()

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.enter("train")

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._next(control)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.enter("train")
        self.count_loaded()
        self.count(epochs=1)
        self._next(control)

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any = None, **kwargs: Any) -> None:
        self.metrics(metrics or {}, state.global_step, _NOT_METRICS)
        self.enter("train")

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        self.metrics(logs or {}, state.global_step, _NOT_METRICS)

    def _next(self, control: Any) -> None:
        """An evaluation begins without telling; but it has been decided on by now."""
        if control.should_evaluate:
            self.enter("validation")
