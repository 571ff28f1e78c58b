"""Checkpoints: all that a training run needs to go on bit for bit, in a file that is whole or not there at all.

A file is written beside its target, flushed to disk, and then renamed. It is an ordinary file of torch.save that holds
tensors, numbers, strings, lists and dicts alone, so that torch.load(path, weights_only=True) reads it too, and nothing
in it can be executed. Before a number of it is used, the checksums of its zip are verified, and all of it is held
against the model and the optimizer that are to take it over.
"""
from course_lib.checkpoint.file import CheckpointDamaged
from course_lib.checkpoint.run import Checkpoint, checkpoint_path, latest_checkpoint, load_checkpoint, save_checkpoint

__all__ = [
    "Checkpoint",
    "CheckpointDamaged",
    "checkpoint_path",
    "latest_checkpoint",
    "load_checkpoint",
    "save_checkpoint",
]
