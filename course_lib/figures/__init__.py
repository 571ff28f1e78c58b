"""One function per picture; each returns a matplotlib figure that `show(fig, alt=…)` displays.

One file per topic. A picture's file (and matplotlib with it) loads when the picture is first asked for.
"""
from importlib import import_module

_HOME_OF = {
    "draw_intervals": "checkpointing",
    "draw_moments": "checkpointing",
    "draw_resumes": "checkpointing",
    "draw_course": "course",
    "draw_predict_measure_reconcile": "course",
    "draw_loaded": "data",
    "draw_overlap": "data",
    "draw_readings": "data",
    "draw_windows": "data",
    "draw_einsum": "einops",
    "draw_pattern": "einops",
    "draw_float": "floats",
    "draw_number_lines": "floats",
    "draw_precision": "floats",
    "draw_quantised": "floats",
    "draw_rounding": "floats",
    "draw_running_sums": "floats",
    "draw_asynchronous": "flops",
    "draw_matmul": "flops",
    "draw_graph": "gradients",
    "draw_fans": "initialization",
    "draw_signals": "initialization",
    "draw_tails": "initialization",
    "draw_curves": "modules",
    "draw_modules": "modules",
    "draw_streams": "modules",
    "draw_bytes": "optimizers",
    "draw_paths": "optimizers",
    "draw_steps": "optimizers",
    "draw_gradients": "precision",
    "draw_recipe_bytes": "precision",
    "draw_recipe_losses": "precision",
    "draw_weight_paths": "precision",
    "draw_roofline": "roofline",
    "draw_rooflines": "roofline",
    "draw_activations": "step_costs",
    "draw_step_flops": "step_costs",
    "draw_reads": "storage",
    "draw_sharing": "storage",
    "draw_storage": "storage",
    "draw_broadcast": "tensors",
    "draw_causal_masks": "tensors",
    "draw_ranks": "tensors",
    "draw_silent_broadcast": "tensors",
    "draw_losses": "training",
    "draw_norms": "training",
    "draw_overshoot": "training",
    "draw_sweep": "training",
    "draw_changes": "transformer",
    "draw_fitting": "transformer",
    "draw_memory": "transformer",
    "draw_parts": "transformer",
    "draw_sharding": "transformer",
}
__all__ = [*_HOME_OF]


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"there is no figure {name!r}; there are {', '.join(__all__)}.")
    value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value
